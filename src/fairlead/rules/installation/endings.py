"""Objects that are being deleted: whether their pods are gone, and what holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.rules.installation.finding_lists import some

_FOREGROUND: Final = "foregroundDeletion"
"""The API server's own finalizer: it stays until what the object owns is gone."""
_SHOWN: Final = 10


def is_stopped(workload: Manifest | None) -> bool:
    """Whether a workload that was deleted in the foreground has no pods any more.

    >>> is_stopped({"metadata": {"deletionTimestamp": "now", "finalizers": ["example.com/held"]}})
    True
    """
    if workload is None:
        return True
    meta = workload["metadata"]
    return bool(meta.get("deletionTimestamp")) and _FOREGROUND not in (meta.get("finalizers") or ())


def held_title(obj: Manifest) -> str:
    """
    >>> held_title({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a",
    ...     "namespace": "team", "finalizers": ["example.com/held"]}})
    'Secret team/a (finalizer `example.com/held`)'
    """
    names = obj["metadata"].get("finalizers") or ()
    held = ", ".join(f"`{name}`" for name in names)
    return object_ref(obj).title + (f" (finalizer {held})" if held else "")


def held_sentence(targets: Iterable[ObjectRef], held: Iterable[Manifest]) -> str:
    """What is still being deleted, and what it waits for."""
    names = ", ".join(each.title for each in targets)
    rows = [held_title(each) for each in held]
    waits = f"; held by {some(rows, most=_SHOWN)}" if rows else ""
    return f"still being deleted: {names}{waits}"


def defined_kind(definition: Manifest) -> ObjectRef:
    """The kind that a CustomResourceDefinition defines, in a served version; without a name."""
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    return ObjectRef(f"{spec['group']}/{version}", spec["names"]["kind"], "")
