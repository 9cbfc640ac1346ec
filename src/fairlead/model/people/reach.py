"""What a researcher sees of the cluster: the own namespaces and leaves of the quota tree."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.people.subject import Subject


class Reach(Struct, frozen=True):
    """`leaves`: full names. Researchers with the same reach see the same."""

    namespaces: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()


def reach_of(subject: Subject) -> Reach | None:
    """None = everything: the subject is an administrator."""
    return None if subject.is_admin else Reach(subject.namespaces, subject.leaves)
