"""The inventory of a component that Fairlead wrote natively: one ConfigMap, the parent of an
ApplySet (`model/operations/apply_set`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead import __version__
from fairlead.errors import OutsideError
from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.operations.apply_set import apply_set_id, component_inventory_ref
from fairlead.model.operations.component import ComponentInventory

COMPONENT_LABEL: Final = "fairlead.io/component"
"""On the ConfigMap; the value is the component's id."""
ID_LABEL: Final = "applyset.kubernetes.io/id"
TOOLING: Final = "applyset.kubernetes.io/tooling"
GROUP_KINDS: Final = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES: Final = "applyset.kubernetes.io/additional-namespaces"
_TOOL: Final = "fairlead"


def render_component_inventory(inventory: ComponentInventory) -> Manifest:
    kinds = sorted({_group_kind(each) for each in inventory.objects})
    spaces = sorted({each.namespace for each in inventory.objects} - {"", inventory.namespace})
    ref = component_inventory_ref(inventory.id, inventory.namespace)
    rows = [[each.api_version, each.kind, each.namespace, each.name] for each in inventory.objects]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": ref.name,
            "namespace": inventory.namespace,
            "labels": {
                "app.kubernetes.io/part-of": "fairlead",
                COMPONENT_LABEL: inventory.id,
                ID_LABEL: apply_set_id(inventory.id, inventory.namespace),
            },
            "annotations": {
                TOOLING: f"{_TOOL}/v{__version__}",
                GROUP_KINDS: ",".join(kinds),
                NAMESPACES: ",".join(spaces),
            },
        },
        "data": {
            "version": inventory.version,
            "state": inventory.state,
            "place": inventory.place,
            "values": inventory.values,
            "operation": inventory.operation,
            "objects": "[\n"
            + ",\n".join(msgspec.json.encode(each).decode() for each in rows)
            + "\n]",
        },
    }


def parse_component_inventory(manifest: Any, id: str, namespace: str) -> ComponentInventory:
    """Raises OutsideError for a ConfigMap that is no inventory of this component."""
    try:
        data = msgspec.convert(manifest["data"], dict[str, str])
        rows = msgspec.json.decode(data["objects"], type=list[tuple[str, str, str, str]])
        if manifest["metadata"]["labels"][COMPONENT_LABEL] != id:
            raise KeyError(COMPONENT_LABEL)
        return ComponentInventory(
            id=id,
            version=data["version"],
            state=data["state"],
            namespace=namespace,
            place=data["place"],
            objects=tuple(ObjectRef(row[0], row[1], row[3], row[2]) for row in rows),
            values=data["values"],
            operation=data["operation"],
        )
    except (KeyError, TypeError, msgspec.MsgspecError) as error:
        what = f"{component_inventory_ref(id, namespace).title} is no inventory: {error}"
        raise OutsideError("kubernetes", what, "deploy the component again") from error


def _group_kind(ref: ObjectRef) -> str:
    """
    >>> _group_kind(ObjectRef("apps/v1", "Deployment", "a"))
    'Deployment.apps'
    """
    group = ref.group_version[0]
    return f"{ref.kind}.{group}" if group else ref.kind
