"""The server shell: a port in use gives a clear error, and a stop is quick even with a client that
never reads.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.waiting import HANG_SECONDS, until

from fairlead.apps import server
from fairlead.apps.server import bind_socket, is_loopback, parse_address, require_loopback, serve
from fairlead.errors import UserError


async def hello(request: Request) -> Response:
    return PlainTextResponse("x" * 50_000_000 if request.url.path == "/big" else "hello")


APP = Starlette(routes=[Route("/", hello), Route("/big", hello)])


async def ask(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    try:
        return await reader.read()
    finally:
        writer.close()


async def date(port: int) -> datetime:
    found = re.search(rb"(?i)^date: (.*)\r$", await ask(port, "/"), re.MULTILINE)
    assert found
    return parsedate_to_datetime(found[1].decode())


async def is_refused(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


@asynccontextmanager
async def served(app: Starlette = APP) -> AsyncIterator[tuple[int, asyncio.Task[None]]]:
    """The port, and the task that serves."""
    sock, ready = bind_socket("127.0.0.1", 0), asyncio.Event()
    task = asyncio.create_task(serve(app, sock=sock, ready=ready))
    try:
        await asyncio.wait_for(ready.wait(), HANG_SECONDS)
        yield sock.getsockname()[1], task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_taken_port_is_a_sentence_with_a_hint() -> None:
    with bind_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"`127.0.0.1:{port}`") as caught:
            bind_socket("127.0.0.1", port)
    assert "choose another port" in caught.value.hint


@pytest.mark.parametrize("text", ["", "9400x", "host:", "host:99999", "host:-1", "::"])
def test_a_bad_address_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"`{text}`")):
        parse_address(text)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("", False), ("0.0.0.0", False)],
)
def test_only_this_machine_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_reachable_address_needs_to_be_asked_for() -> None:
    require_loopback("0.0.0.0", True, "--insecure-listen")
    with pytest.raises(UserError, match=r"`0\.0\.0\.0`") as caught:
        require_loopback("0.0.0.0", False, "--insecure-listen")
    assert "--insecure-listen" in caught.value.hint


async def test_it_serves_reports_when_it_is_ready_and_stops_despite_a_client_that_never_reads() -> (
    None
):
    sock, ready = bind_socket("127.0.0.1", 0), asyncio.Event()
    port = sock.getsockname()[1]
    task = asyncio.create_task(serve(APP, sock=sock, ready=ready))
    await asyncio.wait_for(ready.wait(), HANG_SECONDS)
    assert (await ask(port, "/")).endswith(b"hello")
    with socket.create_connection(("127.0.0.1", port)) as deaf:
        deaf.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.to_thread(deaf.recv, 1, socket.MSG_PEEK)
        assert (await ask(port, "/")).endswith(b"hello"), "one deaf client must not block another"
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 10 * server.GRACE_SECONDS
    with bind_socket("127.0.0.1", port):
        pass


async def test_it_ends_when_it_is_cancelled_and_not_at_its_next_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "DATE_SECONDS", 3600.0)
    monkeypatch.setattr(server, "GRACE_SECONDS", 3600)
    async with served() as (port, task):
        assert (await ask(port, "/")).endswith(b"hello")
        task.cancel()
        _, unfinished = await asyncio.wait([task], timeout=HANG_SECONDS)
        assert not unfinished


async def test_the_date_of_answers_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DATE_SECONDS", 0.01)
    async with served() as (port, _):
        first = await date(port)
        assert abs(first.timestamp() - time.time()) < 60

        async def is_later() -> bool:
            return await date(port) > first

        await until(is_later)


async def test_an_answer_that_has_begun_is_finished_after_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 3600)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> Response:
        begun.set()
        await may_end.wait()
        return PlainTextResponse("whole")

    async with served(Starlette(routes=[Route("/", slow)])) as (port, task):
        answer = asyncio.create_task(ask(port, "/"))
        await asyncio.wait_for(begun.wait(), HANG_SECONDS)
        task.cancel()
        await until(lambda: is_refused(port))
        _, unfinished = await asyncio.wait([task], timeout=0.2)
        assert unfinished, "the server has ended before its answer"
        may_end.set()
        assert (await answer).endswith(b"whole")


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
async def test_a_request_in_another_protocol_is_answered_in_http_and_nothing_is_logged(
    caplog: pytest.LogCaptureFixture, protocol: str
) -> None:
    """`kubectl exec` asks for a WebSocket, then for SPDY, and prints the error that the app
    returns.
    """
    sock, ready = bind_socket("127.0.0.1", 0), asyncio.Event()
    task = asyncio.create_task(serve(APP, sock=sock, ready=ready))
    await asyncio.wait_for(ready.wait(), HANG_SECONDS)
    upgrade = (
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "
        f"{protocol}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
    with caplog.at_level("INFO"):
        writer.write(upgrade.encode())
        reported = await asyncio.wait_for(reader.readuntil(b"hello"), HANG_SECONDS)
    writer.close()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reported.startswith(b"HTTP/1.1 200 OK")
    assert [
        record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")
    ] == []
