"""Workloads of `apps/v1`: Deployments, ReplicaSets, StatefulSets and DaemonSets, which users roll
out, stop, undo and scale.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.contracts.api_client import JSON_PATCH
from tests.kube.kubectl import Kubectl
from tests.kube.places import Object, Place
from tests.kube.programs import program
from tests.kube.workload_cases import workload
from tests.kube.workload_objects import (
    daemon_set,
    deployment,
    pod,
    replica_set,
    rolling,
    stateful_set,
    template,
    tolerates,
)


def _available(place: Place, plural: str = "deployments", count: int = 3) -> None:
    def is_so() -> bool:
        obj = place.the(plural, "web")
        status = obj.get("status") or {}
        counts = [status.get(key, 0) for key in ("replicas", "availableReplicas")]
        return bool(
            counts == [count, count]
            and status.get("observedGeneration") == obj["metadata"]["generation"]
        )

    place.until(f"{count} are available", is_so)


def _is_updated(place: Place, count: int = 3) -> None:
    def is_so() -> bool:
        obj = place.the("deployments", "web")
        status = obj.get("status") or {}
        counts = [
            status.get(key, 0) for key in ("updatedReplicas", "replicas", "availableReplicas")
        ]
        return bool(
            counts == [count] * 3
            and status.get("observedGeneration") == obj["metadata"]["generation"]
        )

    place.until("the rollout is complete", is_so)


def _use(place: Place, image: str, plural: str = "deployments", **spec: Any) -> None:
    """Write the whole template again, with other fields of the spec: annotations and settings for
    the last image must not remain.
    """
    changes = {"template": template(image), **spec}
    place.patch(
        plural,
        "web",
        [{"op": "add", "path": f"/spec/{key}", "value": value} for key, value in changes.items()],
        kind=JSON_PATCH,
    )


def _rolled(place: Place, strategy: Object, replicas: int = 3) -> None:
    place.create(deployment(template(), replicas, strategy=strategy))
    _available(place, count=replicas)
    _use(place, "app:2")
    _is_updated(place, replicas)


@workload
def rollout_with_surge(place: Place) -> None:
    _rolled(place, rolling(1, 0))


@workload
def rollout_with_unavailable(place: Place) -> None:
    _rolled(place, rolling(0, "50%"), replicas=4)


@workload
def rollout_by_recreation(place: Place) -> None:
    _rolled(place, {"type": "Recreate"})


@workload
def stuck_rollout(place: Place) -> None:
    place.create(deployment(template()))
    _available(place)
    _use(place, "missing:1", progressDeadlineSeconds=2)


@workload
def stuck_rollout_with_unavailable(place: Place) -> None:
    place.create(deployment(template(), 4, strategy=rolling("25%", "50%")))
    _available(place, count=4)
    _use(place, "missing:1")
    place.until("the new set has its pods", lambda: len(place.list("pods")) >= 5)


@workload
def scale_while_rolling(place: Place) -> None:
    """The old and the new set grow in proportion."""
    place.create(deployment(template(), 4))
    _available(place, count=4)
    _use(place, "missing:1")
    place.until("the new set has a pod", lambda: len(place.list("pods")) == 5)
    place.rest(2)
    place.patch("deployments", "web", {"spec": {"replicas": 10}}, "scale")


@workload
def undone_rollout(place: Place) -> None:
    place.create(deployment(template()))
    _available(place)
    _use(place, "missing:1")
    place.until("a new pod is there", lambda: len(place.list("pods")) == 4)
    _use(place, "app:1")
    _is_updated(place)


@workload
def paused_deployment(place: Place) -> None:
    place.create(deployment(template(), 2))
    _available(place, count=2)
    place.patch("deployments", "web", {"spec": {"paused": True}})
    _use(place, "app:2", replicas=4)
    _available(place, count=4)


@workload
def resumed_deployment(place: Place) -> None:
    paused_deployment(place)
    place.patch("deployments", "web", {"spec": {"paused": False}})
    _is_updated(place, 4)


@workload
def history_limit(place: Place) -> None:
    place.create(deployment(template(), 1, revisionHistoryLimit=1))
    _available(place, count=1)
    for image in ("app:2", "app:3", "app:4"):
        _use(place, image)
        _is_updated(place, 1)


@workload
def replica_set_adopts_and_deletes_the_cheapest(place: Place) -> None:
    place.create(pod("dear", labels={"app": "web"}), pod("cheap", labels={"app": "web"}))
    place.until(
        "both run",
        lambda: [item["status"]["phase"] for item in place.list("pods")] == ["Running"] * 2,
    )
    place.patch(
        "pods",
        "cheap",
        {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}},
    )
    place.create(replica_set(template(), 3))
    _available(place, "replicasets")
    place.patch("replicasets", "web", {"spec": {"replicas": 2}})
    _available(place, "replicasets", 2)


@workload
def replica_set_releases(place: Place) -> None:
    place.create(replica_set(template(), 2))
    _available(place, "replicasets", 2)
    name = place.list("pods")[0]["metadata"]["name"]
    place.patch("pods", name, {"metadata": {"labels": {"app": "alone"}}})
    place.until("there are three", lambda: len(place.list("pods")) == 3)


@workload
def orphans_are_adopted_again(place: Place) -> None:
    place.create(deployment(template(), 2))
    _available(place, count=2)
    place.delete("deployments", "web", "Orphan")
    place.until("it is gone", lambda: place.get("deployments", "web") is None)
    place.create(deployment(template(), 3))
    _available(place)


# --- StatefulSet ----------------------------------------------------------------------------------


@workload
def stateful_set_grows_and_shrinks(place: Place) -> None:
    place.create(stateful_set(template(), 3))
    _available(place, "statefulsets")
    place.patch("statefulsets", "web", {"spec": {"replicas": 1}}, "scale")
    _available(place, "statefulsets", 1)


@workload
def stuck_stateful_set(place: Place) -> None:
    place.create(stateful_set(template("missing:1"), 3))


@workload
def parallel_stateful_set(place: Place) -> None:
    place.create(stateful_set(template("missing:1"), 3, podManagementPolicy="Parallel"))


def _sts_updated(place: Place, image: str, count: int, of: int = 3) -> None:
    def is_so() -> bool:
        images = [item["spec"]["containers"][0]["image"] for item in place.list("pods")]
        return images.count(image) == count

    place.until(f"{count} run {image}", is_so)
    _available(place, "statefulsets", of)


@workload
def stateful_set_with_partition(place: Place) -> None:
    place.create(
        stateful_set(
            template(),
            3,
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        )
    )
    _available(place, "statefulsets")
    _use(place, "app:2", "statefulsets")
    _sts_updated(place, "app:2", 2)
    place.delete("pods", "web-0")
    place.rest(2)
    _sts_updated(place, "app:2", 2)


@workload
def stateful_set_rolls_twice_and_back(place: Place) -> None:
    place.create(stateful_set(template(), 3))
    _available(place, "statefulsets")
    for image in ("app:2", "app:1"):
        _use(place, image, "statefulsets")
        _sts_updated(place, image, 3)


@workload
def stateful_set_on_delete(place: Place) -> None:
    place.create(stateful_set(template(), 3, updateStrategy={"type": "OnDelete"}))
    _available(place, "statefulsets")
    _use(place, "app:2", "statefulsets")
    place.rest(1)
    place.delete("pods", "web-1")
    _sts_updated(place, "app:2", 1)


# --- DaemonSet ------------------------------------------------------------------------------------


def _on_nodes(place: Place, count: int, image: str = "app:1") -> None:
    def is_so() -> bool:
        obj = place.the("daemonsets", "web")
        status = obj.get("status") or {}
        counts = [
            status.get(key, 0)
            for key in ("numberAvailable", "updatedNumberScheduled", "desiredNumberScheduled")
        ]
        images = {item["spec"]["containers"][0]["image"] for item in place.list("pods")}
        return bool(
            counts == [count] * 3
            and status["observedGeneration"] == obj["metadata"]["generation"]
            and images == {image}
        )

    place.until(f"it is on {count} nodes", is_so)


@workload
def daemon_set_with_selector(place: Place) -> None:
    place.create(daemon_set(template()))
    _on_nodes(place, 3)


@workload
def daemon_set_with_taints(place: Place) -> None:
    """Of the two nodes of the role one is tainted; another node has a taint that is tolerated."""
    place.create(daemon_set(template(role="tainted", tolerations=[tolerates("soft")])))
    _on_nodes(place, 1)


@workload
def daemon_set_rolls(place: Place) -> None:
    place.create(
        daemon_set(
            template(),
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
        )
    )
    _on_nodes(place, 3)
    _use(place, "app:2", "daemonsets")
    _on_nodes(place, 3, "app:2")


@workload
def stuck_daemon_set(place: Place) -> None:
    place.create(daemon_set(template()))
    _on_nodes(place, 3)
    _use(place, "missing:1", "daemonsets")


@workload
def daemon_set_rolls_with_surge(place: Place) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    place.create(daemon_set(template(), updateStrategy=strategy))
    _on_nodes(place, 3)
    _use(place, "app:2", "daemonsets")
    _on_nodes(place, 3, "app:2")


# --- undone by kubectl ----------------------------------------------------------------------------


def _undo(place: Place, plural: str, rolled: Callable[[str], None]) -> None:
    """Write two templates, then return to the first with the real
    kubectl, which reads the history.
    """
    rolled("app:1")
    _use(place, "app:2", plural)
    rolled("app:2")
    with tempfile.TemporaryDirectory() as scratch:
        kubectl = Kubectl(program("kubectl"), place.api.kubeconfig, Path(scratch))
        target = (f"{plural.rstrip('s')}/web", "-n", place.namespace)
        assert [
            line.split()[0]
            for line in kubectl.run("rollout", "history", *target).splitlines()[2:]
            if line
        ] == ["1", "2"]
        assert "app:1" in kubectl.run("rollout", "history", *target, "--revision=1")
        kubectl.run("rollout", "undo", *target)
        rolled("app:1")
        assert [
            line.split()[0]
            for line in kubectl.run("rollout", "history", *target).splitlines()[2:]
            if line
        ] == ["2", "3"]


@workload
def stateful_set_undone_by_kubectl(place: Place) -> None:
    place.create(stateful_set(template(), 2))

    def rolled(image: str) -> None:
        _sts_updated(place, image, 2, of=2)

    _undo(place, "statefulsets", rolled)


@workload
def daemon_set_undone_by_kubectl(place: Place) -> None:
    place.create(daemon_set(template()))
    _undo(place, "daemonsets", lambda image: _on_nodes(place, 3, image))
