"""What the people decider does with users, groups, the tree, and what others changed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rules.people.fake_people import (
    PLACE,
    START,
    Driver,
    FakePeople,
    admin,
    expected,
    group,
    shown,
    tree,
    user,
)

from fairlead.model.access import Binding, BindingSubject
from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import KIND_NAMESPACES, KIND_QUOTA_TREES
from fairlead.model.people.actions import (
    CreateBinding,
    DeleteBinding,
    DeleteServiceAccount,
    WriteUserStatus,
)
from fairlead.model.people.rows import (
    KIND_GROUPS,
    KIND_ROLE_BINDINGS,
    KIND_SERVICE_ACCOUNTS,
    KIND_USERS,
    LeafUse,
    User,
    UserBinding,
    UserServiceAccount,
    UserWork,
)
from fairlead.model.quota.tree import AdmittedUse

RESEARCHER = "fairlead-researcher"


def small() -> FakePeople:
    """Bob of team a, Ann an administrator; team a has namespace1."""
    made = FakePeople()
    made.spaces("namespace1", "namespace2", "kube-system", PLACE)
    made.write(
        tree(a=["namespace1"], b=["namespace2"]),
        group("team-a", "root.a"),
        user("bob", "team-a"),
        admin("ann"),
    )
    return made


@pytest.fixture
def cluster() -> FakePeople:
    return small()


def settled(cluster: FakePeople) -> Driver:
    driver = Driver(cluster)
    driver.settle()
    return driver


def reason(row: User) -> tuple[bool, str]:
    return row.status.ready.is_true, str(row.status.ready.reason)


def test_users_get_their_bindings_and_a_status_in_one_write(cluster: FakePeople) -> None:
    settled(cluster)
    assert (
        shown(cluster)
        == {
            ("namespace1", "bob:namespace1:fairlead-researcher", RESEARCHER),
            ("", "bob:clusterRole:fairlead-researcher-cluster", "fairlead-researcher-cluster"),
            ("", "ann:clusterRole:fairlead-researcher-cluster", "fairlead-researcher-cluster"),
            ("", "ann:clusterRole:fairlead-admin", "fairlead-admin"),
            (PLACE, "ann:kube-ai:fairlead-credentials", "fairlead-credentials"),
        }
        == expected(cluster)
    )
    bob = cluster.user("bob")
    assert reason(bob) == (True, "Bound")
    assert bob.status.namespaces == ("namespace1",)
    assert [each.role for each in bob.status.bindings] == [
        "fairlead-researcher-cluster",
        RESEARCHER,
    ]
    assert cluster.group("team-a").status.users == 1
    assert sum(isinstance(each, WriteUserStatus) for each in cluster.sent) == 2


def test_nothing_is_made_before_the_finalizer_is_on_the_user(cluster: FakePeople) -> None:
    driver = Driver(cluster)
    first = list(driver.decider.look(START))
    assert {type(each).__name__ for each in first} == {"HoldUser", "WriteGroupStatus"}


def test_nothing_is_done_at_rest(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.sent.clear()
    driver.relist()
    driver.settle()
    assert cluster.sent == []


def test_disabling_withdraws_bindings_first_and_then_every_token(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.sent.clear()
    cluster.write(replace(cluster.user("bob"), is_disabled=True))
    driver.settle()
    kinds = [type(each) for each in cluster.sent]
    assert kinds == [DeleteBinding, DeleteBinding, DeleteServiceAccount, WriteUserStatus]
    assert reason(cluster.user("bob")) == (False, "Disabled")
    cluster.write(replace(cluster.user("bob"), is_disabled=False))
    driver.settle()
    assert shown(cluster) == expected(cluster)
    assert reason(cluster.user("bob")) == (True, "Bound")


def test_taking_a_group_from_a_user_withdraws_its_namespaces_only(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.sent.clear()
    cluster.write(replace(cluster.user("bob"), groups=()))
    driver.settle()
    assert [each.subject.name for each in cluster.sent if isinstance(each, DeleteBinding)] == [
        "bob:namespace1:fairlead-researcher"
    ]
    bob = cluster.user("bob")
    assert reason(bob) == (True, "Bound")
    assert bob.status.ready.message == ("bob has no quota: no group of the user brings a namespace")


def test_a_user_with_unfinished_work_stays_with_all_rights(cluster: FakePeople) -> None:
    driver = settled(cluster)
    for number in range(3):
        cluster.write(UserWork("pod", "namespace1", f"p{number}", "bob"))
    cluster.end_user("bob")
    driver.settle()
    bob = cluster.user("bob")
    assert reason(bob) == (False, "DeletionBlocked")
    assert bob.status.ready.message == "bob has 3 unfinished pods in namespace1"
    assert ("namespace1", "bob:namespace1:fairlead-researcher") in cluster.bindings()
    for number in range(3):
        cluster.write(UserWork("pod", "namespace1", f"p{number}", "bob", is_finished=True))
    cluster.sent.clear()
    driver.settle()
    assert ("kube-ai", "bob") not in cluster.objects[KIND_USERS]
    assert ("kube-ai", "bob") not in cluster.objects[KIND_SERVICE_ACCOUNTS]
    assert shown(cluster) == expected(cluster)
    order = [type(each).__name__ for each in cluster.sent if not isinstance(each, WriteUserStatus)]
    assert order == [
        "DeleteBinding",
        "DeleteBinding",
        "DeleteServiceAccount",
        "HoldUser",
        *order[4:],
    ]
    assert order[4:] == ["WriteGroupStatus"]


def test_force_deletes_a_user_with_unfinished_work(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.write(UserWork("pod", "namespace1", "p", "bob"))
    cluster.end_user("bob", is_forced=True)
    driver.settle()
    assert ("kube-ai", "bob") not in cluster.objects[KIND_USERS]
    assert shown(cluster) == expected(cluster)


def test_a_user_that_vanished_without_the_finalizer_leaves_nothing(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.remove(KIND_USERS, PLACE, "bob")
    driver.settle()
    assert shown(cluster) == expected(cluster)
    assert ("kube-ai", "bob") not in cluster.objects[KIND_SERVICE_ACCOUNTS]


def test_foreign_bindings_are_never_touched(cluster: FakePeople) -> None:
    other = (BindingSubject("ServiceAccount", "bob", PLACE),)
    foreign = [
        UserBinding(Binding(name, name_space, "ClusterRole", role, other))
        for name, name_space, role in (
            ("view-bob", "namespace2", "view"),
            ("bob:namespace2:edit", "namespace2", "edit"),
            ("bob:namespace1:fairlead-researcher", "namespace1", "x"),
        )
    ]
    cluster.write(*foreign)
    before = {key: each for key, each in cluster.bindings().items() if not each.user}
    settled(cluster)
    assert {key: cluster.bindings()[key] for key in before} == before
    bob = cluster.user("bob")
    assert reason(bob) == (False, "NameTaken")
    assert "namespace1/bob:namespace1:fairlead-researcher" in bob.status.ready.message


def test_a_binding_that_lost_its_label_is_adopted_again(cluster: FakePeople) -> None:
    driver = settled(cluster)
    key = ("namespace1", "bob:namespace1:fairlead-researcher")
    cluster.write(replace(cluster.bindings()[key], user=""))
    driver.settle()
    assert cluster.bindings()[key].user == "bob"
    assert shown(cluster) == expected(cluster)


@pytest.mark.parametrize(
    "what", ["another role", "another subject", "gone", "another user's label"]
)
def test_what_others_change_is_put_right(cluster: FakePeople, what: str) -> None:
    driver = settled(cluster)
    key = ("namespace1", "bob:namespace1:fairlead-researcher")
    held = cluster.bindings()[key]
    if what == "gone":
        cluster.remove(KIND_ROLE_BINDINGS, *key)
    elif what == "another user's label":
        cluster.write(replace(held, user="ann"))
    else:
        changed = (
            replace(held.binding, role_name="cluster-admin")
            if what == "another role"
            else replace(held.binding, subjects=(BindingSubject("User", "eve"),))
        )
        cluster.write(replace(held, binding=changed))
    driver.settle()
    assert shown(cluster) == expected(cluster)


def test_a_deleted_service_account_comes_back_so_that_its_tokens_are_revoked(
    cluster: FakePeople,
) -> None:
    driver = settled(cluster)
    before = cluster.objects[KIND_SERVICE_ACCOUNTS][PLACE, "bob"]
    cluster.remove(KIND_SERVICE_ACCOUNTS, PLACE, "bob")
    driver.settle()
    assert cluster.objects[KIND_SERVICE_ACCOUNTS][PLACE, "bob"].uid != before.uid


def test_a_foreign_service_account_gives_a_user_no_rights(cluster: FakePeople) -> None:
    cluster.write(UserServiceAccount("bob", PLACE))
    settled(cluster)
    assert not any(name.startswith("bob:") for _, name, _ in shown(cluster))
    bob = cluster.user("bob")
    assert reason(bob) == (False, "NameTaken")
    assert "kube-ai/bob" in bob.status.ready.message
    assert not cluster.objects[KIND_SERVICE_ACCOUNTS][PLACE, "bob"].user


# --- groups and leaves ----------------------------------------------------------------------------


def test_the_newer_of_two_groups_on_one_leaf_yields_nothing(cluster: FakePeople) -> None:
    cluster.write(group("other", "root.a"), user("eve", "other"))
    settled(cluster)
    second = cluster.group("other").status
    assert (second.ready.is_true, str(second.ready.reason)) == (False, "LeafAlreadyBound")
    assert second.ready.message == "the leaf root.a belongs to the group team-a"
    assert ("namespace1", "eve:namespace1:fairlead-researcher") not in cluster.bindings()
    assert "the group other has no leaf" in cluster.user("eve").status.ready.message


def test_the_group_that_has_its_leaf_keeps_it_against_an_older_one(cluster: FakePeople) -> None:
    driver = settled(cluster)
    older = replace(cluster.put(KIND_GROUPS, group("older", "root.a")), created_at=1.0)
    cluster.write(older)
    driver.settle()
    assert cluster.group("team-a").status.leaf == "root.a"
    assert cluster.group("older").status.leaf == ""


@pytest.mark.parametrize(("leaf", "why"), [("root", "NotALeaf"), ("root.zzz", "NoSuchLeaf")])
def test_a_group_on_no_leaf_brings_nothing(cluster: FakePeople, leaf: str, why: str) -> None:
    cluster.write(group("lost", leaf), user("eve", "lost"))
    settled(cluster)
    assert str(cluster.group("lost").status.ready.reason) == why
    assert ("namespace1", "eve:namespace1:fairlead-researcher") not in cluster.bindings()


def test_without_a_tree_no_user_has_a_namespace(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.remove(KIND_QUOTA_TREES, "kube-system", "elasticquotatree")
    driver.settle()
    assert str(cluster.group("team-a").status.ready.reason) == "NoTree"
    assert not any(space == "namespace1" for space, _, _ in shown(cluster))


def test_an_invalid_tree_withdraws_nothing_and_grants_nothing(cluster: FakePeople) -> None:
    driver = settled(cluster)
    before = shown(cluster)
    bad = tree(a=["namespace2"], b=["namespace2"])
    cluster.write(bad)
    cluster.write(group("team-b", "root.b"), user("eve", "team-b"))
    driver.settle()
    assert before <= shown(cluster)
    assert {name for space, name, _ in shown(cluster) if space == "namespace2"} == set()
    assert str(cluster.group("team-b").status.ready.reason) == "Pending"


def test_a_renamed_leaf_takes_its_group_along_without_a_gap(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.sent.clear()
    cluster.write(tree(renamed=["namespace1"], b=["namespace2"]))
    driver.settle()
    team = cluster.group("team-a")
    assert (team.leaf, team.status.leaf, team.status.renamed_to) == (
        "root.renamed",
        "root.renamed",
        "",
    )
    assert team.status.ready.is_true
    assert not any(isinstance(each, DeleteBinding | CreateBinding) for each in cluster.sent)


def test_a_group_does_not_follow_its_namespaces_to_a_leaf_that_has_a_group(
    cluster: FakePeople,
) -> None:
    driver = settled(cluster)
    cluster.write(group("team-new", "root.new"))
    cluster.write(tree(new=["namespace1"], b=["namespace2"]))
    driver.settle()
    assert cluster.group("team-a").leaf == "root.a"
    assert str(cluster.group("team-a").status.ready.reason) == "NoSuchLeaf"


def test_a_namespace_that_moves_to_another_leaf_changes_hands(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.write(tree(a=["namespace2"], b=["namespace1"]))
    driver.settle()
    assert shown(cluster) == expected(cluster)
    assert ("namespace2", "bob:namespace2:fairlead-researcher") in cluster.bindings()


def test_a_namespace_that_does_not_exist_is_bound_when_it_does(cluster: FakePeople) -> None:
    cluster.write(tree(a=["namespace1", "later"]))
    driver = settled(cluster)
    bob = cluster.user("bob")
    assert bob.status.namespaces == ("later", "namespace1")
    assert bob.status.ready.message == "these namespaces do not exist: later"
    cluster.spaces("later")
    driver.settle()
    assert ("later", "bob:later:fairlead-researcher") in cluster.bindings()
    cluster.remove(KIND_NAMESPACES, "", "later")
    cluster.remove(KIND_ROLE_BINDINGS, "later", "bob:later:fairlead-researcher")
    driver.settle()
    assert shown(cluster) == expected(cluster)


def test_a_protected_namespace_on_a_leaf_gives_no_rights(cluster: FakePeople) -> None:
    cluster.write(tree(a=["namespace1", "kube-system"]))
    settled(cluster)
    assert not any(space == "kube-system" for space, _, _ in shown(cluster))


def test_more_roles_of_a_group_are_bound_too(cluster: FakePeople) -> None:
    team = cluster.group("team-a")
    cluster.write(replace(team, default_roles=("view",), default_cluster_roles=("metrics",)))
    settled(cluster)
    assert ("namespace1", "bob:namespace1:view", "view") in shown(cluster)
    assert ("", "bob:clusterRole:metrics", "metrics") in shown(cluster)
    assert shown(cluster) == expected(cluster)


# --- refusals -------------------------------------------------------------------------------------


def test_a_refused_call_is_in_the_status_until_it_is_no_longer_due(cluster: FakePeople) -> None:
    team = cluster.group("team-a")
    cluster.write(replace(team, default_roles=("cluster-admin",)))
    driver = Driver(cluster)
    allowed = cluster.apply

    def apply(action: object) -> Outcome:
        if isinstance(action, CreateBinding) and action.subject.name.endswith("cluster-admin"):
            cluster.sent.append(action)
            return Outcome(Result.REFUSED, "may not bind cluster-admin")
        return allowed(action)  # type: ignore[arg-type]

    cluster.apply = apply  # type: ignore[method-assign]
    for _ in range(12):
        driver.step()
    for _ in range(60):
        driver.step()
    bob = cluster.user("bob")
    assert reason(bob) == (False, "CallRefused")
    assert "may not bind cluster-admin" in bob.status.ready.message
    sent = sum(isinstance(each, CreateBinding) for each in cluster.sent)
    assert sent < 20, "it is tried again after a pause that grows"
    assert driver.decider.next_at is not None
    cluster.write(replace(cluster.group("team-a"), default_roles=()))
    driver.settle()
    assert reason(cluster.user("bob")) == (True, "Bound")


def test_a_malformed_user_has_no_rights(cluster: FakePeople) -> None:
    driver = settled(cluster)
    cluster.write(replace(cluster.user("bob"), faults=("apiRoles has `x`",)))
    driver.settle()
    assert reason(cluster.user("bob")) == (False, "Invalid")
    assert not any(name.startswith("bob:") for _, name, _ in shown(cluster))


def test_what_a_user_uses_follows_the_status_of_the_tree(cluster: FakePeople) -> None:
    driver = settled(cluster)
    assert cluster.user("bob").status.used == ()
    use = (
        AdmittedUse("root.b", "bob", {"cpu": 1000}),
        AdmittedUse("root.a", "bob", {"cpu": 500, "nvidia.com/gpu": 2}),
        AdmittedUse("root.a", "stranger", {"cpu": 9}),
    )
    cluster.write(replace(tree(a=["namespace1"], b=["namespace2"]), user_use=use))
    before = len(cluster.sent)
    driver.settle()
    assert cluster.user("bob").status.used == (
        LeafUse("root.a", {"cpu": 500, "nvidia.com/gpu": 2}),
        LeafUse("root.b", {"cpu": 1000}),
    )
    assert [type(each) for each in cluster.sent[before:]] == [WriteUserStatus]
    cluster.write(tree(a=["namespace1"], b=["namespace2"]))
    driver.settle()
    assert cluster.user("bob").status.used == ()
