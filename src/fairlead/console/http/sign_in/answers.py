"""The answers of signing in and out, with their cookies.

A browser that comes from or goes to the OIDC provider shows no JSON: a failure leads it back to the
page Sign in, which finds the sentence in a cookie.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fairlead.console.http.answers import JSON, Refused, json_answer, refusal_of
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.sign_in.tools import Cookie, set_cookie
from fairlead.console.pages.session import (
    ActAs,
    SignedIn,
    SignInFailure,
    SignInMethods,
    SignInOrder,
    parse_body,
)
from fairlead.errors import FairleadError
from fairlead.rules.people.sign_in import local_path

_FAILURE_COOKIE: Final = "fairlead-sign-in-failed"
_FAILURE_SECONDS: Final = 60
_NEXT_COOKIE: Final = "fairlead-next"
_STATE_SECONDS: Final = 600
_EXAMPLE: Final = '{"way": "token", "secret": "…"}'


class SignInAnswers:
    """`desk`: None = this console has no sign-in. `base_path`: with a slash at both ends. `hint`:
    how users sign in where there is no desk.
    """

    def __init__(self, desk: SignInDesk | None, base_path: str, hint: str) -> None:
        self._desk = desk
        self._hint = hint
        self._base_path = base_path

    async def methods(self, request: Request) -> Response:
        ways = self._desk.ways if self._desk is not None else []
        return json_answer(request, SignInMethods(ways, _failure(request)))

    async def begin(self, request: Request) -> Response:
        desk = self._needed()
        order = parse_body(await request.body(), SignInOrder, _EXAMPLE)
        cookie = await desk.begin(request, order.way, order.secret)
        return self._with(_done(is_signed_in=True), cookie)

    async def end(self, request: Request) -> Response:
        return self._with(_done(is_signed_in=False), await self._needed().end(request))

    async def act_as(self, request: Request, body: bytes) -> Response:
        asked = parse_body(body, ActAs, '{"user": "anna"}')
        return self._with(
            _done(is_signed_in=True), await self._needed().act_as(request, asked.user)
        )

    async def start_at_provider(self, request: Request) -> Response:
        desk = self._needed()
        try:
            address, cookie = await desk.begin_at_provider(request)
        except (FairleadError, Refused, TimeoutError) as error:
            return self._failed(request, error)
        next = Cookie(
            _NEXT_COOKIE,
            _packed(local_path(request.query_params.get("next", ""))),
            _STATE_SECONDS,
            cookie.is_secure,
        )
        return self._with(_redirect(address), cookie, next)

    async def finish_at_provider(self, request: Request) -> Response:
        desk, asked = self._needed(), request.query_params
        try:
            cookie = await desk.finish_at_provider(
                request,
                asked.get("code", ""),
                asked.get("state", ""),
                asked.get("error_description") or asked.get("error", ""),
            )
        except (FairleadError, Refused, TimeoutError) as error:
            return self._with(self._failed(request, error), desk.ended_state(request))
        next = local_path(
            _unpacked(request.cookies.get(_NEXT_COOKIE, "")).decode("ascii", "replace")
        )
        answer = _redirect(self._base_path + next.removeprefix("/"))
        return self._with(answer, cookie, desk.ended_state(request))

    def _failed(self, request: Request, error: Exception) -> Response:
        """For a browser the page Sign in, else the error itself."""
        refused = refusal_of(error)
        if "text/html" not in request.headers.get("accept", ""):
            raise refused from error
        failure = SignInFailure(refused.code, refused.what, refused.hint)
        answer = _redirect(f"{self._base_path}signin?failed={refused.code}")
        value = _packed(msgspec.json.encode(failure).decode())
        is_secure = self._needed().is_tls(request)
        return self._with(answer, Cookie(_FAILURE_COOKIE, value, _FAILURE_SECONDS, is_secure))

    def _needed(self) -> SignInDesk:
        if self._desk is None:
            raise Refused(404, "this console has no sign-in", self._hint)
        return self._desk

    def _with(self, answer: Response, *cookies: Cookie) -> Response:
        for each in cookies:
            set_cookie(answer, self._base_path, each)
        return answer


def _done(*, is_signed_in: bool) -> Response:
    body = msgspec.json.encode(SignedIn(is_signed_in))
    return Response(body, 200, {"Cache-Control": "no-store"}, JSON)


def _redirect(address: str) -> Response:
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


def _failure(request: Request) -> SignInFailure | None:
    """What the cookie has. Another page of this host may have written it; it is shown as text."""
    try:
        return msgspec.json.decode(
            _unpacked(request.cookies.get(_FAILURE_COOKIE, "")), type=SignInFailure
        )
    except msgspec.MsgspecError:
        return None


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _unpacked(value: str) -> bytes:
    """b"" for what `_packed` did not make."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return b""
