"""Whether an identity may do something, judged as kube-apiserver's RBAC authorizer does.

Rules only add rights. Nothing forbids; an identity without a rule that allows a request may not do
it. A binding to a role that does not exist is no error: it allows nothing, and the refusal mentions
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from fairlead.model.access import (
    AccessRequest,
    Binding,
    BindingSubject,
    Identity,
    PolicyRule,
    account_name,
)

EVERYTHING = (
    PolicyRule(verbs=("*",), groups=("*",), resources=("*",)),
    PolicyRule(verbs=("*",), urls=("*",)),
)
RBAC_GROUP = "rbac.authorization.k8s.io"

RoleKey = tuple[str, str]
"""(namespace, name); the namespace is empty for ClusterRoles."""


class Judgement(Struct, frozen=True):
    """`reason`: the binding that allows it, or the roles that were missing."""

    is_allowed: bool
    reason: str = ""


class HeldRole(Struct, frozen=True):
    """What one binding gives: the rules of its role, or None if the role does not exist."""

    binding: Binding
    subject: BindingSubject
    rules: Sequence[PolicyRule] | None


class Policy:
    """All roles and bindings of a cluster, indexed by subject.

    Bindings apply in the order given.
    """

    def __init__(
        self, roles: Mapping[RoleKey, Sequence[PolicyRule]], bindings: Iterable[Binding]
    ) -> None:
        self._roles = roles
        self._bound: dict[tuple[str, str, str], list[tuple[int, Binding, BindingSubject]]] = {}
        for number, binding in enumerate(bindings):
            for subject in binding.subjects:
                key = (binding.namespace, *_bound_subject(subject, binding.namespace))
                self._bound.setdefault(key, []).append((number, binding, subject))

    def rules_of(self, kind: str, name: str, namespace: str) -> Sequence[PolicyRule] | None:
        """The rules of the role that a binding in `namespace` refers to.

        None without such a role.
        """
        return self._roles.get((namespace if kind == "Role" else "", name))

    def held_roles(self, who: Identity, namespace: str) -> Iterator[HeldRole]:
        """What `who` is given in a namespace: cluster-wide bindings first, each binding once."""
        for scope in ("", namespace) if namespace else ("",):
            keys = [(scope, "User", who.name), *((scope, "Group", group) for group in who.groups)]
            found = {
                number: (binding, subject)
                for key in reversed(keys)
                for number, binding, subject in self._bound.get(key, ())
            }
            for number in sorted(found):
                binding, subject = found[number]
                yield HeldRole(
                    binding, subject, self.rules_of(binding.role_kind, binding.role_name, scope)
                )

    def held_rules(self, who: Identity, namespace: str) -> list[PolicyRule]:
        """All rules that `who` has in a namespace."""
        return [rule for held in self.held_roles(who, namespace) for rule in held.rules or ()]


def _bound_subject(subject: BindingSubject, namespace: str) -> tuple[str, str]:
    """The user or group that is bound: a ServiceAccount is a user by another spelling."""
    if subject.kind == "ServiceAccount":
        return "User", account_name(subject.namespace or namespace, subject.name)
    return subject.kind, subject.name


def judge(who: Identity, request: AccessRequest, policy: Policy) -> Judgement:
    """Whether `who` may do what is asked. Members of system:masters always may."""
    if who.is_master:
        return Judgement(is_allowed=True)
    for held in policy.held_roles(who, request.namespace):
        if any(allows(rule, request) for rule in held.rules or ()):
            return Judgement(is_allowed=True, reason=f"RBAC: allowed by {_joined(held)}")
    missing = missing_roles(who, request.namespace, policy)
    return Judgement(is_allowed=False, reason=f"RBAC: {missing}" if missing else "")


def missing_roles(who: Identity, namespace: str, policy: Policy, resource: str = "") -> str:
    """The roles that `who` is bound to and that do not exist, as one text; empty if all exist.

    `resource`: used in the text instead of their names.
    """
    bindings = (held.binding for held in policy.held_roles(who, namespace) if held.rules is None)
    roles = list(
        dict.fromkeys(
            (
                f"{resource or each.role_kind.lower() + '.' + RBAC_GROUP} "
                f'"{each.role_name}" not found'
            )
            for each in bindings
        )
    )
    return roles[0] if len(roles) == 1 else f"[{', '.join(roles)}]" if roles else ""


def _joined(held: HeldRole) -> str:
    binding, subject = held.binding, held.subject
    name = (
        f"{subject.name}/{subject.namespace or binding.namespace}"
        if subject.kind == "ServiceAccount"
        else subject.name
    )
    kind, place = (
        ("RoleBinding", f"{binding.name}/{binding.namespace}")
        if binding.namespace
        else ("ClusterRoleBinding", binding.name)
    )
    return (
        f'{kind} "{place}" of {binding.role_kind} "{binding.role_name}" to {subject.kind} "{name}"'
    )


def allows(rule: PolicyRule, request: AccessRequest) -> bool:
    """Whether this one rule allows the request."""
    if not _has(rule.verbs, request.verb):
        return False
    if request.path:
        return any(_covers_url(url, request.path) for url in rule.urls)
    return (
        _has(rule.groups, request.group)
        and _allows_resource(rule.resources, request)
        and (not rule.resource_names or request.name in rule.resource_names)
    )


def _allows_resource(resources: Sequence[str], request: AccessRequest) -> bool:
    if not request.subresource:
        return _has(resources, request.resource)
    return (
        _has(resources, f"{request.resource}/{request.subresource}")
        or f"*/{request.subresource}" in resources
    )


def _has(held: Sequence[str], wanted: str) -> bool:
    return wanted in held or "*" in held


def _covers_url(held: str, wanted: str) -> bool:
    return held == wanted or (held.endswith("*") and wanted.startswith(held.rstrip("*")))


def uncovered(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The wanted rules that the held rules do not cover.

    Single rights, joined if only their verbs differ.

    >>> held = [PolicyRule(verbs=("get",), groups=("",), resources=("pods",))]
    >>> given = PolicyRule(verbs=("get", "list", "watch"), groups=("",), resources=("pods",))
    >>> [rule.verbs for rule in uncovered(held, [given])]
    [('list', 'watch')]
    """
    joined: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for right in (right for rule in wanted for right in _single_rights(rule)):
        if not any(_covers(rule, right) for rule in held):
            verb = right.verbs if right.urls else ()
            joined.setdefault(
                (right.groups, right.resources, right.resource_names, right.urls, verb), []
            ).extend(right.verbs)
    return [PolicyRule(tuple(verbs), *key[:4]) for key, verbs in joined.items()]


def _single_rights(rule: PolicyRule) -> Iterator[PolicyRule]:
    """A rule as rules with one verb, one resource and at most one name each."""
    names: list[tuple[str, ...]] = [(name,) for name in rule.resource_names] or [()]
    for group, resource, verb, name in product(rule.groups, rule.resources, rule.verbs, names):
        yield PolicyRule((verb,), (group,), (resource,), name)
    for url, verb in product(rule.urls, rule.verbs):
        yield PolicyRule((verb,), urls=(url,))


def _covers(held: PolicyRule, right: PolicyRule) -> bool:
    """Whether a rule includes a single right. A rule for some names does not include all."""
    if not _has(held.verbs, right.verbs[0]):
        return False
    if right.urls:
        return any(_covers_url(url, right.urls[0]) for url in held.urls)
    resource = right.resources[0]
    has_resource = _has(held.resources, resource) or (
        "/" in resource and f"*/{resource.partition('/')[2]}" in held.resources
    )
    has_name = not held.resource_names or (
        bool(right.resource_names) and right.resource_names[0] in held.resource_names
    )
    return has_resource and has_name and _has(held.groups, right.groups[0])
