"""The OpenAPI documents: kubectl finds server-side validation in them, and `explain` its fields.

Names and types of the fields, which is all that we know of the built-in kinds; custom ones are
described as their definitions do it. That `PATCH` and `POST` take `fieldValidation` is what
`kubectl apply` and `create` look for. Request bodies are left out on purpose: kubectl then computes
its patches from its own types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from fairlead.wire.kube.fields import Field, fields_by_name, message_of
from fairlead_sim.schema.resource import ResourceKind

_INFO = {"title": "Fairlead simulated Kubernetes API", "version": "v1"}
_QUERY = ("dryRun", "fieldManager", "fieldValidation")
_BUILTIN_WORDS = (
    "The simulated API server knows the fields of this kind and their types, but not what "
    "they mean: see https://kubernetes.io/docs/reference/kubernetes-api/."
)
_UNKNOWN_WORDS = "The simulated API server keeps this kind without knowing its fields."
_OBJECT_META = "meta.ObjectMeta"
Schema = dict[str, Any]


def openapi_index(kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    """`/openapi/v3`: one document per group and version."""
    places = dict.fromkeys(_place(ref) for ref in kinds)
    return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}


def openapi_v3(place: str, kinds: Iterable[ResourceKind]) -> dict[str, Any] | None:
    """`/openapi/v3/api/v1` and so on; None for a group or version that is not served."""
    here = tuple(ref for ref in kinds if _place(ref) == place)
    if not here:
        return None
    paths = {path: item for ref in here for path, item in _paths(ref, _v3_parameter)}
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths,
        "components": {"schemas": _schemas(here)},
    }


def openapi_v2(kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    """`/openapi/v2`: everything in one document, without schemas, which kubectl does not read."""
    paths = {path: item for ref in kinds for path, item in _paths(ref, _v2_parameter)}
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": {}}


def _place(ref: ResourceKind) -> str:
    return f"apis/{ref.api_version}" if ref.group else f"api/{ref.version}"


# --- paths ----------------------------------------------------------------------------------------


def _v3_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}


def _v2_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "type": "string", "uniqueItems": True}


def _paths(
    ref: ResourceKind, parameter: Callable[[str], dict[str, Any]]
) -> Iterable[tuple[str, dict[str, Any]]]:
    collection = f"/{_place(ref)}/{'namespaces/{namespace}/' if ref.namespaced else ''}{ref.plural}"
    parameters = [parameter(name) for name in _QUERY]

    def operation(action: str) -> dict[str, Any]:
        answers = {"200": {"description": "OK"}}
        return {
            "parameters": parameters,
            "responses": answers,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": _gvk(ref),
        }

    yield collection, {"post": operation("post")}
    yield f"{collection}/{{name}}", {"patch": operation("patch"), "put": operation("put")}


def _gvk(ref: ResourceKind) -> dict[str, str]:
    return {"group": ref.group, "version": ref.version, "kind": ref.kind}


# --- schemas --------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _schemas(kinds: tuple[ResourceKind, ...]) -> Mapping[str, Schema]:
    """The schemas of the kinds of one version and of all that they mention."""
    schemas: dict[str, Schema] = {}
    for ref in kinds:
        message = message_of(ref.api_version, ref.kind)
        if message is not None:
            _describe(message, schemas)
            name = _schema_name(message)
            words = _BUILTIN_WORDS
        else:
            _describe(_OBJECT_META, schemas)
            name = ".".join((*reversed(ref.group.split(".")), ref.version, ref.kind))
            schemas[name], words = _undescribed(ref), _UNKNOWN_WORDS
        own = schemas[name]
        known = {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            **own.get("properties", {}),
        }
        schemas[name] = {
            "description": words,
            **own,
            "properties": known,
            "x-kubernetes-group-version-kind": [_gvk(ref)],
        }
    return {**schemas, **_SCALAR_SCHEMAS}


def _undescribed(ref: ResourceKind) -> Schema:
    """A custom resource as its definition describes it, or a kind of which nothing is known."""
    anything: Schema = {"type": "object", "description": _UNKNOWN_WORDS}
    own: Schema = (
        dict(ref.custom.schema)
        if ref.custom is not None
        else {"type": "object", "properties": {"spec": anything}}
    )
    return {
        **own,
        "properties": {
            **own.get("properties", {}),
            "metadata": _reference(_schema_name(_OBJECT_META)),
        },
    }


def _describe(message: str, schemas: dict[str, Schema]) -> None:
    """Add the message and everything in it."""
    name = _schema_name(message)
    if name in schemas:
        return
    # before its fields are looked at: some messages contain themselves
    schemas[name] = {"type": "object"}
    fields = fields_by_name(message)
    schemas[name] = {
        "type": "object",
        "properties": {key: _field_schema(field) for key, field in fields.items()},
    }
    for field in fields.values():
        if "." in field.type:
            _describe(field.type, schemas)


def _field_schema(field: Field) -> Schema:
    one = _reference(_schema_name(field.type)) if "." in field.type else _SCALARS[field.type]
    if field.shape == "*":
        return {"type": "array", "items": one}
    return {"type": "object", "additionalProperties": one} if field.shape == "%" else one


def _schema_name(message: str) -> str:
    """`core.Pod` → `io.k8s.api.core.v1.Pod`; a number at the group's end is the version."""
    group, _, name = message.partition(".")
    version = group.lstrip("abcdefghijklmnopqrstuvwxyz") or "1"
    home = "io.k8s.apimachinery.pkg.apis" if group == "meta" else "io.k8s.api"
    return f"{home}.{group.rstrip('0123456789')}.v{version}.{name}"


def _reference(name: str) -> Schema:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_TIMES = {
    letter: f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"
    for letter, name in (("t", "Time"), ("T", "MicroTime"))
}
_SCALAR_SCHEMAS: Mapping[str, Schema] = {
    _QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    _INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    **{name: {"type": "string", "format": "date-time"} for name in _TIMES.values()},
}
_SCALARS: Mapping[str, Schema] = {
    "s": {"type": "string"},
    "i": {"type": "integer", "format": "int32"},
    "l": {"type": "integer", "format": "int64"},
    "b": {"type": "boolean"},
    "d": {"type": "number", "format": "double"},
    "y": {"type": "string", "format": "byte"},
    "q": _reference(_QUANTITY),
    "o": _reference(_INT_OR_STRING),
    **{letter: _reference(name) for letter, name in _TIMES.items()},
    "f": {"type": "object"},
    "r": {"type": "object"},
    "j": {"type": "object"},
    "x": {"type": "array", "items": {"type": "string"}},
}
