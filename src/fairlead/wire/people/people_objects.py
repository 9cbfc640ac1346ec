"""Users and user groups (`fairlead.io/v1`), read and written.

The parser accepts anything that an API server may have stored: a malformed field becomes a fault of
the row, with the field and its value, and such a user or group gives no rights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.model.people.rows import (
    ANNOTATION_FORCE_DELETE,
    USER_FINALIZER,
    BoundRole,
    ExternalUser,
    GroupStatus,
    LeafUse,
    Ready,
    User,
    UserGroup,
    UserRole,
    UserStatus,
)
from fairlead.model.resources import Amounts
from fairlead.wire.kube.objects import WireMeta
from fairlead.wire.kube.quantity import parse_amounts, render_amounts
from fairlead.wire.kube.time import parse_time, render_time
from fairlead.wire.names import PEOPLE_GROUP, PEOPLE_VERSION

PEOPLE_API: Final = f"{PEOPLE_GROUP}/{PEOPLE_VERSION}"
Object = dict[str, Any]
_SHOWN_MAX: Final = 60


class WirePersonMeta(WireMeta, gc=False, rename="camel"):
    generation: int | None = None
    finalizers: list[str] | None = None


class WirePerson(Struct, gc=False):
    """A user or a group. `spec` and `status` are undecoded: another CRD may allow anything."""

    metadata: WirePersonMeta
    spec: Any = None
    status: Any = None


class _Fields:
    """Reads fields of one object, and notes what is malformed."""

    def __init__(self, fields: Any, faults: list[str]) -> None:
        self._fields: Mapping[str, Any] = fields if isinstance(fields, dict) else {}
        self._faults = faults
        if not isinstance(fields, dict):
            faults.append(f"spec is {_shown(fields)} and not an object")

    def text(self, name: str) -> str:
        return self._of(name, str, "a text") or ""

    def flag(self, name: str, default: bool) -> bool:
        found = self._of(name, bool, "true or false")
        return default if found is None else bool(found)

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._of(name, list, "a list of texts") or ()
        if all(isinstance(each, str) for each in found):
            return tuple(dict.fromkeys(found))
        self._faults.append(f"{name} is {_shown(found)} and not a list of texts")
        return ()

    def object(self, name: str) -> Object:
        return self._of(name, dict, "an object") or {}

    def _of(self, name: str, kind: type[Any], words: str) -> Any:
        found = self._fields.get(name)
        if found is None or isinstance(found, kind):
            return found
        self._faults.append(f"{name} is {_shown(found)} and not {words}")
        return None


def parse_user(wire: WirePerson) -> User:
    meta, faults = wire.metadata, list[str]()
    fields = _Fields(wire.spec, faults)
    name, user_id = meta.name or "", fields.text("userId")
    if user_id != name:
        faults.append(
            f"userId is `{user_id}` and the object's name is `{name}`; they must be equal"
        )
    roles = tuple(role for word in fields.texts("apiRoles") for role in _roles(word, faults))
    if not roles:
        faults.append("apiRoles names neither admin nor researcher")
    external = _Fields(fields.object("externalUser"), faults)
    return User(
        name=name,
        namespace=meta.namespace or "",
        uid=meta.uid or "",
        version=meta.resource_version or "",
        user_name=fields.text("userName"),
        roles=roles,
        groups=fields.texts("groups"),
        external=ExternalUser(
            external.text("authType"), external.text("uid"), external.text("name")
        ),
        aliuid=fields.text("aliuid"),
        is_deletable=fields.flag("deletable", True),
        is_disabled=fields.flag("disabled", False),
        is_ending=meta.deletion_timestamp is not None,
        is_forced=(meta.annotations or {}).get(ANNOTATION_FORCE_DELETE) == "true",
        finalizers=tuple(meta.finalizers or ()),
        generation=meta.generation or 0,
        created_at=_created(meta),
        faults=tuple(faults),
        status=parse_user_status(wire.status),
    )


def parse_group(wire: WirePerson) -> UserGroup:
    meta, faults = wire.metadata, list[str]()
    fields = _Fields(wire.spec, faults)
    leaves = fields.texts("quotaNames")
    if len(leaves) != 1:
        faults.append(f"quotaNames names {len(leaves)} leaves; a group has exactly one")
    caps = fields.object("userCaps")
    if not all(isinstance(each, dict) for each in caps.values()):
        faults.append(f"userCaps is {_shown(caps)} and not resources by user")
        caps = {}
    return UserGroup(
        name=meta.name or "",
        namespace=meta.namespace or "",
        uid=meta.uid or "",
        version=meta.resource_version or "",
        group_name=fields.text("groupName"),
        leaf=leaves[0] if leaves else "",
        default_roles=fields.texts("defaultRoles"),
        default_cluster_roles=fields.texts("defaultClusterRoles"),
        user_caps=caps,
        caps=_caps(caps, faults),
        is_ending=meta.deletion_timestamp is not None,
        generation=meta.generation or 0,
        created_at=_created(meta),
        faults=tuple(faults),
        status=parse_group_status(wire.status),
    )


def render_user(user: User) -> Object:
    """A manifest of the user, with Fairlead's finalizer."""
    external = user.external
    spec: Object = {
        "userName": user.user_name,
        "userId": user.name,
        "apiRoles": [str(role) for role in user.roles],
        "groups": list(user.groups),
        "deletable": user.is_deletable,
        "disabled": user.is_disabled,
    }
    if external != ExternalUser():
        spec["externalUser"] = {
            "authType": external.auth_type,
            "uid": external.uid,
            "name": external.name,
        }
    if user.aliuid:
        spec["aliuid"] = user.aliuid
    meta = {"name": user.name, "namespace": user.namespace, "finalizers": [USER_FINALIZER]}
    return {"apiVersion": PEOPLE_API, "kind": "User", "metadata": meta, "spec": spec}


def render_group(group: UserGroup) -> Object:
    """A manifest of the group."""
    spec: Object = {"groupName": group.group_name, "quotaNames": [group.leaf]}
    if group.default_roles:
        spec["defaultRoles"] = list(group.default_roles)
    if group.default_cluster_roles:
        spec["defaultClusterRoles"] = list(group.default_cluster_roles)
    if group.user_caps:
        spec["userCaps"] = {user: dict(caps) for user, caps in group.user_caps.items()}
    meta = {"name": group.name, "namespace": group.namespace}
    return {"apiVersion": PEOPLE_API, "kind": "UserGroup", "metadata": meta, "spec": spec}


# --- statuses -------------------------------------------------------------------------------------


def render_user_status(status: UserStatus, namespace: str) -> Object:
    """`namespace`: of the user. Every field is written, so that a merge patch removes old ones."""
    account = {"name": status.service_account, "namespace": namespace}
    return {
        "observedGeneration": status.generation,
        "serviceAccount": account if status.service_account else None,
        "namespaces": list(status.namespaces),
        "used": [
            {"leaf": each.leaf, "resources": render_amounts(each.used)} for each in status.used
        ],
        "roleBindings": [
            {"name": each.name, "namespace": each.namespace, "roleName": each.role}
            for each in status.bindings
            if each.namespace
        ],
        "clusterRoleBindings": [
            {"name": each.name, "roleName": each.role}
            for each in status.bindings
            if not each.namespace
        ],
        "conditions": [_render_ready(status.ready, status.generation)],
    }


def parse_user_status(status: Any) -> UserStatus:
    """What was written; a status that is malformed counts as none."""
    if not isinstance(status, dict):
        return UserStatus()
    bindings = (*_rows(status, "roleBindings"), *_rows(status, "clusterRoleBindings"))
    account = status.get("serviceAccount")
    return UserStatus(
        _text(account, "name"),
        _texts(status, "namespaces"),
        tuple(
            sorted(
                BoundRole(_text(each, "name"), _text(each, "namespace"), _text(each, "roleName"))
                for each in bindings
            )
        ),
        _parse_ready(status),
        _count(status, "observedGeneration"),
        tuple(_parse_used(status)),
    )


def _parse_used(status: Object) -> Iterator[LeafUse]:
    for row in _rows(status, "used"):
        try:
            yield LeafUse(_text(row, "leaf"), parse_amounts(row.get("resources")))
        except (ValueError, TypeError, AttributeError):
            continue


def render_group_status(status: GroupStatus) -> Object:
    """As for a user."""
    return {
        "observedGeneration": status.generation,
        "leaf": status.leaf,
        "namespaces": list(status.namespaces),
        "renamedTo": status.renamed_to or None,
        "users": status.users,
        "conditions": [_render_ready(status.ready, status.generation)],
    }


def parse_group_status(status: Any) -> GroupStatus:
    """As for a user."""
    if not isinstance(status, dict):
        return GroupStatus()
    return GroupStatus(
        _text(status, "leaf"),
        _texts(status, "namespaces"),
        _text(status, "renamedTo"),
        _count(status, "users"),
        _parse_ready(status),
        _count(status, "observedGeneration"),
    )


def _render_ready(ready: Ready, generation: int) -> Object:
    at = {} if ready.at is None else {"lastTransitionTime": render_time(ready.at)}
    return {
        "type": "Ready",
        "status": "True" if ready.is_true else "False",
        "reason": str(ready.reason),
        "message": ready.message,
        "observedGeneration": generation,
        **at,
    }


def _parse_ready(status: Object) -> Ready:
    for each in _rows(status, "conditions"):
        if each.get("type") == "Ready":
            try:
                at = parse_time(_text(each, "lastTransitionTime"))
            except ValueError:
                at = None
            is_true = each.get("status") == "True"
            return Ready(is_true, _text(each, "reason"), _text(each, "message"), at)
    return Ready()


def _caps(written: Mapping[str, Mapping[str, Any]], faults: list[str]) -> dict[str, Amounts]:
    """The caps as amounts."""
    found: dict[str, Amounts] = {}
    for user, texts in written.items():
        try:
            found[user] = parse_amounts(texts)
        except ValueError as error:
            faults.append(f"userCaps of {user}: {error}")
    return found


# --- small parts ----------------------------------------------------------------------------------


def _roles(word: str, faults: list[str]) -> tuple[UserRole, ...]:
    try:
        return (UserRole(word),)
    except ValueError:
        faults.append(f"apiRoles has `{word}`; a role is admin or researcher")
        return ()


def _created(meta: WirePersonMeta) -> float:
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0


def _rows(fields: Object, name: str) -> list[Object]:
    found = fields.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _text(fields: Any, name: str) -> str:
    found = fields.get(name) if isinstance(fields, dict) else None
    return found if isinstance(found, str) else ""


def _texts(fields: Object, name: str) -> tuple[str, ...]:
    found = fields.get(name)
    texts = found if isinstance(found, list) else []
    return tuple(each for each in texts if isinstance(each, str))


def _count(fields: Object, name: str) -> int:
    found = fields.get(name)
    return found if isinstance(found, int) else 0


def _shown(value: Any) -> str:
    text = f"`{value}`"
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 2]}…`"
