"""Users and groups of files and of other consoles, to be imported (docs/spec/people.md#import).

Read are `fairlead.io/v1` and ACK's `data.kubeai.alibabacloud.com/v1`. A password is never read
beyond its key.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.people.rows import User, UserGroup
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.names import VENDOR_PEOPLE_API
from fairlead.wire.people.people_objects import PEOPLE_API, WirePerson, parse_group, parse_user

_KINDS: Final = ("User", "UserGroup")
_VENDOR_GROUP_ROLES: Final = ("defaultRoles", "defaultClusterRoles")
Object = dict[str, Any]


class Imported(Struct, frozen=True):
    """One object. `row`: None = it cannot be imported, and `warnings` contain why. `title`: for
    messages, such as `User bob`.
    """

    title: str
    row: User | UserGroup | None = None
    warnings: tuple[str, ...] = ()


def parse_imported(obj: Any) -> Imported | None:
    """None for an object that is neither a user nor a group."""
    if not isinstance(obj, dict) or obj.get("kind") not in _KINDS:
        return None
    api, kind = obj.get("apiVersion"), obj["kind"]
    meta = obj.get("metadata")
    name = str(meta.get("name") or "") if isinstance(meta, dict) else ""
    title = f"{kind} {name}"
    if api not in (PEOPLE_API, VENDOR_PEOPLE_API):
        return None
    spec = dict(obj["spec"]) if isinstance(obj.get("spec"), dict) else {}
    warnings = list[str]()
    if "password" in spec:
        del spec["password"]
        warnings.append("its password is dropped: Fairlead keeps none")
    if api == VENDOR_PEOPLE_API:
        warnings += _from_vendor(kind, name, spec)
    wire = msgspec.convert(
        {"metadata": {"name": name, "namespace": USERS_NAMESPACE}, "spec": spec}, WirePerson
    )
    row = parse_user(wire) if kind == "User" else parse_group(wire)
    if row.faults:
        return Imported(title, None, (*warnings, *row.faults))
    return Imported(title, row, tuple(warnings))


def differences(before: User | UserGroup, after: User | UserGroup) -> list[str]:
    """Names of the fields in which an imported object differs from the present one."""
    same = {field: getattr(before, field) for field in _of_the_cluster(before)}
    compared = replace(after, **same)
    return [
        field
        for field in before.__struct_fields__
        if getattr(before, field) != getattr(compared, field)
    ]


def _of_the_cluster(row: User | UserGroup) -> tuple[str, ...]:
    """Fields that only the cluster has."""
    found = ("uid", "version", "is_ending", "generation", "created_at", "status", "namespace")
    return (*found, "finalizers", "is_forced") if isinstance(row, User) else found


def _from_vendor(kind: str, name: str, spec: Object) -> list[str]:
    """Bring the fields of ACK's object into Fairlead's form; warnings about what is left out."""
    warnings = list[str]()
    if kind == "User":
        spec["userId"] = spec.get("userId") or name
        spec["userName"] = spec.get("userName") or name
        others = spec.pop("externalUsers", None)
        if not spec.get("externalUser") and isinstance(others, list) and others:
            spec["externalUser"] = others[0]
            if len(others) > 1:
                warnings.append(f"of {len(others)} external users the first is kept")
        if spec.pop("k8sServiceAccount", None):
            warnings.append("its stored bindings are ignored: the people controller derives them")
    else:
        spec["groupName"] = spec.get("groupName") or name
        for field in _VENDOR_GROUP_ROLES:
            roles = spec.pop(field, None)
            if roles:
                named = ", ".join(map(str, roles)) if isinstance(roles, list) else str(roles)
                warnings.append(f"{field} {named} are left out: they are roles of ACK's console")
    return warnings
