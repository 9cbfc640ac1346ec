"""A custom kind with two versions, and its objects."""

from __future__ import annotations

from typing import Any, Final

from tests.contracts.applied import Object

GROUP: Final = "apply.fairlead.test"
GADGETS: Final = f"/apis/{GROUP}/v1/namespaces/{{s}}/gadgets"
LATER: Final = f"/apis/{GROUP}/v2/namespaces/{{s}}/gadgets"
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}


def _texts(**more: Any) -> Object:
    return {"type": "array", "items": _TEXT, **more}


def _rows(*keys: str, **properties: Any) -> Object:
    fields = {**dict.fromkeys(keys, _TEXT), "size": _NUMBER, **properties}
    return {
        "type": "array",
        "items": {"type": "object", "properties": fields, "required": list(keys[:1])},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


_PAIR: Final = {"type": "object", "properties": {"a": _TEXT, "b": _TEXT}}
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_SPEC: Final = {
    "size": {"type": "integer", "default": 1},
    "replicas": _NUMBER,
    "plain": _texts(),
    "atoms": _texts(**{"x-kubernetes-list-type": "atomic"}),
    "tags": _texts(**{"x-kubernetes-list-type": "set"}),
    "rows": _rows("name", inner=_texts(**{"x-kubernetes-list-type": "set"})),
    "places": _rows("name", "zone", zone={"type": "string", "default": "z"}),
    "pair": _PAIR,
    "whole": {**_PAIR, "x-kubernetes-map-type": "atomic"},
    "words": {"type": "object", "additionalProperties": _TEXT},
    "open": {"type": "object", _OPEN: True},
    "half": {"type": "object", "properties": {"a": _TEXT}, _OPEN: True},
    "amount": {"x-kubernetes-int-or-string": True},
    "any": {_OPEN: True},
    "template": {"type": "object", "x-kubernetes-embedded-resource": True, _OPEN: True},
}
_STATUS: Final = {
    "type": "object",
    "properties": {"conditions": _rows("type", status=_TEXT), "replicas": _NUMBER},
}


def _version(name: str, *, storage: bool) -> Object:
    properties = {"spec": {"type": "object", "properties": _SPEC}, "status": _STATUS}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            },
        },
    }


DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gadgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [_version("v1", storage=True), _version("v2", storage=False)],
    },
}


def gadget(spec: Object | None = None, version: str = "v1", **more: Any) -> Object:
    made = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Gadget",
        "metadata": {"name": "a"},
        **more,
    }
    return made if spec is None else {**made, "spec": spec}
