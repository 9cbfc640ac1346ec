"""The lives of training jobs that run with the real operators and with the simulated ones. One
function per life, in `CASES`.

No life depends on how fast a world is: a container ends when all run and the job's status shows it.
In the simulated world its image ends it then (`train:30s`, `fail:30s`), in the real one the test
does, by the annotations that KWOK follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.kube.kwok_stages import EXIT_CODE, RUN_TIME
from tests.kube.places import Object, Place
from tests.kube.workload_objects import container

Life = Callable[[Place], None]
CASES: dict[str, Life] = {}
NAME = "train"
_KINDS = {
    "mpijobs": ("v2beta1", "MPIJob", "mpi"),
    "tfjobs": ("v1", "TFJob", "tf"),
    "pytorchjobs": ("v1", "PyTorchJob", "pytorch"),
}
_CONTAINERS = {"mpijobs": "mpi", "tfjobs": "tensorflow", "pytorchjobs": "pytorch"}


def _life(life: Life) -> Life:
    CASES[life.__name__] = life
    return life


def plural_of(case: str) -> str:
    """The kind of a life, from the first word of its name."""
    return {"mpi": "mpijobs", "tf": "tfjobs", "pytorch": "pytorchjobs"}[case.partition("_")[0]]


def job(
    plural: str,
    roles: dict[str, tuple[int, str]],
    restart: str = "Never",
    clean: str = "Running",
    **policy: Any,
) -> Object:
    """`roles`: how many pods of which image; `policy`: further fields of `runPolicy`."""
    version, kind, prefix = _KINDS[plural]
    replicas = {
        role: {"replicas": count, "restartPolicy": restart, "template": _template(plural, image)}
        for role, (count, image) in roles.items()
    }
    spec = {f"{prefix}ReplicaSpecs": replicas, "runPolicy": {"cleanPodPolicy": clean, **policy}}
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {"name": NAME},
        "spec": spec,
    }


def _template(plural: str, image: str) -> Object:
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{**container(image), "name": _CONTAINERS[plural]}],
    }
    return {"metadata": {"labels": {"app": NAME}}, "spec": spec}


def _until(place: Place, plural: str, condition: str) -> None:
    def is_so() -> bool:
        conditions = (place.the(plural, NAME).get("status") or {}).get("conditions") or ()
        return any(item["type"] == condition and item["status"] == "True" for item in conditions)

    place.until(f"{plural}/{NAME} is {condition}", is_so)


def _until_running(place: Place, plural: str, pods: int) -> None:
    """Wait until all pods run, and their operator has counted them."""

    def is_so() -> bool:
        status = place.the(plural, NAME).get("status") or {}
        counted = sum(
            replica.get("active", 0) for replica in (status.get("replicaStatuses") or {}).values()
        )
        return (
            counted
            == pods
            == [pod["status"].get("phase") for pod in place.list("pods")].count("Running")
        )

    _until(place, plural, "Running")
    place.until(f"{pods} pods run", is_so)


def _end(place: Place, *names: str, exit_code: int = 0) -> None:
    """End the containers of these pods: names, or prefixes of names."""
    marks = {"metadata": {"annotations": {EXIT_CODE: str(exit_code), RUN_TIME: "0s"}}}
    for pod in place.list("pods") if place.is_real else ():
        if pod["metadata"]["name"].startswith(names) and pod["status"]["phase"] == "Running":
            place.patch("pods", pod["metadata"]["name"], marks)


def _pause(place: Place, plural: str, *, suspend: bool) -> None:
    place.patch(plural, NAME, {"spec": {"runPolicy": {"suspend": suspend}}})


def _mpi(launcher: str, **policy: Any) -> Object:
    return job("mpijobs", {"Launcher": (1, launcher), "Worker": (2, "pause:1")}, **policy)


@_life
def mpi_succeeds(place: Place) -> None:
    place.create(_mpi("train:30s"))
    _until_running(place, "mpijobs", 3)
    _end(place, "train-launcher")
    _until(place, "mpijobs", "Succeeded")


@_life
def mpi_succeeds_and_keeps_its_workers(place: Place) -> None:
    place.create(_mpi("train:30s", clean="None"))
    _until_running(place, "mpijobs", 3)
    _end(place, "train-launcher")
    _until(place, "mpijobs", "Succeeded")


@_life
def mpi_fails_at_its_second_try(place: Place) -> None:
    place.create(_mpi("fail:30s", backoffLimit=1))
    for _ in range(2):
        _until_running(place, "mpijobs", 3)
        _end(place, "train-launcher", exit_code=1)
        place.until(
            "no launcher runs",
            lambda: (
                not [pod for pod in _launchers(place) if pod["status"].get("phase") == "Running"]
            ),
        )
    _until(place, "mpijobs", "Failed")


def _launchers(place: Place) -> list[Object]:
    return place.list("pods", "training.kubeflow.org/job-role=launcher")


@_life
def mpi_pauses(place: Place) -> None:
    place.create(_mpi("pause:1"))
    _until_running(place, "mpijobs", 3)
    _pause(place, "mpijobs", suspend=True)
    _until(place, "mpijobs", "Suspended")


@_life
def mpi_is_born_paused_and_succeeds(place: Place) -> None:
    place.create(_mpi("train:30s", suspend=True))
    _until(place, "mpijobs", "Suspended")
    _pause(place, "mpijobs", suspend=False)
    _until_running(place, "mpijobs", 3)
    _end(place, "train-launcher")
    _until(place, "mpijobs", "Succeeded")


@_life
def tf_succeeds_with_its_chief(place: Place) -> None:
    place.create(
        job(
            "tfjobs",
            {
                "Chief": (1, "train:30s"),
                "PS": (1, "pause:1"),
                "Worker": (2, "pause:1"),
                "Evaluator": (1, "pause:1"),
            },
        )
    )
    _until_running(place, "tfjobs", 5)
    _end(place, "train-chief")
    _until(place, "tfjobs", "Succeeded")


@_life
def tf_with_a_chief_waits_for_no_worker(place: Place) -> None:
    wanted = job("tfjobs", {"Chief": (1, "train:30s"), "Worker": (1, "pause:1")})
    wanted["spec"]["successPolicy"] = "AllWorkers"
    place.create(wanted)
    _until_running(place, "tfjobs", 2)
    _end(place, "train-chief")
    _until(place, "tfjobs", "Succeeded")


@_life
def tf_without_chief_succeeds_with_its_first_worker(place: Place) -> None:
    place.create(job("tfjobs", {"PS": (1, "pause:1"), "Worker": (1, "train:30s")}, clean="All"))
    _until_running(place, "tfjobs", 2)
    _end(place, "train-worker")
    _until(place, "tfjobs", "Succeeded")


@_life
def tf_fails_with_a_worker(place: Place) -> None:
    place.create(job("tfjobs", {"Chief": (1, "pause:1"), "Worker": (1, "fail:30s")}))
    _until_running(place, "tfjobs", 2)
    _end(place, "train-worker", exit_code=1)
    _until(place, "tfjobs", "Failed")


@_life
def tf_without_retries_loses_all_pods(place: Place) -> None:
    place.create(
        job("tfjobs", {"Chief": (1, "pause:1"), "Worker": (1, "fail:30s")}, backoffLimit=0)
    )
    _until_running(place, "tfjobs", 2)
    _end(place, "train-worker", exit_code=1)
    _until(place, "tfjobs", "Failed")


@_life
def tf_pauses(place: Place) -> None:
    place.create(job("tfjobs", {"PS": (1, "pause:1"), "Worker": (1, "pause:1")}))
    _until_running(place, "tfjobs", 2)
    _pause(place, "tfjobs", suspend=True)
    _until(place, "tfjobs", "Suspended")


@_life
def tf_is_born_paused_and_succeeds(place: Place) -> None:
    place.create(job("tfjobs", {"Chief": (1, "train:30s")}, suspend=True))
    _until(place, "tfjobs", "Suspended")
    _pause(place, "tfjobs", suspend=False)
    _until_running(place, "tfjobs", 1)
    _end(place, "train-chief")
    _until(place, "tfjobs", "Succeeded")


@_life
def pytorch_succeeds(place: Place) -> None:
    place.create(job("pytorchjobs", {"Master": (1, "train:30s"), "Worker": (2, "pause:1")}))
    _until_running(place, "pytorchjobs", 3)
    _end(place, "train-master")
    _until(place, "pytorchjobs", "Succeeded")


@_life
def pytorch_fails_with_its_master(place: Place) -> None:
    place.create(
        job("pytorchjobs", {"Master": (1, "fail:30s"), "Worker": (1, "pause:1")}, clean="None")
    )
    _until_running(place, "pytorchjobs", 2)
    _end(place, "train-master", exit_code=1)
    _until(place, "pytorchjobs", "Failed")


@_life
def pytorch_without_retries_loses_all_pods(place: Place) -> None:
    place.create(
        job(
            "pytorchjobs",
            {"Master": (1, "fail:30s"), "Worker": (1, "pause:1")},
            clean="None",
            backoffLimit=0,
        )
    )
    _until_running(place, "pytorchjobs", 2)
    _end(place, "train-master", exit_code=1)
    _until(place, "pytorchjobs", "Failed")


@_life
def pytorch_without_master_succeeds_with_its_workers(place: Place) -> None:
    place.create(job("pytorchjobs", {"Worker": (2, "train:30s")}))
    _until_running(place, "pytorchjobs", 2)
    _end(place, "train-worker")
    _until(place, "pytorchjobs", "Succeeded")


@_life
def pytorch_resumes(place: Place) -> None:
    place.create(job("pytorchjobs", {"Master": (1, "pause:1"), "Worker": (1, "pause:1")}))
    _until_running(place, "pytorchjobs", 2)
    _pause(place, "pytorchjobs", suspend=True)
    _until(place, "pytorchjobs", "Suspended")
    place.until("its pods are gone", lambda: not place.list("pods"))
    _pause(place, "pytorchjobs", suspend=False)
    _until_running(place, "pytorchjobs", 2)
