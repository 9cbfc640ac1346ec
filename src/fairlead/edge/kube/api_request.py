"""Requests to an API server as values: method, path with query, body.

A list without a resourceVersion is a consistent read; with `resourceVersion=0` old servers ignore
`limit`.
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Struct, structs

from fairlead.edge.kube.resource import Resource

PAGE_SIZE = 500
PatchKind = Literal["merge", "json", "strategic", "apply"]

_PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiRequest(Struct, frozen=True):
    """`verb`: the API's verb (`list`, `create`, …) for messages. `path` includes the query.

    `seconds`: time limit of the answer; None = the usual one. `account`: the user that the
    client impersonates; "" = what the connection has.
    """

    verb: str
    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    seconds: float | None = None
    account: str = ""


class Selection(Struct, frozen=True):
    """The objects of a resource to select: with no field set all, in all namespaces.

    `account`: the user that lists them; "" = what the connection has.
    """

    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None
    account: str = ""


EVERYTHING = Selection()


def with_query(path: str, **parameters: str | int | None) -> str:
    """
    >>> with_query("/version")
    '/version'
    >>> with_query("/api/v1/pods", limit=5, fieldSelector="a!=b", labelSelector=None)
    '/api/v1/pods?limit=5&fieldSelector=a%21%3Db'
    """
    given = {name: value for name, value in parameters.items() if value is not None and value != ""}
    return f"{path}{'&' if '?' in path else '?'}{urlencode(given)}" if given else path


def list_request(
    resource: Resource,
    selection: Selection,
    *,
    limit: int | None = PAGE_SIZE,
    token: str | None = None,
) -> ApiRequest:
    path = with_query(
        resource.path(selection.namespace),
        labelSelector=selection.labels,
        fieldSelector=selection.fields,
        limit=limit,
        **{"continue": token},
    )
    return ApiRequest("list", "GET", path, account=selection.account)


def watch_request(
    resource: Resource, selection: Selection, resource_version: str, timeout_seconds: int
) -> ApiRequest:
    path = with_query(
        resource.path(selection.namespace),
        watch="1",
        allowWatchBookmarks="true",
        resourceVersion=resource_version,
        timeoutSeconds=timeout_seconds,
        labelSelector=selection.labels,
        fieldSelector=selection.fields,
    )
    return ApiRequest("watch", "GET", path, account=selection.account)


def get_request(resource: Resource, name: str, namespace: str | None) -> ApiRequest:
    return ApiRequest("get", "GET", resource.path(namespace, name))


def metadata_request(resource: Resource, name: str, namespace: str | None) -> ApiRequest:
    """One object without spec, status and data."""
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    return ApiRequest("get", "GET", resource.path(namespace, name), accept=accept)


def metadata_list_request(resource: Resource, selection: Selection) -> ApiRequest:
    """Objects without spec, status and data, in one piece."""
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    return structs.replace(list_request(resource, selection, limit=None), accept=accept)


def create_request(
    resource: Resource,
    manifest: Any,
    namespace: str | None,
    *,
    dry_run: bool = False,
    is_strict: bool = False,
) -> ApiRequest:
    """A request that creates an object.

    `is_strict`: a field that the schema lacks is an error; servers before 1.25 drop it anyway.
    """
    path = with_query(
        resource.path(namespace),
        dryRun="All" if dry_run else None,
        fieldValidation="Strict" if is_strict else None,
    )
    return ApiRequest("create", "POST", path, encode_body(manifest))


def update_request(
    resource: Resource,
    name: str,
    manifest: Any,
    namespace: str | None,
    subresource: str | None = None,
) -> ApiRequest:
    return ApiRequest(
        "update", "PUT", resource.path(namespace, name, subresource), encode_body(manifest)
    )


def patch_request(
    resource: Resource,
    name: str,
    patch: Any,
    namespace: str | None,
    *,
    kind: PatchKind = "merge",
    subresource: str | None = None,
    field_manager: str = "fairlead",
    force: bool = False,
) -> ApiRequest:
    """A request that patches an object.

    `apply` is server-side apply; `force` (only with it) takes over fields from other managers.
    """
    path = with_query(
        resource.path(namespace, name, subresource),
        fieldManager=field_manager,
        force="true" if force and kind == "apply" else None,
    )
    return ApiRequest("patch", "PATCH", path, encode_body(patch), _PATCH_TYPES[kind])


def delete_request(
    resource: Resource,
    name: str,
    namespace: str | None,
    *,
    propagation: str = "Background",
    uid: str = "",
    is_trial: bool = False,
) -> ApiRequest:
    """`uid`: of the object to delete; a later object of that name stays, and the answer is 409.

    `is_trial`: a dry run. API servers ignore a query's `dryRun` beside options in the body.
    """
    options: dict[str, Any] = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": propagation,
    }
    if uid:
        options["preconditions"] = {"uid": uid}
    if is_trial:
        options["dryRun"] = ["All"]
    return ApiRequest("delete", "DELETE", resource.path(namespace, name), encode_body(options))


def encode_body(document: Any) -> bytes:
    return document if isinstance(document, bytes) else msgspec.json.encode(document)
