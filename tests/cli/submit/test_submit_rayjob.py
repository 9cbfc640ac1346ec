"""The objects that `arena submit rayjob` makes of its flags
(docs/spec/arena-cli.md#pods-of-the-kinds).
"""

from __future__ import annotations

import pytest
from tests.cli.submitting import KeepingCluster, assert_refused, at, dry_run, submit

RJ = "rj --name=j --image=i --worker-replicas=2"
CLUSTER = "spec|rayClusterSpec"
HEAD, WORKER = f"{CLUSTER}|headGroupSpec|template", f"{CLUSTER}|workerGroupSpecs|0|template"
FIRST = "spec|containers|0"


def test_a_head_a_group_of_workers_and_a_program() -> None:
    cluster = KeepingCluster(user="alice")
    printed = submit(f"{RJ} --worker-gpu=2 --head-gpu=1 --head-cpu=2 'python train.py'", cluster)
    assert printed.out == "rayjob.ray.io/j created\n"
    assert (
        "You can run `arena get j --type rayjob -n default` to check the job status"
    ) in printed.err
    [job] = cluster.created
    assert (job["apiVersion"], job["kind"], job["spec"]["entrypoint"]) == (
        "ray.io/v1",
        "RayJob",
        "python train.py",
    )
    assert {
        key: job["spec"][key] for key in ("shutdownAfterJobFinishes", "ttlSecondsAfterFinished")
    } == {
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": 10,
    }
    assert job["metadata"]["annotations"]["requestGPUsOfJobOwner"] == "5"
    assert at(job, f"{HEAD}|{FIRST}|resources|limits") == {"cpu": "2", "nvidia.com/gpu": "1"}
    assert at(job, f"{WORKER}|{FIRST}|resources|limits") == {"nvidia.com/gpu": "2"}
    assert [at(job, f"{role}|spec|restartPolicy") for role in (HEAD, WORKER)] == [
        "Never",
        "OnFailure",
    ]
    assert all("command" not in at(job, f"{role}|{FIRST}") for role in (HEAD, WORKER))
    assert (
        at(job, f"{HEAD}|metadata|labels|app") == "rayjob"
        and at(job, f"{HEAD}|spec|volumes") is None
    )
    group = at(job, f"{CLUSTER}|workerGroupSpecs|0")
    assert [
        group[key] for key in ("groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts")
    ] == [
        *("default-group", 2, 0, 2147483647, 1),
    ]


def test_every_host_of_a_worker_counts() -> None:
    [job] = dry_run(f"{RJ} --worker-gpu=4 --worker-num-of-hosts=3 run")
    assert job["metadata"]["annotations"]["requestGPUsOfJobOwner"] == "24"


def test_the_autoscaler_is_written_only_where_it_is_wanted() -> None:
    message = (
        "--autoscaler-cpu=1 --autoscaler-upscaling-mode=Aggressive --worker-max-replicas=9 "
        "--worker-min-replicas=1"
    )
    [without] = dry_run(f"{RJ} {message} run")
    [with_it] = dry_run(f"{RJ} {message} --enable-autoscaling run")
    assert "autoscalerOptions" not in at(without, CLUSTER)
    assert at(with_it, f"{CLUSTER}|enableInTreeAutoscaling") is True
    assert at(with_it, f"{CLUSTER}|autoscalerOptions") == {
        "upscalingMode": "Aggressive",
        "idleTimeoutSeconds": 60,
        "imagePullPolicy": "IfNotPresent",
        "resources": {
            "requests": {"cpu": "1", "memory": "512Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
    }
    assert at(with_it, f"{CLUSTER}|workerGroupSpecs|0|maxReplicas") == 9


def test_a_cluster_that_stays_has_no_time_after_which_it_goes() -> None:
    [job] = dry_run(f"{RJ} --shutdown-after-finished=false --ttl-after-finished=1m run")
    assert (
        job["spec"]["shutdownAfterJobFinishes"] is False
        and "ttlSecondsAfterFinished" not in job["spec"]
    )


def test_the_job_may_wait_end_and_be_tried_again() -> None:
    [job] = dry_run(
        f"{RJ} --suspend --active-deadline-seconds=2m --retry=3 --ray-version=2.46.0 "
        "--share-memory=2Gi run"
    )
    assert [job["spec"][key] for key in ("suspend", "activeDeadlineSeconds", "backoffLimit")] == [
        True,
        120,
        3,
    ]
    assert at(job, f"{CLUSTER}|rayVersion") == "2.46.0"
    assert at(job, f"{WORKER}|spec|volumes|0|emptyDir|sizeLimit") == "2Gi"
    [same] = dry_run(f"{RJ} --running-timeout=2m run")
    assert same["spec"]["activeDeadlineSeconds"] == 120


def test_the_command_runs_before_a_container_stops_and_code_comes_before_it_starts() -> None:
    [job] = dry_run(
        f"{RJ} --pre-stop-command='ray stop --force' --sync-mode=git "
        "--sync-source=https://h/r.git run"
    )
    stop = ["/bin/sh", "-c", "ray stop --force"]
    assert at(job, f"{WORKER}|{FIRST}|lifecycle|preStop|exec|command") == stop
    assert at(job, f"{HEAD}|spec|initContainers|0|name") == "init-code"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rj --name=j --image=i run", 'required flag(s) "worker-replicas" not set'),
        (
            "rj --name=j --worker-replicas=1 run",
            "--image must be set when neither --head-image nor --worker-image is provided",
        ),
        ("rj --name=j --worker-replicas=1 --head-image=h run", "--image must be set when neither"),
        (f"{RJ} --worker-gpu=-1 run", "failed to validate command args: --worker-gpu is invalid"),
        (f"{RJ} --head-memory=lots run", "--head-memory is invalid"),
        (
            f"{RJ} --head-service-type=Magic run",
            "--head-service-type is invalid: unknown value Magic",
        ),
        (
            f"{RJ} --enable-autoscaling --autoscaler-upscaling-mode=Fast run",
            "--autoscaler-upscaling-mode is invalid",
        ),
        (
            f"{RJ} --worker-min-replicas=3 run",
            "2 is not between --worker-min-replicas 3 and --worker-max-replicas 0",
        ),
        (
            f"{RJ} --suspend --shutdown-after-finished=false run",
            "--suspend needs --shutdown-after-finished",
        ),
        (f"{RJ} --gpus=1 run", "unknown flag: --gpus"),
        (f"rj --name={'a' * 48} --image=i --worker-replicas=1 run", "is not valid for a RayJob"),
        ("rj --name=1j --image=i --worker-replicas=1 run", "is not valid for a RayJob"),
        (f"{RJ}", "not found command args"),
    ],
)
def test_what_cannot_be_is_reported_before_any_request(line: str, message: str) -> None:
    assert_refused(line, message)


def test_two_images_need_no_third() -> None:
    [job] = dry_run("rj --name=j --worker-replicas=1 --head-image=h --worker-image=w run")
    assert [at(job, f"{role}|{FIRST}|image") for role in (HEAD, WORKER)] == ["h", "w"]
