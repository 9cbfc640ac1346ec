"""The status of the quota tree: its content, and where it is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.edge.kube.object_actions import tree_status_request
from fairlead.model.actions import WriteTreeStatus
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.tree import QuotaNode, QuotaTree, Violation
from fairlead.wire.quota.tree_status import parse_node_uses, render_tree_status

LEAF = QuotaNode("root.a", "root.a", "root", {"cpu": 10_000}, {"cpu": 20_000}, ("ns1",))
ROOT = QuotaNode("root", "root", "", {"cpu": 40_000}, {"cpu": 40_000}, children=(LEAF,))
USES = (
    QuotaNodeUse("root", (), ("root.a",), used={"cpu": 12_500}, waiting_units=1, waiting_pods=2),
    QuotaNodeUse(
        "root.a",
        ("ns1",),
        used={"cpu": 12_500, "memory": 16 << 30},
        request={"cpu": 17_500},
        guaranteed={"cpu": 10_000},
        borrowed={"cpu": 2500},
        claimed={"cpu": 1000},
        lost={"cpu": 1},
        firm_used={"cpu": 2000},
        firm_request={"cpu": 3000},
        waiting_units=1,
        waiting_pods=2,
    ),
)


def tree(status: dict[str, Any] | None = None) -> QuotaTree:
    return QuotaTree(
        "elasticquotatree", "kube-system", ROOT, uid="u", generation=7, status=status or {}
    )


def conditions(action: WriteTreeStatus) -> dict[str, tuple[str, str, str]]:
    return {
        each["type"]: (each["status"], each["reason"], each["message"])
        for each in render_tree_status(action)["conditions"]
    }


def test_every_node_carries_what_the_contract_lists_in_canonical_quantities() -> None:
    status = render_tree_status(WriteTreeStatus(tree(), USES, at=1767600000.5))
    assert (status["observedGeneration"], status["leaves"], status["waiting"]) == (7, 1, 2)
    assert status["nodes"][1] == {
        "name": "root.a",
        "namespaces": ["ns1"],
        "children": [],
        "waiting": {"units": 1, "pods": 2},
        "used": {"cpu": "12500m", "memory": "16Gi"},
        "request": {"cpu": "17500m"},
        "guaranteed": {"cpu": "10"},
        "borrowed": {"cpu": "2500m"},
        "claimed": {"cpu": "1"},
        "lost": {"cpu": "1m"},
        "nonPreemptibleUsed": {"cpu": "2"},
        "nonPreemptibleRequest": {"cpu": "3"},
    }
    assert status["nodes"][0]["children"] == ["root.a"]
    assert status["conditions"][0] == {
        "type": "Valid",
        "status": "True",
        "reason": "TreeValid",
        "message": "",
        "observedGeneration": 7,
        "lastTransitionTime": "2026-01-05T08:00:00Z",
    }


def test_the_first_violation_that_stops_is_reported_before_any_other() -> None:
    plain = Violation("root", "RootMinNotMax", "root: min")
    stopping = Violation("root.a", "DuplicateName", "root.a: twice", stops=True)
    warning = Violation(
        "root.a", "NoSuchNamespace", "root.a: namespace ns1 does not exist yet", is_error=False
    )
    assert conditions(WriteTreeStatus(tree(), violations=(plain, stopping)))["Valid"] == (
        "False",
        "TreeInvalid",
        "root.a: twice (and 1 more)",
    )
    assert conditions(WriteTreeStatus(tree(), violations=(plain, warning)))["Valid"] == (
        "False",
        "RootMinNotMax",
        "root: min",
    )
    assert conditions(WriteTreeStatus(tree(), violations=(warning,)))["Valid"] == (
        "True",
        "TreeValid",
        warning.message,
    )


def test_why_the_tree_is_not_enforced_is_reported() -> None:
    message = "the policy fairlead-quota is absent"
    assert conditions(WriteTreeStatus(tree(), not_enforced=message))["Enforced"] == (
        "False",
        "NotEnforced",
        message,
    )
    assert conditions(WriteTreeStatus(tree()))["Enforced"] == ("True", "Enforced", "")


def test_a_condition_that_does_not_change_keeps_its_time() -> None:
    before = render_tree_status(WriteTreeStatus(tree(), at=1767600000.0))
    after = render_tree_status(WriteTreeStatus(tree(before), not_enforced="no", at=1767603600.0))
    assert [each["lastTransitionTime"] for each in after["conditions"]] == [
        "2026-01-05T08:00:00Z",
        "2026-01-05T09:00:00Z",
    ]


def test_a_status_that_others_wrote_is_no_trouble() -> None:
    for malformed in (
        {"conditions": "ill"},
        {"conditions": [5, {"type": "Valid", "status": "True", "lastTransitionTime": 5}]},
    ):
        assert conditions(WriteTreeStatus(tree(malformed)))["Valid"][0] == "True"


def test_a_tree_without_a_root_has_no_leaves() -> None:
    assert (
        render_tree_status(WriteTreeStatus(QuotaTree("elasticquotatree", "kube-system")))["leaves"]
        == 0
    )


def test_it_is_one_write_to_the_status_of_this_very_object() -> None:
    request = tree_status_request(WriteTreeStatus(tree(), USES))
    assert request.path.startswith(
        "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees/elasticquotatree/status?"
    )
    test, write = json.loads(request.body or b"")
    assert test == {"op": "test", "path": "/metadata/uid", "value": "u"}
    assert (write["op"], write["path"], write["value"]["leaves"]) == ("add", "/status", 1)


def test_of_a_tree_that_is_too_large_the_rest_is_counted() -> None:
    """20,000 nodes with all counts would be 10 MB; etcd accepts 1.5 MiB, including the tree."""
    amounts = {"cpu": 5000, "memory": 2**33}
    uses = tuple(
        QuotaNodeUse(f"root.{number}", (f"ns-{number}",), used=amounts, request=amounts)
        for number in range(20_000)
    )
    tree = QuotaTree("elasticquotatree", "kube-system", root=QuotaNode("root", "root"))
    status = render_tree_status(WriteTreeStatus(tree, uses))
    assert len(json.dumps(status)) < 600_000
    assert len(status["nodes"]) > 500
    assert status["nodesLeftOut"] == 20_000 - len(status["nodes"])
    assert status["nodes"][-1]["name"] == f"root.{len(status['nodes']) - 1}"
    assert "nodesLeftOut" not in render_tree_status(WriteTreeStatus(tree, uses[:500]))


NAMES = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "rdma/hca"])
AMOUNTS = st.dictionaries(NAMES, st.integers(0, 2**63 - 1), max_size=3)
COUNTS = st.integers(0, 100_000)
ROWS = st.builds(
    QuotaNodeUse,
    st.text(min_size=1, max_size=5),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    waiting_units=COUNTS,
    waiting_pods=COUNTS,
    **dict.fromkeys(
        (
            *("used", "request", "guaranteed", "borrowed", "claimed", "lost"),
            *("firm_used", "firm_request", "counted_min", "over_max"),
        ),
        AMOUNTS,
    ),
)


@given(st.lists(ROWS, max_size=4))
def test_what_was_written_is_read_as_it_was(uses: list[QuotaNodeUse]) -> None:
    status = render_tree_status(WriteTreeStatus(tree(), tuple(uses)))
    assert parse_node_uses(json.loads(json.dumps(status))) == tuple(uses)


@pytest.mark.parametrize(
    "row",
    [
        *(None, 7, "root", [], {}, {"name": "x"}),
        *({"name": "x", "used": used} for used in (7, ["cpu"], {"cpu": "lots"}, {"cpu": {}})),
        *({"name": "x", "used": {}, "waiting": waits} for waits in ([1], {"pods": 1e999}, "7")),
        {"name": "x", "used": {}, "namespaces": 7},
    ],
)
def test_a_malformed_row_is_left_out_and_others_are_not(row: Any) -> None:
    rows = render_tree_status(WriteTreeStatus(tree(), USES))["nodes"]
    assert parse_node_uses({"nodes": [rows[0], row, rows[1]]}) == USES
    assert parse_node_uses({"nodes": row}) == ()
    assert parse_node_uses({}) == ()
