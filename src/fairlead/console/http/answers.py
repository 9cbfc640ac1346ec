"""How an answer leaves the server: JSON with ETag and gzip, failures in one envelope.

The only module that turns exceptions into statuses; routes raise and never build an error answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from isal import igzip
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.pages.envelope import ErrorAnswer, FieldFault
from fairlead.errors import (
    ChangedMeanwhile,
    Forbidden,
    NotFound,
    OutsideError,
    StoreDown,
    UserError,
)
from fairlead.wire.text.accept_encoding import accepts_gzip

JSON: Final = "application/json; charset=utf-8"
GZIP_FROM_BYTES: Final = 1024
_GZIP_LEVEL: Final = 2
CODES_BY_STATUS: Final = {
    400: "malformed",
    401: "signed-out",
    403: "forbidden",
    404: "not-found",
    405: "malformed",
    409: "conflict",
    413: "too-large",
    415: "media-type",
    422: "invalid",
    429: "rate-limited",
    500: "bug",
    502: "outside-failed",
    503: "not-ready",
    504: "outside-timeout",
}


class Refused(Exception):
    """An answer from 400 up, chosen by a route.

    Status, what (with actual values), a hint, and the code where a status has several. `fields`:
    what is wrong, by field. `current`: with 409 `conflict` the object as it is now.
    """

    def __init__(
        self,
        status: int,
        what: str,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        code: str = "",
        fields: Sequence[FieldFault] = (),
        current: Any = None,
    ) -> None:
        super().__init__(what)
        self.status = status
        self.code = code or CODES_BY_STATUS[status]
        self.what = what
        self.hint = hint
        self.headers = dict(headers or {})
        self.fields = tuple(fields)
        self.current = current


def refusal_of(error: Exception) -> Refused:
    """The response for any exception.

    That of a bug does not contain its text, which may contain anything.
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, UserError):
        return Refused(400, error.what, error.hint)
    if isinstance(error, TimeoutError):
        return Refused(
            504,
            str(error) or "the source did not answer in time",
            "ask for a shorter time range, or look at the source",
        )
    if isinstance(error, NotFound):
        return Refused(404, error.what, error.hint)
    if isinstance(error, Forbidden):
        return Refused(403, error.what, error.hint)
    if isinstance(error, ChangedMeanwhile):
        return Refused(409, error.what, error.hint)
    if isinstance(error, StoreDown):
        # Not `not-ready`: pages that need no store go on.
        return Refused(503, f"{error.system}: {error.what}", error.hint, code="store-down")
    if isinstance(error, OutsideError):
        return Refused(502, f"{error.system}: {error.what}", error.hint)
    return Refused(
        500,
        "this is a bug of Fairlead",
        "look for the request id in the server's log and report it",
    )


def error_answer(refused: Refused, request_id: str) -> Response:
    body = ErrorAnswer(
        ok=False,
        status=refused.status,
        code=refused.code,
        error=refused.what,
        hint=refused.hint,
        fields=list(refused.fields),
        current=refused.current,
        request_id=request_id,
    )
    headers = {"Cache-Control": "no-store", **refused.headers}
    return Response(msgspec.json.encode(body), refused.status, headers, JSON)


def json_answer(request: Request, body: Any) -> Response:
    """A 200 with this value as JSON, or a 304 when the caller has it already.

    NaN cannot happen: msgspec writes null.
    """
    return bytes_answer(request, msgspec.json.encode(body), JSON)


def bytes_answer(
    request: Request, data: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Bytes with a weak ETag over their content (gzip or not, the content is the same)."""
    return _answer(request, Packed(data, _tag(data)), media_type, headers)


class Packed(Struct, frozen=True):
    """An answer that many will ask for: its ETag is counted and its bytes are compressed once."""

    data: bytes
    tag: str
    zipped: bytes | None = None


def pack(body: Any) -> Packed:
    data = msgspec.json.encode(body)
    return Packed(data, _tag(data), igzip.compress(data, compresslevel=_GZIP_LEVEL))


def packed_answer(request: Request, packed: Packed) -> Response:
    return _answer(request, packed, JSON)


def _tag(data: bytes) -> str:
    return f'W/"{hashlib.blake2b(data, digest_size=10).hexdigest()}"'


def _answer(
    request: Request, packed: Packed, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    kept = {
        "ETag": packed.tag,
        "Cache-Control": "private, no-cache",
        "Vary": "Accept-Encoding",
        **(headers or {}),
    }
    if is_known(request.headers.get("if-none-match", ""), packed.tag):
        return Response(b"", 304, kept)
    if len(packed.data) <= GZIP_FROM_BYTES or not accepts_gzip(
        request.headers.get("accept-encoding", "")
    ):
        return Response(packed.data, 200, kept, media_type)
    kept["Content-Encoding"] = "gzip"
    return Response(
        packed.zipped or igzip.compress(packed.data, compresslevel=_GZIP_LEVEL),
        200,
        kept,
        media_type,
    )


def is_known(if_none_match: str, tag: str) -> bool:
    """Weak comparison of `If-None-Match` with a tag.

    >>> is_known('"a", W/"b"', 'W/"b"'), is_known("*", '"b"'), is_known("", '"b"')
    (True, True, False)
    """
    asked = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return "*" in asked or tag.removeprefix("W/") in asked
