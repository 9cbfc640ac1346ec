"""The content of a CustomResourceDefinition: kinds and versions with schema and columns.

A version has subresources, too.

Every served version is a `ResourceKind` of its own whose objects live in one place (`stored_as`):
conversion is `None`, so they differ in their `apiVersion` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead_sim.schema.cells import NAME, Column, Layout, columns, since
from fairlead_sim.schema.jsonpath import find_first
from fairlead_sim.schema.resource import ALL_VERBS, ResourceKind
from fairlead_sim.schema.status import FieldError, wrong_value

Object = Mapping[str, Any]

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


@dataclass(frozen=True, eq=False, slots=True)
class CustomVersion:
    """One version of a definition, without its names.

    `stored_schema` is of the version in which objects are stored.
    """

    list_kind: str
    schema: Mapping[str, Any]
    stored_schema: Mapping[str, Any]
    layout: Layout
    scale: Mapping[str, str] | None
    warning: str
    is_terminating: bool


def condition_of(definition: Object, kind: str) -> str:
    """The status of a condition: `True`, `False`, or "" if it is absent."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return next(
        (str(condition["status"]) for condition in conditions if condition["type"] == kind), ""
    )


def storage_version(definition: Object) -> Mapping[str, Any]:
    """The one version in which objects are stored. The definition must be valid."""
    return next(version for version in definition["spec"]["versions"] if version.get("storage"))


def storage_kind(definition: Object) -> ResourceKind:
    """Where the objects of all versions live: a kind that is never served itself."""
    spec, names = definition["spec"], definition["spec"]["names"]
    version = storage_version(definition)["name"]
    namespaced = spec["scope"] == "Namespaced"
    return ResourceKind(
        spec["group"],
        version,
        names["kind"],
        names["plural"],
        names["singular"],
        namespaced=namespaced,
        is_custom=True,
    )


def served_kinds(definition: Object, stored_as: ResourceKind) -> tuple[ResourceKind, ...]:
    """The served versions under the names that were accepted; none before it is established."""
    if condition_of(definition, "Established") != "True":
        return ()
    versions = {version["name"]: version for version in definition["spec"]["versions"]}
    stored_schema = _schema(versions.get(stored_as.version) or storage_version(definition))
    return tuple(
        _served_kind(definition, version, stored_as, stored_schema)
        for version in definition["spec"]["versions"]
        if version.get("served")
    )


def _served_kind(
    definition: Object, version: Object, stored_as: ResourceKind, stored_schema: Mapping[str, Any]
) -> ResourceKind:
    spec, names = (
        definition["spec"],
        {**definition["spec"]["names"], **definition["status"]["acceptedNames"]},
    )
    subresources = version.get("subresources") or {}
    return ResourceKind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        short_names=tuple(names.get("shortNames") or ()),
        namespaced=spec["scope"] == "Namespaced",
        verbs=ALL_VERBS,
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(
            name for name in ("status", "scale") if subresources.get(name) is not None
        ),
        is_custom=True,
        stored_as=stored_as,
        custom=CustomVersion(
            list_kind=names.get("listKind") or f"{names['kind']}List",
            schema=_schema(version),
            stored_schema=stored_schema,
            layout=_layout(version.get("additionalPrinterColumns") or [_AGE]),
            scale=subresources.get("scale"),
            warning=_warning(spec["group"], names["kind"], version),
            is_terminating=condition_of(definition, "Terminating") == "True",
        ),
    )


def _schema(version: Object) -> Mapping[str, Any]:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _warning(group: str, kind: str, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    return str(
        version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated"
    )


def ignored_parts(definition: Object) -> list[str]:
    """Parts of a definition that have no effect here, as sentences for its author."""
    ignored = []
    if ((definition.get("spec") or {}).get("conversion") or {}).get("strategy") == "Webhook":
        ignored.append(
            "the simulated cluster calls no conversion webhook: all versions show the same fields"
        )
    if _mentions(definition.get("spec"), "x-kubernetes-validations"):
        ignored.append("the simulated cluster does not evaluate x-kubernetes-validations")
    return ignored


def _mentions(value: Any, key: str) -> bool:
    if isinstance(value, Mapping):
        return key in value or any(_mentions(item, key) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, key) for item in value)


# --- scale ----------------------------------------------------------------------------------------

_MOST_REPLICAS = 2**31 - 1
_GO_TYPES = {str: "string", bool: "bool", float: "float64", dict: "map[string]interface {}"}


def scale_errors(scale: Mapping[str, str] | None, obj: Object) -> list[FieldError]:
    """The replicas of an object that has a `scale`, whatever its schema requires of them."""
    errors = []
    for path in ("specReplicasPath", "statusReplicasPath"):
        field = (scale or {}).get(path)
        value = _nested(obj, field) if field else None
        if field and value is not None and (fault := _replicas_fault(field, value)):
            errors.append(wrong_value(field, value if _is_count(value) else 0, fault))
    return errors


def _nested(obj: Any, path: str) -> Any:
    for key in path.strip(".").split("."):
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(key)
    return obj


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _replicas_fault(field: str, value: Any) -> str:
    if not _is_count(value):
        kind = _GO_TYPES.get(type(value), "[]interface {}")
        return f"{field} accessor error: {_go_text(value)} is of the type {kind}, expected int64"
    if value < 0:
        return "should be a non-negative integer"
    return f"should be less than or equal to {_MOST_REPLICAS}" if value > _MOST_REPLICAS else ""


# --- printer columns ------------------------------------------------------------------------------


def _layout(shown: list[Mapping[str, Any]]) -> Layout:
    def cells(obj: Object, now: float) -> list[Any]:
        return [
            obj["metadata"]["name"],
            *(_cell(column["type"], find_first(column["jsonPath"], obj), now) for column in shown),
        ]

    return Layout((*columns((NAME,)), *(_column(column) for column in shown)), cells)


def _column(column: Mapping[str, Any]) -> Column:
    words = f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": column.get("description") or words,
        "priority": column.get("priority", 0),
    }


def _cell(kind: str, value: Any, now: float) -> Any:
    """A cell as the real server makes it: what is not of the column's type is empty."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None:
        return None
    if kind == "string":
        return _go_text(value)
    if kind == "integer":
        return int(value) if is_number else None
    if kind == "number":
        return value if is_number else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date" and isinstance(value, str):
        words = since(value, now)
        return "<invalid>" if words == "<unknown>" and value else words
    return None


def _go_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not value.is_integer():
        return repr(value)
    return msgspec.json.encode(value, order="sorted").decode()
