"""Failures of API requests: HTTP answers and broken connections as exceptions with a hint.

`Forbidden` and `NotFound` are answers of a healthy server and are not retried.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.connection.timestamp import render_rfc3339
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.errors import ChangedMeanwhile, Forbidden, NotFound, OutsideError
from fairlead.model.access import named_account
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.kube.forms import MAGIC, UnreadableProtobuf

SYSTEM = "kubernetes"
NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding: wrong type, malformed JSON, no text, a thousand levels of brackets."""
RETRY_AFTER_MAX = 60.0  # a server may ask for hours; asking again each minute is harmless


class ApiFailure(OutsideError):
    """A failure.

    `status`: HTTP's (0 = no answer), `reason`: the API's code, `message`: the server's sentence.
    `causes`: fields of the object, each with what is wrong with it.
    """

    def __init__(
        self,
        what: str,
        hint: str = "",
        *,
        status: int = 0,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
        causes: tuple[tuple[str, str], ...] = (),
    ):
        super().__init__(SYSTEM, what, hint)
        self.status = status
        self.reason = reason
        self.message = message or what
        self.retry_after = retry_after
        self.causes = causes


class ForbiddenByServer(ApiFailure, Forbidden):
    """403. `what` and `message` are the server's sentence with verb, resource and user."""


class NotServed(ApiFailure, NotFound):
    """404: no such object, or the resource is not served."""


class Unauthorized(ApiFailure):
    """401: the server does not accept the credentials."""


class Conflict(ApiFailure, ChangedMeanwhile):
    """409: the object exists already, or has been changed."""


class Gone(ApiFailure):
    """410: the resourceVersion or continue token has expired; list again."""


class Unreachable(ApiFailure):
    """No answer: refused, no route, unknown name, cut off, timed out, or TLS failed."""


class StatusCause(Struct):
    """One of the causes of a refusal: the path of a field, and what is wrong with it."""

    field: str | None = None
    message: str | None = None


class StatusDetails(Struct):
    causes: list[StatusCause] | None = None


class Status(Struct):
    """The `Status` object of an answer."""

    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None

    @property
    def causes(self) -> tuple[tuple[str, str], ...]:
        """Each field with what is wrong with it."""
        found = (self.details and self.details.causes) or ()
        return tuple((each.field or "", each.message or "") for each in found)


_status_decoder = msgspec.json.Decoder(Status)
_KINDS: Mapping[int, type[ApiFailure]] = {
    401: Unauthorized,
    403: ForbiddenByServer,
    404: NotServed,
    409: Conflict,
    410: Gone,
}


def decode_status(body: bytes) -> Status:
    """The Status in a body; another body (a proxy's page) becomes the message, shortened."""
    try:
        if body.startswith(MAGIC):
            from fairlead.wire.kube.protobuf import parse_status

            return msgspec.convert(parse_status(body), Status)
        return _status_decoder.decode(body)
    except (msgspec.MsgspecError, UnreadableProtobuf):
        words = " ".join(body[:2000].decode("utf-8", "replace").split())
        return Status(message=words[:200] or None)


def failure_of_answer(
    server: str, request: ApiRequest, status: int, body: bytes, retry_after: str | None = None
) -> ApiFailure:
    answer = decode_status(body)
    message = answer.message or "no reason given"
    kind = _KINDS.get(status, ApiFailure)
    if kind is ForbiddenByServer or (
        kind is NotServed and answer.reason == "NotFound" and answer.message != _UNKNOWN_PATH
    ):
        what = message
    else:
        what = (
            f"API server `{server}` answered {status} to `{request.method} "
            f"{request.path.partition('?')[0]}`: {message}"
        )
    hint = _hint(status, message, server, request.account)
    return kind(
        what,
        hint,
        status=status,
        reason=answer.reason or "",
        message=message,
        retry_after=parse_retry_after(retry_after),
        causes=answer.causes,
    )


def is_impersonation(failure: ApiFailure) -> bool:
    """Whether the client was not allowed to act for another user.

    The verb in the API server's sentence is `impersonate`, or since 1.36 one that begins with it
    and names the narrowest right that is missing. Its resource and namespace then are those of the
    request, and not the other user's.
    """
    return failure.status == 403 and _IMPERSONATE in failure.message


def _hint(status: int, message: str, server: str, account: str) -> str:
    if status == 401:
        return "log in again, or check the user of this context in the kubeconfig"
    if status == 403 and account and _IMPERSONATE in message:
        named = named_account(account)
        if named is not None and named[0] == USERS_NAMESPACE:
            return (
                "the console's account needs the right `impersonate` of `serviceaccounts` in "
                f"namespace `{USERS_NAMESPACE}`"
            )
        return "the console acts for users only: create your user on the page My access"
    if status == 403:
        return "ask for a role that allows it; `kubectl auth can-i --list` shows what you may do"
    if status == 400 and "HTTP request to an HTTPS server" in message:
        return f"write `{server.replace('http://', 'https://')}` in the kubeconfig"
    return ""


def parse_retry_after(text: str | None) -> float | None:
    """Seconds of a Retry-After header, limited.

    A date, which API servers do not send, counts as absent.

    >>> [parse_retry_after(text) for text in ("7", "86400", "soon", "-1", None)]
    [7.0, 60.0, None, None, None]
    """
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return min(seconds, RETRY_AFTER_MAX) if seconds >= 0 else None


def failure_of_connection(
    server: str, error: BaseException, begins_at: float | None = None, *, proxy: str | None = None
) -> Unreachable:
    """Why there is no answer, from an exception of either HTTP client; see `explain_connection`."""
    return Unreachable(
        *explain_connection(
            f"API server `{server}`", "in the kubeconfig", server, error, begins_at, proxy=proxy
        )
    )


def not_its_json(server: str, request: ApiRequest, error: Exception) -> ApiFailure:
    """The failure for an answer with a good status whose body is not the API's JSON."""
    path = request.path.partition("?")[0]
    return ApiFailure(
        (
            f"API server `{server}` answered `{request.method} {path}` with something else "
            f"than its JSON: {error}"
        ),
        _JSON_HINT,
    )


def expired_token_words(authorization: str | None) -> str:
    """`the token ended at …` for an expired bearer token that is a JWT, else "".

    For messages only: the signature is not verified.

    >>> expired_token_words("Bearer e30.eyJleHAiOjYwfQ.sig")  # {}.{"exp":60}
    'the token ended at 1970-01-01T00:01:00Z'
    """
    parts = (authorization or "").removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return ""
    try:
        claims = decoder_of(_Claims).decode(
            base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        )
    except (ValueError, msgspec.DecodeError):
        return ""
    import time

    return (
        f"the token ended at {render_rfc3339(claims.exp)}"
        if claims.exp and claims.exp < time.time()
        else ""
    )


class _Claims(Struct):
    exp: float | None = None


_IMPERSONATE = " cannot impersonate"
_UNKNOWN_PATH = "the server could not find the requested resource"
_JSON_HINT = "check that the address is an API server's, and that nothing in between answers for it"
