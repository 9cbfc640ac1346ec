"""What a subject may do, as the table of the page My access.

The rows of the console ask `rules/people/may`, as its routes do; those of kubectl are the rules of
the ClusterRoles that are bound to the user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fairlead.console.pages.session import ConsoleRight, KubectlRight, KubectlRule
from fairlead.model.access import PolicyRule
from fairlead.model.people.permission import Allowed, ConsoleResource, ConsoleVerb, Right
from fairlead.model.people.rights import READ, ROLES, WRITE
from fairlead.model.people.rows import BoundRole
from fairlead.model.people.subject import Subject
from fairlead.rules.people.may import may

EVERYWHERE: Final = "everywhere"
OWN: Final = "own"
_FOREIGN: Final = "*"
"""No namespace has this name, so no leaf brings it."""


def console_rights(subject: Subject, declared: Iterable[Right]) -> list[ConsoleRight]:
    """`declared`: the rights that the routes need; what no route needs is no row, nor
    is the own session.
    """
    asked: dict[ConsoleResource, list[ConsoleVerb]] = {}
    for resource in ConsoleResource:
        if resource is ConsoleResource.SESSION:
            continue
        found = {each.verb for each in declared if each.resource is resource and not each.is_open}
        if found:
            asked[resource] = [verb for verb in ConsoleVerb if verb in found]
    return [row for resource, verbs in asked.items() for row in _rows(subject, resource, verbs)]


def _rows(
    subject: Subject, resource: ConsoleResource, verbs: Collection[ConsoleVerb]
) -> Iterator[ConsoleRight]:
    own = next(iter(sorted(subject.namespaces)), "")
    everywhere = [verb for verb in verbs if _may(subject, verb, resource, _FOREIGN)]
    mine = [verb for verb in verbs if own and _may(subject, verb, resource, own)]
    if everywhere:
        yield ConsoleRight(str(resource), EVERYWHERE, [str(each) for each in everywhere])
    only_mine = [str(verb) for verb in mine if verb not in everywhere]
    if only_mine:
        yield ConsoleRight(str(resource), OWN, only_mine)


def _may(subject: Subject, verb: ConsoleVerb, resource: ConsoleResource, namespace: str) -> bool:
    return isinstance(may(subject, verb, resource, namespace), Allowed)


def kubectl_rights(bindings: Iterable[BoundRole]) -> list[KubectlRight]:
    """`bindings`: those of the user, as the people controller has them in the status. A role that
    is not Fairlead's has no rules here.
    """
    spaces: dict[str, set[str]] = {}
    for each in bindings:
        spaces.setdefault(each.role, set()).add(each.namespace)
    return [
        KubectlRight(
            role=role,
            namespaces=sorted(spaces[role] - {""}),
            is_cluster_wide="" in spaces[role],
            rules=[_rule(each) for each in ROLES.get(role, ())],
        )
        for role in sorted(spaces, key=lambda role: ([*ROLES, role].index(role), role))
    ]


def _rule(rule: PolicyRule) -> KubectlRule:
    kind = "write" if rule.verbs == WRITE else "read" if rule.verbs == READ else "other"
    return KubectlRule(
        kind=kind,
        verbs=list(rule.verbs),
        resources=[
            f"{resource}.{group}" if group else resource
            for group in rule.groups
            for resource in rule.resources
        ],
    )
