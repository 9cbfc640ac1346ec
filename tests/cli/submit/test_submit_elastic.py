"""The objects that `arena submit etjob` and `deepspeedjob` make of their flags, and the Secret that
is created before them.

See docs/spec/arena-cli.md#pods-of-the-kinds.
"""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from tests.cli.submitting import SERVED, KeepingCluster, assert_refused, at, dry_run, submit

from fairlead.errors import OutsideError, UserError

ET, DP = "et --name=j --image=i --ssh-secret=s", "dp --name=j --image=i --ssh-secret=s"
LAUNCHER, WORKER = "spec|etReplicaSpecs|launcher", "spec|etReplicaSpecs|worker"
POD = "template|spec"
FIRST = f"{POD}|containers|0"
WITHOUT_OPERATOR = {kind: versions for kind, versions in SERVED.items() if kind != "TrainingJob"}


def env_of(manifest: object, role: str) -> dict[str, str]:
    return {each["name"]: each["value"] for each in at(manifest, f"{role}|{FIRST}|env")}


def test_a_launcher_workers_with_bounds_and_a_secret_before_them() -> None:
    cluster = KeepingCluster(user="alice")
    printed = submit(
        "et --name=j --image=i --gpus=2 --workers=3 --max-workers=9 --cpu=4 horovodrun", cluster
    )
    assert printed.out == "secret/j created\ntrainingjob.kai.alibabacloud.com/j created\n"
    assert "You can run `arena get j --type etjob -n default`" in printed.err
    assert [call for call in cluster.calls if not call.startswith("served")] == [
        "create Secret j",
        "create TrainingJob j",
        "adopt Secret j",
    ]
    secret, job = cluster.created
    launcher, worker = at(job, LAUNCHER), at(job, WORKER)
    assert (job["apiVersion"], job["spec"]["backoffLimit"], launcher["replicas"]) == (
        "kai.alibabacloud.com/v1alpha1",
        6,
        1,
    )
    assert [worker[key] for key in ("replicas", "minReplicas", "maxReplicas")] == [3, 1, 9]
    assert (
        at(job, f"{LAUNCHER}|{FIRST}|command") == ["sh", "-c", "horovodrun"]
        and at(job, f"{WORKER}|{FIRST}|command") is None
    )
    assert at(job, f"{LAUNCHER}|{FIRST}|resources|limits") == {"cpu": "4"}
    assert at(job, f"{WORKER}|{FIRST}|resources|limits") == {"cpu": "4", "nvidia.com/gpu": "2"}
    reported = env_of(job, LAUNCHER)
    assert {name: reported[name] for name in ("maxWorkers", "minWorkers", "workers", "gpus")} == {
        "maxWorkers": "9",
        "minWorkers": "1",
        "workers": "3",
        "gpus": "2",
    }
    assert (
        job["metadata"]["labels"]["app"] == "etjob"
        and job["metadata"]["annotations"]["requestGPUsOfJobOwner"] == "6"
    )
    assert (
        secret["metadata"]["labels"]["release"] == "j"
        and "ownerReferences" not in secret["metadata"]
    )


def test_the_keys_belong_together_and_no_two_jobs_have_the_same() -> None:
    secrets = [dry_run("dp --name=j --image=i run")[0]["data"] for _ in range(2)]
    assert secrets[0]["id_rsa"] != secrets[1]["id_rsa"]
    data = {key: base64.b64decode(value) for key, value in secrets[0].items()}
    assert data["config"] == b"StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    public = (
        load_pem_private_key(data["id_rsa"], None)
        .public_key()
        .public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    )
    assert (
        data["id_rsa"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")
        and data["id_rsa.pub"] == public + b"\n"
    )


def test_a_secret_of_one_s_own_is_named_and_none_is_made() -> None:
    [job] = dry_run(f"{ET} run")
    assert job["metadata"]["annotations"]["arena.kubeflow.org/ssh-secret"] == "s"


def test_spot_instances_restarts_and_the_launcher_s_place() -> None:
    flags = (
        "--spot-instance --max-wait-time=60 --worker-restart-policy=ExitCode "
        "--job-restart-policy=OnFailure --job-backoff-limit=2"
    )
    flags += (
        " --launcher-selector=a=b --launcher-annotation=l=1 --worker-annotation=w=1 "
        "--clean-task-policy=None"
    )
    [job] = dry_run(f"{ET} {flags} run")
    annotations = job["metadata"]["annotations"]
    assert annotations["job-supervisor.kube-ai.io/spot-instance"] == "true"
    assert annotations["job-supervisor.kube-ai.io/max-wait-time"] == "60"
    assert [job["spec"][key] for key in ("restartPolicy", "backoffLimit", "cleanPodPolicy")] == [
        "OnFailure",
        2,
        "None",
    ]
    assert at(job, f"{WORKER}|restartPolicy") == "ExitCode"
    assert (
        at(job, f"{LAUNCHER}|{POD}|nodeSelector") == {"a": "b"}
        and at(job, f"{WORKER}|{POD}|nodeSelector") is None
    )
    assert [
        at(job, f"{role}|template|metadata|annotations").get(key)
        for role, key in ((LAUNCHER, "l"), (WORKER, "w"))
    ] == ["1", "1"]
    assert "w" not in at(job, f"{LAUNCHER}|template|metadata|annotations")


def test_retry_is_a_restart_policy_with_its_limit() -> None:
    [job] = dry_run(f"{ET} --retry=3 run")
    assert [job["spec"][key] for key in ("restartPolicy", "backoffLimit")] == ["OnFailure", 3]


def test_a_deepspeed_job_has_no_bounds() -> None:
    [job] = dry_run(f"{DP} --workers=2 --gpus=1 run")
    assert job["kind"] == "TrainingJob" and job["metadata"]["labels"]["app"] == "deepspeedjob"
    assert (
        at(job, WORKER).keys() == {"replicas", "template"}
        and env_of(job, WORKER)["NCCL_ASYNC_ERROR_HANDLING"] == "1"
    )


def test_a_deepspeed_job_becomes_an_mpijob_where_its_operator_is_missing() -> None:
    cluster = KeepingCluster(WITHOUT_OPERATOR)
    printed = submit(
        "dp --name=j --image=i --workers=2 --gpus=1 --launcher-selector=a=b run", cluster
    )
    assert printed.out == "mpijob.kubeflow.org/j created\n"
    assert (
        "serves no trainingjobs.kai.alibabacloud.com: the deepspeedjob becomes an mpijob"
    ) in printed.err
    assert "arena get j --type mpijob" in printed.err
    [job] = cluster.created
    assert at(job, "spec|mpiReplicaSpecs|Launcher|template|spec|nodeSelector") == {"a": "b"}
    assert {"name": "NCCL_ASYNC_ERROR_HANDLING", "value": "1"} in at(
        job, "spec|mpiReplicaSpecs|Worker|template|spec|containers|0|env"
    )


@pytest.mark.parametrize(("line", "versions"), [("et", WITHOUT_OPERATOR), ("dp", {})])
def test_without_any_operator_it_is_refused_and_nothing_stays(
    line: str, versions: dict[str, tuple[str, ...]]
) -> None:
    cluster = KeepingCluster(versions)
    with pytest.raises(UserError) as refused:
        submit(f"{line} --name=j --image=i run", cluster)
    assert (
        "the cluster serves no trainingjobs.kai.alibabacloud.com (looked for: v1alpha1)"
    ) in refused.value.what
    assert cluster.created == []


def test_a_job_that_exists_is_named_and_not_its_secret() -> None:
    cluster = KeepingCluster(full=["j"])
    with pytest.raises(UserError) as caught:
        submit("et --name=j --image=i run", cluster)
    assert (
        caught.value.what
        == "the job j is already exist, please delete it first. use 'arena delete j'"
    )
    assert cluster.deleted == []


def test_a_secret_of_that_name_is_in_the_way() -> None:
    cluster = KeepingCluster(full=["Secret j"])
    with pytest.raises(UserError) as refused:
        submit("et --name=j --image=i run", cluster)
    assert "the secret j is already exist, so the job j was not submitted" in refused.value.what
    assert (
        refused.value.hint == "`kubectl delete secret/j -n default` removes it"
        and cluster.created == []
    )


@pytest.mark.parametrize("trouble", [{"full": ["TrainingJob j"]}, {"bad_parents": ["j"]}])
def test_what_was_made_before_a_failure_is_removed(trouble: dict[str, list[str]]) -> None:
    cluster = KeepingCluster(**trouble)
    with pytest.raises((UserError, OutsideError)):
        submit("et --name=j --image=i run", cluster)
    assert cluster.deleted[-1] == "Secret j"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("et --name=j run", "--image must be set "),
        (f"{ET} --workers=0 run", "--workers is invalid"),
        (
            f"{ET} --workers=3 --max-workers=2 run",
            "3 is not between --min-workers 1 and --max-workers 2",
        ),
        (
            f"{ET} --worker-restart-policy=Sometimes run",
            "--worker-restart-policy is invalid: unknown value Sometimes",
        ),
        (
            f"{DP} --job-restart-policy=Always run",
            "--job-restart-policy is invalid: unknown value Always",
        ),
        (f"{DP} --max-workers=2 run", "unknown flag: --max-workers"),
        (f"{ET} --running-timeout=1h run", "unknown flag: --running-timeout"),
        ("et --name=j --image=i --ssh-secret=A_b run", "--ssh-secret is invalid"),
        (f"{DP}", "not found command args"),
    ],
)
def test_what_cannot_be_is_reported_before_any_request(line: str, message: str) -> None:
    assert_refused(line, message)
