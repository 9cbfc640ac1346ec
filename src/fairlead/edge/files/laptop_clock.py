"""Changes the time of a laptop on this machine through its console, as the console's page does.

`order` only starts a run to a later time; `read` shows when it has ended.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec

from fairlead.console.http.writes import HEADER
from fairlead.console.pages.clock import ClockFace, ClockMoved, ClockOrder
from fairlead.console.pages.endpoints import BASE
from fairlead.console.pages.envelope import ErrorAnswer
from fairlead.edge.connection.http_blocking import open_connection, request_target
from fairlead.edge.connection.proxy import is_loopback
from fairlead.errors import OutsideError, UserError

READ_SECONDS: Final = 10.0
_Answer = TypeVar("_Answer")


class _Me(msgspec.Struct):
    """The only key of `/me` that a write needs."""

    csrf: str


class LaptopClock:
    """`url`: of the laptop's console. `authorization`: returns the header that the laptop's API
    takes, for a console at which users sign in; "" = none. Blocking.

    Raises UserError for an impossible order, OutsideError when the console does not answer.
    """

    def __init__(self, url: str, authorization: Callable[[], str] = str) -> None:
        self._url = url.rstrip("/")
        self._authorization = authorization
        self._csrf = ""

    def read(self) -> ClockFace:
        return self._ask("GET", "/clock", ClockFace)

    def order(self, order: ClockOrder) -> ClockMoved:
        self._csrf = self._csrf or self._ask("GET", "/me", _Me).csrf
        headers = {HEADER: self._csrf, "Content-Type": "application/json"}
        return self._ask("POST", "/clock", ClockMoved, msgspec.json.encode(order), headers)

    def _ask(
        self,
        method: str,
        path: str,
        form: type[_Answer],
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> _Answer:
        own = self._authorization() if is_loopback(self._url) else ""
        sent = {**(headers or {}), **({"Authorization": own} if own else {})}
        connection = open_connection(self._url, read_seconds=READ_SECONDS)
        try:
            connection.request(method, request_target(self._url, BASE + path, None), body, sent)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise OutsideError(
                "laptop",
                (
                    f"the laptop's console at `{self._url}` does not answer: "
                    f"{error or type(error).__name__}"
                ),
                "is it still running?",
            ) from error
        finally:
            connection.close()
        try:
            if answer.status < 400:
                return msgspec.json.decode(data, type=form)
            refused = msgspec.json.decode(data, type=ErrorAnswer)
        except msgspec.DecodeError as error:
            what = (
                f"`{self._url}` does not speak as a laptop's console does (status {answer.status})"
            )
            raise OutsideError("laptop", what, "is another program on this port?") from error
        raise (
            UserError(refused.error, refused.hint)
            if answer.status < 500
            else OutsideError("laptop", refused.error, refused.hint)
        )
