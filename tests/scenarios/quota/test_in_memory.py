"""The worked scenarios of docs/spec/quota.md, played in memory, plan after plan, with several seeds
for grace periods and order.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.small import SmallWorld
from tests.scenarios.quota.files import (
    Scenario,
    ScenarioWorkload,
    Step,
    read_scenario,
    scenario_paths,
)

from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.quota.validate import validate

JOBS = ("Job", "MPIJob", "PyTorchJob")
PATHS = [path for path in scenario_paths() if "admission" not in read_scenario(path).needs]
"""Without scenarios that need admission: the plan does not contain pods that quota leaves alone."""
SEEDS = [range(2), pytest.param(range(2, 110), marks=pytest.mark.long)]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_scenario(path: Path, seeds: range) -> None:
    scenario = read_scenario(path)
    for seed in seeds:
        try:
            _Player(scenario, seed).play()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


class _Player:
    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self.world = SmallWorld(scenario.root(), grace=1 + seed % 6, seed=seed)
        self.spaces = {leaf.name: leaf.namespaces for leaf in scenario.root().leaves()}

    def play(self) -> None:
        for number, step in enumerate(self.scenario.steps, 1):
            before = len(self.world.victims)
            self._begin(step)
            self._settle()
            self._compare(step, self.world.victims[before:], f"step {number}")

    def _begin(self, step: Step) -> None:
        world = self.world
        if step.tree:
            world.tree = self.scenario.root(step.tree)
        for budget in step.budgets:
            leaf, _, _ = budget.workload.partition("/")
            world.budgets[f"{self.spaces[leaf][0]}/{budget.name}"] = budget.allows
        for workload in step.add:
            self._add(workload, step)
        for key in step.remove:
            leaf, _, name = key.partition("/")
            uid = f"uid-{self.spaces[leaf][0]}/{name}"
            world.workloads.pop(uid, None)
            world.remove(lambda pod, uid=uid: uid not in (pod.owner, pod.deployment))  # type: ignore[misc]
        for key in step.update:
            self._roll(key)
        world.now += step.wait

    def _add(self, workload: ScenarioWorkload, step: Step) -> None:
        space, asks = self.scenario.namespace(workload), self.scenario.asks(workload)
        more: dict[str, Any] = {
            "priority": workload.priority,
            "never_preempts": workload.never_preempts,
            "gated_by": workload.gate,
        }
        if workload.preemptible is not None:
            more["is_preemptible"] = workload.preemptible
        elif workload.kind == "Pod":
            more["is_preemptible"] = False
        if names := [
            budget.name
            for budget in step.budgets
            if budget.workload == f"{workload.leaf}/{workload.name}"
        ]:
            more["budgets"] = tuple(f"{space}/{name}" for name in names)
        if workload.kind in JOBS:
            if workload.gang:
                more["gang_size"] = workload.gang
            self.world.add_job(
                space, workload.name, workload.replicas, asks, kind=workload.kind, **more
            )
            return
        if workload.gang:
            more |= {"gang": workload.name, "gang_size": workload.gang}
        uid = f"uid-{space}/{workload.name}"
        owner = (
            {"owner": "none"}
            if workload.kind == "Pod"
            else {"owner": uid, "deployment": uid, "revision": 1}
        )
        self.world.add(space, workload.replicas, asks, **more, **owner)

    def _roll(self, key: str) -> None:
        """Creates a new revision beside the old one; a Deployment of one replica has a surge of one
        pod.
        """
        leaf, _, name = key.partition("/")
        uid = f"uid-{self.spaces[leaf][0]}/{name}"
        (old,) = [pod for pod in self.world.pods.values() if pod.deployment == uid]
        more = {
            "owner": uid,
            "deployment": uid,
            "revision": old.revision + 1,
            "priority": old.priority,
        }
        self.world.add(old.namespace, 1, old.request, **more)

    def _settle(self) -> None:
        self.world.settle()
        rolled = {
            pod.deployment: pod.revision
            for pod in self.world.pods.values()
            if pod.is_admitted and pod.deployment
        }
        self.world.remove(lambda pod: pod.revision >= rolled.get(pod.deployment, 0))
        assert self.world.settle().is_empty

    def _compare(self, step: Step, victims: list[str], which: str) -> None:
        expect, world = step.expect, self.world
        running = {leaf: sum(world.running(*self.spaces[leaf])) for leaf in expect.running}
        assert (running, world.evictions) == (expect.running, expect.evictions), which
        if expect.victims is not None:
            leaf_of = {space: leaf for leaf, spaces in self.spaces.items() for space in spaces}
            assert Counter(leaf_of[key.partition("/")[0]] for key in victims) == expect.victims, (
                which
            )
        for leaf, reasons in expect.waiting.items():
            assert world.reasons(leaf) == reasons, f"{which}: {leaf}"
        for leaf, sentences in expect.sentences.items():
            assert set(sentences) <= set(world.sentences(leaf)), (
                f"{which}: {leaf} has {world.sentences(leaf)}"
            )


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
def test_a_tree_is_valid_or_refused_as_its_file_states(path: Path) -> None:
    scenario = read_scenario(path)
    for text in ("", *(step.tree for step in scenario.steps if step.tree)):
        found = validate(QuotaTree("elasticquotatree", "kube-system", scenario.root(text)))
        assert [str(each.code) for each in found if each.is_error] == scenario.refused_on_entry


def test_every_written_namespace_is_a_leafs() -> None:
    for path in scenario_paths():
        scenario = read_scenario(path)
        for leaf in scenario.root().leaves():
            assert leaf.namespaces == replace(leaf).namespaces != (), path.stem
