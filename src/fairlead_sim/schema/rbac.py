"""Roles, bindings and the refusals for want of rights, as they look on the wire.

The words of the refusals are the real server's: people copy them into the role that is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlead.model.access import AccessRequest, Binding, BindingSubject, Identity, PolicyRule
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import ApiStatus, forbidden

Object = Mapping[str, Any]

# In the order in which a rule is printed.
_FIELDS = (
    ("apiGroups", "groups"),
    ("resources", "resources"),
    ("nonResourceURLs", "urls"),
    ("resourceNames", "resource_names"),
    ("verbs", "verbs"),
)


def parse_rules(role: Object) -> tuple[PolicyRule, ...]:
    """The rules of a Role or ClusterRole."""
    return tuple(
        PolicyRule(**{name: tuple(rule.get(field) or ()) for field, name in _FIELDS})
        for rule in role.get("rules") or ()
    )


def parse_binding(binding: Object) -> Binding:
    """A RoleBinding or ClusterRoleBinding."""
    metadata, role = binding["metadata"], binding["roleRef"]
    subjects = (
        BindingSubject(subject["kind"], subject["name"], subject.get("namespace", ""))
        for subject in binding.get("subjects") or ()
    )
    return Binding(
        metadata["name"], metadata.get("namespace", ""), role["kind"], role["name"], tuple(subjects)
    )


def render_resource_rules(rules: Iterable[PolicyRule]) -> list[dict[str, Any]]:
    """The `resourceRules` of a SelfSubjectRulesReview."""
    fields = ("verbs", "apiGroups", "resources", "resourceNames")
    return [
        {field: list(_of(rule, field)) for field in fields if _of(rule, field)}
        for rule in rules
        if rule.resources
    ]


def render_url_rules(rules: Iterable[PolicyRule]) -> list[dict[str, Any]]:
    """The `nonResourceRules` of a SelfSubjectRulesReview."""
    return [
        {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)}
        for rule in rules
        if rule.urls
    ]


def _of(rule: PolicyRule, field: str) -> tuple[str, ...]:
    held: tuple[str, ...] = getattr(rule, dict(_FIELDS)[field])
    return held


def no_right(who: Identity, request: AccessRequest, reason: str = "") -> ApiStatus:
    """The 403 for a request that no rule allows."""
    why = _cannot(who.name, request).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if reason:
        why = f"{why}: {reason}"
    if request.path:
        return ApiStatus(403, "Forbidden", f"forbidden: {why}")
    subject = f"{request.resource}.{request.group}" if request.group else request.resource
    named = f'{subject} "{request.name}"' if request.name else subject
    details = {"name": request.name, "group": request.group, "kind": request.resource}
    return ApiStatus(
        403,
        "Forbidden",
        f"{named} is forbidden: {why}",
        {key: value for key, value in details.items() if value},
    )


def _cannot(user: str, request: AccessRequest) -> str:
    if request.path:
        return f"User {_quoted(user)} cannot {request.verb} path {_quoted(request.path)}"
    resource = (
        f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    )
    where = (
        f"in the namespace {_quoted(request.namespace)}"
        if request.namespace
        else "at the cluster scope"
    )
    return (
        f"User {_quoted(user)} cannot {request.verb} resource {_quoted(resource)} in API group "
        f"{_quoted(request.group)} {where}"
    )


def escalation(
    ref: ResourceKind, name: str, who: Identity, missing: Iterable[PolicyRule], unresolved: str = ""
) -> ApiStatus:
    """The 403 for giving away rights that the giver does not have.

    `unresolved` names roles that could not be looked into.
    """
    detail = "\n".join(sorted({_compact(rule) for rule in missing}))
    why = (
        f"user {_quoted(who.name)} (groups={_list(who.groups)}) is attempting to grant RBAC "
        f"permissions not currently held:\n{detail}"
    )
    if unresolved:
        why += f"; resolution errors: [{unresolved}]"
    return forbidden(ref, name, why)


def _compact(rule: PolicyRule) -> str:
    fields = (
        (f"{field[:1].upper()}{field[1:]}".replace("ApiGroups", "APIGroups"), _of(rule, field))
        for field, _ in _FIELDS
    )
    return f"{{{', '.join(f'{field}:{_list(values)}' for field, values in fields if values)}}}"


def _list(values: Sequence[str]) -> str:
    return f"[{' '.join(_quoted(value) for value in values)}]"


def _quoted(text: str) -> str:
    """As Go's %q writes it, near enough: the same for everything but unprintable characters."""
    return json.dumps(text, ensure_ascii=False)
