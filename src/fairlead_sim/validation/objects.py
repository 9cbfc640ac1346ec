"""All that the API server refuses about an object, with its words.

Names, namespaces, labels and owners of every kind stand here; what is within them is asked of the
neighbours: `pod`, `workload`, `core`, `service`, `custom`, `rbac_objects`, `stored_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead_sim.objects import resources as served
from fairlead_sim.objects.pod_counts import count_errors
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.names import (
    label_faults,
    path_segment_faults,
    qualified_name_faults,
    subdomain_faults,
)
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import (
    FieldError,
    forbidden_field,
    invalid,
    required,
    shown,
    too_long,
    wrong_value,
)
from fairlead_sim.validation import rbac_objects
from fairlead_sim.validation.core import core_change_errors, core_errors
from fairlead_sim.validation.custom import definition_errors
from fairlead_sim.validation.field_rules import labels
from fairlead_sim.validation.pod import new_pod_errors, pod_change_errors, pod_errors
from fairlead_sim.validation.service import service_errors
from fairlead_sim.validation.stored_rules import stored_errors
from fairlead_sim.validation.workload import workload_change_errors, workload_errors

_MOST_ANNOTATION_BYTES = 256 * 1024
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


def check(ref: ResourceKind, new: Object, old: Object | None = None) -> None:
    """Raise 422 with every fault found.

    What an update leaves as it was is not looked at again: most updates are of a status.
    """
    errors: list[FieldError] = []
    if old is None or any(
        new["metadata"].get(key) != old["metadata"].get(key) for key in _METADATA
    ):
        errors += _metadata_errors(ref, new["metadata"])
    is_new_spec = old is None or new.get("spec") != old.get("spec")
    if is_new_spec or ref.is_custom:
        errors += _spec_errors(ref, new, old)
    errors += (
        core_errors(ref, new)
        if old is None
        else [*core_errors(ref, new), *core_change_errors(ref, old, new)]
    )
    errors += stored_errors(ref, new)
    if ref is served.CUSTOM_RESOURCE_DEFINITIONS and is_new_spec:
        errors += definition_errors(new, old)
    if ref.group == rbac_objects.GROUP:
        errors += rbac_objects.rbac_errors(ref, new, old)
    if is_new_spec:
        errors += count_errors(ref, new.get("spec"))
    if ref is served.SERVICES and is_new_spec:
        errors += service_errors(new, old)
    if errors:
        raise invalid(ref, new["metadata"].get("name", ""), errors)


def check_deletion(ref: ResourceKind, new: Object, old: Object) -> None:
    """Raise 422 where a writer sets the deletion time, or adds finalizers to a deleted object."""
    metadata, before = new.get("metadata") or {}, old["metadata"]
    date, errors = metadata.get("deletionTimestamp"), list[FieldError]()
    if date is not None and date != before.get("deletionTimestamp"):
        errors.append(wrong_value("metadata.deletionTimestamp", date, "field is immutable"))
    added = [
        name
        for name in metadata.get("finalizers") or ()
        if name not in (before.get("finalizers") or ())
    ]
    if added and "deletionTimestamp" in before:
        detail = ", ".join(shown(name) for name in sorted(added))
        why = (
            "no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{detail}}}"
        )
        errors.append(forbidden_field("metadata.finalizers", why))
    if errors:
        raise invalid(ref, before["name"], errors)


# --- metadata -------------------------------------------------------------------------------------


def _metadata_errors(ref: ResourceKind, metadata: Object) -> list[FieldError]:
    name = metadata.get("name")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    return [
        *_name_errors(ref, metadata),
        *labels("metadata.labels", metadata.get("labels") or {}),
        *_annotation_errors(metadata.get("annotations") or {}),
        *_finalizer_errors(ref, metadata.get("finalizers") or ()),
        *_owner_errors(metadata.get("ownerReferences") or ()),
    ]


def _name_errors(ref: ResourceKind, metadata: Object) -> list[FieldError]:
    faults: Callable[[str], list[str]] = subdomain_faults
    if ref.group == rbac_objects.GROUP:
        faults = path_segment_faults
    elif ref in (served.NAMESPACES, served.SERVICES):
        faults = label_faults
    prefix = metadata.get("generateName")
    errors = (
        [
            wrong_value("metadata.generateName", prefix, why)
            for why in faults(f"{prefix.rstrip('-')}0")
        ]
        if prefix
        else []
    )
    return errors + [
        wrong_value("metadata.name", metadata["name"], why) for why in faults(metadata["name"])
    ]


def _annotation_errors(annotations: Object) -> list[FieldError]:
    errors = [
        wrong_value("metadata.annotations", key, why)
        for key in annotations
        for why in qualified_name_faults(key.lower())
    ]
    size = sum(len(key) + len(value) for key, value in annotations.items())
    return (
        errors
        if size <= _MOST_ANNOTATION_BYTES
        else [*errors, too_long("metadata.annotations", _MOST_ANNOTATION_BYTES)]
    )


def _finalizer_errors(ref: ResourceKind, finalizers: Any) -> list[FieldError]:
    errors = [
        wrong_value("metadata.finalizers", name, why)
        for name in finalizers
        for why in qualified_name_faults(name)
    ]
    if ref.is_custom or ref is served.CUSTOM_RESOURCE_DEFINITIONS:
        return errors
    why = "name is neither a standard finalizer name nor is it fully qualified"
    plain = [
        (index, name)
        for index, name in enumerate(finalizers)
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]
    return errors + [
        wrong_value(f"metadata.finalizers[{index}]", name, why) for index, name in plain
    ]


def _owner_errors(owners: Any) -> list[FieldError]:
    field, errors = "metadata.ownerReferences", []
    for owner in owners:
        if not owner.get("apiVersion"):
            errors.append(wrong_value(f"{field}.apiVersion", "", "version must not be empty"))
        errors += [
            wrong_value(f"{field}.{key}", "", "must not be empty")
            for key in ("kind", "name", "uid")
            if not owner.get(key)
        ]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            errors.append(
                wrong_value(field, owner, "/v1, Kind=Event is disallowed from being an owner")
            )
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        detail = (" and ").join(
            f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2]
        )
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{detail}"
        )
        errors.append(wrong_value(field, list(owners), why))
    return errors


# --- specs ----------------------------------------------------------------------------------------

_OWN_CUSTOM_KINDS = frozenset(ref for ref in served.RESOURCES if ref.is_custom)


def _spec_errors(ref: ResourceKind, new: Object, old: Object | None) -> list[FieldError]:
    # fields that controllers here read; other kinds are checked by their schemas
    if ref in _OWN_CUSTOM_KINDS:
        return [
            error
            for field in ("spec", "status")
            for error in _object_errors(field, new.get(field, {}))
        ]
    before, after = (old or {}).get("spec") or {}, new.get("spec") or {}
    if ref is served.PODS:
        return [
            *pod_errors("spec", after),
            *(new_pod_errors("spec", after) if old is None else pod_change_errors(before, after)),
        ]
    errors = workload_errors(ref, new)
    changes = workload_change_errors(ref, before, after) if old is not None else []
    # in the real server's order
    return [*changes, *errors] if ref is served.DAEMON_SETS else [*errors, *changes]


def _object_errors(field: str, value: Any) -> list[FieldError]:
    """All that the schemas of the custom kinds here have in common."""
    if isinstance(value, dict):
        return []
    found = (
        "null"
        if value is None
        else "boolean"
        if isinstance(value, bool)
        else _JSON_TYPES.get(type(value), "string")
    )
    return [
        FieldError(
            field,
            "FieldValueTypeInvalid",
            (f'Invalid value: "{found}": {field} in body must be of type object: "{found}"'),
        )
    ]


_JSON_TYPES = {int: "integer", float: "number", list: "array"}
