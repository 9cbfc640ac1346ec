"""HTTP/1.1 for a server with whole answers: one answer per request, in the order of requests.

It has the limits of `patient_protocol` (time for a request, size of a head, idle connections)
without ASGI, which costs more than most answers of the scheduler extender. uvicorn's server still
listens and stops: its state knows the connections and tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from math import inf
from typing import Final, Protocol, runtime_checkable
from urllib.parse import unquote

import httptools
from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import STATUS_LINE
from uvicorn.server import ServerState

from fairlead.apps.patient_protocol import HEAD_BYTES_MAX

KEEP_ALIVE_SECONDS: Final = 120
"""`KEEP_ALIVE_SECONDS`: Go's clients (kube-scheduler, Prometheus) close an idle connection after 90
s; if this server closed it first, a POST could arrive at a closing connection.
"""
BODY_BYTES_MAX: Final = 128 << 20
"""`BODY_BYTES_MAX`: largest request of kube-scheduler: 5,000 whole Nodes are 50 MiB."""
TEXT: Final = b"text/plain; charset=utf-8"
Answer = tuple[int, bytes, bytes]
"""Status, content type, body."""


class Question(Struct):
    """`is_of_page`: a web page asks (it has an `Origin`). `has_certificate`: the client showed a
    certificate that the server's authority has signed.
    """

    method: str
    path: str
    client: str = ""
    has_certificate: bool = False
    is_of_page: bool = False
    body: bytes = b""


@runtime_checkable
class Answerer(Protocol):
    def refusal(self, asked: Question) -> Answer | None:
        """The answer to a request whose head is enough for it; None: read the body first."""
        ...

    async def answer(self, asked: Question) -> Answer:
        """Never raises."""
        ...


class _Refused(Exception):
    """The rest of the connection cannot be read."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.answer = (status, TEXT, f"{why}\n".encode())


class QuestionProtocol(asyncio.Protocol):
    """One connection.

    If a whole request does not arrive within `read_seconds`, it is answered with 408 (or not at
    all, if none was begun) and the connection is closed.
    """

    def __init__(self, answerer: Answerer, state: ServerState, read_seconds: float) -> None:
        self._answerer = answerer
        self._state = state
        self._read_seconds = read_seconds
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        # requests before it are answered first
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._waiting: deque[tuple[Question, Answer | None, bool]] = deque()
        self._due = self._loop.time() + read_seconds
        self._is_reading = self._is_in_head = self._is_answering = self._is_clogged = (
            self._is_paused
        ) = self._is_leaving = False

    # --- the connection ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._state.connections.add(self)  # type: ignore[arg-type]  # uvicorn asks no more of them than `shutdown`
        peer = transport.get_extra_info("peername")
        self._client = str(peer[0]) if isinstance(peer, tuple) else ""
        self._has_certificate = bool(transport.get_extra_info("peercert"))
        self._timer = self._loop.call_later(self._read_seconds, self._look_at_time)

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        self._timer.cancel()
        self._waiting.clear()
        del self._parser

    def shutdown(self) -> None:
        """The server stops: the current answer is the last."""
        self._is_leaving = True
        if not self._is_answering:
            self._transport.close()

    def pause_writing(self) -> None:
        self._is_clogged = True

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        try:
            # it is answered in HTTP/1.1, as HTTP allows
            with contextlib.suppress(httptools.HttpParserUpgrade):
                self._parser.feed_data(data)
            if self._is_in_head:
                self._head_bytes += len(data)
                if self._head_bytes > HEAD_BYTES_MAX:
                    raise _Refused(
                        431, f"the head of the request is larger than {HEAD_BYTES_MAX} bytes"
                    )
        except _Refused as refused:
            self._end(refused.answer)
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._end(
                cause.answer
                if isinstance(cause, _Refused)
                else (400, TEXT, b"Invalid HTTP request received.\n")
            )

    # --- the parser -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._is_reading = self._is_in_head = True
        self._head_bytes = self._size = self._body_length = self._hosts = 0
        self._url = b""
        self._is_of_page = self._expects = False
        self._pieces: list[bytes] = []
        if not self._is_answering:
            self._wait(self._read_seconds)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length":
            self._body_length = int(value)
        elif name == b"host":
            self._hosts += 1
            if self._hosts > 1:
                raise _Refused(400, "a request has one `Host` header")
        elif name == b"origin":
            self._is_of_page = True
        elif name == b"expect":
            self._expects = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        # a URL without a path is refused, like any other error here
        path = httptools.parse_url(self._url).path.decode("ascii")
        method = self._parser.get_method().decode("ascii")
        self._asked = Question(
            method, unquote(path), self._client, self._has_certificate, self._is_of_page
        )
        self._refusal = self._answerer.refusal(self._asked)
        # the body of a GET has no meaning (RFC 9110)
        self._keeps_body = self._refusal is None and method == "POST"
        if self._keeps_body:
            self._check(self._body_length)
            if self._expects and not self._is_answering:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if self._keeps_body:
            self._size += len(body)
            self._check(self._size)
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        parser, pieces = self._parser, self._pieces
        self._is_reading = False
        self._asked.body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        is_last = (
            not parser.should_keep_alive()
            or parser.should_upgrade()
            or parser.get_http_version() == "1.0"
        )
        self._waiting.append((self._asked, self._refusal, is_last))
        self._go_on()

    @staticmethod
    def _check(size: int) -> None:
        if size > BODY_BYTES_MAX:
            raise _Refused(413, f"a body of {size} bytes is larger than {BODY_BYTES_MAX}")

    # --- answers ----------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Answer the next request, or wait for one."""
        if self._transport.is_closing():
            return
        if self._is_answering or self._is_clogged:
            self._read_on(False)
            if not self._is_answering:  # a client that does not read is closed like an idle one
                self._wait(KEEP_ALIVE_SECONDS)
        elif self._waiting:
            self._is_answering = True
            self._due = inf
            task = self._loop.create_task(self._answer(*self._waiting.popleft()))
            self._state.tasks.add(task)
            task.add_done_callback(self._state.tasks.discard)
        else:
            self._wait(self._read_seconds if self._is_reading else KEEP_ALIVE_SECONDS)
            self._read_on(True)

    async def _answer(self, asked: Question, refusal: Answer | None, is_last: bool) -> None:
        status, kind, body = refusal or await self._answerer.answer(asked)
        self._is_answering = False
        if self._transport.is_closing():
            return
        is_last = is_last or self._is_leaving
        date = b"".join([b"%s: %s\r\n" % header for header in self._state.default_headers])
        closes = b"connection: close\r\n" if is_last else b""
        head = b"%s%scontent-type: %s\r\ncontent-length: %d\r\n%s\r\n" % (
            STATUS_LINE[status],
            date,
            kind,
            len(body),
            closes,
        )
        self._transport.write(head if asked.method == "HEAD" else head + body)
        if is_last:
            self._transport.close()
        self._go_on()

    def _end(self, answer: Answer) -> None:
        """This answer is the last, and nothing more is read."""
        if not self._transport.is_closing():
            self._read_on(False)
            self._waiting.append((Question("", ""), answer, True))
            self._go_on()

    def _look_at_time(self) -> None:
        """Checks at least every `read_seconds`, which is never late: no limit is shorter."""
        left = self._due - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(min(left, self._read_seconds), self._look_at_time)
        elif self._is_reading:
            why = (
                f"the request was not complete after {self._read_seconds:g} s: send head and body "
                "without a pause\n"
            )
            self._end((408, TEXT, why.encode()))
        elif self._is_clogged:
            self._transport.abort()
        else:
            self._transport.close()

    def _wait(self, seconds: float) -> None:
        self._due = self._loop.time() + seconds

    def _read_on(self, is_wanted: bool) -> None:
        if self._is_paused is is_wanted:
            self._is_paused = not is_wanted
            if is_wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
