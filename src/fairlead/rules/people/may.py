"""Whether a subject may do something in the console. Every route asks it.

A researcher's answer depends on the own namespaces alone, never on what exists in others: a foreign
namespace, and one that does not exist, get the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.model.people.permission import ALLOWED, Allowed, ConsoleResource, ConsoleVerb, Denied
from fairlead.model.people.subject import Subject

_GET: Final = frozenset({ConsoleVerb.GET})
_ALL: Final = frozenset(ConsoleVerb)

SHARED: Final[Mapping[ConsoleResource, frozenset[ConsoleVerb]]] = {
    ConsoleResource.SESSION: _ALL,
    ConsoleResource.CLUSTER: _GET,
    ConsoleResource.NODES: _GET,
    ConsoleResource.CLOCK: _GET,
    ConsoleResource.HEALTH: _GET,
    ConsoleResource.QUOTA: _GET,
    ConsoleResource.QUOTA_TREE: _GET,
    ConsoleResource.MY_CREDENTIALS: _ALL,
    ConsoleResource.PRICES: _GET,
}
"""What every subject may, without a namespace. Answers contain what the subject may see."""
OWN: Final[Mapping[ConsoleResource, frozenset[ConsoleVerb]]] = {
    ConsoleResource.JOBS: _ALL,
    ConsoleResource.LOGS: _GET,
    ConsoleResource.SERVING: _GET,
    ConsoleResource.DATASETS: _GET,
    ConsoleResource.NAMESPACES: _GET,
    ConsoleResource.USAGE: _GET,
}
"""What a researcher may in the own namespaces. Lists (without a namespace) contain only these."""


def may(
    subject: Subject, verb: ConsoleVerb, resource: ConsoleResource, namespace: str = ""
) -> Allowed | Denied:
    """Whether `subject` may. `namespace`: where; "" = in none, or a list of what is visible.

    >>> from fairlead.model.people.rows import UserRole
    >>> bob = Subject("Bob", UserRole.RESEARCHER, "bob", frozenset({"team-a"}))
    >>> may(bob, ConsoleVerb.GET, ConsoleResource.JOBS, "team-a")
    Allowed()
    >>> may(bob, ConsoleVerb.GET, ConsoleResource.JOBS, "team-b").status
    404
    >>> may(bob, ConsoleVerb.GET, ConsoleResource.USERS).status
    403
    """
    if subject.is_admin:
        return ALLOWED
    if verb in SHARED.get(resource, ()):
        return ALLOWED
    if verb not in OWN.get(resource, ()):
        return Denied(
            f"a researcher may not {verb} the {resource}"
            if verb is not ConsoleVerb.GET
            else f"a researcher may not see the {resource}",
            "ask an administrator",
        )
    if namespace in subject.namespaces or (not namespace and verb is ConsoleVerb.GET):
        return ALLOWED
    if not subject.namespaces:
        return Denied(
            "no quota is assigned to you, so you have no namespace to work in",
            "ask an administrator to add you to a group",
            code="no-quota",
        )
    if not namespace:
        return Denied("no namespace is named", _yours(subject), 400, "malformed")
    return Denied(f"you have no namespace `{namespace[:253]}`", _yours(subject), 404, "not-found")


def _yours(subject: Subject) -> str:
    shown = sorted(subject.namespaces)
    more = len(shown) - 10
    return f"yours: {', '.join(shown[:10])}" + (f" and {more} more" if more > 0 else "")
