"""Pods that have scheduling gates of other controllers, and pods that never preempt.

See docs/spec/quota.md#contested-resources-and-guaranteed-units.
"""

from __future__ import annotations

import pytest
from tests.rules.quota.sights import counted, gated, pod
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.quota.plan import Reason
from fairlead.model.quota.state import NodeRoom
from fairlead.rules.quota.node_use import node_uses

GATE = "example.com/licence"


def test_a_gate_of_another_controller_is_seen_beside_fairleads() -> None:
    both = gated()
    both["spec"]["schedulingGates"].append({"name": GATE})
    assert (counted(both).gated_by, counted(gated()).gated_by) == (GATE, "")
    theirs = gated()
    theirs["spec"]["schedulingGates"] = [{"name": GATE}, {"name": "b"}]
    assert (counted(theirs).is_admitted, counted(theirs).gated_by) == (True, f"{GATE}, b")


def test_it_asks_for_nothing_until_only_our_gate_is_left() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add("a", 4, 1, runs=True)
    world.add("b", 1, 2)
    world.change("b/p001", gated_by=GATE)
    plan = world.step()
    assert plan.is_empty
    (row,) = plan.waiting
    assert (row.unit, row.reason) == ("b/p001", Reason.GATED_BY_OTHERS)
    assert [(each.code, each.values["gate"]) for each in row.clauses] == [("gated", GATE)]
    used = {node.name: node for node in node_uses(world.state())}
    assert (used["b"].request.get("gpu", 0), used["b"].waiting_pods) == (0, 1)
    world.change("b/p001", gated_by="")
    assert len(world.step().evict) == 2


def test_it_makes_nothing_scarce() -> None:
    """If its demand counted, demand would exceed the max, and `a` would be a borrower behind the
    guaranteed unit.
    """
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add("b", 1, 4)
    world.change("b/p001", gated_by=GATE)
    world.add("a", 4, 1)
    assert world.step().admit
    assert world.running("a") == (4,)


def test_a_gang_waits_for_a_member_that_another_gate_holds() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add("b", 3, 1, gang="g", gang_size=3)
    world.change("b/p002", gated_by=GATE)
    rows = {row.unit: row for row in world.step().waiting}
    assert {str(row.reason) for row in rows.values()} == {"GangIncomplete", "GatedByOthers"}
    assert any("2/3" in row.message for row in rows.values())
    world.change("b/p002", gated_by="")
    assert len(world.step().admit) == 3


@pytest.mark.parametrize("by", ["", GATE])
def test_it_is_never_returned(by: str) -> None:
    world = SmallWorld(tree("root[4]{b[4]}"), nodes=(NodeRoom("n1", {"gpu": 4}),))
    world.add("b", 1, 1, owner="o", runs=True)
    world.change("b/p001", node="", gated_by=by, admitted_at=world.now)
    world.now += 1000
    world.state_more["scheduled_at"] = world.now
    plan = world.plan(world.state())
    assert [each.pod.key for each in plan.returned] == ([] if by else ["b/p001"])


# --- preemptionPolicy -----------------------------------------------------------------------------


def test_the_policy_is_seen() -> None:
    assert counted(pod(spec={"preemptionPolicy": "Never"})).never_preempts
    assert not counted(pod(spec={"preemptionPolicy": "PreemptLowerPriority"})).never_preempts
    assert not counted(pod()).never_preempts


@pytest.mark.parametrize("never", [False, True])
def test_a_pod_that_never_preempts_evicts_no_pod_of_its_leaf(never: bool) -> None:
    world = SmallWorld(tree("root[4]{a[4]}"))
    world.add("a", 4, 1, runs=True)
    world.add("a", 1, 1, priority=100)
    world.change("a/p005", never_preempts=never)
    assert len(world.step().evict) == (not never)


def test_nor_its_predecessor_of_the_same_deployment() -> None:
    world = SmallWorld(tree("root[1]{a[1]}"))
    world.add("a", 1, 1, runs=True, deployment="d", revision=1)
    world.add("a", 1, 1, deployment="d", revision=2)
    world.change("a/p002", never_preempts=True)
    world.now += 1000
    assert not world.step().evict


def test_its_min_is_a_right_against_other_leaves_and_its_priority_orders_it() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add("a", 4, 1, runs=True)
    world.add("b", 1, 4, priority=0)
    world.add("b", 1, 1, priority=100)
    world.change("b/p002", never_preempts=True)
    plan = world.step()
    assert "b/p002" in {each.for_unit for each in plan.evict}
