"""The worked scenarios of quota in the simulated cluster with everything that a laptop has: its
controllers, its scheduler, its admission, and the quota decider in the world's own time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.quota.files import Scenario, read_scenario, scenario_paths
from tests.scenarios.quota.objects import VERSIONS
from tests.scenarios.quota.player import GATE, ScenarioPlayer

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.api.tokens import ADMIN
from fairlead_sim.objects.resources import ELASTIC_QUOTA_TREES, PODS
from fairlead_sim.objects.watch_log import LoggedChange
from fairlead_sim.scenario.file import parse_scenario
from fairlead_sim.schema.status import ApiStatus

Object = dict[str, Any]
EPOCH = 1_767_600_000.0
SETTLE_SECONDS = 180.0
"""In the world's time: a message that alone has changed is written within 60 seconds."""
JOBS = ("Job", "PyTorchJob", "MPIJob")
ROOM = """
title = "Room for every scenario"
[[node_pools]]
names = ["whole-1", "whole-2"]
cpu = 128
memory = "512Gi"
gpu_model = "Tesla V100-SXM2-16GB"
gpus = 8
[[node_pools]]
names = ["shared-1"]
cpu = 96
memory = "512Gi"
gpu_model = "Tesla T4"
gpus = 8
shared = true
"""


class SimulatedHands:
    """`Hands` for a simulated world, which is new for each scenario."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.world = sharing_world(parse_scenario(ROOM, "room"), seed, EPOCH)
        self.world.warm_up()
        self.cluster = self.world.cluster
        self.cluster.subscribe(PODS, self._see)
        self._stopped: dict[str, str] = {}
        self._tree_writer = "" if scenario.refused_on_entry else ADMIN.name

    def _see(self, change: LoggedChange) -> None:
        pod = change.object
        is_gated = any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ())
        if "deletionTimestamp" in pod["metadata"] and not is_gated:
            self._stopped[pod["metadata"]["uid"]] = pod["metadata"]["namespace"]

    def make(self, objects: list[Object]) -> None:
        for each in objects:
            self.cluster.create(each, ADMIN.name)

    def set_tree(self, tree: Object) -> None:
        if next(iter(self.cluster.scan(ELASTIC_QUOTA_TREES)), None) is None:
            self.cluster.create(tree, self._tree_writer)
        else:
            self.cluster.update(tree, self._tree_writer)
        self._pass(5.0)

    def remove(self, plural: str, namespace: str, app: str) -> None:
        for ref in self.cluster.kinds():
            if ref.plural == plural:
                for found in list(self.cluster.scan(ref, namespace)):
                    if (found["metadata"].get("labels") or {}).get("app") == app:
                        self.cluster.delete(ref, namespace, found["metadata"]["name"])

    def roll(self, namespace: str, name: str) -> None:
        ref = self.cluster.kind_of({"apiVersion": "apps/v1", "kind": "Deployment"})
        env = {"spec": {"template": {"metadata": {"annotations": {"release": "2"}}}}}
        self.cluster.merge_patch(ref, namespace, name, env)

    def attempt(self, does: str, namespace: str, app: str) -> str:
        try:
            if does == "set the node":
                spec = {"containers": [{"name": "main", "image": "app:1"}], "nodeName": "whole-1"}
                pod = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "probe", "namespace": namespace},
                    "spec": spec,
                }
                self.cluster.rehearsal().create(pod, "mallory")
            else:
                gated = next(
                    pod
                    for pod in self.cluster.scan(PODS, namespace)
                    if pod["metadata"]["name"].startswith(app) and _gates(pod)
                )
                self.cluster.rehearsal().update(
                    {**gated, "spec": {**gated["spec"], "schedulingGates": []}}, "mallory"
                )
        except ApiStatus as refusal:
            return refusal.message
        return ""

    def settle(self, differences: Callable[[], list[str]], seconds: float) -> list[str]:
        self._pass(SETTLE_SECONDS + seconds)
        return differences()

    def _pass(self, seconds: float) -> None:
        self.world.run_until(self.world.clock.now() + seconds)

    def pods(self) -> Iterable[Object]:
        return list(self.cluster.scan(PODS))

    def jobs(self) -> Iterable[Object]:
        refs = [self.cluster.kind_of({"apiVersion": VERSIONS[kind], "kind": kind}) for kind in JOBS]
        return [job for ref in refs for job in self.cluster.scan(ref)]

    def tree(self) -> Object:
        (found,) = self.cluster.scan(ELASTIC_QUOTA_TREES)
        return found

    def planned(self, leaf: str) -> list[tuple[str, str]]:
        """No plan is needed, because no condition is old here."""
        return []

    def stopped(self) -> dict[str, str]:
        return self._stopped


def _gates(pod: Object) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))]
)
def test_a_scenario(path: Path, seed: int) -> None:
    scenario = read_scenario(path)
    ScenarioPlayer(scenario, SimulatedHands(scenario, seed)).play()
