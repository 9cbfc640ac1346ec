"""ServiceAccounts, bindings and ClusterRoles of users, and what a user still has running.

All that is made for a user carries the label `fairlead.io/user`, by which it is found again.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from fairlead.model.access import Binding, BindingSubject, PolicyRule
from fairlead.model.keys import LABEL_USER
from fairlead.model.people.rights import ROLES
from fairlead.model.people.rows import (
    LABEL_BOUND_USER,
    UserBinding,
    UserServiceAccount,
    UserWork,
)
from fairlead.wire.kube.objects import WireMeta, parse_labels

RBAC: Final = "rbac.authorization.k8s.io"
_MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "fairlead"}
_FINISHED_PHASES: Final = ("Succeeded", "Failed", "Completed", "Aborted", "Terminated")
_FINISHED_CONDITIONS: Final = ("Complete", "Failed", "Succeeded")
Object = dict[str, Any]


class WireServiceAccount(Struct, gc=False):
    metadata: WireMeta


class WireRoleRef(Struct, frozen=True, gc=False):
    kind: str | None = None
    name: str | None = None


class WireSubject(Struct, gc=False):
    kind: str | None = None
    name: str | None = None
    namespace: str | None = None


class WireBinding(Struct, gc=False, rename="camel"):
    metadata: WireMeta
    role_ref: WireRoleRef = WireRoleRef()
    subjects: list[WireSubject] | None = None


class WireWork(Struct, gc=False):
    """A pod or a job; `status` undecoded, because each kind has its own."""

    metadata: WireMeta
    kind: str | None = None
    status: Any = None


def parse_service_account(wire: WireServiceAccount) -> UserServiceAccount:
    meta = wire.metadata
    return UserServiceAccount(
        meta.name or "",
        meta.namespace or "",
        meta.uid or "",
        parse_labels(meta.labels).get(LABEL_BOUND_USER, ""),
        meta.deletion_timestamp is not None,
    )


def parse_binding(wire: WireBinding) -> UserBinding:
    meta, role = wire.metadata, wire.role_ref
    namespace = meta.namespace or ""
    subjects = tuple(
        BindingSubject(
            each.kind or "",
            each.name or "",
            (each.namespace or namespace) if each.kind == "ServiceAccount" else "",
        )
        for each in wire.subjects or ()
    )
    return UserBinding(
        Binding(meta.name or "", namespace, role.kind or "", role.name or "", subjects),
        meta.uid or "",
        meta.resource_version or "",
        parse_labels(meta.labels).get(LABEL_BOUND_USER, ""),
        meta.deletion_timestamp is not None,
    )


def parse_work(kind: str, wire: WireWork) -> UserWork:
    """`kind`: `pod` or `job`."""
    meta = wire.metadata
    user = parse_labels(meta.labels).get(LABEL_USER, "")
    return UserWork(
        kind,
        meta.namespace or "",
        meta.name or "",
        user,
        meta.uid or "",
        _is_finished(wire.status),
    )


def _is_finished(status: Any) -> bool:
    """Whether a pod or a job of any kind has ended.

    >>> _is_finished({"phase": "Succeeded"}), _is_finished({"state": {"phase": "Running"}})
    (True, False)
    >>> _is_finished({"conditions": [{"type": "Failed", "status": "True"}]})
    True
    """
    if not isinstance(status, dict):
        return False
    state, conditions = status.get("state"), status.get("conditions")
    phases = (
        status.get("phase"),
        status.get("jobStatus"),
        state.get("phase") if isinstance(state, dict) else None,
    )
    return (
        any(isinstance(each, str) and each.capitalize() in _FINISHED_PHASES for each in phases)
        or bool(status.get("completionTime"))
        or any(
            isinstance(each, dict)
            and each.get("type") in _FINISHED_CONDITIONS
            and each.get("status") == "True"
            for each in (conditions if isinstance(conditions, list) else ())
        )
    )


def render_service_account(account: UserServiceAccount) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _meta(account.name, account.namespace, account.user),
        "automountServiceAccountToken": False,
    }


def render_binding(held: UserBinding) -> Object:
    """Its RoleBinding or ClusterRoleBinding."""
    binding = held.binding
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if binding.namespace else "ClusterRoleBinding",
        "metadata": _meta(binding.name, binding.namespace, held.user),
        "roleRef": {"apiGroup": RBAC, "kind": binding.role_kind, "name": binding.role_name},
        "subjects": [
            {"kind": each.kind, "name": each.name, "namespace": each.namespace}
            for each in binding.subjects
        ],
    }


def cluster_roles() -> list[Object]:
    """The ClusterRoles that users are bound to."""
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "fairlead"}},
            "rules": [_render_rule(rule) for rule in rules],
        }
        for name, rules in ROLES.items()
    ]


def _render_rule(rule: PolicyRule) -> Object:
    return {
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
        "verbs": list(rule.verbs),
    }


def _meta(name: str, namespace: str, user: str) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": {LABEL_BOUND_USER: user, **_MANAGED_BY}}
