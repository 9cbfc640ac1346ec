"""The Kubernetes API for services: drives conversations with tasks and aiohttp, and reads watches.

`list_all` and `watch` do not recover from failures but raise them (`api_failure`). `reflector`
retries, so that all loops wait in the same way.
"""

from __future__ import annotations

import asyncio
import functools
import random
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import aiohttp
import msgspec
from msgspec import structs
from yarl import URL

from fairlead.edge.connection.connection import Connection, make_ssl_context
from fairlead.edge.connection.credentials import ClientCertificate
from fairlead.edge.connection.frames import FrameSplitter, FrameTooLong, in_groups
from fairlead.edge.connection.http_blocking import CONNECT_SECONDS
from fairlead.edge.connection.kept_connections import NO_ANSWER, KeptConnections
from fairlead.edge.connection.lines import SLICE_BYTES, LineSplitter, in_slices
from fairlead.edge.connection.proxy import through_proxy
from fairlead.edge.connection.server_clock import ServerClock
from fairlead.edge.kube import api_request
from fairlead.edge.kube.api_failure import NOT_JSON, failure_of_answer, not_its_json
from fairlead.edge.kube.api_page import Change, ItemReader, WatchEnded
from fairlead.edge.kube.api_request import EVERYTHING, ApiRequest, Selection
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
    is_protobuf,
)
from fairlead.wire.kube.forms import UnreadableProtobuf

Row = TypeVar("Row")
Result = TypeVar("Result")
P = ParamSpec("P")

# client-go's range, random so that watches do not all end at the same time
WATCH_SECONDS: Final = (300, 600)
NODE_WATCH_SECONDS: Final = (1800, 3600)
"""Of processes that run on every node, where many short watches would be many requests: the range
of an API server for clients that name none. TCP's keepalive finds a dead connection much earlier.
"""
PAGE_BUFFER_BYTES = 4 << 20  # two pages, so that the sender need not wait while a page is decoded
WATCH_BUFFER_BYTES = 1 << 18  # the largest batch, because other tasks wait for its end
ORDINARY = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
_BROKEN = (aiohttp.ClientError, ValueError, *NO_ANSWER)


def _spoken(
    conversation: Callable[Concatenate[Conversation, P], Steps[Result]],
) -> Callable[Concatenate[KubeApi, P], Coroutine[Any, Any, Result]]:
    @functools.wraps(conversation)
    async def spoken(self: KubeApi, /, *arguments: P.args, **named: P.kwargs) -> Result:
        return await self.run(conversation(self.conversation, *arguments, **named))

    return spoken


class KubeApi:
    """One cluster, with one user. Use as an async context manager, or call `close`.

    `requests_total`: number of requests sent. `clock`: the API server's time. `rng` and `sleep`
    make waits repeatable in tests. `watch_seconds`: the shortest and the longest watch.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        watch_seconds: tuple[int, int] = WATCH_SECONDS,
    ) -> None:
        self.connection = connection
        self._watch_seconds = watch_seconds
        self.conversation = Conversation(connection, _BROKEN, rng)
        self.requests_total = 0
        self.clock = ServerClock()
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._session: aiohttp.ClientSession | None = None
        self._kept: KeptConnections | None = None
        self._certificate: ClientCertificate | None = None
        self._closing: set[asyncio.Future[None]] = set()

    async def __aenter__(self) -> KubeApi:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if self._kept is not None:
            self._kept.close()
        if session is not None:
            await session.close()

    get = _spoken(Conversation.get)
    create = _spoken(Conversation.create)
    update = _spoken(Conversation.update)
    patch = _spoken(Conversation.patch)
    delete = _spoken(Conversation.delete)
    list_all = _spoken(Conversation.list_all)
    version = _spoken(Conversation.version)
    discovery = _spoken(Conversation.discovery)
    send = _spoken(Conversation.send)

    async def watch(
        self, reader: ItemReader[Row], resource_version: str, selection: Selection = EVERYTHING
    ) -> AsyncGenerator[list[Change[Row]], None]:
        """Changes after `resource_version`, in batches as they arrive, until the server ends the
        watch (after `watch_seconds`).

        The first batch is empty and comes as soon as the server has accepted the watch. Raises Gone
        when the version has expired, reported by status or by an ERROR event. A line that is cut
        off at the end is dropped, and a batch with an unreadable line is not delivered: the next
        watch, from the last delivered version, has it all again.
        """
        seconds = self._rng.randint(*self._watch_seconds)
        request = api_request.watch_request(reader.resource, selection, resource_version, seconds)
        request = structs.replace(request, seconds=seconds + READ_SECONDS)
        try:
            # a watch may be silent for ever once it has begun
            async with asyncio.timeout(READ_SECONDS):
                response: aiohttp.ClientResponse = await self.run(
                    self.conversation.open_watch(reader, request)
                )
        except TimeoutError as error:
            raise await self.run(self.conversation.no_answer(error)) from error
        batches = _framed(reader) if is_protobuf(response.headers) else _in_lines(reader)
        try:
            yield []
            async for chunk in response.content.iter_any():
                for number, changes in enumerate(batches(chunk)):
                    if number:
                        await asyncio.sleep(0)
                    yield changes
        except (
            UnreadableProtobuf,
            FrameTooLong,
        ) as error:  # the next watch continues where this one stopped
            self.conversation.json_only(str(error))
        except WatchEnded as end:
            body = msgspec.json.encode(end.status)
            raise failure_of_answer(
                self.conversation.label, request, end.status.code or 500, body
            ) from None
        except NOT_JSON as error:
            raise not_its_json(self.conversation.label, request, error) from error
        except (aiohttp.ClientError, OSError) as error:
            raise await self.run(self.conversation.no_answer(error)) from error
        finally:
            response.close()

    async def stream(self, request: ApiRequest) -> AsyncGenerator[bytes, None]:
        """The body of a good answer (a log), piece by piece as it arrives.

        Closing it closes the connection.

        `request.seconds` limits the whole stream; the answer may also begin this late, because a
        silent log has not begun. At most two pieces are read ahead.
        """
        response: aiohttp.ClientResponse = await self.run(self.conversation.open(request))
        try:
            async for piece in response.content.iter_any():
                yield piece
        except (aiohttp.ClientError, OSError) as error:
            raise await self.run(self.conversation.no_answer(error)) from error
        finally:
            response.close()

    async def run(self, steps: Steps[Result]) -> Result:
        """Runs a conversation to its result; conversations that it began end with it."""
        begun: list[asyncio.Task[Any]] = []
        try:
            step = next(steps)
            while True:
                try:
                    outcome = await self._carry_out(step, begun)
                except Exception as error:  # noqa: BLE001  (handed to the conversation)
                    step = steps.throw(error)
                else:
                    step = steps.send(outcome)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            steps.close()
            for task in begun:
                task.cancel()

    async def _carry_out(self, step: Step, begun: list[asyncio.Task[Any]]) -> Any:
        match step:
            case SendRequest():
                return await self.ask(step)
            case StartConversation():
                begun.append(asyncio.create_task(self.run(step.steps)))
                await asyncio.sleep(0)  # its request is sent before the conversation continues
                return begun[-1]
            case Finish():
                try:
                    return await step.begun
                finally:
                    # with its answer: pages of a long list are not kept until its end
                    begun.remove(step.begun)
            case Pause():
                return await self._sleep(step.seconds)
            case Call():
                return await asyncio.to_thread(step.call)

    async def ask(self, asked: SendRequest) -> Answer:
        """One request and its answer."""
        session = self._session_for(asked.certificate)
        if asked.anew is not None and self._kept is not None:
            return await self._write(asked, self._kept)
        request = asked.made()
        self.requests_total += 1
        sent_at = time.monotonic()
        response = await session.request(
            request.method,
            URL(self.connection.server + request.path, encoded=True),
            data=request.body,
            headers=asked.headers,
            timeout=_limits(request.seconds),
            read_bufsize=WATCH_BUFFER_BYTES if asked.is_stream else PAGE_BUFFER_BYTES,
            **through_proxy(self.conversation.proxy),
            server_hostname=self.connection.tls_server_name,
            allow_redirects=False,
        )
        self.clock.observe(response.headers.get("Date"), sent_at)
        if asked.is_stream and is_good(response.status):
            return Answer(response.status, response.headers, live=response)
        try:
            return Answer(response.status, response.headers, await response.read())
        finally:
            response.release()

    async def _write(self, asked: SendRequest, kept: KeptConnections) -> Answer:
        """A write with a request made at the last moment uses connections that report when they
        can be written to.
        """

        def made() -> tuple[bytes, float]:
            request = asked.made()
            self.requests_total += 1
            return kept.render(
                request.method, request.path, asked.headers, request.body
            ), request.seconds or READ_SECONDS

        reply = await kept.exchange(made)
        return Answer(
            reply.status,
            {} if reply.retry_after is None else {"Retry-After": reply.retry_after},
            reply.body,
        )

    def _session_for(self, certificate: ClientCertificate | None) -> aiohttp.ClientSession:
        if self._session is None or certificate != self._certificate:
            # the old session's watches end, and start again in the new one
            if self._session is not None:
                closing = asyncio.ensure_future(self._session.close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
                if self._kept is not None:
                    self._kept.close()
            context = (
                make_ssl_context(self.connection, certificate) if self.connection.is_tls else None
            )
            if self.conversation.proxy is None:
                self._kept = KeptConnections(
                    self.connection.server, context, self.connection.tls_server_name
                )
            connector = aiohttp.TCPConnector(
                ssl=context or False,
                limit=0,
                keepalive_timeout=90,
                socket_factory=_keepalive_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
            self._certificate = certificate
        return self._session


def _in_lines(reader: ItemReader[Row]) -> Callable[[bytes], Iterator[list[Change[Row]]]]:
    """Batches of changes from chunks of JSON, one event per line."""
    splitter = LineSplitter()

    def batches(chunk: bytes) -> Iterator[list[Change[Row]]]:
        if lines := splitter.feed(chunk):
            yield from map(reader.read_changes, in_slices(lines))

    return batches


def _framed(reader: ItemReader[Row]) -> Callable[[bytes], Iterator[list[Change[Row]]]]:
    """Batches of changes from chunks of protobuf, one event per frame."""
    splitter = FrameSplitter()
    return lambda chunk: map(reader.read_frames, in_groups(splitter.feed(chunk), SLICE_BYTES))


def _limits(seconds: float | None) -> aiohttp.ClientTimeout:
    return (
        ORDINARY
        if seconds is None
        else aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
    )


def _keepalive_socket(address: Any) -> socket.socket:
    """A socket that detects within a minute that its peer is gone; a silent watch would not."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    return made
