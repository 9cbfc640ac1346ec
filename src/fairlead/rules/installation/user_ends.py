"""What ends of users when the people controller is removed: their rights, and its hold on them.

Afterwards a User object is a record: `kubectl delete` removes it, and a people controller that is
installed later gives the user the same rights again, with a new ServiceAccount.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.model.actions import Manifest, ObjectRef, PatchObject, object_ref
from fairlead.model.people.rows import LABEL_BOUND_USER, USER_FINALIZER, UserRole
from fairlead.model.refusal import Refusal
from fairlead.rules.installation.finding_lists import counted, some
from fairlead.settings import USERS_NAMESPACE

FIRST_ADMINISTRATOR: Final = "admin"
_SHOWN: Final = 5


def made_for_users(found: Iterable[Manifest]) -> list[ObjectRef]:
    """Of bindings and ServiceAccounts those that the people controller made.

    >>> account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    >>> rows = [("bob", "kube-ai", {"fairlead.io/user": "bob"}), ("default", "kube-ai", {}),
    ...     ("bob", "team", {"fairlead.io/user": "bob"})]
    >>> [each.title for each in made_for_users({**account, "metadata": {"name": name,
    ...     "namespace": space, "labels": labels}} for name, space, labels in rows)]
    ['ServiceAccount kube-ai/bob']
    """
    return [
        object_ref(each)
        for each in found
        if (each["metadata"].get("labels") or {}).get(LABEL_BOUND_USER)
        and (each["kind"] != "ServiceAccount" or each["metadata"]["namespace"] == USERS_NAMESPACE)
    ]


def is_held(user: Manifest) -> bool:
    return USER_FINALIZER in (user["metadata"].get("finalizers") or ())


def releases_of(user: Manifest) -> Iterator[PatchObject]:
    """The patches after which nothing of the controller is left in a User object."""
    meta = user["metadata"]
    if is_held(user):
        others = [each for each in meta["finalizers"] if each != USER_FINALIZER]
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"], "finalizers": others}}
        yield PatchObject(object_ref(user), patch)
    if user.get("status"):
        yield PatchObject(object_ref(user), {"status": None}, "status")


def refuse_held_users(users: Iterable[Manifest]) -> Refusal | None:
    """The refusal to remove the people controller alone while users could not be deleted after it.

    >>> held = {"metadata": {"name": "bob", "finalizers": ["fairlead.io/user"]}}
    >>> refuse_held_users([held]).reason
    '1 user has rights by the people controller: bob'
    """
    names = sorted(each["metadata"]["name"] for each in users if is_held(each))
    if not names:
        return None
    verb = "has" if len(names) == 1 else "have"
    number = counted(len(names), "user")
    return Refusal(f"{number} {verb} rights by the people controller: {some(names, most=_SHOWN)}")


def lacks_administrator(users: Iterable[Manifest]) -> bool:
    """Whether the first administrator is to be made: no user is one, and the name is free."""
    return not any(
        each["metadata"]["name"] == FIRST_ADMINISTRATOR
        or UserRole.ADMIN.value in (each.get("spec") or {}).get("apiRoles", ())
        for each in users
    )
