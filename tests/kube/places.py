"""Runs one workload in two worlds. A `Place` is a namespace of one of them, with the same
operations in both.

They differ only in time: the real world's time passes by itself, the simulated world's only during
a wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contracts.api_client import MERGE, Answer, ApiClient
from tests.contracts.simulated import simulated_server

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.scenario import Scenario

Object = dict[str, Any]

EPOCH = 1_767_600_000.0  # 2026-01-05T08:00:00Z
_PREFIXES = {
    "apps/v1": ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch/v1": ("cronjobs", "jobs"),
    "data.fluid.io/v1alpha1": ("alluxioruntimes", "dataloads", "datasets"),
    "kubeflow.org/v1": ("pytorchjobs", "tfjobs"),
    "kubeflow.org/v2beta1": ("mpijobs",),
    "policy/v1": ("poddisruptionbudgets",),
    "scheduling.k8s.io/v1": ("priorityclasses",),
}
_GROUPS = {
    plural: f"/apis/{version}" for version, plurals in _PREFIXES.items() for plural in plurals
}
_WIDE = ("namespaces", "nodes", "persistentvolumes", "priorityclasses")


@dataclass
class Place:
    """`wait` lets time pass. A condition is checked every `step` until `patience` is over, all in
    the world's own seconds.
    """

    api: ApiClient
    namespace: str
    now: Callable[[], float]
    wait: Callable[[float], None]
    step: float
    patience: float

    @property
    def is_real(self) -> bool:
        return self.api.name == "real"

    def path(self, plural: str, name: str = "", subresource: str = "") -> str:
        scope = "" if plural in _WIDE else f"/namespaces/{self.namespace}"
        return "/".join(
            part
            for part in (f"{_GROUPS.get(plural, '/api/v1')}{scope}/{plural}", name, subresource)
            if part
        )

    def create(self, *objects: Object) -> None:
        for obj in objects:
            _expect(
                self.api.post(self.path(f"{obj['kind'].lower()}{_ending(obj['kind'])}"), obj), 201
            )

    def get(self, plural: str, name: str) -> Object | None:
        answer = self.api.get(self.path(plural, name))
        return answer.body if answer.status == 200 else None

    def the(self, plural: str, name: str) -> Object:
        found = self.get(plural, name)
        assert found is not None, f"{plural} {name} is gone"
        return found

    def list(self, plural: str, selector: str = "") -> list[Object]:
        answer = self.api.get(
            self.path(plural), **({"labelSelector": selector} if selector else {})
        )
        return list(_expect(answer, 200).body["items"])

    def patch(
        self, plural: str, name: str, patch: Any, subresource: str = "", kind: str = MERGE
    ) -> None:
        _expect(self.api.patch(self.path(plural, name, subresource), patch, kind), 200)

    def delete(
        self, plural: str, name: str, propagation: str = "Background", grace: int | None = None
    ) -> None:
        options: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
        }
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        answer = self.api.delete(self.path(plural, name), options)
        assert answer.status in (200, 202), answer

    def evict(self, pod: str) -> Answer:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": self.namespace},
        }
        return self.api.post(self.path("pods", pod, "eviction"), body)

    def until(self, what: str, is_so: Callable[[], bool]) -> None:
        """Let time pass until the condition holds; AssertionError that names `what` when patience
        is over.
        """
        limit = self.now() + self.patience
        while not is_so():
            assert self.now() < limit, (
                f"not so in the {self.api.name} world after {self.patience:.0f} s: {what}"
            )
            self.wait(self.step)

    def rest(self, seconds: float) -> None:
        """Let this number of seconds pass."""
        self.wait(seconds)


def _ending(kind: str) -> str:
    return "es" if kind.endswith("s") else "s"


def _expect(answer: Answer, status: int) -> Answer:
    assert answer.status == status, (answer.status, answer.body)
    return answer


def real_place(kubeconfig: Path, namespace: str) -> Place:
    place = Place(
        ApiClient("real", kubeconfig), namespace, time.time, time.sleep, step=0.3, patience=120.0
    )
    make_namespace(place)
    return place


@contextmanager
def simulated_place(folder: Path, namespace: str, nodes: Sequence[Object]) -> Iterator[Place]:
    """A simulated world with these nodes, served over HTTP."""
    world = sharing_world(Scenario(title="two worlds", node_pools=()), 1, EPOCH)
    with simulated_server(folder, world.clock, cluster=world.cluster) as server:

        def wait(seconds: float) -> None:
            server.do(lambda cluster: world.run_until(world.clock.now() + seconds))

        place = Place(
            ApiClient("simulated", server.kubeconfig),
            namespace,
            world.clock.now,
            wait,
            step=1.0,
            patience=1800.0,
        )
        make_namespace(place)
        place.create(*nodes)
        yield place


def make_namespace(place: Place) -> None:
    """A namespace with its default service account, which a real server demands before the first
    pod.
    """
    place.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}})
    place.until("the service account is there", lambda: _has_account(place))


def _has_account(place: Place) -> bool:
    if not place.is_real:
        return True
    return place.get("serviceaccounts", "default") is not None
