"""One request to the API server: its query, body and wanted form of the answer, checked.

Unknown query parameters are ignored, as the real server does. Bodies that Fairlead's clients never
send (broken JSON, a kind other than the path's) are refused with the real server's status and a
message of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml
from starlette.datastructures import QueryParams
from starlette.requests import Request

from fairlead.model.access import Identity
from fairlead.wire.files.bounded import MAX_LEVELS, is_too_deep, load_yaml
from fairlead.wire.kube.forms import PROTOBUF
from fairlead_sim.api.kube_path import ResourcePath
from fairlead_sim.schema.go_json import decode_json, go_type
from fairlead_sim.schema.go_number import OutOfRange, parse_whole
from fairlead_sim.schema.protobuf import parse_protobuf
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.selector import Predicate, parse_field_selector, parse_label_selector
from fairlead_sim.schema.status import ApiStatus, bad_request, too_large, unsupported_media_type

MAX_BODY_BYTES = 3 * 1024 * 1024  # the real server's limit
JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
YAML = "application/yaml"
_LONGEST_MANAGER = 128
_ANSWERS = ("application/json", "application/*", "*/*", "")


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request for a resource, sent by `who`, who is allowed to.

    `warnings` are sent to the client beside the answer.
    """

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

    @property
    def manager(self) -> str:
        """Who owns the fields that the request writes: its `fieldManager`, or its program."""
        program = self.http.headers.get("user-agent", "").partition("/")[0]
        found = "".join(letter for letter in program if letter.isprintable())
        return self.query.get("fieldManager") or found[:_LONGEST_MANAGER] or "unknown"

    def is_true(self, name: str) -> bool:
        """Whether a switch of the query is on; as the real server reads it, every word but `false`
        and `0` is a yes.
        """
        return name in self.query and self.query[name].lower() not in ("false", "0")

    def number(self, name: str) -> int | None:
        """A whole number of the query, None when absent or empty."""
        text = self.query.get(name, "")
        if not text:
            return None
        try:
            return parse_whole(text)
        except OutOfRange:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range') from None
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None

    def is_dry_run(self, options: Any = None) -> bool:
        return bool(self.query.getlist("dryRun") or (options or {}).get("dryRun"))

    def chooses(self) -> Predicate | None:
        """The query's label and field selectors as one predicate; None if there are none."""
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


def decode_object(body: bytes, content_type: str, kind: str) -> dict[str, Any]:
    """JSON, YAML or protobuf to the plain values of an object that should be a `kind`.

    Raises 400 for others, 415 for other media types.
    """
    media = media_type(content_type)
    if media == PROTOBUF:
        return parse_protobuf(body)
    if media not in ("", JSON, YAML):
        raise unsupported_media_type((JSON, YAML, PROTOBUF))
    try:
        decoded = _yaml(body) if media == YAML else _json(body)
    except ValueError as error:
        raise bad_request(f"the body cannot be read as a {kind}: {error}") from error
    if decoded is None:
        return {}
    if not isinstance(decoded, dict) or not isinstance(decoded.get("apiVersion") or "", str):
        raise bad_request(
            f"the body is no object with an `apiVersion` and a `kind`, as a {kind} is"
        )
    return decoded


def decode_patch(body: bytes, media: str) -> Any:
    """The patch of a body: JSON, or the YAML of an apply."""
    try:
        decoded = _yaml(body) if media == APPLY_PATCH else _json(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if media == JSON_PATCH:
        return decoded
    if not isinstance(decoded, dict) and not (decoded is None and media == STRATEGIC_PATCH):
        if decoded is None and media == MERGE_PATCH:
            raise bad_request("Invalid JSON Patch")
        detail = (
            f"json: cannot unmarshal {go_type(decoded)} into Go value of type "
            f"map[string]interface {{}}"
        )
        decoding = {
            APPLY_PATCH: "error decoding YAML: error unmarshaling JSON: while decoding JSON: ",
            STRATEGIC_PATCH: "",
        }
        raise bad_request(f"{decoding.get(media, 'error decoding patch: ')}{detail}")
    return decoded or {}


def _json(body: bytes) -> Any:
    return _shallow(lambda: decode_json(body))


def _yaml(body: bytes) -> Any:
    try:
        return _plain(_shallow(lambda: load_yaml(body)))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"yaml: {error}") from error


def _plain(value: Any) -> Any:
    """YAML's values as JSON has them: keys are texts, and so is what looks like a date."""
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else _plain_key(key): _plain(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _plain_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _shallow(decode: Callable[[], Any]) -> Any:
    """What is nested too deep is no value."""
    try:
        decoded = decode()
    except RecursionError as error:
        raise ValueError(f"exceeded max depth: more than {MAX_LEVELS} levels") from error
    if is_too_deep(decoded):
        raise ValueError(f"exceeded max depth: more than {MAX_LEVELS} levels")
    return decoded


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def wanted_form(accept: str, forms: Iterable[str]) -> str:
    """The first form (`Table`, `PartialObjectMetadata`, …) of the Accept header that is among
    `forms`; "" is the plain object.

    Raises 406 when nothing fits: a client that takes protobuf alone, for example.
    """
    for part in accept.split(","):
        media, _, rest = part.strip().partition(";")
        if media.strip() not in _ANSWERS:
            continue
        parameters = dict(
            piece.strip().partition("=")[::2] for piece in rest.split(";") if "=" in piece
        )
        form = parameters.get("as", "")
        if not form or (form in forms and parameters.get("v") in ("v1", "v1beta1", "v2")):
            return form
    raise ApiStatus(406, "NotAcceptable", f"only the following media types are accepted: {JSON}")
