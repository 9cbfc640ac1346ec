"""Nodes that labels allow for a pod: node affinity with every
operator, and affinity to other pods.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import Object, condition, get_pod, live, pod, small_world

from fairlead_sim.scenario.scenario import NodePool, PoolTaint
from fairlead_sim.scheduler.affinity import suits_node
from fairlead_sim.world.world import World

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONES = (
    NodePool(name="a", count=2, labels={"zone": "a", "gen": "8"}),
    NodePool(name="b", labels={"zone": "b", "gen": "9"}),
)


def node_term(*expressions: tuple[str, str, list[str]]) -> Object:
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": values}
            for key, operator, values in expressions
        ]
    }


def node_affinity(*terms: Object) -> Object:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def pod_affinity(kind: str, app: str, key: str = "zone", **more: Any) -> Object:
    return {
        "affinity": {
            kind: {
                REQUIRED: [
                    {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}
                ]
            }
        }
    }


def place(
    world: World, name: str, app: str = "", namespace: str = "work", **spec: Any
) -> str | None:
    """The node that a new pod gets; None if it waits."""
    new = pod(name, **spec)
    new["metadata"] |= {"labels": {"app": app}, "namespace": namespace}
    world.cluster.create(new)
    live(world, 3)
    found = world.cluster.list(world.cluster.kind_of(new), namespace)
    return next(item["spec"].get("nodeName") for item in found if item["metadata"]["name"] == name)


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (("zone", "In", ["a", "c"]), True),
        (("zone", "In", ["b"]), False),
        (("zone", "NotIn", ["b"]), True),
        (("absent", "NotIn", ["b"]), True),
        (("zone", "Exists", []), True),
        (("absent", "Exists", []), False),
        (("absent", "DoesNotExist", []), True),
        (("gen", "Gt", ["7"]), True),
        (("gen", "Gt", ["8"]), False),
        (("gen", "Lt", ["9"]), True),
        (("zone", "Lt", ["9"]), False),
        (("absent", "Gt", ["0"]), False),
    ],
    ids=str,
)
def test_every_operator(expression: tuple[str, str, list[str]], fits: bool) -> None:
    assert (
        suits_node(node_affinity(node_term(expression)), "a-1", {"zone": "a", "gen": "8"}) is fits
    )


def test_terms_are_alternatives_and_expressions_conditions() -> None:
    here = {"zone": "a", "gen": "8"}
    neither, both = (
        node_term(("zone", "In", ["a"]), ("gen", "In", ["1"])),
        node_term(("zone", "In", ["a"]), ("gen", "In", ["8"])),
    )
    assert not suits_node(node_affinity(neither), "a-1", here)
    assert suits_node(node_affinity(neither, both), "a-1", here)
    assert not suits_node(node_affinity({}), "a-1", here)
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a-2"]}]}
    assert [suits_node(node_affinity(by_name), name, here) for name in ("a-1", "a-2")] == [
        False,
        True,
    ]


def test_preferred_nodes_come_first_and_unwelcoming_ones_last() -> None:
    world = small_world(
        *ZONES,
        NodePool(name="soft", count=1, cpu=64, taints=(PoolTaint("k", effect="PreferNoSchedule"),)),
    )
    prefers = {
        "affinity": {
            "nodeAffinity": {
                PREFERRED: [{"weight": 5, "preference": node_term(("zone", "In", ["b"]))}]
            }
        }
    }
    assert [place(world, f"p{number}", **prefers) for number in range(3)] == ["b-1"] * 3
    assert {place(world, f"q{number}") for number in range(9)} == {"a-1", "a-2", "b-1"}


def test_beside_means_the_same_topology_value() -> None:
    world = small_world(*ZONES)
    assert place(world, "front", **pod_affinity("podAffinity", "db")) is None
    message = condition(get_pod(world, "front"), "PodScheduled")["message"]
    assert message.startswith(
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules. "
    )
    assert place(world, "db", "db", nodeSelector={"zone": "a"}) in ("a-1", "a-2")
    live(world, 5)
    assert str(get_pod(world, "front")["spec"].get("nodeName")).startswith("a-")


def test_the_first_of_a_kind_that_wants_its_own_kind_may_stand_anywhere() -> None:
    world = small_world(*ZONES)
    first = place(world, "w0", "w", **pod_affinity("podAffinity", "w"))
    assert first is not None
    assert str(place(world, "w1", "w", **pod_affinity("podAffinity", "w")))[0] == first[0]


def test_anti_affinity_holds_both_ways() -> None:
    world = small_world(*ZONES)
    apart = pod_affinity("podAntiAffinity", "l", "kubernetes.io/hostname")
    assert {place(world, f"l{number}", "l", **apart) for number in range(3)} == {
        "a-1",
        "a-2",
        "b-1",
    }
    assert place(world, "l3", "l", **apart) is None
    message = condition(get_pod(world, "l3"), "PodScheduled")["message"]
    # Recorded from kube-scheduler 1.36.3.
    assert message == (
        "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. no new "
        "claims to deallocate, "
        "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
    )
    assert place(world, "plain", "l") is None
    message = condition(get_pod(world, "plain"), "PodScheduled")["message"]
    assert message.startswith(
        "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules. "
    )
    assert place(world, "other", "x") is not None


def test_namespaces_bound_what_a_term_sees() -> None:
    world = small_world(*ZONES)
    assert place(world, "db", "db", "default", nodeSelector={"zone": "b"}) == "b-1"
    assert place(world, "here", **pod_affinity("podAffinity", "db")) is None
    assert (
        place(world, "named", **pod_affinity("podAffinity", "db", namespaces=["default"])) == "b-1"
    )
    assert place(world, "all", **pod_affinity("podAffinity", "db", namespaceSelector={})) == "b-1"
