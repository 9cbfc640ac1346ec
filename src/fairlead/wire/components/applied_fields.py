"""Whether applying an object again would change nothing, as its `managedFields` show
(structured-merge-diff's FieldsV1).

It is so if one manager has applied exactly the fields of the manifest, and each of them still has
the manifest's value. What cannot be proven here (a default, a quantity of another form) counts as a
change: then the API server is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.model.actions import Manifest

_NO_FIELDS: Final = ("apiVersion", "kind")
"""Of the root, which no manager has."""
_NO_META: Final = ("name", "namespace")
_SELF: Final = "."


def is_as_applied(manifest: Manifest, found: Manifest, manager: str) -> bool:
    """Whether the object that was found has all of the manifest, and nothing that the manager has
    applied besides.

    >>> entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1",
    ...     "fieldsV1": {"f:data": {"f:a": {}}}}
    >>> live = {"metadata": {"name": "n", "managedFields": [entry]}, "data": {"a": "1", "b": "2"}}
    >>> wanted = {"apiVersion": "v1", "metadata": {"name": "n"}, "data": {"a": "1"}}
    >>> is_as_applied(wanted, live, "m")
    True
    >>> is_as_applied({**wanted, "data": {"a": "2"}}, live, "m")
    False
    """
    meta = found["metadata"]
    entries = [
        each
        for each in meta.get("managedFields") or ()
        if (each.get("manager"), each.get("operation")) == (manager, "Apply")
    ]
    if len(entries) != 1 or meta.get("deletionTimestamp"):
        return False
    (entry,) = entries
    if entry.get("apiVersion") != manifest["apiVersion"] or entry.get("subresource"):
        return False
    wanted = {name: each for name, each in manifest.items() if name not in _NO_FIELDS}
    wanted["metadata"] = {
        name: each for name, each in manifest["metadata"].items() if name not in _NO_META
    }
    if not wanted["metadata"]:
        del wanted["metadata"]
    return _is_same(wanted, found, entry.get("fieldsV1") or {})


def _is_same(wanted: Any, found: Any, fields: Mapping[str, Any]) -> bool:
    names = [each for each in fields if each != _SELF]
    if not names:  # a value, or a list or mapping that is replaced as a whole
        return wanted is not None and type(wanted) is type(found) and bool(wanted == found)
    if isinstance(wanted, Mapping):
        return _is_same_mapping(wanted, found, fields, names)
    if isinstance(wanted, list):
        return _is_same_list(wanted, found, fields, names)
    return False


def _is_same_mapping(
    wanted: Mapping[str, Any], found: Any, fields: Mapping[str, Any], names: list[str]
) -> bool:
    if not isinstance(found, Mapping) or {f"f:{each}" for each in wanted} != {*names}:
        return False
    return all(
        name in found and _is_same(each, found[name], fields[f"f:{name}"])
        for name, each in wanted.items()
    )


def _is_same_list(
    wanted: list[Any], found: Any, fields: Mapping[str, Any], names: list[str]
) -> bool:
    """A list with keys (`k:`) or a set of values (`v:`)."""
    if not isinstance(found, list) or len(names) != len(wanted):
        return False
    for name in names:
        sort, _, text = name.partition(":")
        key = msgspec.json.decode(text)
        if sort == "v":
            if key not in wanted or key not in found:
                return False
            continue
        if sort != "k":
            return False
        own, there = _with_key(wanted, key), _with_key(found, key)
        if own is None or there is None or not _is_same(own, there, fields[name]):
            return False
    return True


def _with_key(items: list[Any], key: Mapping[str, Any]) -> Any:
    """The one item with these values; None if there is none or more than one."""
    same = [
        each
        for each in items
        if isinstance(each, Mapping) and all(each.get(name) == one for name, one in key.items())
    ]
    return same[0] if len(same) == 1 else None
