"""Controllers: Deployments roll out, Jobs retry, MPIJobs and training jobs live as under their
operators.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import (
    NAMESPACE,
    container,
    get,
    live,
    phase,
    pods,
    reasons,
    small_world,
    states,
)

from fairlead.wire.names import LABEL_REPLICA_INDEX
from fairlead_sim.controllers.plan import View, is_active
from fairlead_sim.objects.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    MPI_JOBS,
    PODS,
    PYTORCH_JOBS,
    REPLICA_SETS,
    SECRETS,
    SERVICES,
    TF_JOBS,
)
from fairlead_sim.operators.training_job import reconcile
from fairlead_sim.world.world import World

Object = dict[str, Any]


def template(
    image: str, *, gpus: int = 0, labels: dict[str, str] | None = None, name: str = "main"
) -> Object:
    return {
        "metadata": {"labels": labels or {}},
        "spec": {"containers": [container(image, gpus=gpus, name=name)]},
    }


def deployment(image: str = "pause:35", replicas: int = 3) -> Object:
    labels = {"app": "web"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": template(image, labels=labels),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": spec,
    }


def job(image: str, **spec: Any) -> Object:
    body = template(image)
    body["spec"]["restartPolicy"] = spec.pop("restartPolicy", "Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": NAMESPACE},
        "spec": {"template": body, **spec},
    }


def mpi_job(image: str, workers: int = 2, *, gpus: int = 1, **policy: Any) -> Object:
    launcher = template(image, name="mpi")
    launcher["spec"]["containers"][0]["command"] = ["mpirun"]
    spec = {
        "slotsPerWorker": gpus,
        "runPolicy": policy,
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
            "Worker": {
                "replicas": workers,
                "restartPolicy": "Never",
                "template": template(image, gpus=gpus, name="mpi"),
            },
        },
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "m", "namespace": NAMESPACE},
        "spec": spec,
    }


def training_job(
    kind: str, image: str, roles: dict[str, int], restart: str = "Never", **policy: Any
) -> Object:
    key = {"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs"}[kind]
    images = {role: "ps:1" if role == "PS" else image for role in roles}
    specs = {
        role: {"replicas": count, "restartPolicy": restart, "template": template(images[role])}
        for role, count in roles.items()
    }
    spec = {"runPolicy": policy, key: specs}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "t", "namespace": NAMESPACE},
        "spec": spec,
    }


def names(world: World) -> list[str]:
    return [item["metadata"]["name"] for item in pods(world)]


def patch_spec(world: World, ref: Any, name: str, **spec: Any) -> None:
    world.cluster.mutate(ref, NAMESPACE, name, lambda old: {**old, "spec": {**old["spec"], **spec}})


# --- Deployment -----------------------------------------------------------------------------------


def test_a_deployment_becomes_available_through_one_replica_set() -> None:
    world = small_world()
    world.cluster.create(deployment())
    live(world, 90)
    web = get(world, DEPLOYMENTS, "web")
    assert web["status"]["readyReplicas"] == web["status"]["availableReplicas"] == 3
    assert states(web) == {"Available": "True", "Progressing": "True"}
    (owner,) = world.cluster.list(REPLICA_SETS, NAMESPACE)
    assert {item["metadata"]["ownerReferences"][0]["uid"] for item in pods(world)} == {
        owner["metadata"]["uid"]
    }
    assert owner["metadata"]["labels"]["pod-template-hash"] in owner["metadata"]["name"]


def test_pods_without_their_account_come_when_it_comes() -> None:
    world, body = small_world(), deployment()
    body["spec"]["template"]["spec"]["serviceAccountName"] = "late"
    world.cluster.create(body)
    live(world, 10)
    assert pods(world) == []
    (replica_set,) = world.cluster.list(REPLICA_SETS, NAMESPACE)
    name = replica_set["metadata"]["name"]
    (event,) = [
        event
        for event in world.cluster.list(EVENTS, NAMESPACE)
        if event["reason"] == "FailedCreate"
    ]
    why = f'error looking up service account {NAMESPACE}/late: serviceaccount "late" not found'
    assert event["message"] == f'Error creating: pods "{name}-" is forbidden: {why}'
    assert 3 <= event["count"] <= 5, "one pod is tried at a time, after longer and longer pauses"
    world.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "late", "namespace": NAMESPACE},
        }
    )
    live(world, 40)
    assert len(pods(world)) == 3


def test_a_deleted_pod_is_replaced() -> None:
    world = small_world()
    world.cluster.create(deployment(replicas=2))
    live(world, 90)
    before = set(names(world))
    world.cluster.delete(PODS, NAMESPACE, min(before))
    live(world, 90)
    assert len(names(world)) == 2
    assert len(before & set(names(world))) == 1


def test_scaling_up_and_down() -> None:
    world = small_world()
    world.cluster.create(deployment(replicas=1))
    live(world, 60)
    patch_spec(world, DEPLOYMENTS, "web", replicas=4)
    live(world, 60)
    assert len(names(world)) == 4
    patch_spec(world, DEPLOYMENTS, "web", replicas=0)
    live(world, 60)
    assert names(world) == []


def test_a_rolling_update_never_has_too_few_or_too_many() -> None:
    world = small_world()
    world.cluster.create(deployment("pause:35", replicas=4))
    live(world, 90)
    patch_spec(world, DEPLOYMENTS, "web", template=template("app:2", labels={"app": "web"}))
    for _ in range(400):
        live(world, 0.5)
        active = [item for item in pods(world) if is_active(item)]
        assert len(active) <= 5
        assert sum(states(item).get("Ready") == "True" for item in active) >= 3
    assert {item["spec"]["containers"][0]["image"] for item in pods(world)} == {"app:2"}
    assert get(world, DEPLOYMENTS, "web")["status"]["updatedReplicas"] == 4
    assert len(world.cluster.list(REPLICA_SETS, NAMESPACE)) == 2


def test_deleting_a_deployment_takes_everything_with_it() -> None:
    world = small_world()
    world.cluster.create(deployment())
    live(world, 60)
    world.cluster.delete(DEPLOYMENTS, NAMESPACE, "web")
    live(world, 30)
    assert world.cluster.list(REPLICA_SETS, NAMESPACE) == []
    assert names(world) == []


# --- Job ------------------------------------------------------------------------------------------


def test_a_job_completes_and_its_ttl_removes_it() -> None:
    world = small_world()
    world.cluster.create(job("train:1m", completions=3, parallelism=2, ttlSecondsAfterFinished=600))
    live(world, 300)
    done = get(world, JOBS, "j")
    assert done["status"]["succeeded"] == 3
    assert states(done)["Complete"] == "True"
    assert done["status"]["completionTime"]
    assert "active" not in done["status"]
    assert reasons(world, "j")[-1] == "Completed"
    live(world, 700)
    assert world.cluster.get(JOBS, NAMESPACE, "j") is None
    assert names(world) == []


def test_a_job_never_runs_more_than_its_parallelism() -> None:
    world = small_world()
    world.cluster.create(job("train:20s", completions=5, parallelism=2))
    for _ in range(300):
        live(world, 1)
        assert sum(is_active(item) for item in pods(world)) <= 2
    assert get(world, JOBS, "j")["status"]["succeeded"] == 5


def test_a_failing_job_pauses_longer_and_longer_and_gives_up() -> None:
    world = small_world()
    world.cluster.create(job("fail:3s", backoffLimit=2))
    live(world, 600)
    failed = get(world, JOBS, "j")
    assert failed["status"]["failed"] == 3
    assert [
        item["reason"] for item in failed["status"]["conditions"] if item["type"] == "Failed"
    ] == ["BackoffLimitExceeded"]
    assert len(names(world)) == 3


def test_a_job_with_on_failure_counts_the_restarts_of_its_pod() -> None:
    world = small_world()
    world.cluster.create(job("fail:3s", backoffLimit=2, restartPolicy="OnFailure"))
    live(world, 600)
    assert states(get(world, JOBS, "j"))["Failed"] == "True"
    assert [item for item in pods(world) if is_active(item)] == []


def test_a_deadline_ends_a_job() -> None:
    world = small_world()
    world.cluster.create(job("train:1h", activeDeadlineSeconds=120))
    live(world, 200)
    assert [
        item["reason"]
        for item in get(world, JOBS, "j")["status"]["conditions"]
        if item["type"] == "Failed"
    ] == ["DeadlineExceeded"]
    assert names(world) == []


def test_suspend_and_resume_a_job() -> None:
    world = small_world()
    world.cluster.create(job("train:1m", suspend=True))
    live(world, 30)
    assert names(world) == []
    assert states(get(world, JOBS, "j")) == {"Suspended": "True"}
    patch_spec(world, JOBS, "j", suspend=False)
    live(world, 200)
    assert states(get(world, JOBS, "j"))["Complete"] == "True"
    assert states(get(world, JOBS, "j"))["Suspended"] == "False"


# --- MPIJob ---------------------------------------------------------------------------------------


def test_an_mpi_job_from_creation_to_success() -> None:
    world = small_world()
    world.cluster.create(mpi_job("train:5m", cleanPodPolicy="Running"))
    live(world, 1)
    assert states(get(world, MPI_JOBS, "m")) == {"Created": "True"}
    live(world, 120)
    running = get(world, MPI_JOBS, "m")
    assert states(running) == {"Created": "True", "Running": "True"}
    assert running["status"]["replicaStatuses"] == {
        "Launcher": {"active": 1},
        "Worker": {"active": 2},
    }
    assert running["status"]["startTime"]
    live(world, 300)
    done = get(world, MPI_JOBS, "m")
    assert states(done) == {"Created": "True", "Running": "False", "Succeeded": "True"}
    assert done["status"]["completionTime"]
    assert done["status"]["replicaStatuses"]["Launcher"] == {"succeeded": 1}
    live(world, 30)
    assert [name for name in names(world) if "worker" in name] == []
    assert [name for name in names(world) if "launcher" in name], "the launcher pod stays"


def test_what_an_mpi_job_is_made_of() -> None:
    world = small_world()
    world.cluster.create(mpi_job("train:5m"))
    live(world, 30)
    worker, launcher = (
        get(world, PODS, "m-worker-1"),
        next(item for item in pods(world) if "launcher" in item["metadata"]["name"]),
    )
    prefix = "training.kubeflow.org/"
    labels = {
        "operator-name": "mpi-operator",
        "job-name": "m",
        "job-role": "worker",
        "replica-index": "1",
    }
    assert {
        key.removeprefix(prefix): value for key, value in worker["metadata"]["labels"].items()
    } == labels
    assert launcher["metadata"]["labels"][f"{prefix}job-role"] == "launcher"
    assert launcher["metadata"]["ownerReferences"][0]["kind"] == "Job"
    assert worker["spec"]["containers"][0]["command"][0] == "/usr/sbin/sshd"
    assert (
        "m-worker-0.m.work.svc slots=1" in get(world, CONFIG_MAPS, "m-config")["data"]["hostfile"]
    )
    assert get(world, SERVICES, "m")["spec"]["clusterIP"] == "None"
    assert get(world, SECRETS, "m-ssh")
    world.cluster.delete(MPI_JOBS, NAMESPACE, "m")
    live(world, 40)
    assert names(world) == []
    assert world.cluster.list(JOBS, NAMESPACE) == world.cluster.list(SERVICES, NAMESPACE) == []


def test_a_failing_launcher_fails_the_mpi_job() -> None:
    world = small_world()
    world.cluster.create(mpi_job("fail:10s", backoffLimit=1, cleanPodPolicy="All"))
    live(world, 300)
    failed = get(world, MPI_JOBS, "m")
    assert states(failed)["Failed"] == "True"
    assert next(
        item["reason"] for item in failed["status"]["conditions"] if item["type"] == "Failed"
    ).startswith("BackoffLimitExceeded")
    assert [name for name in names(world) if "worker" in name] == []


def test_a_launcher_that_waits_for_its_workers() -> None:
    world = small_world()
    waiting = mpi_job("train:5m", workers=3, gpus=2)
    waiting["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    world.cluster.create(waiting)
    live(world, 120)
    assert names(world) == ["m-worker-0", "m-worker-1", "m-worker-2"]
    assert states(get(world, MPI_JOBS, "m")) == {"Created": "True"}


def test_an_mpi_job_does_not_run_while_one_worker_waits() -> None:
    world = small_world()
    world.cluster.create(mpi_job("train:5m", workers=3, gpus=2))
    live(world, 120)
    assert phase(world, "m-worker-2") == "Pending"
    assert any(phase(world, name) == "Running" for name in names(world) if "launcher" in name), (
        "AtStartup does not wait"
    )
    assert states(get(world, MPI_JOBS, "m")) == {"Created": "True"}


def test_suspending_an_mpi_job_removes_its_pods_and_resuming_makes_new_ones() -> None:
    world = small_world()
    world.cluster.create(mpi_job("train:5m"))
    live(world, 60)
    patch_spec(world, MPI_JOBS, "m", runPolicy={"suspend": True})
    live(world, 40)
    assert names(world) == []
    assert states(get(world, MPI_JOBS, "m"))["Suspended"] == "True"
    patch_spec(world, MPI_JOBS, "m", runPolicy={"suspend": False})
    live(world, 60)
    assert len(names(world)) == 3
    assert states(get(world, MPI_JOBS, "m"))["Suspended"] == "False"


# --- TFJob, PyTorchJob ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "roles", "chief"),
    [
        ("TFJob", {"Chief": 1, "PS": 1, "Worker": 2}, "t-chief-0"),
        ("TFJob", {"PS": 1, "Worker": 2}, "t-worker-0"),
        ("PyTorchJob", {"Master": 1, "Worker": 2}, "t-master-0"),
    ],
)
def test_a_training_job_from_creation_to_success(
    kind: str, roles: dict[str, int], chief: str
) -> None:
    world = small_world()
    ref = {"TFJob": TF_JOBS, "PyTorchJob": PYTORCH_JOBS}[kind]
    world.cluster.create(
        training_job(kind, "train:5m", roles, cleanPodPolicy="Running", ttlSecondsAfterFinished=900)
    )
    live(world, 120)
    running = get(world, ref, "t")
    assert states(running) == {"Created": "True", "Running": "True"}
    assert {
        role: counts["active"] for role, counts in running["status"]["replicaStatuses"].items()
    } == roles
    labels = get(world, PODS, chief)["metadata"]["labels"]
    assert labels["training.kubeflow.org/job-role"] == "master"
    assert labels["training.kubeflow.org/operator-name"] == f"{kind.lower()}-controller"
    assert len(world.cluster.list(SERVICES, NAMESPACE)) == sum(roles.values())
    live(world, 400)
    done = get(world, ref, "t")
    assert states(done) == {"Created": "True", "Running": "False", "Succeeded": "True"}
    assert done["status"]["completionTime"] > done["status"]["startTime"]
    assert [name for name in names(world) if "-ps-" in name] == [], "cleanPodPolicy Running"
    live(world, 900)
    assert world.cluster.get(ref, NAMESPACE, "t") is None


def test_pytorch_workers_wait_for_their_master() -> None:
    world = small_world()
    world.cluster.create(training_job("PyTorchJob", "train:5m", {"Master": 1, "Worker": 1}))
    live(world, 2)
    assert get(world, PODS, "t-worker-0")["spec"]["initContainers"][0]["name"] == "init-pytorch"
    assert "initContainers" not in get(world, PODS, "t-master-0")["spec"]


def test_a_failed_replica_fails_the_job() -> None:
    world = small_world()
    world.cluster.create(training_job("TFJob", "fail:20s", {"Worker": 2}))
    live(world, 120)
    failed = get(world, TF_JOBS, "t")
    assert states(failed) == {"Created": "True", "Running": "False", "Failed": "True"}
    assert "replica(s) failed" in failed["status"]["conditions"][-1]["message"]


def test_exit_code_restarts_what_a_signal_killed_and_no_limit_but_zero_counts_that() -> None:
    """A pod that was created again has no restarts, and the operator counts only restarts."""
    world = small_world()
    world.cluster.create(
        training_job("PyTorchJob", "crash:30s", {"Master": 1}, restart="ExitCode", backoffLimit=2)
    )
    seen, made = set(), set()
    for _ in range(600):
        live(world, 0.5)
        seen.add(tuple(sorted(states(get(world, PYTORCH_JOBS, "t")).items())))
        made |= {pod["metadata"]["uid"] for pod in pods(world)}
    assert (("Created", "True"), ("Restarting", "True")) in seen
    assert len(made) > 3 and "Failed" not in states(get(world, PYTORCH_JOBS, "t"))


def test_containers_that_restart_too_often_fail_the_job_and_take_its_pods_along() -> None:
    world = small_world()
    roles = {"Master": 1, "Worker": 1}
    world.cluster.create(
        training_job(
            "PyTorchJob",
            "fail:10s",
            roles,
            restart="OnFailure",
            backoffLimit=2,
            cleanPodPolicy="None",
        )
    )
    live(world, 200)
    ended = get(world, PYTORCH_JOBS, "t")
    assert states(ended)["Failed"] == "True"
    assert ended["status"]["conditions"][-1]["message"] == (
        "Job t has failed because it has reached the specified backoff limit"
    )
    assert not pods(world)


def test_exit_code_accepts_no_plain_failure() -> None:
    world = small_world()
    world.cluster.create(
        training_job("PyTorchJob", "fail:10s", {"Master": 1}, restart="ExitCode", backoffLimit=5)
    )
    live(world, 120)
    assert states(get(world, PYTORCH_JOBS, "t"))["Failed"] == "True"


@pytest.mark.parametrize(
    ("policy", "ended", "is_over"),
    [("", "0", True), ("", "1", False), ("AllWorkers", "0", False), ("AllWorkers", "01", True)],
)
def test_which_workers_a_tfjob_without_chief_waits_for(
    policy: str, ended: str, is_over: bool
) -> None:
    job = training_job("TFJob", "train:1m", {"Worker": 2})
    job["metadata"]["uid"] = "u"
    job["spec"]["successPolicy"] = policy
    made = reconcile(job, View(now=0.0, seed=1, owned=lambda _: [])).create
    workers = [
        {**child, "status": {"phase": "Running"}} for child in made if child["kind"] == "Pod"
    ]
    for pod in workers:
        if pod["metadata"]["labels"][LABEL_REPLICA_INDEX] in ended:
            pod["status"] = {"phase": "Succeeded"}
    status = reconcile(job, View(now=9.0, seed=1, owned=lambda _: workers)).status
    assert states({"status": status}).get("Succeeded", "False") == str(is_over)


@pytest.mark.parametrize("kind", ["MPIJob", "TFJob"])
@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"mpiReplicaSpecs": 7, "tfReplicaSpecs": 7},
        {"tfReplicaSpecs": {"Worker": {"template": 3}}},
    ],
)
def test_an_object_of_the_wrong_shape_stops_no_other(kind: str, spec: Object) -> None:
    world = small_world()
    version = "kubeflow.org/v2beta1" if kind == "MPIJob" else "kubeflow.org/v1"
    world.cluster.create(
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "odd", "namespace": NAMESPACE},
            "spec": spec,
        }
    )
    world.cluster.create(job("train:10s"))
    live(world, 120)
    assert states(get(world, JOBS, "j"))["Complete"] == "True"
