"""The Kubernetes API for the command line: drives conversations with threads and `http.client`.

It starts in a fraction of the time: this module must not import asyncio or aiohttp, even
indirectly. Independent calls run in parallel threads (`in_parallel`), each on its own connection of
a small pool.
"""

from __future__ import annotations

import functools
import http.client
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit

from fairlead import __version__
from fairlead.edge.connection.connection import Connection, make_ssl_context
from fairlead.edge.connection.credentials import ClientCertificate
from fairlead.edge.connection.http_blocking import open_connection, request_target
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.conversation import (
    READ_SECONDS,
    Answer,
    Call,
    Conversation,
    Finish,
    Pause,
    SendRequest,
    StartConversation,
    Step,
    Steps,
    is_good,
)

if TYPE_CHECKING:
    import random
    import socket
    import ssl

Result = TypeVar("Result")
P = ParamSpec("P")

_BROKEN = (OSError, http.client.HTTPException)


class RawConnection(NamedTuple):
    """A connection for a protocol other than HTTP, with TLS done, and the parts of its request."""

    socket: socket.socket
    host: str
    target: str
    headers: list[tuple[str, str]]
    label: str


def _spoken(
    conversation: Callable[Concatenate[Conversation, P], Steps[Result]],
) -> Callable[Concatenate[KubeBlocking, P], Result]:
    @functools.wraps(conversation)
    def spoken(self: KubeBlocking, /, *arguments: P.args, **named: P.kwargs) -> Result:
        return self.run(conversation(self.conversation, *arguments, **named))

    return spoken


class KubeBlocking:
    """One cluster with one user; safe to use from several threads.

    `requests_total`: number of requests sent.

    `read_seconds`: how long the server may be silent before an answer.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], object] = time.sleep,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self.connection = connection
        self.conversation = Conversation(connection, _BROKEN, rng, begins_in_json=True)
        self.requests_total = 0
        self._read_seconds = read_seconds
        self._sleep = sleep
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._certificate: ClientCertificate | None = None
        self._context: ssl.SSLContext | None = None

    def __enter__(self) -> KubeBlocking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    get = _spoken(Conversation.get)
    get_metadata = _spoken(Conversation.get_metadata)
    create = _spoken(Conversation.create)
    update = _spoken(Conversation.update)
    patch = _spoken(Conversation.patch)
    delete = _spoken(Conversation.delete)
    list_all = _spoken(Conversation.list_all)
    version = _spoken(Conversation.version)
    discovery = _spoken(Conversation.discovery)
    send = _spoken(Conversation.send)

    def stream(self, request: ApiRequest) -> Iterator[bytes]:
        """The answer's body piece by piece as it arrives (a followed log), on a connection
        without a limit for silence.
        """
        line, response = self.run(self.conversation.open(request))
        try:
            while piece := response.read1(1 << 16):
                yield piece
        except _BROKEN as error:
            raise self.run(self.conversation.no_answer(error)) from error
        finally:
            line.close()

    def dial(self, request: ApiRequest) -> RawConnection:
        """A separate connection for a request for another protocol; the caller sends the request
        and closes the socket.
        """
        line = self._open(self.connection.credentials.current().certificate, READ_SECONDS)
        try:
            line.connect()
        except _BROKEN as error:
            raise self.run(self.conversation.no_answer(error)) from error
        with self._lock:
            self.requests_total += 1
        server = self.connection.server
        target = request_target(server, request.path, self.conversation.proxy)
        headers = [("User-Agent", f"fairlead/{__version__}"), *self.connection.headers()]
        return RawConnection(
            line.sock,
            urlsplit(server).netloc.rpartition("@")[2],
            target,
            headers,
            self.conversation.label,
        )

    def run(self, steps: Steps[Result]) -> Result:
        """Runs a conversation from its first step to its result."""
        try:
            step = next(steps)
            while True:
                try:
                    outcome = self._carry_out(step)
                except Exception as error:  # noqa: BLE001  (handed to the conversation)
                    step = steps.throw(error)
                else:
                    step = steps.send(outcome)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _carry_out(self, step: Step) -> Any:
        match step:
            case SendRequest():
                return self.ask(step)
            case StartConversation():
                return _BegunCall(functools.partial(self.run, step.steps))
            case Finish():
                return step.begun.result()
            case Pause():
                return self._sleep(step.seconds)
            case Call():
                return step.call()

    def ask(self, asked: SendRequest) -> Answer:
        """One request and its answer.

        For reads, a pooled connection that the server has closed is replaced.
        """
        while True:
            line, is_kept = self._take(asked)
            try:
                self._put_request(line, asked.made(), asked.headers)
                response = line.getresponse()
                if asked.is_stream and is_good(response.status):
                    return Answer(response.status, response.headers, live=(line, response))
                body = response.read()
            except (
                BaseException
            ) as error:  # Ctrl-C too: a half-read connection must not return to the pool
                line.close()
                is_stale = is_kept and isinstance(
                    error, (http.client.RemoteDisconnected, ConnectionError)
                )
                if not (is_stale and asked.request.method == "GET"):
                    raise
                continue
            self._give_back(line, response)
            return Answer(response.status, response.headers, body)

    def _put_request(
        self, line: http.client.HTTPConnection, request: ApiRequest, headers: list[tuple[str, str]]
    ) -> None:
        with self._lock:
            self.requests_total += 1
        target = request_target(self.connection.server, request.path, self.conversation.proxy)
        line.putrequest(request.method, target, skip_accept_encoding=True)
        for name, value in headers:
            line.putheader(name, value)
        if request.body is not None:
            line.putheader("Content-Length", str(len(request.body)))
        line.endheaders(request.body)

    def _take(self, asked: SendRequest) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before. A stream gets a separate one."""
        if asked.is_stream:
            return self._open(asked.certificate, read_seconds=None), False
        with self._lock:
            if asked.certificate == self._certificate and self._idle:
                return self._idle.pop(), True
        return self._open(asked.certificate, self._read_seconds), False

    def _open(
        self, certificate: ClientCertificate | None, read_seconds: float | None
    ) -> http.client.HTTPConnection:
        with self._lock:
            if certificate != self._certificate:
                self._certificate, self._context, self._idle = certificate, None, []
            if self._context is None and self.connection.is_tls:
                self._context = make_ssl_context(self.connection, certificate)
        return open_connection(
            self.connection.server,
            context=self._context,
            server_name=self.connection.tls_server_name,
            proxy=self.conversation.proxy,
            read_seconds=read_seconds,
        )

    def _give_back(
        self, line: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        if response.will_close:
            line.close()
            return
        with self._lock:
            self._idle.append(line)


class _BegunCall(Generic[Result]):
    """A call that runs in a thread until its result is asked for."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._outcome: list[Result | Exception] = []
        self._thread = threading.Thread(
            target=lambda: self._outcome.extend(in_parallel([call])), daemon=True
        )
        self._thread.start()

    def result(self) -> Result:
        self._thread.join()
        [outcome] = self._outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def in_parallel(calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
    """The results of the calls, or the exceptions they raised, in order.

    All run at once, in threads.

    >>> in_parallel([lambda: 1, lambda: 1 // 0])
    [1, ZeroDivisionError('integer division or modulo by zero')]
    """
    results: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except Exception as error:  # noqa: BLE001  (handed to the caller as a value)
            results[index] = error

    threads = [
        threading.Thread(target=run, args=(index,), daemon=True) for index in range(1, len(calls))
    ]
    for thread in threads:
        thread.start()
    if calls:
        run(0)
    for thread in threads:
        thread.join()
    return results
