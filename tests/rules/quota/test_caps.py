"""The caps of user groups: what one user may have admitted in a leaf, before the leaf's own cap."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.rules.quota.fake_cluster import FakeCluster
from tests.rules.quota.small import tree

from fairlead.model.actions import WriteTreeStatus
from fairlead.model.changes import changed
from fairlead.model.keys import LABEL_USER
from fairlead.model.people.rows import KIND_GROUPS, GroupStatus, UserGroup
from fairlead.model.quota.tree import AdmittedUse, QuotaTree
from fairlead.rules.quota.managed import caps_of
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree
from fairlead.wire.quota.tree_status import render_tree_status

TEAM = UserGroup("team", leaf="a", caps={"bob": {"gpu": 10}}, created_at=2.0)


def of_user(name: str) -> dict[str, str]:
    return {LABEL_USER: name}


def test_a_user_has_no_more_than_the_groups_cap_and_others_have_theirs() -> None:
    world = FakeCluster(tree("root[40]{a[40]}"))
    feed = world.machine.feed
    feed.observe(changed(KIND_GROUPS, "uid", TEAM))
    world.create("Deployment", "a", "web", 4, 5, labels=of_user("bob"))
    world.create("Deployment", "a", "other", 3, 5, labels=of_user("eve"))
    world.settle()
    assert world.running("a") == (5,), "two of bob, three of eve"
    assert world.reasons("a") == ["UserCap", "UserCap"]
    feed.observe(changed(KIND_GROUPS, "uid", replace(TEAM, caps={"bob": {"gpu": 15}})))
    world.settle()
    assert world.running("a") == (6,)
    feed.observe(changed(KIND_GROUPS, "uid", None))
    world.settle()
    assert world.running("a") == (7,)


def test_the_status_of_the_tree_has_what_each_user_uses() -> None:
    world = FakeCluster(tree("root[40]{a[20/20] b[20/20]}"))
    world.create("Deployment", "a", "web", 5, 5, labels=of_user("bob"))
    world.create("Deployment", "b", "web", 1, 5, labels=of_user("bob"))
    world.create("Deployment", "b", "other", 1, 5)
    world.settle()
    written = [each for each in world.calls if isinstance(each, WriteTreeStatus)][-1]
    assert written.users == (
        AdmittedUse("a", "bob", {"gpu": 20}),
        AdmittedUse("b", "bob", {"gpu": 5}),
    )
    rows = render_tree_status(written)["userUse"]
    assert rows[0] == {"leaf": "a", "user": "bob", "used": {"gpu": "20"}}


def test_a_status_of_a_group_makes_no_plan_and_no_other_tree() -> None:
    feed = FakeCluster(tree("root[40]{a[40]}")).machine.feed
    feed.observe(changed(KIND_GROUPS, "uid", TEAM))
    first, version = feed.tree, feed.version
    news = replace(TEAM, version="9", generation=3, status=GroupStatus(users=4))
    feed.observe(changed(KIND_GROUPS, "uid", news))
    assert feed.tree is first
    assert feed.version == version
    assert first is not None and first.root is not None
    assert first.root.children[0].cap_of("bob") == {"gpu": 10}


@pytest.mark.parametrize(
    ("late", "has_it"),
    [
        ({"created_at": 3.0}, "team"),
        ({"created_at": 3.0, "status": GroupStatus("a")}, "late"),
        ({"created_at": 1.0}, "late"),
        ({"created_at": 1.0, "faults": ("malformed",)}, "team"),
    ],
)
def test_of_two_groups_on_a_leaf_the_caps_of_one_count(
    late: dict[str, object], has_it: str
) -> None:
    second = replace(TEAM, name="late", caps={"bob": {"gpu": 1}}, **late)  # type: ignore[arg-type]
    wanted = {"team": {"gpu": 10}, "late": {"gpu": 1}}[has_it]
    for groups in ((TEAM, second), (second, TEAM)):
        assert caps_of(groups) == {"a": {"bob": wanted}}


def test_a_cap_without_a_named_resource_is_the_leafs() -> None:
    leaf = replace(tree("root[40]{a[40]}").children[0], user_cap={"gpu": 3, "cpu": 4000})
    capped = replace(leaf, user_caps={"bob": {"gpu": 9}})
    assert capped.cap_of("bob") == {"gpu": 9, "cpu": 4000}
    assert capped.cap_of("eve") == leaf.user_cap


def test_readers_of_the_tree_find_the_caps_in_its_status() -> None:
    """Commands and the console follow no groups."""
    root = tree("root[40]{a[40]}").with_user_caps({"a": {"bob": {"cpu": 2500, "gpu": 2}}})
    stored = QuotaTree("elasticquotatree", "kube-system", root, "uid")
    status = render_tree_status(WriteTreeStatus(stored, (), (), "", 0.0))
    assert status["userCaps"] == [
        {"leaf": "a", "user": "bob", "resources": {"cpu": "2500m", "gpu": "2"}}
    ]
    wire = {
        "metadata": {"name": "elasticquotatree"},
        "spec": {"root": {"name": "root", "children": [{"name": "a"}, {"name": "b"}]}},
        "status": {**status, "userCaps": [*status["userCaps"], 7, {"leaf": "a"}]},
    }
    read = parse_quota_tree(msgspec.convert(wire, WireQuotaTree)).root
    assert read is not None
    assert read.children[0].cap_of("bob") == {"cpu": 2500, "gpu": 2}
    assert read.children[1].user_caps == {}
