"""The record of an installation: a ConfigMap with each object, the version and the values.

It is written before the first object, so that an interrupted run can be finished or removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.errors import OutsideError
from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installation import OLDEST_VERSION, SYSTEM_NAMESPACE

NAME: Final = "fairlead-installation"
WRITING: Final = "writing"
COMPLETE: Final = "complete"


class Inventory(Struct, frozen=True):
    """`objects`: all that the installation wrote, or is writing. `values`: YAML, without defaults.

    `state`: WRITING from the first write of a run to its last, else COMPLETE. `namespace`: in which
    it is kept. `release`: the Helm release that it describes, "" = `fairlead install` wrote it.
    `oldest`: the oldest version that understands what has been written in this cluster.
    """

    version: str
    state: str
    values: str
    objects: tuple[ObjectRef, ...]
    namespace: str = SYSTEM_NAMESPACE
    release: str = ""
    oldest: str = OLDEST_VERSION


def inventory_ref(namespace: str) -> ObjectRef:
    """The ConfigMap of an installation whose pods are in `namespace`."""
    return ObjectRef("v1", "ConfigMap", NAME, namespace)


def render_inventory(inventory: Inventory) -> Manifest:
    rows = [[each.api_version, each.kind, each.namespace, each.name] for each in inventory.objects]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": inventory.namespace,
            "labels": {"app.kubernetes.io/part-of": "fairlead"},
        },
        "data": {
            "version": inventory.version,
            "oldest": inventory.oldest,
            "state": inventory.state,
            "values": inventory.values,
            "objects": _lines(rows),
        },
    }


def parse_inventory(manifest: Manifest) -> Inventory:
    """Raises OutsideError for a ConfigMap that is no inventory."""
    namespace = str(manifest["metadata"]["namespace"])
    place = f"ConfigMap `{namespace}/{NAME}`"
    try:
        data: dict[str, str] = msgspec.convert(manifest["data"], dict[str, str])
        rows = msgspec.json.decode(data["objects"], type=list[tuple[str, str, str, str]])
        refs = tuple(ObjectRef(row[0], row[1], row[3], row[2]) for row in rows)
        return Inventory(
            data["version"],
            data["state"],
            data["values"],
            refs,
            namespace,
            oldest=data.get("oldest", OLDEST_VERSION),
        )
    except (KeyError, msgspec.MsgspecError) as error:
        hint = "restore it, or delete it and run `fairlead install` again"
        raise OutsideError("kubernetes", f"{place} is no inventory: {error}", hint) from error


def _lines(rows: Sequence[Any]) -> str:
    """A JSON list with one row in each line."""
    return "[\n" + ",\n".join(msgspec.json.encode(row).decode() for row in rows) + "\n]\n"
