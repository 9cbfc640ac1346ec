"""The fields in `spec` of a served kind, from OpenAPI v3.

For kinds whose fields differ within one version.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_failure import NOT_JSON
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.errors import OutsideError


class _GroupKind(Struct):
    kind: str = ""


class _Spec(Struct):
    properties: dict[str, msgspec.Raw] | None = None


class _Properties(Struct):
    spec: _Spec | None = None


class _Schema(Struct, rename={"kinds": "x-kubernetes-group-version-kind"}):
    kinds: list[_GroupKind] | None = None
    properties: _Properties | None = None


class _Components(Struct):
    schemas: dict[str, _Schema] | None = None


class _OpenApi(Struct):
    components: _Components | None = None


def spec_fields(api: KubeBlocking, group: str, version: str, kind: str) -> frozenset[str] | None:
    """The fields of `spec`; None = unknown."""
    try:
        body = api.send(schema_request(f"{group}/{version}")).body
    except OutsideError:
        return None
    return fields_in(body, kind)


def schema_request(api_version: str) -> ApiRequest:
    return ApiRequest("get", "GET", f"/openapi/v3/apis/{api_version}")


def fields_in(body: bytes, kind: str) -> frozenset[str] | None:
    """The fields of `spec` of this kind in the answer; None = unknown."""
    try:
        document = decoder_of(_OpenApi).decode(body)
    except NOT_JSON:
        return None
    for schema in ((document.components and document.components.schemas) or {}).values():
        if (
            any(each.kind == kind for each in schema.kinds or ())
            and schema.properties
            and schema.properties.spec
        ):
            return frozenset(schema.properties.spec.properties or ()) or None
    return None
