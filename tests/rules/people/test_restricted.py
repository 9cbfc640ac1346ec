"""What a researcher sees of a quota plan, a tree and texts: no name of another team."""

from __future__ import annotations

import string

import pytest

from fairlead.model.event import Event
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR
from fairlead.model.people.reach import Reach
from fairlead.model.quota.clauses import CLAUSES, clause
from fairlead.model.quota.plan import Borrower, ProtectedPod, QuotaPlan, QuotaWaiting, Reason
from fairlead.model.quota.tree import QuotaNode, Violation
from fairlead.rules.people.restricted import (
    WITHHELD_TEXT,
    restricted_clauses,
    restricted_events,
    restricted_plan,
    restricted_tree,
    restricted_violations,
    without_claimant,
)

REACH = Reach(frozenset({"own"}), frozenset({"root.own"}))
MAY_NAME = {
    # its leaf and the nodes above it, its gang, its user, cluster nodes and figures
    *("leaf", "node", "gang", "user", "resource", "gate", "asks", "pods", "there", "jobs", "max"),
    *("min", "nodes", "free", "unit", "used", "cap", "size", "claimed", "kept", "configured"),
    *("least", "counts", "stopping"),
}


@pytest.mark.parametrize("code", CLAUSES)
def test_no_clause_names_another_team(code: str) -> None:
    names = [name for _, name, _, _ in string.Formatter().parse(CLAUSES[code]) if name]
    values = {name: "own/x" if name == "unit" else f"the-{name}" for name in names}
    for each in restricted_clauses((clause(code, **values),), REACH):
        assert set(each.values) <= MAY_NAME, each.text
    foreign = restricted_clauses((clause(code, **values | {"unit": "other/x"}),), REACH)
    assert all("other/x" not in each.text or code.startswith("kept") for each in foreign), (
        "only the unit itself that waits is named"
    )


def waiting(unit: str, **more: object) -> QuotaWaiting:
    return QuotaWaiting(unit, "root.own", (), Reason.WAITING_FOR_IDLE_QUOTA, "the text", **more)  # type: ignore[arg-type]


def test_a_plan_has_the_own_units_without_borrowers_and_spared_pods() -> None:
    plan = QuotaPlan(
        waiting=(
            waiting("other/a"),
            waiting(
                "own/b",
                borrowers=(Borrower("root.other", "cpu", 4),),
                spared=(ProtectedPod("other/c", "why"),),
                clauses=(
                    clause("asks", resource="cpu", asks="4"),
                    clause("borrowers", leaves="root.other +4"),
                ),
            ),
        )
    )
    (row,) = restricted_plan(plan, REACH).waiting
    assert (row.unit, row.borrowers, row.spared) == ("own/b", (), ())
    assert row.message == "cpu asks 4"


def test_a_reason_without_clauses_is_its_word() -> None:
    (row,) = restricted_plan(QuotaPlan(waiting=(waiting("own/b"),)), REACH).waiting
    assert row.message == "waits for quota: WaitingForIdleQuota"


def test_a_tree_has_the_own_leaves_and_what_is_above_them() -> None:
    own = QuotaNode("root.own", "root.own", "root", namespaces=("own", "system"))
    other = QuotaNode("root.other", "root.other", "root", namespaces=("other",))
    root = QuotaNode("root", "root", children=(own, other))
    seen = restricted_tree(root, REACH)
    assert seen is not None
    assert [(node.name, node.namespaces) for node in seen.walk()] == [
        ("root", ()),
        ("root.own", ("own",)),
    ]
    assert restricted_tree(root, Reach()) is None
    by_namespace = restricted_tree(root, Reach(frozenset({"other"})))
    assert by_namespace is not None
    assert [leaf.name for leaf in by_namespace.leaves()] == ["root.other"]


def test_faults_have_no_text_and_those_elsewhere_count_once_if_they_stop() -> None:
    found = restricted_violations(
        [
            Violation("root.own", "MinExceedsMax", "min of root.own and root.other"),
            Violation("root.other", "LeafWithoutNamespace", "root.other", is_error=False),
            Violation("root.other", "DuplicateName", "root.other twice", stops=True),
            Violation("root.third", "DuplicateName", "root.third twice", stops=True),
        ],
        frozenset({"root", "root.own"}),
    )
    assert [(each.path, each.code, each.stops) for each in found] == [
        ("root.own", "MinExceedsMax", False),
        ("", "DuplicateName", True),
    ]


def test_texts_of_the_quota_controller_are_withheld_and_others_are_not() -> None:
    events = [
        Event("own", str(n), reason=reason, message="text")
        for n, reason in enumerate(("QuotaReclaimed", "WaitingForIdleQuota", "BackOff"))
    ]
    assert [each.message for each in restricted_events(events)] == [
        WITHHELD_TEXT,
        WITHHELD_TEXT,
        "text",
    ]


@pytest.mark.parametrize(
    ("claimant", "shown"),
    [("other/x", "another team"), ("own/x", "own/x"), ("first-admission", "first-admission")],
)
def test_a_manifest_names_no_claimant_of_another_team(claimant: str, shown: str) -> None:
    manifest = {"metadata": {"annotations": {ANNOTATION_SUSPENDED_FOR: claimant, "a": "b"}}}
    annotations = without_claimant(manifest, REACH)["metadata"]["annotations"]
    assert annotations == {ANNOTATION_SUSPENDED_FOR: shown, "a": "b"}
    assert manifest["metadata"]["annotations"][ANNOTATION_SUSPENDED_FOR] == claimant
