"""The errors for each of these trees from the rule itself, from `fairlead quota validate FILE`, and
from the simulated cluster.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.cli.command import run_command
from tests.kube.objects import pod
from tests.scenarios.trees.files import TreeFile, standing, tree_files

from fairlead.model.node import Node
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.quota.tree import QuotaTree, ViolationCode
from fairlead.model.snapshot import build_snapshot
from fairlead.model.source import Source
from fairlead.rules.quota.validate import validate
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead_sim.api.tokens import ADMIN
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.schema.status import ApiStatus

FILES = [pytest.param(each, id=each.path.stem) for each in tree_files()]
BUSY = Pod(namespace="busy", name="runs", uid="u", phase=PodPhase.RUNNING)


def read(tree: dict[str, Any]) -> QuotaTree:
    return parse_quota_tree(msgspec.convert(tree, WireQuotaTree, strict=False))


@pytest.mark.parametrize("file", FILES)
def test_the_rule_states_it(file: TreeFile) -> None:
    old, pods = (read(standing().tree), [BUSY]) if file.needs_standing else (None, [])
    found = [each for each in validate(read(file.tree), old, pods=pods) if each.is_error]
    assert [(str(each.code), each.message) for each in found] == list(file.errors)
    assert any(each.stops for each in found) == file.is_stopping


@pytest.mark.parametrize("file", FILES)
def test_the_command_prints_it(file: TreeFile) -> None:
    sources = (Source("pods"), Source("nodes"), Source("elasticquotatrees"))
    snapshot = build_snapshot(
        taken_at=0.0,
        nodes=[Node("n")],
        pods=[BUSY],
        quota_tree=read(standing().tree),
        sources=sources,
    )
    printed = run_command(
        f"quota validate {'--snapshot=any ' if file.needs_standing else ''}{file.path}",
        snapshot,
        "fairlead",
    )
    rows = [line.split(None, 2) for line in printed.out.splitlines() if line.startswith("ERROR")]
    assert [(code, message) for _, code, message in rows] == list(file.errors)
    assert printed.status == (1 if file.errors else 0)


def test_every_code_that_refuses_a_write_has_a_file() -> None:
    warnings = {
        "AttributeNotEnforced",
        "RootExceedsCluster",
        "NoSuchNamespace",
        "LeafWithoutNamespace",
        "SumOfMinBelowParent",
        "OverMaxNow",
        "UnderUse",
    }
    reported = {code for file in tree_files() for code, _ in file.errors}
    assert reported == {str(code) for code in ViolationCode} - warnings


@pytest.mark.parametrize("file", FILES)
def test_the_laptop_prints_it(file: TreeFile) -> None:
    """In one answer: the webhook's errors, because the simulated API evaluates no CEL rules, or the
    errors of the schema.
    """
    world = sharing_world(load_scenario("documents-004"), 0, 1_767_600_000.0)
    world.warm_up()
    cluster = world.cluster
    for name in ("alpha", "beta", "busy", "gamma"):
        cluster.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, ADMIN.name
        )
    if file.needs_standing:
        cluster.create(standing().tree, ADMIN.name)
        cluster.create(pod("runs", namespace="busy"), ADMIN.name)
        world.run_until(world.clock.now() + 30)
    message = ""
    try:
        (cluster.update if file.needs_standing else cluster.create)(file.tree, ADMIN.name)
    except ApiStatus as refusal:
        message = refusal.message
    assert bool(message) == bool(file.errors)
    assert all(f"{code}: {sentence}" in message for code, sentence in file.errors), message
