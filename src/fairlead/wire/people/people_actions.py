"""Calls of the people controller as actions on objects of any kind."""

from __future__ import annotations

from typing import Any, Final

from fairlead.model.actions import CreateObject, DeleteObject, ObjectAction, ObjectRef, PatchObject
from fairlead.model.people.actions import (
    AdoptBinding,
    CreateBinding,
    CreateServiceAccount,
    DeleteBinding,
    DeleteServiceAccount,
    HoldUser,
    MoveGroup,
    PeopleAction,
    WriteGroupStatus,
    WriteUserStatus,
)
from fairlead.model.people.rows import (
    LABEL_BOUND_USER,
    USER_FINALIZER,
    User,
    UserBinding,
    UserGroup,
    UserServiceAccount,
)
from fairlead.wire.names import USER_GROUPS, USERS
from fairlead.wire.people.bindings import RBAC, render_binding, render_service_account
from fairlead.wire.people.people_objects import (
    PEOPLE_API,
    render_group_status,
    render_user_status,
)

_SERVICE_ACCOUNTS: Final = "serviceaccounts"


def render_people_action(action: PeopleAction) -> ObjectAction:
    """The call.

    Deletions name the uid. Patches name the version, because the API server does not compare the
    uid in a merge patch of a custom object.
    """
    match action:
        case CreateServiceAccount():
            manifest = render_service_account(action.subject)
            return CreateObject(manifest, plural=_SERVICE_ACCOUNTS)
        case CreateBinding():
            held = action.subject
            return CreateObject(render_binding(held), plural=binding_ref(held).plural)
        case DeleteServiceAccount() | DeleteBinding():
            return DeleteObject(_ref(action.subject))
        case AdoptBinding():
            labels = {LABEL_BOUND_USER: action.user}
            return PatchObject(_ref(action.subject), _at(action.subject, labels=labels))
        case HoldUser():
            others = [each for each in action.subject.finalizers if each != USER_FINALIZER]
            held_by = [*others, USER_FINALIZER] if action.is_held else others
            return PatchObject(_ref(action.subject), _at(action.subject, finalizers=held_by))
        case MoveGroup():
            patch = {**_at(action.subject), "spec": {"quotaNames": [action.leaf]}}
            return PatchObject(_ref(action.subject), patch)
        case WriteUserStatus():
            status = render_user_status(action.status, action.subject.namespace)
            patch = {**_at(action.subject), "status": status}
            return PatchObject(_ref(action.subject), patch, "status")
        case WriteGroupStatus():
            patch = {**_at(action.subject), "status": render_group_status(action.status)}
            return PatchObject(_ref(action.subject), patch, "status")


USER_KIND: Final = ObjectRef(PEOPLE_API, "User", "")
"""The kind of users, for where it may not be served."""


def user_ref(name: str, namespace: str, uid: str = "") -> ObjectRef:
    return ObjectRef(PEOPLE_API, "User", name, namespace, uid, USERS)


def group_ref(name: str, namespace: str, uid: str = "") -> ObjectRef:
    return ObjectRef(PEOPLE_API, "UserGroup", name, namespace, uid, USER_GROUPS)


def service_account_ref(name: str, namespace: str, uid: str = "") -> ObjectRef:
    return ObjectRef("v1", "ServiceAccount", name, namespace, uid, _SERVICE_ACCOUNTS)


def binding_ref(held: UserBinding) -> ObjectRef:
    kind, plural = (
        ("RoleBinding", "rolebindings")
        if held.namespace
        else ("ClusterRoleBinding", "clusterrolebindings")
    )
    return ObjectRef(f"{RBAC}/v1", kind, held.name, held.namespace, held.uid, plural)


def _ref(subject: User | UserGroup | UserServiceAccount | UserBinding) -> ObjectRef:
    match subject:
        case User():
            return user_ref(subject.name, subject.namespace, subject.uid)
        case UserGroup():
            return group_ref(subject.name, subject.namespace, subject.uid)
        case UserServiceAccount():
            return service_account_ref(subject.name, subject.namespace, subject.uid)
        case UserBinding():
            return binding_ref(subject)


def _at(subject: User | UserGroup | UserBinding, **metadata: Any) -> dict[str, Any]:
    """A patch that the API server refuses if the object has another version by now."""
    return {"metadata": {"resourceVersion": subject.version, **metadata}}
