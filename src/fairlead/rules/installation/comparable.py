"""What of an object its writer decided, so that two states of it can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.model.actions import Manifest

_SERVERS_OWN: Final = (
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
)


def comparable(obj: Any) -> Manifest:
    """The object without what the API server writes on its own."""
    meta = {name: each for name, each in obj["metadata"].items() if name not in _SERVERS_OWN}
    return {**{name: each for name, each in obj.items() if name != "status"}, "metadata": meta}


def differing_fields(found: Manifest, wanted: Manifest) -> list[str]:
    """Paths of fields in which two states of an object differ.

    >>> differing_fields({"metadata": {}, "spec": {"replicas": 1}, "data": {}},
    ...     {"metadata": {}, "spec": {"replicas": 2}, "data": {}})
    ['spec.replicas']
    """
    return list(_paths(comparable(found), comparable(wanted), ""))


def _paths(found: Any, wanted: Any, path: str) -> Iterator[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        for name in sorted({*found, *wanted}):
            at = f"{path}.{name}" if path else name
            yield from _paths(found.get(name), wanted.get(name), at)
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from _paths(one, other, f"{path}[{index}]")
    elif found != wanted:
        yield path
