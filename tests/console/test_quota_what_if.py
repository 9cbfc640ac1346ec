"""Which pods wait for quota and why, and what would happen under another tree: the numbers of the
40-core demo.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.console.clusters import EPOCH, cluster
from tests.console.quota_demo import demo, five, full, leaf, poor

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import matching
from fairlead.console.pages.list_query import ListQuery
from fairlead.console.pages.quota import WaitingUnit
from fairlead.console.pages.quota_tree import BoundsChange, QuotaEffects, QuotaWhatIf, parse_what_if
from fairlead.errors import UserError


def waiting(seen: BoardState) -> list[WaitingUnit]:
    return [entry.row for entry in seen.waiting.entries]


def asked(seen: BoardState, *changes: BoundsChange) -> QuotaEffects:
    return seen.what_if(QuotaWhatIf(list(changes)))


def test_a_waiting_pod_is_shown_with_position_reason_sentence_and_numbers() -> None:
    first, second = waiting(full())
    assert (first.unit, first.leaf, first.position, first.pods, first.reason) == (
        "ns1/web-ns1-4",
        "root.a.1",
        1,
        1,
        "OverMax",
    )
    assert first.message == "cpu asks 5; root.a.1 uses 20 of max 20"
    assert [
        (each.node, each.resource, each.unit, each.asks, each.used, each.max)
        for each in first.blocked
    ] == [
        ("root.a.1", "cpu", "cores", 5, 20, 20),
        ("root.a", "cpu", "cores", 5, 40, 40),
        ("root", "cpu", "cores", 5, 40, 40),
    ]
    assert {(each.leaf, each.over) for each in first.borrowers} == {
        ("root.a.1", 10),
        ("root.a.2", 10),
    }
    assert second.leaf == "root.a.2"
    assert full().waiting_sentence.text == "2 pods wait for quota in 2 leaves."


def test_what_has_room_waits_for_its_gate_only_and_comes_first() -> None:
    seen = BoardState(
        cluster(pods=[five("ns1", 1, waits=True), five("ns1", 0)], quota=demo()), EPOCH
    )
    assert [(row.unit, row.reason, row.position) for row in waiting(seen)] == [
        ("ns1/web-ns1-1", None, 0)
    ]


def test_waiting_units_are_found_by_leaf_reason_and_namespace() -> None:
    rows = full().waiting
    for filters in (
        {"path": {"root.a.2"}},
        {"namespace": {"ns2"}},
        {"reason": {"overmax"}, "name": {"root.a.2"}},
    ):
        found = matching(
            rows, ListQuery(filters={key: frozenset(values) for key, values in filters.items()})
        )
        assert [row.unit for row in found] == ["ns2/web-ns2-4"]
    assert rows.facets["reason"] == ["OverMax"]


def test_without_a_tree_no_pod_waits_for_quota() -> None:
    seen = BoardState(cluster(pods=[five("ns1", 1)]), EPOCH)
    assert (waiting(seen), seen.waiting_sentence.code) == ([], "quota-waiting-none")


def test_a_raised_minimum_evicts_its_borrowers() -> None:
    """b.1 requests 2 x 5 of its min 10 while a.1 and a.2 use everything: one pod of each is evicted
    (scenario nginx3).
    """
    pods = [five(namespace, number) for namespace in ("ns1", "ns2") for number in range(4)] + [
        five("ns3", n, waits=True) for n in range(2)
    ]
    seen = BoardState(cluster(pods=pods, quota=poor()), EPOCH)
    assert asked(seen).evicted_count == 0
    found = asked(seen, BoundsChange("root.b.1", "cpu", min="10"))
    assert found.valid
    assert {(each.leaf, each.how) for each in found.evicted} == {
        ("root.a.1", "evict"),
        ("root.a.2", "evict"),
    }
    assert [(each.pod, each.leaf, each.is_guaranteed) for each in found.admitted] == [
        ("web-ns3-0", "root.b.1", True),
        ("web-ns3-1", "root.b.1", True),
    ]
    assert {
        (each.name, each.running_before, each.running_after, each.waiting_after)
        for each in found.leaves
    } == {
        ("root.a.1", 4, 3, 1),
        ("root.a.2", 4, 3, 1),
        ("root.b.1", 0, 2, 0),
    }
    assert found.sentence.values == {"admitted": 2, "evicted": 2}


def test_a_higher_ceiling_admits_pods_that_wait_below_it() -> None:
    pods = [five("ns1", number, waits=number == 4) for number in range(5)]
    seen = BoardState(cluster(pods=pods, quota=demo()), EPOCH)
    found = asked(seen, BoundsChange("root.a.1", "cpu", max="25"))
    assert [each.pod for each in found.admitted] == ["web-ns1-4"]
    assert found.evicted == []
    unlimited = asked(seen, BoundsChange("root.a.1", "cpu", max=""))
    assert unlimited.admitted == found.admitted


@pytest.mark.parametrize(
    ("change", "node", "code"),
    [
        (BoundsChange("root.a.1", "cpu", min="11"), "root.a", "SumOfMinExceedsParent"),
        (BoundsChange("root.a.1", "cpu", max="9"), "root.a.1", "MinExceedsMax"),
        (BoundsChange("root.a.1", "cpu", max="41"), "root.a.1", "MaxExceedsParent"),
        (BoundsChange("root.a.1", "cpu", min="lots"), "root.a.1", "BadShape"),
        (BoundsChange("root.a.1", "rdma/hca", min="1"), "root.a.1", "UnknownResource"),
    ],
)
def test_a_tree_that_would_be_refused_gives_the_reason_and_nothing_else(
    change: BoundsChange, node: str, code: str
) -> None:
    found = asked(full(), change)
    assert not found.valid
    assert (node, code) in {
        (fault.path, fault.code) for fault in found.faults if fault.level == "error"
    }
    assert (found.admitted_count, found.evicted_count, found.leaves) == (0, 0, [])


def test_a_node_that_is_absent_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        asked(full(), BoundsChange("root.z", "cpu", min="1"))
    assert caught.value.what == "the quota tree has no node `root.z`"
    with pytest.raises(UserError) as caught:
        asked(BoardState(cluster(), EPOCH), BoundsChange("root", "cpu", min="1"))
    assert caught.value.what == "this cluster has no quota tree to change"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        (b'{"changes": [{"node": "a"}]}'),
        (b'{"changes": [], "x": 1}'),
        b"\xff",
        b'{"changes": 7}',
    ],
)
def test_what_is_no_question_is_refused_with_an_example(body: bytes) -> None:
    with pytest.raises(UserError) as refused:
        parse_what_if(body)
    assert '"changes"' in refused.value.hint


def test_a_broken_tree_is_reported_on_the_board() -> None:
    twice = leaf("root.a.1", "root", "ns9")
    root = replace(demo(), children=(*demo().children, twice))
    seen = BoardState(cluster(pods=[five("ns1", 1, waits=True)], quota=root), EPOCH)
    assert seen.quota_sentence.code == "quota-invalid"
    assert ("root.a.1", "DuplicateName", True) in {
        (fault.path, fault.code, fault.stops) for fault in seen.quota_faults
    }
