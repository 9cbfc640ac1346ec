"""What `kubectl apply` without `--server-side` has left in an annotation, for the first apply with
it.

Its fields are the same manager's in other hands: they are no conflict, and the annotation follows
what is applied, so that a client without server-side apply can go on.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fairlead_sim.ownership.comparison import compare, field_paths
from fairlead_sim.ownership.field_paths import NoStep, Paths
from fairlead_sim.ownership.field_types import FieldType
from fairlead_sim.schema.go_json import encode_json

Object = dict[str, Any]
KUBECTL: Final = "kubectl"
"""The only manager for which this counts; others have named themselves to avoid it."""
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_BYTES: Final = 256 * 1024


def last_paths(kind: FieldType, live: Object) -> Paths:
    """The fields that a client applied and that still have its values."""
    text = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        last = json.loads(text) if text else None
        if not isinstance(last, dict) or last.get("apiVersion") != live["apiVersion"]:
            return set()
        changes = compare(kind, last, live)
        return field_paths(kind, last) - changes.added - changes.modified - changes.removed
    except (ValueError, NoStep):
        return set()


def with_annotation(new: Object, wish: Object) -> Object:
    """`new` whose annotation, if it has one, contains what was applied now."""
    annotations = new["metadata"].get("annotations") or {}
    if not annotations.get(ANNOTATION):
        return new
    metadata = {key: value for key, value in wish["metadata"].items() if key != "managedFields"}
    if metadata.get("annotations"):
        metadata["annotations"] = {
            key: value for key, value in metadata["annotations"].items() if key != ANNOTATION
        }
    text = f"{encode_json({**wish, 'metadata': metadata})}\n"
    held = {**annotations, ANNOTATION: text}
    if sum(len(key.encode()) + len(value.encode()) for key, value in held.items()) > _MOST_BYTES:
        del held[ANNOTATION]
    return {**new, "metadata": {**new["metadata"], "annotations": held}}
