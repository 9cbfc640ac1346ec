"""Which nodes a pod may use according to labels and taints. `why`, placement and Events consider
only those nodes.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.rules.sharing import ledger, node, placed, pod

from fairlead.model.node import Taint
from fairlead.model.node_choice import ANY_NODE
from fairlead.rules.nodes.choice import may_use
from fairlead.rules.sharing.what_if import place_pods, what_must_go
from fairlead.rules.sharing.why import why_no_room
from fairlead.wire.kube.objects import WirePod, parse_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def asked(spec: dict[str, Any], units: int = 4) -> Any:
    container = {"name": "main", "resources": {"limits": {"aliyun.com/gpu-mem": str(units)}}}
    obj = {
        "metadata": {"name": "p", "namespace": "default", "uid": "uid-p"},
        "spec": {"containers": [container], **spec},
    }
    return parse_pod(msgspec.json.decode(msgspec.json.encode(obj), type=WirePod))


def term(key: str, operator: str, *values: str, what: str = "matchExpressions") -> dict[str, Any]:
    return {
        what: [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]
    }


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


NODE = msgspec.structs.replace(
    node(labels={"cgpu": "true", "pool": "a", "gpus": "8"}),
    taints=(Taint("team", "x", "NoSchedule"),),
)
TEAM = {"tolerations": [{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        pytest.param({}, False, id="a taint"),
        pytest.param(TEAM, True, id="tolerated"),
        pytest.param(
            {"tolerations": [{"key": "team", "value": "x"}]},
            True,
            id="equal is what is meant without a word",
        ),
        pytest.param({"tolerations": [{"key": "team", "value": "y"}]}, False, id="another value"),
        pytest.param(
            {"tolerations": [{"key": "team", "operator": "Exists", "effect": "NoExecute"}]},
            False,
            id="another effect",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, True, id="every taint is tolerated"
        ),
        pytest.param({**TEAM, "nodeSelector": {"pool": "a"}}, True, id="selected"),
        pytest.param(
            {**TEAM, "nodeSelector": {"pool": "a", "zone": "b"}}, False, id="half selected"
        ),
        pytest.param(
            {**TEAM, **affinity(term("pool", "In", "b"), term("gpus", "Gt", "4"))},
            True,
            id="one term of two holds",
        ),
        pytest.param({**TEAM, **affinity(term("gpus", "Lt", "4"))}, False, id="a number too large"),
        pytest.param({**TEAM, **affinity(term("pool", "Gt", "4"))}, False, id="no number"),
        pytest.param(
            {**TEAM, **affinity(term("zone", "NotIn", "b"))},
            True,
            id="who has no such label is not in",
        ),
        pytest.param(
            {**TEAM, **affinity(term("zone", "Exists"))}, False, id="a label that is missing"
        ),
        pytest.param(
            {**TEAM, **affinity(term("zone", "DoesNotExist"))},
            True,
            id="a label that shall be missing",
        ),
        pytest.param(
            {**TEAM, **affinity(term("metadata.name", "In", "n", what="matchFields"))},
            True,
            id="by name",
        ),
        pytest.param({**TEAM, **affinity({})}, False, id="an empty term allows nothing"),
        pytest.param(
            {**TEAM, "affinity": {"podAffinity": {}}},
            True,
            id="affinity to pods is another thing",
        ),
    ],
)
def test_labels_and_taints_decide(spec: dict[str, Any], may: bool) -> None:
    assert may_use(asked(spec).node_choice, NODE) is may


@pytest.mark.parametrize("resource", ["aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"])
@pytest.mark.parametrize("side", ["limits", "requests"])
def test_labels_and_taints_of_a_pod_count_whichever_container_shares_a_card(
    resource: str, side: str
) -> None:
    """kube-scheduler calls the extender for every pod that requests one of its resources, even in
    an init container alone.
    """
    parts = [{"name": "main"}, {"name": "init", "resources": {side: {resource: "5"}}}]
    for spec in ({"containers": parts}, {"containers": parts[:1], "initContainers": parts[1:]}):
        assert not may_use(asked({**spec, "nodeSelector": {"pool": "b"}}).node_choice, node())
    others = {"containers": parts[:1], "nodeSelector": {"pool": "b"}}
    assert not may_use(asked(others).node_choice, node()), (
        "a pod without a node waits for one: quota asks it of all of these"
    )
    assert asked({**others, "nodeName": "n1"}).node_choice == ANY_NODE, "it is not asked of others"


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    cordoned = msgspec.structs.replace(node(), unschedulable=True)
    assert not may_use(asked({}).node_choice, cordoned)
    assert may_use(
        asked(
            {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
        ).node_choice,
        cordoned,
    )


def test_a_pod_gets_the_numbers_of_the_nodes_that_it_may_use() -> None:
    made = ledger(
        node("a", (15,), labels={"cgpu": "true", "pool": "a"}),
        node("b", (15,), labels={"cgpu": "true"}),
        used={("a", 0): 13},
    )
    waits = asked({"nodeSelector": {"pool": "a"}})
    why = (
        "0/1 of 2 nodes that it may use have room: 1 Insufficient aliyun.com/gpu-mem on one GPU: "
        "need 4 GiB, largest free 2 GiB"
    )
    assert why_no_room(made, waits) == why
    assert why_no_room(made, asked({"nodeSelector": {"pool": "z"}})) == (
        "none of the nodes suits its nodeSelector, affinity and tolerations"
    )
    assert why_no_room(made, asked({})) == ""
    (outcome,) = place_pods(made, [waits])
    assert (outcome.node, outcome.reason) == ("", why)
    made.set_pod(placed(pod("c", 15), "b", {"main": [(0, 15)]}))
    sacrifice = what_must_go(made, waits)
    assert sacrifice is not None and sacrifice.node == "a"
