"""What of an object its writer decided, so that two states of it can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

import msgspec

from fairlead.model.actions import Manifest

_SERVERS_OWN: Final = (
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
)

_REVISION: Final = "deployment.kubernetes.io/revision"
"""An annotation that the controller of Deployments writes, although no user changed one."""


def comparable(obj: Any) -> Manifest:
    """The object without what the API server writes on its own."""
    meta = {name: each for name, each in obj["metadata"].items() if name not in _SERVERS_OWN}
    return {**{name: each for name, each in obj.items() if name != "status"}, "metadata": meta}


def content_version(obj: Any) -> str:
    """Another one as soon as a writer changes the object, or it is made anew; "" = it is absent, or
    could not be read. A status that moves is no change, nor is the revision of a Deployment.

    >>> found = {"metadata": {"uid": "1", "resourceVersion": "7"}, "spec": {"replicas": 1}}
    >>> moved = {**found, "metadata": {"uid": "1", "resourceVersion": "8"}, "status": {"ready": 1}}
    >>> content_version(moved) == content_version(found)
    True
    >>> content_version({**found, "spec": {"replicas": 2}}) == content_version(found)
    False
    """
    if not isinstance(obj, dict):
        return ""
    kept = comparable(obj)
    for name in ("apiVersion", "kind"):  # items of a list have none
        kept.pop(name, None)
    annotations = kept["metadata"].get("annotations") or {}
    kept["metadata"]["annotations"] = {
        name: each for name, each in annotations.items() if name != _REVISION
    }
    text = msgspec.json.encode((obj["metadata"].get("uid"), kept), order="deterministic")
    return blake2b(text, digest_size=8).hexdigest()


def differing_fields(found: Manifest, wanted: Manifest) -> list[str]:
    """Paths of fields in which two states of an object differ.

    >>> differing_fields({"metadata": {}, "spec": {"replicas": 1}, "data": {}},
    ...     {"metadata": {}, "spec": {"replicas": 2}, "data": {}})
    ['spec.replicas']
    """
    return [path for path, _, _ in changed_fields(found, wanted)]


def changed_fields(found: Manifest, wanted: Manifest) -> list[tuple[str, Any, Any]]:
    """The paths of these fields, each with both values; None = it is absent.

    >>> changed_fields({"metadata": {}, "data": {"a": "1"}}, {"metadata": {}, "data": {"b": "2"}})
    [('data.a', '1', None), ('data.b', None, '2')]
    """
    return list(_fields(comparable(found), comparable(wanted), ""))


def _fields(found: Any, wanted: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        for name in sorted({*found, *wanted}):
            at = f"{path}.{name}" if path else name
            yield from _fields(found.get(name), wanted.get(name), at)
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from _fields(one, other, f"{path}[{index}]")
    elif found != wanted:
        yield path, found, wanted
