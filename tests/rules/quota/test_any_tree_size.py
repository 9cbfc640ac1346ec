"""The deepest tree that is accepted, and a tree with 20,000 nodes: planned, accounted for,
validated, saved.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.model.actions import WriteTreeStatus
from fairlead.model.pod import Container, Pod
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.snapshot import build_snapshot
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.sight import quota_state
from fairlead.rules.quota.usage import quota_usage
from fairlead.rules.quota.validate import validate
from fairlead.wire.files.snapshot_file import SavedSnapshot, parse_snapshot, render_snapshot
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead.wire.quota.tree_size import LEVELS_MAX
from fairlead.wire.quota.tree_status import render_tree_status


def deep() -> dict[str, Any]:
    bounds = {"min": {"cpu": 10}, "max": {"cpu": 10}}
    node: dict[str, Any] = {"name": f"l{LEVELS_MAX}", "namespaces": ["ns0"], **bounds}
    for level in range(LEVELS_MAX - 1, 0, -1):
        node = {"name": f"l{level}", **bounds, "children": [node]}
    return node


def wide() -> dict[str, Any]:
    leaves = [
        {"name": f"root.{n}", "namespaces": [f"ns{n}"], "min": {"cpu": 1}, "max": {"cpu": 10}}
        for n in range(20_000)
    ]
    return {"name": "root", "min": {"cpu": 20_000}, "max": {"cpu": 20_000}, "children": leaves}


def read(root: dict[str, Any]) -> QuotaTree:
    body = {
        "metadata": {"name": "elasticquotatree", "namespace": "kube-system"},
        "spec": {"root": root},
    }
    return parse_quota_tree(msgspec.convert(body, WireQuotaTree))


@pytest.mark.parametrize(
    ("root", "nodes"),
    [(deep(), LEVELS_MAX), pytest.param(wide(), 20_001, marks=pytest.mark.long)],
    ids=["deep", "wide"],
)
def test_a_tree_of_any_size_is_planned_printed_and_saved(root: dict[str, Any], nodes: int) -> None:
    tree = read(root)
    assert validate(tree, tree) == ()
    five = Container("main", requests={"cpu": 5000})
    gate, labels = ("fairlead.io/quota",), {"quota.scheduling.alibabacloud.com/preemptible": "true"}
    pods = [
        Pod(
            namespace="ns0", name=f"p{n}", uid=str(n), labels=labels, gates=gate, containers=(five,)
        )
        for n in range(3)
    ]
    snapshot = build_snapshot(taken_at=0, pods=pods, quota_tree=tree)
    assert (
        parse_snapshot(render_snapshot(SavedSnapshot(snapshot)), "file").snapshot.quota_tree == tree
    )
    plan = plan_quota(quota_state(snapshot, 0.0))
    assert ([each.pod.name for each in plan.admit], [each.reason for each in plan.waiting]) == (
        ["p0", "p1"],
        ["OverMax"],
    )
    uses = quota_usage(snapshot)
    assert len(uses) == nodes
    status = render_tree_status(WriteTreeStatus(tree, tuple(use.own for use in uses)))
    assert (len(status["nodes"]) + status.get("nodesLeftOut", 0), status["waiting"]) == (nodes, 3)
