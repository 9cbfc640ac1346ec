"""What Fairlead's processes wrote on nodes and namespaces, and the patches that remove it.

Keys of Fairlead's domain are its own. A key that other programs write as well, such as
`aliyun.accelerator/nvidia_name`, is removed only if the object records that Fairlead wrote it last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.model.actions import Manifest, PatchObject, object_ref
from fairlead.model.installation import INSTALLATION_LABEL
from fairlead.rules.devices.card_mode import SHARE_READY

_DOMAIN: Final = "fairlead.io/"
_WRITER: Final = "fairlead"
"""The field manager of Fairlead's processes."""
_AMOUNTS: Final = ("capacity", "allocatable")


def traces_of(obj: Manifest) -> list[PatchObject]:
    """The patches of a Node or a Namespace; none if Fairlead wrote nothing on it.

    >>> node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels":
    ...     {"fairlead.io/gpu-isolation": "none", "aliyun.accelerator/nvidia_name": "mine"}}}
    >>> [dict(each.patch) for each in traces_of(node)]
    [{'metadata': {'labels': {'fairlead.io/gpu-isolation': None}}}]
    """
    if INSTALLATION_LABEL in (obj["metadata"].get("labels") or {}):
        return []  # a namespace of the installation is found by it, until it is gone
    found = []
    meta = {
        name: dict.fromkeys(keys)
        for name in ("labels", "annotations")
        if (keys := sorted(_own_keys(obj, name)))
    }
    if meta:
        found.append(PatchObject(object_ref(obj), {"metadata": meta}))
    if obj["kind"] == "Node" and (status := _own_status(obj)):
        found.append(PatchObject(object_ref(obj), {"status": status}, "status", is_strategic=True))
    return found


def _own_keys(obj: Manifest, name: str) -> set[str]:
    present = obj["metadata"].get(name) or {}
    written = set(_written(obj, "metadata", name))
    return {key for key in present if key.startswith(_DOMAIN) or key in written}


def _own_status(node: Manifest) -> dict[str, Any]:
    present = node.get("status") or {}
    status: dict[str, Any] = {}
    for name in _AMOUNTS:
        written = set(_written(node, "status", name))
        if keys := sorted(written & set(present.get(name) or {})):
            status[name] = dict.fromkeys(keys)
    if any(each["type"] == SHARE_READY for each in present.get("conditions") or ()):
        status["conditions"] = [{"$patch": "delete", "type": SHARE_READY}]
    return status


def _written(obj: Manifest, *path: str) -> Iterator[str]:
    """Keys below this path that the object records as Fairlead's."""
    for entry in obj["metadata"].get("managedFields") or ():
        if entry.get("manager") != _WRITER:
            continue
        fields = entry.get("fieldsV1") or {}
        for name in path:
            fields = fields.get(f"f:{name}") or {}
        yield from (key.removeprefix("f:") for key in fields if key != ".")
