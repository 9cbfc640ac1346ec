"""What must an API server's OpenAPI say so that kubectl leaves validation to the server?

No schemas: only that `PATCH` and `POST` of each kind take `fieldValidation`, which is all that `kubectl apply` and `create` look for.
`kubectl explain` therefore has nothing to explain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairlead.wire.kube_resource import ResourceKind

_INFO = {"title": "Fairlead simulated Kubernetes API", "version": "v1"}
_QUERY = ("dryRun", "fieldManager", "fieldValidation")


def openapi_index(kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    """`/openapi/v3`: one document per group and version."""
    places = dict.fromkeys(_place(ref) for ref in kinds)
    return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}


def openapi_v3(place: str, kinds: Iterable[ResourceKind]) -> dict[str, Any] | None:
    """`/openapi/v3/api/v1` and so on; None for a group or version that is not served."""
    here = [ref for ref in kinds if _place(ref) == place]
    if not here:
        return None
    paths = {path: item for ref in here for path, item in _paths(ref, _v3_parameter)}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": {}}}


def openapi_v2(kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    """`/openapi/v2`: everything in one document."""
    paths = {path: item for ref in kinds for path, item in _paths(ref, _v2_parameter)}
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": {}}


def _place(ref: ResourceKind) -> str:
    return f"apis/{ref.api_version}" if ref.group else f"api/{ref.version}"


def _v3_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}


def _v2_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "type": "string", "uniqueItems": True}


def _paths(ref: ResourceKind, parameter: Any) -> Iterable[tuple[str, dict[str, Any]]]:
    collection = f"/{_place(ref)}/{'namespaces/{namespace}/' if ref.namespaced else ''}{ref.plural}"
    parameters = [parameter(name) for name in _QUERY]
    kind = {"group": ref.group, "version": ref.version, "kind": ref.kind}

    def operation(action: str) -> dict[str, Any]:
        answers = {"200": {"description": "OK"}}
        return {"parameters": parameters, "responses": answers, "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind}

    yield collection, {"post": operation("post")}
    yield f"{collection}/{{name}}", {"patch": operation("patch"), "put": operation("put")}
