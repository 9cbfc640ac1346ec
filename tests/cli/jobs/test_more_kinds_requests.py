"""The requests of the job commands in a cluster that serves kinds beyond those of Kubeflow: one
list for each resource, not for each type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.arena import arena, kubeconfig
from tests.edge.scripted import Reply, ScriptedServer, status

GROUPS = {
    ("kai.alibabacloud.com", "v1alpha1"): ("trainingjobs", "TrainingJob"),
    ("batch.volcano.sh", "v1alpha1"): ("jobs", "Job"),
    ("batch", "v1"): ("jobs", "Job"),
    ("sparkoperator.k8s.io", "v1beta2"): ("sparkapplications", "SparkApplication"),
}
AGGREGATED = {
    "Content-Type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
}
TRAINING = "/apis/kai.alibabacloud.com/v1alpha1/namespaces/default/trainingjobs"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
SPARK = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/default/sparkapplications"
PODS = "/api/v1/namespaces/default/pods"


def discovery() -> Reply:
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        {
                            "resource": plural,
                            "responseKind": {"kind": kind},
                            "scope": "Namespaced",
                            "verbs": ["list", "get"],
                        }
                    ],
                }
            ],
        }
        for (group, version), (plural, kind) in GROUPS.items()
    ]
    return Reply({"kind": "APIGroupDiscoveryList", "items": items}, headers=AGGREGATED)


def training_job(name: str, app: str) -> dict[str, Any]:
    template = {
        "spec": {"containers": [{"name": "et", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
    }
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-05T08:00:00Z",
        "labels": {"app": app},
    }
    return {
        "metadata": meta,
        "spec": {"etReplicaSpecs": {"worker": {"replicas": 2, "template": template}}},
        "status": {"phase": "Failed"},
    }


ELASTIC, DEEP = training_job("grows", "etjob"), training_job("deep", "deepspeedjob")


def listed(*objects: Any) -> list[Reply]:
    return [Reply({"metadata": {"resourceVersion": "1"}, "items": list(objects)})]


def script() -> dict[str, list[Reply]]:
    return {
        "/apis": [discovery()],
        TRAINING: listed(ELASTIC, DEEP),
        VOLCANO: listed(),
        SPARK: listed(),
        PODS: listed(),
        f"{TRAINING}/deep": [Reply(DEEP)],
        **{
            f"{path}/deep": [status(404, "NotFound", ('jobs "deep" not found'))]
            for path in (VOLCANO, SPARK)
        },
    }


def run(folder: Path, line: str) -> tuple[int, str, str, list[tuple[str, str]]]:
    """Exit status, stdout, stderr, and the requests as (method, path); for a pod list the labels
    replace the path.
    """
    with ScriptedServer(script()) as server:
        done = arena(folder, "--kubeconfig", str(kubeconfig(folder, server.url)), *line.split())
        asked = [(each.method, each.query.get("labelSelector", each.path)) for each in server.seen]
    return done.returncode, done.stdout, done.stderr, asked


def test_two_types_of_one_resource_are_one_list_and_kubernetes_own_jobs_are_none(
    tmp_path: Path,
) -> None:
    code, out, _, asked = run(tmp_path, "list")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:]}
    assert code == 0 and {name: row[:2] for name, row in rows.items()} == {
        "grows": ["FAILED", "ETJOB"],
        "deep": ["FAILED", "DEEPSPEEDJOB"],
    }
    assert rows["deep"][3] == "4"
    assert [path for _, path in asked].count(TRAINING) == 1
    assert {path for _, path in asked if path.startswith("/apis/batch")} == {VOLCANO}
    families = {path for _, path in asked if not path.startswith("/")}
    assert families == {
        "training-job-name",
        "volcano.sh/job-name",
        "sparkoperator.k8s.io/app-name",
    }, "of kinds that are served"


@pytest.mark.parametrize(
    ("word", "name"), [("et", "grows"), ("deepspeedjob", "deep"), ("dp", "deep")]
)
def test_a_type_shows_its_own_jobs_only(tmp_path: Path, word: str, name: str) -> None:
    code, out, _, asked = run(tmp_path, f"list -T {word}")
    assert (code, [line.split()[0] for line in out.splitlines()[1:]]) == (0, [name])
    assert sum(path.startswith("/apis/") for _, path in asked) == 1


def test_a_job_is_found_deleted_and_shown_with_the_type_that_its_label_names(
    tmp_path: Path,
) -> None:
    code, out, _, asked = run(tmp_path, "get deep -o json")
    assert (code, json.loads(out)["trainer"]) == (0, "deepspeedjob")
    assert ("GET", "training-job-name=deep") in asked
    code, _, err, asked = run(tmp_path, "delete deep")
    assert (
        code == 0
        and "has been deleted successfully" in err
        and ("DELETE", f"{TRAINING}/deep") in asked
    )


def test_a_job_of_the_other_type_is_absent(tmp_path: Path) -> None:
    code, _, err, asked = run(tmp_path, "delete deep -T et")
    assert code == 0 and "does not exist,skip to delete it" in err
    assert all(method != "DELETE" for method, _ in asked)
