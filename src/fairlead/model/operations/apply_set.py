"""Membership in the set of objects that belong to a component: an ApplySet (KEP-3659), which
`kubectl apply --prune --applyset` understands, too.

The trap: any user who may label an object may claim that it belongs to a set. The label alone is no
reason to remove an object.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

from fairlead.model.actions import Manifest, ObjectRef

INVENTORY_PREFIX: Final = "fairlead-component-"
PART_OF_LABEL: Final = "applyset.kubernetes.io/part-of"
APPLY_MANAGER: Final = "fairlead"
"""The field manager of what operations apply."""


def component_inventory_ref(id: str, namespace: str) -> ObjectRef:
    """The parent of the set."""
    return ObjectRef("v1", "ConfigMap", f"{INVENTORY_PREFIX}{id}", namespace, plural="configmaps")


def apply_set_id(id: str, namespace: str) -> str:
    """The id of the set, which follows from the parent's name, namespace, kind and API group.

    >>> apply_set_id("fluid", "fairlead-system")
    'applyset-Xu3UTHoe-zUcOxA0YslTtTOH6uyp_sT1NDkdnVyWXx0-v1'
    """
    name = f"{INVENTORY_PREFIX}{id}.{namespace}.ConfigMap."
    digest = hashlib.sha256(name.encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def as_member(manifest: Manifest, set_id: str) -> Manifest:
    """The object with the label of the set."""
    meta = manifest["metadata"]
    labels = {**(meta.get("labels") or {}), PART_OF_LABEL: set_id}
    return {**manifest, "metadata": {**meta, "labels": labels}}


def is_member(found: Any, set_id: str) -> bool:
    """Whether the object has the label of the set, and Fairlead has applied it."""
    meta = found["metadata"]
    has_applied = any(
        (each.get("manager"), each.get("operation")) == (APPLY_MANAGER, "Apply")
        for each in meta.get("managedFields") or ()
    )
    return has_applied and (meta.get("labels") or {}).get(PART_OF_LABEL) == set_id
