"""The inventory of a component that Fairlead wrote natively: one ConfigMap, the parent of an
ApplySet (KEP-3659), which `kubectl apply --prune --applyset` understands, too.

The trap: any user who may label an object may claim that it belongs to a set. The label alone is no
reason to remove an object (`rules/components/pruning`).
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec

from fairlead import __version__
from fairlead.errors import OutsideError
from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.operations.component import ComponentInventory

PREFIX: Final = "fairlead-component-"
COMPONENT_LABEL: Final = "fairlead.io/component"
"""On the ConfigMap; the value is the component's id."""
ID_LABEL: Final = "applyset.kubernetes.io/id"
PART_OF_LABEL: Final = "applyset.kubernetes.io/part-of"
TOOLING: Final = "applyset.kubernetes.io/tooling"
GROUP_KINDS: Final = "applyset.kubernetes.io/contains-group-kinds"
NAMESPACES: Final = "applyset.kubernetes.io/additional-namespaces"
_TOOL: Final = "fairlead"


def component_inventory_ref(id: str, namespace: str) -> ObjectRef:
    return ObjectRef("v1", "ConfigMap", f"{PREFIX}{id}", namespace, plural="configmaps")


def apply_set_id(id: str, namespace: str) -> str:
    """The id of the set, which follows from the parent's name, namespace, kind and API group.

    >>> apply_set_id("fluid", "fairlead-system")
    'applyset-Xu3UTHoe-zUcOxA0YslTtTOH6uyp_sT1NDkdnVyWXx0-v1'
    """
    name = f"{PREFIX}{id}.{namespace}.ConfigMap."
    digest = hashlib.sha256(name.encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def as_member(manifest: Manifest, id: str, namespace: str) -> Manifest:
    """The object with the label of the set."""
    meta = manifest["metadata"]
    labels = {**(meta.get("labels") or {}), PART_OF_LABEL: apply_set_id(id, namespace)}
    return {**manifest, "metadata": {**meta, "labels": labels}}


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
