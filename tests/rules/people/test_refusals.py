"""What an administrator may not do with users and groups."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rules.people.fake_people import admin, group, tree, user

from fairlead.model.people.record import PeopleRecord
from fairlead.model.people.rows import GroupStatus, User, UserWork
from fairlead.rules.people.refusals import (
    group_deletion_refusal,
    group_refusal,
    user_deletion_refusal,
    user_refusal,
)

BOB, ANN, ADA = user("bob", "team-a", "team-b"), admin("ann"), admin("ada")
TEAM = group("team-a", "root.a", status=GroupStatus("root.a", ("namespace1",)))
OTHER = group("team-b", "root.b", status=GroupStatus("root.b", ("namespace2",)))
WORK = UserWork("pod", "namespace1", "p", "bob")


def record(*users: User, **more: object) -> PeopleRecord:
    return PeopleRecord(
        {each.name: each for each in users or (BOB, ANN, ADA)},
        {each.name: each for each in (TEAM, OTHER)},
        tree(a=["namespace1"], b=["namespace2"], c=[]),
        **more,  # type: ignore[arg-type]
    )


def deletion(who: User, known: PeopleRecord, *, is_forced: bool = False) -> str:
    refusal = user_deletion_refusal(who, known, is_forced=is_forced)
    return "" if refusal is None else refusal.reason


def test_a_user_may_be_deleted_by_another() -> None:
    assert deletion(BOB, record(me="system:serviceaccount:kube-ai:ann")) == ""
    assert deletion(ANN, record()) == ""


@pytest.mark.parametrize("is_forced", [False, True])
def test_some_users_are_never_deleted(is_forced: bool) -> None:
    me = record(me="system:serviceaccount:kube-ai:ann")
    assert deletion(ANN, me, is_forced=is_forced) == "ann is the user of this command"
    kept = replace(BOB, is_deletable=False)
    assert "deletable: false" in deletion(kept, record(kept, ANN), is_forced=is_forced)
    for other in (replace(ADA, is_disabled=True), replace(ADA, is_ending=True), BOB):
        assert "the last administrator" in deletion(ANN, record(ANN, other), is_forced=is_forced)


def test_unfinished_work_keeps_a_user_unless_forced() -> None:
    known = record(work=(WORK, UserWork("pod", "namespace1", "q", "bob", is_finished=True)))
    assert deletion(BOB, known) == "bob has 1 unfinished pod in namespace1"
    assert deletion(BOB, known, is_forced=True) == ""
    assert deletion(BOB, record(work=(replace(WORK, is_finished=True),))) == ""
    assert deletion(BOB, record(work=(replace(WORK, user="eve"),))) == ""


def test_a_group_is_left_when_no_work_is_in_its_namespaces() -> None:
    known = record(work=(WORK,))
    left = user_refusal(replace(BOB, groups=("team-b",)), known)
    assert left is not None and left.reason == "bob has 1 unfinished pod in namespace1"
    assert user_refusal(replace(BOB, groups=("team-a",)), known) is None


def test_an_administrator_stays() -> None:
    alone = record(ANN, BOB)
    for changed in (replace(ANN, is_disabled=True), replace(BOB, name="ann")):
        refusal = user_refusal(changed, alone)
        assert refusal is not None and "the last administrator" in refusal.reason
    assert user_refusal(replace(ANN, is_disabled=True), record()) is None


@pytest.mark.parametrize(
    ("leaf", "why"),
    [
        ("root.a", "the leaf root.a belongs to the group team-a"),
        ("root", "the node root has children"),
        ("root.x", "the quota tree has no node root.x"),
        ("root.c", ""),
    ],
)
def test_a_group_needs_a_free_leaf(leaf: str, why: str) -> None:
    refusal = group_refusal(group("new", leaf), record())
    assert (refusal is None) is (not why)
    assert refusal is None or why in refusal.reason


def test_a_group_without_a_tree_or_with_users() -> None:
    bare = PeopleRecord({"bob": BOB}, {"team-a": TEAM})
    refusal = group_refusal(group("new", "root.c"), bare)
    assert refusal is not None and "no quota tree" in refusal.reason
    listed = group_deletion_refusal(TEAM, bare)
    assert listed is not None and listed.reason == "these users list the group team-a: bob"
    assert group_deletion_refusal(OTHER, PeopleRecord({"ann": ANN}, {})) is None


@pytest.mark.parametrize(
    ("leaf", "hint"),
    [
        ("b", "the full name of that leaf is root.b"),
        ("root.zzz", "the leaves are root.a, root.b, root.c"),
        ("root", "the leaves are root.a, root.b, root.c"),
    ],
)
def test_a_refused_leaf_comes_with_the_names_of_leaves(leaf: str, hint: str) -> None:
    refusal = group_refusal(group("new", leaf), record())
    assert refusal is not None
    assert refusal.hint == hint
