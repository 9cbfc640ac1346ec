"""What does one request to the API server ask for? The query, the body and the wished form of the answer, checked and typed.

Everything here refuses with the real server's words; unknown query parameters are ignored, as the real server does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml
from starlette.datastructures import QueryParams
from starlette.requests import Request

from fairlead.model.access import Identity
from fairlead.wire.bounded import MAX_LEVELS, is_too_deep, load_yaml
from fairlead.wire.kube_path import ResourcePath
from fairlead.wire.kube_protobuf import MEDIA_TYPE as PROTOBUF
from fairlead.wire.kube_protobuf import parse_protobuf
from fairlead.wire.kube_resource import ResourceKind
from fairlead.wire.kube_selector import Predicate, parse_field_selector, parse_label_selector
from fairlead.wire.kube_status import ApiStatus, bad_request, too_large, unsupported_media_type

MAX_BODY_BYTES = 3 * 1024 * 1024  # the real server's limit
JSON = "application/json"
YAML_TYPES = ("application/yaml", "application/apply-patch+yaml")
_ANSWERS = ("application/json", "application/*", "*/*", "")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request for a resource, sent by `who`, who may ask for it. `warnings` are told to the client beside the answer."""

    http: Request
    path: ResourcePath
    ref: ResourceKind
    who: Identity
    warnings: list[str] = field(default_factory=list)

    @property
    def query(self) -> QueryParams:
        return self.http.query_params

    @property
    def namespace(self) -> str:
        """The namespace of the path; "" for cluster-wide kinds."""
        return self.path.namespace or ""

    def is_true(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("1", "true")

    def number(self, name: str) -> int | None:
        """A whole number of the query, None when absent or empty."""
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.lstrip("-").isdecimal():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text)

    def is_dry_run(self, body: Any = None) -> bool:
        asked = self.query.getlist("dryRun") or (body.get("dryRun") if isinstance(body, dict) else None) or []
        if asked and set(asked) != {"All"}:
            shown = ", ".join(f'"{item}"' for item in asked)
            raise ApiStatus(422, "Invalid", f' "" is invalid: dryRun: Unsupported value: {shown}: supported values: "All"')
        return bool(asked)

    def chooses(self) -> Predicate | None:
        """The label and field selectors of the query as one predicate; None when everything is asked for."""
        labels, fields = self.query.get("labelSelector", ""), self.query.get("fieldSelector", "")
        tests = [parse_label_selector(labels)] if labels else []
        if fields:
            tests.append(parse_field_selector(fields, self.ref.group_resource))
        if not tests:
            return None
        return tests[0] if len(tests) == 1 else lambda obj: all(test(obj) for test in tests)


async def read_body(request: Request) -> bytes:
    """The whole body; 413 as soon as it is known to be too long."""
    if int(request.headers.get("content-length") or 0) > MAX_BODY_BYTES:
        raise too_large(MAX_BODY_BYTES)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise too_large(MAX_BODY_BYTES)
        parts.append(part)
    return b"".join(parts)


def decode_body(body: bytes, content_type: str) -> Any:
    """JSON, YAML or protobuf to plain values. Raises 400 for what cannot be read and 415 for other media types."""
    try:
        decoded = _decoded(body, media_type(content_type))
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    except RecursionError as error:
        raise _too_deep() from error
    if is_too_deep(decoded):
        raise _too_deep()
    return decoded


def _decoded(body: bytes, media: str) -> Any:
    if media == PROTOBUF:
        return parse_protobuf(body)
    if media in YAML_TYPES:
        return load_yaml(body)
    if media in ("", JSON) or media.endswith("+json"):
        return msgspec.json.decode(body)
    raise unsupported_media_type((JSON, "application/yaml", PROTOBUF))


def _too_deep() -> ApiStatus:
    return bad_request(f"couldn't get version/kind; json parse error: the body is nested more than {MAX_LEVELS} levels deep")


def decode_object(body: bytes, content_type: str) -> dict[str, Any]:
    """As `decode_body`, for bodies that must be an object."""
    decoded = decode_body(body, content_type)
    if not isinstance(decoded, dict):
        raise bad_request(f"couldn't get version/kind; json parse error: the body is a {type(decoded).__name__}, not an object")
    return decoded


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def wanted_form(accept: str, forms: Iterable[str]) -> str:
    """The first form (`Table`, `PartialObjectMetadata`, …) of the Accept header that is among `forms`; "" is the plain object.

    Raises 406 when nothing fits: a client that takes protobuf alone, for example.
    """
    for part in accept.split(","):
        media, _, rest = part.strip().partition(";")
        if media.strip() not in _ANSWERS:
            continue
        parameters = dict(piece.strip().partition("=")[::2] for piece in rest.split(";") if "=" in piece)
        form = parameters.get("as", "")
        if not form or (form in forms and parameters.get("v") in ("v1", "v1beta1", "v2")):
            return form
    raise ApiStatus(406, "NotAcceptable", f"only the following media types are accepted: {JSON}")
