"""What holds for every request, whatever its route: names, sizes of bodies, ids, headers, failures.

The Host check is what keeps a strange web page from reading a loopback console through DNS
rebinding: such a page can only arrive under its own name, never as `localhost` or as an address.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.console.http.answers import Refused, error_answer, refusal_of

BODY_MAX: Final = 1_048_576
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
API_POLICY: Final = b"default-src 'none'; frame-ancestors 'none'"
HOST_HINT: Final = (
    "use 127.0.0.1 or localhost; behind a proxy, start it as `fairlead console --allowed-host NAME`"
)
_log = logging.getLogger(__name__)

Observer = Callable[[Scope, int, float], None]
"""Called after each request with scope, status, seconds."""


class Guard:
    """The outermost layer. `allowed_hosts`: names beside `localhost` and loopback addresses.

    `any_address`: other IP addresses, too, because users sign in: a page that arrives by DNS
    rebinding comes under a name, and has no cookie.
    """

    def __init__(
        self, app: ASGIApp, allowed_hosts: frozenset[str], any_address: bool, observe: Observer
    ) -> None:
        self._app = app
        self._allowed_hosts = allowed_hosts
        self._any_address = any_address
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        request_id = request_id_of(headers.get(b"x-request-id", b""))
        scope.setdefault("state", {})["request_id"] = request_id
        reply = _Reply(send, request_id)
        started = time.perf_counter()
        try:
            self._check(headers)
            await self._app(scope, limited(receive), reply.send)
        except ClientDisconnect:  # the client is gone
            raise
        except Exception as error:  # noqa: BLE001 - the edge of the process: answered, logged, never silent
            await self._refuse(error, request_id, reply, scope, receive)
        finally:
            self._observe(scope, reply.status, time.perf_counter() - started)

    def _check(self, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not is_host_allowed(host, self._allowed_hosts, self._any_address):
            raise Refused(
                403,
                f"this server does not answer to the name `{host[:100]}`",
                HOST_HINT,
                code="foreign-host",
            )
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise Refused(
                400, "the header `Content-Length` is no number", "send a whole number of bytes"
            )
        if int(length[:20]) > BODY_MAX:
            raise too_large()

    async def _refuse(
        self, error: Exception, request_id: str, reply: _Reply, scope: Scope, receive: Receive
    ) -> None:
        refused = refusal_of(error)
        if refused.status == 500:
            _log.exception(
                "request %s %.200r failed (request id %s)",
                scope["method"],
                scope["path"],
                request_id,
                exc_info=error,
            )
        elif refused.status in (502, 504):
            _log.warning(
                "request %s %.200r: %s (request id %s)",
                scope["method"],
                scope["path"],
                refused.what,
                request_id,
            )
        if not reply.status:
            await error_answer(refused, request_id)(scope, receive, reply.send)


class _Reply:
    """Passes messages on, adds our headers, remembers the status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id.encode()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            headers += [pair for pair in _HEADERS if pair[0] not in names]
            if b"content-security-policy" not in names:
                headers.append((b"content-security-policy", API_POLICY))
            headers.append((b"x-request-id", self._request_id))
            message = {**message, "headers": headers}
        await self._send(message)


def limited(receive: Receive) -> Receive:
    """The same stream of a body, refused once it is larger than a body may be.

    Its length need not be announced.
    """
    read = 0

    async def receive_limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > BODY_MAX:
            raise too_large()
        return message

    return receive_limited


def too_large() -> Refused:
    return Refused(
        413,
        f"the body is larger than {BODY_MAX} bytes",
        "send less than 1 MiB",
        {"Connection": "close"},
    )


def request_id_of(given: bytes) -> str:
    """The caller's id if it is a plain word, else a new one.

    >>> request_id_of(b"abc-1"), len(request_id_of(b"<script>"))
    ('abc-1', 16)
    """
    text = given.decode("latin-1")
    return text if _REQUEST_ID.fullmatch(text) else secrets.token_hex(8)


def is_host_allowed(host: str, allowed: frozenset[str], any_address: bool) -> bool:
    """Whether a `Host` header is one we answer to.

    >>> asked = ("localhost:80", "[::1]:1", "gpu.example", "evil.example", "10.0.0.1", "")
    >>> [is_host_allowed(host, frozenset({"gpu.example"}), False) for host in asked]
    [True, True, True, False, False, False]
    """
    name = re.sub(r":\d*$", "", host.strip().lower()).removesuffix(".")
    if name == "localhost" or name in allowed:
        return True
    try:
        address = ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return any_address or address.is_loopback
