"""Clients that send half a request, or a byte now and then, to every server of Fairlead, and slow
clients that must be served.

The servers' patience is a parameter, so these tests take seconds. Where a test must wait for that
time, a second connection that sends nothing is the clock: the server closes it when its patience is
over.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.apps.every_server import SERVERS, TOKEN, WITH_TLS, WRITES, Stranger, running
from tests.waiting import HANG_SECONDS

from fairlead.apps.console_server import ConsoleSettings
from fairlead.apps.patient_protocol import HEAD_BYTES_MAX
from fairlead.apps.server import bind_socket, serve
from fairlead.settings import READ_SECONDS

PATIENCE = 2.0
HEAD = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-token\r\n"


def write_head(server: str, headers: bytes) -> bytes:
    head = (
        b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "
        b"application/json\r\n%s\r\n"
    )
    return head % (WRITES[server], TOKEN.encode(), headers)


async def csrf_of(stranger: Stranger) -> bytes:
    """The header without which the console reads no body."""
    found = re.search(rb'"csrf":"([^"]+)"', await stranger.ask(b"/api/v1/me"))
    return b"X-Fairlead-Csrf: %s\r\n" % found[1] if found else b""


async def patience_over(stranger: Stranger) -> None:
    """Waits until the server closes a connection that sends nothing."""
    assert await stranger.say(b"") == b""


async def refusal_of(stranger: Stranger, half: bytes) -> bytes:
    """The answer to half a request. A server closes a connection without an answer where its
    patience is over before the first byte has come, as on a busy machine: then once more.
    """
    async with asyncio.timeout(HANG_SECONDS):
        while not (answer := await stranger.say(half)):
            pass
    return answer


Check = Callable[[str, Stranger], Awaitable[None]]


async def at_every_server(check: Check, *, patience: float = PATIENCE) -> None:
    """Runs the check at all servers at the same time, because most of these tests wait until a
    patience is over.
    """

    async def at(server: str) -> None:
        async with running(server, patience) as stranger, asyncio.timeout(HANG_SECONDS):
            try:
                await check(server, stranger)
            except BaseException as error:
                error.add_note(f"at the {server}")
                raise

    await asyncio.gather(*(at(server) for server in SERVERS))


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()[:200]
        for record in caplog.records
        if record.levelno >= logging.ERROR or record.exc_info
    ]


def test_the_contracts_time_is_the_usual_one() -> None:
    assert READ_SECONDS == ConsoleSettings().read_seconds == 10


async def test_half_a_request_gets_the_reason_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def check(server: str, stranger: Stranger) -> None:
        header = await csrf_of(stranger) if server == "console" else b""
        half = write_head(server, header + b"Content-Length: 100\r\n") + b"{"
        began = time.monotonic()
        half_a_head, half_a_body = await asyncio.gather(
            refusal_of(stranger, HEAD), refusal_of(stranger, half)
        )
        assert time.monotonic() - began >= PATIENCE
        assert half_a_head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"connection: close\r\n" in half_a_head and b"not complete after 2 s" in half_a_head
        # a server that accepts no body can refuse it unread
        can_answer_before = WRITES[server] == b"/metrics"
        assert half_a_body.startswith(b"HTTP/1.1 405" if can_answer_before else b"HTTP/1.1 408"), (
            half_a_body
        )
        assert half_a_body.count(b"HTTP/1.1") == 1, (
            "an unread body behind an answer is not answered again"
        )

    await at_every_server(check)
    assert complaints(caplog) == []


async def answer_to_bytes(stranger: Stranger, half: bytes) -> bytes | ConnectionError:
    """What the server answers to half a request and a byte now and then behind it."""
    reader, writer = await stranger.connect()
    writer.write(half)
    ended = asyncio.ensure_future(reader.read())
    while not ended.done():
        writer.write(b"a")
        await asyncio.wait([ended], timeout=PATIENCE / 10)
    writer.close()
    try:
        return ended.result()
    except ConnectionError as error:
        return error


@pytest.mark.parametrize("beginning", ["head", "body"])
async def test_a_byte_now_and_then_extends_nothing(beginning: str) -> None:
    async def check(server: str, stranger: Stranger) -> None:
        header = await csrf_of(stranger) if server == "console" else b""
        half = (
            HEAD
            if beginning == "head"
            else write_head(server, header + b"Content-Length: 100000\r\n")
        )
        while not (answer := await answer_to_bytes(stranger, half)):
            pass  # the server's patience was over before the first byte had come
        assert isinstance(answer, ConnectionError) or answer.startswith(
            (b"HTTP/1.1 408", b"HTTP/1.1 405")
        )

    await at_every_server(check)


async def test_a_connection_between_two_requests_is_kept() -> None:
    async def check(server: str, stranger: Stranger) -> None:
        reader, writer = await stranger.connect()
        for turn in range(2):
            if turn:
                await patience_over(stranger)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            length = re.search(rb"content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
        writer.close()

    await at_every_server(check)


async def test_a_watch_and_a_stream_of_hints_go_on() -> None:
    asked = {"api server": b"/api/v1/configmaps?watch=1", "console": b"/api/v1/changes"}
    for server, target in asked.items():
        async with running(server, PATIENCE) as stranger, asyncio.timeout(HANG_SECONDS):
            reader, writer = await stranger.connect()
            writer.write(
                b"GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-token\r\n\r\n"
                % target
            )
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await patience_over(stranger)
            assert not reader.at_eof()
            if server == "api server":
                body = b'{"metadata":{"name":"late"}}'
                head = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
                assert b" 201 " in await stranger.ask(
                    b"/api/v1/namespaces/default/configmaps", b"POST", head, body
                )
                assert b'"ADDED"' in await reader.readuntil(b'"late"')
            writer.close()


@pytest.mark.parametrize("server", SERVERS)
async def test_a_head_without_end_is_refused_before_it_fills_the_memory(server: str) -> None:
    async with running(server) as stranger:
        one_header = await stranger.say(HEAD + b"X-Long: " + b"a" * 2 * HEAD_BYTES_MAX)
        many_headers = await stranger.say(HEAD + b"X-Many: 1\r\n" * (2 * HEAD_BYTES_MAX // 11))
        assert {each[:12] for each in (one_header, many_headers)} <= {b"HTTP/1.1 431", b""}, (
            "an answer may be lost behind unread bytes"
        )
        assert (await stranger.ask(b"/healthz")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("server", WRITES)
@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: 100\r\n", b"Transfer-Encoding: chunked\r\n"],
    ids=["length", "chunks"],
)
async def test_a_client_that_goes_away_within_its_request_is_no_bug(
    server: str, framing: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(server) as stranger:
        header = await csrf_of(stranger) if server == "console" else b""
        _, writer = await stranger.connect()
        writer.write(write_head(server, header + framing) + b"{")
        await writer.drain()
        writer.close()
        bad_chunk = await stranger.say(
            write_head(server, header + b"Transfer-Encoding: chunked\r\n") + b"zz\r\nno chunk\r\n"
        )
        assert bad_chunk.startswith((b"HTTP/1.1 400", b"HTTP/1.1 405"))
        assert (await stranger.ask(b"/healthz")).startswith(b"HTTP/1.1 200")
    assert complaints(caplog) == []


@pytest.mark.parametrize("server", SERVERS)
async def test_framings_of_other_times_and_of_attackers(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    """For the last three framings a proxy in front may see two requests where the server sees one,
    or the other way round, so they are refused.
    """
    words = {
        b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n": b"HTTP/1.1 200",
        b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n": (
            b"HTTP/1.1 200"
        ),
        (
            b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ): b"HTTP/1.1 200",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": b"HTTP/1.1 400",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": b"HTTP/1.1 400",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n": b"HTTP/1.1 400",
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: "
            b"2\r\n\r\n"
        ): b"HTTP/1.1 400",
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n0\r\n\r\n"
        ): b"HTTP/1.1 400",
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, "
            b"identity\r\n\r\n0\r\n\r\n"
        ): b"HTTP/1.1 400",
    }
    async with running(server) as stranger:
        answers = {printed: (await stranger.say(printed))[:12] for printed in words}
    assert answers == words
    assert complaints(caplog) == []


@pytest.mark.parametrize("server", SERVERS)
async def test_requests_that_do_not_wait_for_answers_are_answered_in_turn(server: str) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
    async with running(server) as stranger:
        answer = await stranger.say(ask % b"" * 20 + ask % b"Connection: close\r\n")
    assert answer.count(b"HTTP/1.1 200") == 21


Respond = Callable[[dict[str, Any], Callable[[], Awaitable[Any]]], Awaitable[bytes]]


@asynccontextmanager
async def answering(
    respond: Respond, write_seconds: float | None = None
) -> AsyncIterator[Stranger]:
    """A server whose answers are what `respond` makes of scope and receive."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = await respond(scope, receive)
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", str(len(body)).encode())],
            }
        )
        await send({"type": "http.response.body", "body": body})

    sock, ready = bind_socket("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.create_task(
        serve(app, sock=sock, ready=ready, read_seconds=PATIENCE, write_seconds=write_seconds)
    )
    try:
        await asyncio.wait_for(ready.wait(), HANG_SECONDS)
        yield Stranger(sock.getsockname()[1], None)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_an_answer_may_outlast_a_request_and_half_a_request_behind_it_waits_its_turn() -> (
    None
):
    go_on = asyncio.Event()

    async def respond(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> bytes:
        if scope["path"] == "/slow":
            await go_on.wait()
        return scope["path"].encode()  # type: ignore[no-any-return]

    behind = (
        b"",
        b"GET /half HTTP/1.1\r\n",
        b"POST /half HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
    )
    async with answering(respond) as stranger, asyncio.timeout(HANG_SECONDS):
        connections = [await stranger.connect() for _ in behind]
        for (_, writer), more in zip(connections, behind, strict=True):
            writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" + more)
        await patience_over(stranger)
        go_on.set()
        for (reader, writer), more in zip(connections, behind, strict=True):
            assert b"HTTP/1.1 200" in await reader.readuntil(b"/slow")
            # a second request with a body is answered as soon as its head has arrived, and the
            # connection is closed all the same
            if more:
                assert (await reader.read()).startswith((b"HTTP/1.1 408", b"HTTP/1.1 200"))
            writer.close()


async def test_a_client_that_gets_continue_continues() -> None:
    async def respond(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> bytes:
        return (await receive())["body"]  # type: ignore[no-any-return]

    async with answering(respond) as stranger, asyncio.timeout(HANG_SECONDS):
        reader, writer = await stranger.connect()
        writer.write(
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        )
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        writer.write(b"words")
        assert await reader.readuntil(b"words")
        writer.close()


async def test_a_tls_handshake_that_never_ends_is_ended() -> None:
    async with running(WITH_TLS[0], PATIENCE) as stranger:
        assert await Stranger(stranger.port, None).say(b"\x16\x03\x01") == b""


async def test_a_stream_ends_with_its_connection_though_another_request_waited_behind_it() -> None:
    has_ended = asyncio.Event()

    async def respond(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> bytes:
        while (await receive())["type"] != "http.disconnect":
            pass
        has_ended.set()
        return b""

    async with answering(respond) as stranger, asyncio.timeout(HANG_SECONDS):
        _, writer = await stranger.connect()
        writer.write(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
        await writer.drain()
        writer.close()
        await has_ended.wait()


async def test_a_client_that_does_not_read_the_answer_is_dropped_and_one_that_reads_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Several megabytes: more than the buffers of both sides hold."""

    async def respond(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> bytes:
        return {"/large": b"x" * (32 << 20), "/medium": b"x" * (1 << 20)}.get(
            scope["path"], b"small"
        )

    ask = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n"
    async with (
        answering(respond, write_seconds=PATIENCE) as stranger,
        asyncio.timeout(HANG_SECONDS),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", stranger.port, limit=1 << 10)
        writer.write(ask % b"/large")
        kept_reader, kept = await stranger.connect()
        # a new limit for each request: the time is that of an answer, not of a connection
        for _ in range(3):
            kept.write(ask % b"/small")
            assert (await kept_reader.readuntil(b"small")).startswith(b"HTTP/1.1 200")
            await patience_over(stranger)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(32 << 20)
        kept.write(ask % b"/medium")
        await kept_reader.readuntil(b"\r\n\r\n")
        assert len(await kept_reader.readexactly(1 << 20)) == 1 << 20
        for each in (writer, kept):
            each.close()
    assert complaints(caplog) == []


async def test_an_answer_that_never_comes_is_given_up() -> None:
    async def respond(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]]) -> bytes:
        while (await receive())["type"] != "http.disconnect":
            pass
        return b""

    async with answering(respond, write_seconds=PATIENCE) as stranger:
        assert await stranger.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") == b""
