"""`arena submit` and a real API server with the operators' own definitions: what is printed, and
that a dry run prints the same objects.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from tests.cli.submit.document_000 import DOCUMENT_000
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds, install_more_job_kinds
from tests.kube.submitted import Manifest, as_asked, one_by_one
from tests.programs import run_program
from tests.properties.flag_sets import flag_sets
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as started:
        install_job_kinds(started.admin)
        install_more_job_kinds(started.admin)
        yield started


def arena(cluster: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from fairlead.run.programs import run_arena; run_arena()"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(cluster.kubeconfig),
    }
    return run_program([sys.executable, "-c", code, *arguments], env=env)


def test_the_command_of_document_000_makes_an_object_that_the_operator_accepts(
    cluster: ControlPlane,
) -> None:
    words = DOCUMENT_000.replace("\\\n", " ")
    line = (
        f"{sys.executable} -c 'from fairlead.run.programs import run_arena; run_arena()' submit "
        f"{words}"
    )
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "KUBECONFIG": str(cluster.kubeconfig),
    }
    first = run_program(["sh", "-c", line], env=env)
    assert (first.returncode, first.stdout) == (0, "mpijob.kubeflow.org/mpi-test created\n"), (
        first.stderr
    )
    assert (
        "You can run `arena get mpi-test --type mpijob -n default` to check the job status"
    ) in first.stderr
    [job] = cluster.admin.get("mpijobs")
    assert (
        job["apiVersion"] == "kubeflow.org/v2beta1"
        and job["metadata"]["annotations"]["arena.kubeflow.org/username"]
    )
    again = run_program(["sh", "-c", line], env=env)
    assert (again.returncode, again.stdout) == (1, "")
    assert (
        "the job mpi-test is already exist, please delete it first. use 'arena delete mpi-test'"
    ) in again.stderr
    cluster.admin.delete("mpijob", "mpi-test", "-n", "default")


def test_what_the_served_schema_lacks_is_left_out_with_a_word(cluster: ControlPlane) -> None:
    ended = arena(
        cluster,
        "submit",
        "tf",
        "--name=late",
        "--image=i",
        "--starting-timeout=5s",
        "--dry-run",
        "run",
    )
    assert (
        ended.returncode == 0 and "does not support `spec.startingDeadlineSeconds`" in ended.stderr
    )
    assert "runPolicy" in yaml.safe_load(ended.stdout)["spec"]


def test_a_priority_and_a_namespace_that_do_not_exist(cluster: ControlPlane) -> None:
    ended = arena(cluster, "submit", "mpi", "--name=j", "--image=i", "-p", "absent", "run")
    assert ended.returncode == 1 and "the priority absent doesn't exist" in ended.stderr
    ended = arena(
        cluster,
        "submit",
        "mpi",
        "--name=j",
        "--image=i",
        "-p",
        "system-cluster-critical",
        "-n",
        "absent",
        "run",
    )
    assert ended.returncode == 1 and 'namespaces \\"absent\\" not found' in ended.stderr


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(flag_sets())
def test_a_dry_run_piped_into_kubectl_makes_the_same_objects(
    cluster: ControlPlane, words: list[str]
) -> None:
    words = [word for word in words if not word.startswith("--priority=")]  # it must exist
    place = words.index("--")
    printed = arena(cluster, "submit", *words[:place], "--dry-run", *words[place:])
    assert printed.returncode == 0, printed.stderr
    reported = cluster.admin.run(
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-o",
        "json",
        "-f",
        "-",
        stdin=printed.stdout,
    )
    done = arena(cluster, "submit", *words)
    assert done.returncode == 0, done.stderr
    labels = [line.removesuffix(" created") for line in done.stdout.splitlines()]
    made = one_by_one(cluster.admin.run("get", "-o", "json", "-n", "default", *labels))
    # Objects that belong to a job are deleted with it: the garbage collector may be faster than
    # this line.
    cluster.admin.run("delete", "--ignore-not-found", "--wait=true", "-n", "default", *labels)
    assert [as_asked(each) for each in made] == [as_asked(each) for each in one_by_one(reported)]
    job = made[0]["metadata"]
    assert all(
        [owner["uid"] for owner in each["metadata"]["ownerReferences"]] == [job["uid"]]
        for each in made[1:]
    )


@pytest.mark.parametrize(
    "line",
    [
        "rayjob --name=whole --image=i --worker-replicas=2 --worker-gpu=1 --head-cpu=1 "
        "--head-memory=2Gi --ray-version=2.46.0 --retry=1"
        " --enable-autoscaling --autoscaler-image=a --worker-min-replicas=1 "
        "--worker-max-replicas=4 --suspend --active-deadline-seconds=1h"
        " --share-memory=2Gi --head-service-type=NodePort --worker-num-of-hosts=2 "
        "--device=a.b/c=1 --sync-mode=git --sync-source=s run",
        (
            "volcanojob --name=whole --task-images=a,b --task-replicas=2 --min-available=4 "
            "--queue=q --task-gpus=1 -l a=b -a c=d sleep 1"
        ),
        (
            "sparkjob --name=whole --image=i --replicas=3 --jar=local:///a.jar "
            "--driver-memory-request=1g -l a=b -a c=d x y"
        ),
        "etjob --name=whole --image=i --gpus=1 --workers=2 --max-workers=3 --spot-instance "
        "--max-wait-time=5"
        " --worker-restart-policy=ExitCode --job-restart-policy=OnFailure --ssh-secret=s"
        " --launcher-selector=a=b --launcher-annotation=c=d --worker-annotation=e=f run",
    ],
    ids=lambda line: line.split()[0],
)
def test_every_flag_of_a_kind_is_a_field_that_its_definition_has(
    cluster: ControlPlane, line: str
) -> None:
    """Strictly: the server refuses a field that the definition lacks, where a lenient server drops
    it without a message.
    """
    printed = arena(cluster, "submit", *line.split(), "--dry-run")
    assert printed.returncode == 0, printed.stderr
    cluster.admin.run(
        "create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=printed.stdout
    )


def test_the_keys_of_a_training_job_belong_to_it(cluster: ControlPlane) -> None:
    made = arena(cluster, "submit", "deepspeedjob", "--name=deep", "--image=i", "run")
    assert made.stdout == (
        "secret/deep created\ntrainingjob.kai.alibabacloud.com/deep created\n"
    ), made.stderr
    [job] = cluster.admin.get("trainingjobs", "-n", "default")
    [keys] = [
        each
        for each in cluster.admin.get("secrets", "-n", "default")
        if each["metadata"]["name"] == "deep"
    ]
    assert [owner["uid"] for owner in keys["metadata"]["ownerReferences"]] == [
        job["metadata"]["uid"]
    ]
    again = arena(cluster, "submit", "deepspeedjob", "--name=deep", "--image=i", "run")
    assert again.returncode == 1 and "the job deep is already exist" in again.stderr
    cluster.admin.patch_status(
        "trainingjob",
        "deep",
        "default",
        {"phase": "Succeeded", "completionTime": "2026-01-05T08:00:00Z"},
    )
    assert re.search(
        (
            r"^deep +SUCCEEDED "
            r"+DEEPSPEEDJOB "
        ),
        arena(cluster, "list").stdout,
        re.MULTILINE,
    )
    ended = arena(cluster, "delete", "deep")
    assert ended.returncode == 0 and "has been deleted successfully" in ended.stderr
    wait_until(
        "its keys go with it",
        lambda: (
            not [
                each for each in cluster.admin.get("secrets") if each["metadata"]["name"] == "deep"
            ]
        ),
    )


FILE = "--config-file=/etc/hostname:/etc/h"
APPLIED = {
    "submit tf --name=t --image=i --tensorboard " + FILE: (
        "delete t",
        {"configmap", "deployment", "service"},
    ),
    "submit deepspeedjob --name=t --image=i": ("delete t", {"secret"}),
    "cron tfjob --name=t --image=i --schedule=@daily " + FILE: ("cron delete t", {"configmap"}),
    "serve custom --name=t --version=v1 --image=i --port=1 " + FILE: (
        "serve delete t",
        {"configmap", "deployment", "service"},
    ),
}


@pytest.mark.parametrize(
    ("line", "is_gone"),
    [*((line, False) for line in APPLIED), (next(iter(APPLIED)), True)],
    ids=["TensorBoard", "ssh keys", "cron", "serve", "the job is gone"],
)
def test_what_kubectl_applied_goes_with_the_job(
    cluster: ControlPlane, line: str, is_gone: bool
) -> None:
    """These objects have no ownerReferences. Objects with Fairlead's labels and another name, or of
    another job, stay.
    """
    delete, kinds = APPLIED[line]
    space = f"applied-{list(APPLIED).index(line)}-{int(is_gone)}"
    cluster.admin.run("create", "namespace", space)
    printed = arena(cluster, *line.split(), "-n", space, "--dry-run", "run")
    objects = [each for each in yaml.safe_load_all(printed.stdout) if each]
    [main] = [
        each
        for each in objects
        if each["metadata"]["name"] in ("t", "t-v1-custom-serving") and each["kind"] != "Secret"
    ]
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**main["metadata"], "name": "t-mine"},
    }
    another = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"t-{'0' * 15}", "labels": {"heritage": "fairlead"}},
    }
    wanted = [*(each for each in objects if not is_gone or each is not main), theirs, another]
    cluster.admin.run("apply", "-n", space, "-f", "-", stdin=yaml.safe_dump_all(wanted))
    ended = arena(cluster, *delete.split(), "-n", space)
    assert ended.returncode == 0 and "deleted" in ended.stderr + ended.stdout, ended.stderr
    left = {
        (each["kind"].lower(), each["metadata"]["name"])
        for kind in kinds | {"configmap"}
        for each in cluster.admin.get(kind, "-n", space)
    }
    assert left - {("configmap", "kube-root-ca.crt")} == {
        ("configmap", "t-mine"),
        ("configmap", f"t-{'0' * 15}"),
    }
    assert {each["kind"].lower() for each in objects} >= kinds


LIVES = [
    (
        "volcanojob --name=life --task-images=i",
        "jobs.batch.volcano.sh",
        {"state": {"phase": "Inqueue"}},
        "SUBMITTED",
        "VOLCANOJOB",
    ),
    (
        "sparkjob --name=life",
        "sparkapplications",
        {"applicationState": {"state": "FAILED"}, "driverInfo": {}},
        "FAILED",
        "SPARKJOB",
    ),
    (
        "rayjob --name=life --image=i --worker-replicas=1 run",
        "rayjobs",
        {"jobStatus": "STOPPED"},
        "STOPPED",
        "RAYJOB",
    ),
]


@pytest.mark.parametrize(
    ("line", "resource", "status", "word", "trainer"), LIVES, ids=[life[4] for life in LIVES]
)
def test_a_life_as_the_controller_writes_it(
    cluster: ControlPlane, line: str, resource: str, status: Manifest, word: str, trainer: str
) -> None:
    done = arena(cluster, "submit", *line.split())
    assert done.returncode == 0 and done.stdout.endswith("/life created\n"), done.stderr
    assert re.search(rf"^life +PENDING +{trainer} ", arena(cluster, "list").stdout, re.MULTILINE)
    cluster.admin.patch_status(resource, "life", "default", status)
    assert re.search(rf"^life +{word} +{trainer} ", arena(cluster, "list").stdout, re.MULTILINE)
    assert f"Status:      {word}\n" in arena(cluster, "get", "life").stdout
    ended = arena(cluster, "delete", "life", "-T", trainer.lower())
    assert "has been deleted successfully" in ended.stderr, ended.stderr
    assert cluster.admin.get(resource, "-n", "default") == []


def test_a_cron_from_its_creation_to_its_end(cluster: ControlPlane) -> None:
    flags = [
        "--name=nightly",
        "--image=i",
        "--gpus=1",
        "--schedule=0 22 * * *",
        "--deadline=2036-01-05T08:00:00Z",
        "--history-limit=3",
    ]
    printed = arena(cluster, "cron", "tfjob", *flags, "--suspend", "--dry-run", "run")
    reported = cluster.admin.run(
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-o",
        "json",
        "-f",
        "-",
        stdin=printed.stdout,
    )
    done = arena(cluster, "cron", "tfjob", *flags, "--suspend", "run")
    assert (done.returncode, done.stdout) == (0, "cron.apps.kubedl.io/nightly created\n"), (
        done.stderr
    )
    [made] = cluster.admin.get("crons", "-n", "default")
    assert [as_asked(each) for each in one_by_one(reported)] == [as_asked(made)]
    assert re.search(
        (
            r"^nightly +TFJob +0 22 \* \* \* +true "
            r"+2036-01-05T08:00:00Z +Allow$"
        ),
        arena(cluster, "cron", "list").stdout,
        re.MULTILINE,
    )
    for verb, is_suspended in (("resume", False), ("suspend", True)):
        assert arena(cluster, "cron", verb, "nightly").stdout == f"cron nightly {verb} success\n"
        [now] = cluster.admin.get("crons", "-n", "default")
        assert now["spec"] == {**made["spec"], "suspend": is_suspended}
    run = {
        "object": {"apiGroup": "kubeflow.org/v1", "kind": "TFJob", "name": "nightly-1"},
        "status": "Running",
        "created": "2026-01-05T08:00:00Z",
    }
    cluster.admin.patch_status(
        "cron", "nightly", "default", {"history": [run], "lastScheduleTime": "2026-01-05T08:00:00Z"}
    )
    shown = arena(cluster, "cron", "get", "nightly").stdout
    assert "LastScheduleTime:   2026-01-05T08:00:00Z\n" in shown and re.search(
        (
            r"^nightly-1  "
            r"Running  TFJob "
        ),
        shown,
        re.MULTILINE,
    )
    assert arena(cluster, "cron", "get", "nightly", "-o", "json").returncode == 0
    again = arena(cluster, "cron", "tfjob", *flags, "run")
    assert again.returncode == 1 and "the cron nightly is already exist" in again.stderr
    gone = arena(cluster, "cron", "delete", "nightly", "nightly2")
    assert (gone.returncode, gone.stdout) == (0, "cron nightly has deleted\n")
    assert (
        "The cron 'nightly2' does not exist,skip to delete it"
    ) in gone.stderr and cluster.admin.get("crons", "-n", "default") == []
