"""Users and groups, read and written: what is rendered is parsed back, and what is malformed
becomes a fault instead of rights.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.model.access import Binding, BindingSubject
from fairlead.model.people.rows import (
    BoundRole,
    ExternalUser,
    GroupStatus,
    Ready,
    User,
    UserBinding,
    UserGroup,
    UserRole,
    UserServiceAccount,
    UserStatus,
)
from fairlead.wire.people.bindings import (
    WireBinding,
    WireServiceAccount,
    WireWork,
    parse_binding,
    parse_service_account,
    parse_work,
    render_binding,
    render_service_account,
)
from fairlead.wire.people.people_objects import (
    WirePerson,
    parse_group,
    parse_group_status,
    parse_user,
    parse_user_status,
    render_group,
    render_group_status,
    render_user,
    render_user_status,
)

BOB = User(
    "bob",
    "kube-ai",
    user_name="Bob Smith",
    roles=(UserRole.RESEARCHER,),
    groups=("team-a", "team-b"),
    external=ExternalUser("oidc", "42", "bob@example.com"),
    aliuid="1234",
    is_deletable=False,
    finalizers=("fairlead.io/user",),
)
TEAM = UserGroup(
    "team-a",
    "kube-ai",
    group_name="teamA",
    leaf="root.a.1",
    default_roles=("view",),
    default_cluster_roles=("metrics",),
    user_caps={"bob": {"nvidia.com/gpu": "4"}},
    caps={"bob": {"nvidia.com/gpu": 4}},
)


def read(kind: Any, obj: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(obj), type=kind)


def test_users_and_groups_are_read_as_they_were_written() -> None:
    assert parse_user(read(WirePerson, render_user(BOB))) == BOB
    assert parse_group(read(WirePerson, render_group(TEAM))) == TEAM


def test_statuses_are_read_as_they_were_written() -> None:
    bound = (
        BoundRole("bob:clusterRole:x", "", "x"),
        BoundRole("bob:namespace1:y", "namespace1", "y"),
    )
    ready = Ready(True, "Bound", "well", 1_767_600_000.0)
    status = UserStatus("bob", ("namespace1",), bound, ready, 3)
    assert parse_user_status(read(Any, render_user_status(status, "kube-ai"))) == status
    nothing = UserStatus(ready=Ready(False, "Disabled", "", 1_767_600_000.0))
    assert parse_user_status(read(Any, render_user_status(nothing, "kube-ai"))) == nothing
    group = GroupStatus("root.a.1", ("namespace1",), "root.a.2", 4, ready, 2)
    assert parse_group_status(read(Any, render_group_status(group))) == group


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("userId", "ann", "userId is `ann` and the object's name is `bob`; they must be equal"),
        ("apiRoles", ["root"], "apiRoles has `root`; a role is admin or researcher"),
        ("apiRoles", [], "apiRoles names neither admin nor researcher"),
        ("groups", "team-a", "groups is `team-a` and not a list of texts"),
        ("groups", [1], "groups is `[1]` and not a list of texts"),
        ("disabled", "yes", "disabled is `yes` and not true or false"),
        ("externalUser", [], "externalUser is `[]` and not an object"),
    ],
)
def test_a_malformed_field_of_a_user_is_a_fault(field: str, value: Any, fault: str) -> None:
    obj = render_user(BOB)
    obj["spec"][field] = value
    assert fault in parse_user(read(WirePerson, obj)).faults


@pytest.mark.parametrize("spec", [None, [], "x", 7])
def test_anything_as_a_spec_is_a_fault_and_gives_no_role(spec: Any) -> None:
    user = parse_user(read(WirePerson, {**render_user(BOB), "spec": spec}))
    assert user.faults and not user.roles
    assert parse_group(read(WirePerson, {**render_group(TEAM), "spec": spec})).faults


@pytest.mark.parametrize("leaves", [[], ["a", "b"]])
def test_a_group_with_no_or_several_leaves_is_a_fault(leaves: list[str]) -> None:
    obj = render_group(TEAM)
    obj["spec"]["quotaNames"] = leaves
    faults = parse_group(read(WirePerson, obj)).faults
    assert faults == (f"quotaNames names {len(leaves)} leaves; a group has exactly one",)


def test_bindings_and_service_accounts_are_read_as_they_were_written() -> None:
    account = UserServiceAccount("bob", "kube-ai", user="bob")
    assert (
        parse_service_account(read(WireServiceAccount, render_service_account(account))) == account
    )
    subject = (BindingSubject("ServiceAccount", "bob", "kube-ai"),)
    for namespace in ("namespace1", ""):
        held = UserBinding(Binding("bob:x:y", namespace, "ClusterRole", "y", subject), user="bob")
        assert parse_binding(read(WireBinding, render_binding(held))) == held


def test_a_foreign_binding_has_no_user() -> None:
    obj = {
        "metadata": {"name": "x", "namespace": "team"},
        "roleRef": {"kind": "Role", "name": "y"},
        "subjects": [{"kind": "ServiceAccount", "name": "bob"}, {"kind": "Group", "name": "all"}],
    }
    held = parse_binding(read(WireBinding, obj))
    assert held.user == ""
    assert held.binding.subjects == (
        BindingSubject("ServiceAccount", "bob", "team"),
        BindingSubject("Group", "all"),
    )


@pytest.mark.parametrize(
    ("status", "is_finished"),
    [
        (None, False),
        ({"phase": "Running"}, False),
        ({"phase": "Failed"}, True),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, False),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, False),
        ({"completionTime": "2026-01-05T08:00:00Z"}, True),
        ({"jobStatus": "SUCCEEDED"}, True),
        ({"state": {"phase": "Completed"}}, True),
    ],
)
def test_work_is_finished_as_its_kind_reports_it(status: Any, is_finished: bool) -> None:
    meta = {"name": "p", "namespace": "n", "labels": {"arena.kubeflow.org/console-user": "bob"}}
    work = parse_work("pod", read(WireWork, {"metadata": meta, "status": status}))
    assert (work.user, work.is_finished) == ("bob", is_finished)
