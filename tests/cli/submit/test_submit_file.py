"""`submit -f FILE`: Kubernetes objects without changes, or a job in arena's v2 schema, whose fields
flags override.

See docs/spec/arena-cli.md#dry-run-and-files, docs/spec/arena-cli.md#job-files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.submitting import KeepingCluster, dry_run, submit

from fairlead.errors import UserError

JOB: dict[str, Any] = {
    "version": "0.1.0",
    "name": "from-file",
    "labels": {"team": "a"},
    "annotations": {"why": "test"},
    "image": "i:1",
    "run": "python train.py --epochs 3",
    "shell": "bash",
    "working_dir": "/w",
    "envs": {"A": 1, "B": True},
    "worker": {"replicas": 2, "resources": {"cpu": 4, "memory": "8Gi", "gpus": 2}},
    "sync": {"mode": "git", "source": "https://h/r.git"},
    "storages": [{"pvc": "claim", "mount_path": "/data"}, {"host_path": "/h", "mount_path": "/c"}],
    "scheduling": {
        "priority": "high",
        "gang": True,
        "selector": {"zone": "a"},
        "tolerations": ["all"],
    },
    "lifecycle": {
        "clean_task_policy": "All",
        "retry": 2,
        "running_timeout": "1h",
        "ttl_after_finished": "1m",
    },
    "image_pull_policy": "IfNotPresent",
    "image_pull_secrets": ["s"],
    "service_account": "robot",
    "restart": "OnFailure",
    "host_network": True,
    "logging": {"tensorboard": {"logdir": "/data/logs", "image": "t"}},
}
AS_FLAGS = (
    "--name=from-file -l team=a -a why=test --image=i:1 --shell=bash --working-dir=/w -e A=1 "
    "-e B=true --cpu=4 --memory=8Gi --gpus=2 "
    "--sync-mode=git --sync-source=https://h/r.git -d claim:/data --data-dir=/h:/c -p high "
    "--gang --selector=zone=a --toleration=all "
    "--clean-task-policy=All --retry=2 --running-timeout=1h --ttl-after-finished=1m "
    "--image-pull-policy=IfNotPresent "
    "--image-pull-secret=s --service-account=robot --restart-policy=OnFailure --hostNetwork "
    "--tensorboard --logdir=/data/logs "
    "--tensorboard-image=t -- python train.py --epochs 3"
)


def written(folder: Path, *documents: Any) -> str:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


@pytest.mark.parametrize(("kind", "workers"), [("mpijob", 2), ("pytorchjob", 3)])
def test_a_job_file_means_what_its_flags_mean(tmp_path: Path, kind: str, workers: int) -> None:
    assert dry_run(f"{kind} -f {written(tmp_path, JOB)}") == dry_run(
        f"{kind} --workers={workers} {AS_FLAGS}"
    )


def test_the_roles_of_a_tfjob(tmp_path: Path) -> None:
    job = {
        "version": "0.1.0",
        "name": "j",
        "image": "i",
        "run": "x",
        "framework": {"name": "tf", "options": {"success_policy": "AllWorkers"}},
        "worker": {"replicas": 2, "resources": {"gpu": 1}},
        "ps": {"replicas": 1, "resources": {"cpu": 1, "gpus": 1}},
        "chief": {"replicas": 1, "resources": {"memory": "1Gi"}},
        "evaluator": {"replicas": 1},
    }
    flags = (
        "--workers 2 --gpus 1 --ps 1 --ps-cpu 1 --ps-gpus 1 --chief --chief-memory 1Gi "
        "--evaluator --success-policy AllWorkers"
    )
    assert dry_run(f"tfjob -f {written(tmp_path, job)}") == dry_run(
        f"tfjob --name=j --image=i {flags} x"
    )


def test_flags_override_the_file_even_with_a_default_value(tmp_path: Path) -> None:
    name = written(tmp_path, JOB)
    [job, *_] = dry_run(
        f"pytorchjob --gpus=0 -e A=9 --gang=false --name=other -f {name} -- own command"
    )
    master = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    container = master["spec"]["containers"][0]
    assert job["metadata"]["name"] == "other" and container["command"] == [
        "bash",
        "-c",
        "own command",
    ]
    assert {"name": "A", "value": "9"} in container["env"] and {
        "name": "B",
        "value": "true",
    } in container["env"]
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    assert not any(key.startswith("pod-group") for key in master["metadata"]["labels"])


def test_the_file_names_a_namespace_and_the_flag_another(tmp_path: Path) -> None:
    name = written(tmp_path, {**JOB, "namespace": "team"})
    for flag, namespace in (("", "team"), ("-n other", "other")):
        assert {each["metadata"]["namespace"] for each in dry_run(f"mpijob -f {name} {flag}")} == {
            namespace
        }


def test_objects_of_kubernetes_are_created_as_they_are(tmp_path: Path) -> None:
    objects = [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": "a"},
            "spec": {"x": [1, "1e3"]},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "b", "namespace": "own"},
            "data": {"k": "yes"},
        },
    ]
    name, cluster = written(tmp_path, *objects), KeepingCluster()
    assert submit(f"tfjob -f {name}", cluster).out == (
        "tfjob.kubeflow.org/a created\nconfigmap/b created\n"
    )
    assert cluster.created == objects
    assert list(yaml.safe_load_all(submit(f"tfjob -f {name} --dry-run").out)) == objects
    broken = KeepingCluster(full=["b"])
    with pytest.raises(UserError) as refused:
        submit(f"tfjob -f {name}", broken)
    assert (
        refused.value.what == "the configmap b is already exist, so nothing of the file was created"
    )
    assert refused.value.hint == "`kubectl delete configmap/b -n own` removes it", (
        "`arena delete b` would find no job"
    )
    assert broken.deleted == ["TFJob a"]
    with pytest.raises(UserError) as caught:
        submit(f"tfjob -f {name}", KeepingCluster(full=["a"]))
    assert (
        caught.value.what
        == "the job a is already exist, please delete it first. use 'arena delete a'"
    )


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("mpijob", {"colour": "red"}, "unknown key `colour` in the job file"),
    ("mpijob", {"worker": {"colour": "red"}}, "unknown key `worker.colour` in the job file"),
    (
        "mpijob",
        {"worker": {"resources": {"tpu": 1}}},
        "unknown key `worker.resources.tpu` in the job file",
    ),
    ("mpijob", {"scheduling": {"x": 1}}, "unknown key `scheduling.x` in the job file"),
    ("mpijob", {"version": 2}, "version `2` of the job file is unknown"),
    (
        "mpijob",
        {"worker": {"replicas": -1}},
        "`worker.replicas` of the job file is `-1`, and must be a number from 0",
    ),
    ("mpijob", {"worker": 3}, "`worker` of the job file is no block"),
    ("mpijob", {"envs": "A"}, "`env` of the job file is no list"),
    ("mpijob", {"name": ["a"]}, "`name` of the job file is no plain value"),
    ("mpijob", {"ps": {"replicas": 1}}, "a mpijob has no ps"),
    ("tfjob", {"master": {}}, "a tfjob has no master"),
    ("tfjob", {"chief": {"replicas": 2}}, "chief.replicas is 2: a job has one chief"),
    (
        "tfjob",
        {"framework": {"name": "pytorch"}},
        "the job file is for `pytorch`, and the command submits a tfjob",
    ),
    (
        "mpijob",
        {"restart": "Always"},
        "failed to validate command args: --restart-policy is invalid: unknown value Always",
    ),
    (
        "mpijob",
        {"name": "Bad"},
        (
            "failed to validate command args: the job name must consist of lower case alphanumeric "
            "characters"
        ),
    ),
    ("mpijob", {"namespace": "$(touch x)"}, "invalid namespace `$(touch x)`"),
    ("mpijob", {"namespace": {"a": 1}}, "`namespace` of the job file is no plain value"),
]


@pytest.mark.parametrize(
    ("kind", "change", "sentence"), REFUSED, ids=[sentence for _, _, sentence in REFUSED]
)
def test_what_the_schema_has_not_is_an_error(
    tmp_path: Path, kind: str, change: dict[str, Any], sentence: str
) -> None:
    job = {"version": "0.1.0", "name": "j", "image": "i", "run": "x", **change}
    with pytest.raises(UserError) as refused:
        submit(f"{kind} --dry-run -f {written(tmp_path, job)}")
    assert refused.value.what.startswith(sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "job file `{tmp_path}/f` holds no job"),
        ("- a\n", "job file `{tmp_path}/f` holds no job"),
        (
            "a: [",
            "job file `{tmp_path}/f` is no YAML: while parsing a flow node did not find expected "
            "node content at line 2, column 1",
        ),
        (
            "x: 1\n---\ny: 2\n",
            "the job file holds 2 documents that are not all objects of Kubernetes",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\n",
            "a ConfigMap of the job file has no metadata.name",
        ),
        (
            "[" * 5000,
            "job file `{tmp_path}/f` is no YAML: nested more than 200 levels deep at line 1, "
            "column 201",
        ),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "f"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        submit(f"mpijob --dry-run -f {path}")
    assert caught.value.what == sentence.format(tmp_path=tmp_path)
    with pytest.raises(UserError) as caught:
        submit(f"mpijob --dry-run -f {path}.absent")
    assert (
        caught.value.what == f"job file `{path}.absent` cannot be read: No such file or directory"
    )
