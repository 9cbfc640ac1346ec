"""Kept connections for short writes: each answer belongs to its request, and nothing is ever sent
twice.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.edge.pki import Authority
from tests.edge.scripted import server_context
from tests.waiting import until

from fairlead.edge.connection import kept_connections
from fairlead.edge.connection.kept_connections import (
    CONNECTIONS_MAX,
    NO_ANSWER,
    KeptConnections,
    Reply,
)

Speak = Callable[[int, bytes], Awaitable[bytes | None]]
"""A server's answer, from the number of the connection and the path; None: it closes the
connection.
"""


class Spoken:
    """The requests that a server received, with the number of the connection, and the client that
    sends them.
    """

    def __init__(self, kept: KeptConnections) -> None:
        self.kept = kept
        self.received: list[tuple[int, str]] = []
        self.open = self.opened = 0

    async def ask(self, path: str, seconds: float = 5.0, body: bytes = b"{}") -> Reply:
        request = self.kept.render("POST", path, [("X-Test", "1")], body)
        return await self.kept.exchange(lambda: (request, seconds))

    async def settled(self) -> None:
        """Waits until both ends have noticed that a connection is closed."""
        await until(lambda: not self.open, 5, pause_seconds=0.001)
        await asyncio.sleep(0.01)


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


async def echo(_: int, path: bytes) -> bytes:
    return answer(path)


@asynccontextmanager
async def speaking(
    speak: Speak, tls: ssl.SSLContext | None = None, trust: ssl.SSLContext | None = None
) -> AsyncIterator[Spoken]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, spoken.opened, spoken.open = spoken.opened, spoken.opened + 1, spoken.open + 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    line for line in head.split("\r\n") if line.startswith("Content-Length")
                )
                await reader.readexactly(int(length.partition(":")[2]))
                path = head.split(" ")[1]
                spoken.received.append((number, path))
                reply = await speak(number, path.encode())
                if reply is None:
                    return
                writer.write(reply)
                if b"close" in reply:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            spoken.open -= 1
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    url = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/below"
    spoken = Spoken(KeptConnections(url, trust, None))
    try:
        yield spoken
    finally:
        spoken.kept.close()
        server.close()


async def test_one_connection_answers_many_questions() -> None:
    async with speaking(echo) as spoken:
        assert [(await spoken.ask(f"/{number}")).body for number in range(3)] == [
            b"/below/0",
            b"/below/1",
            b"/below/2",
        ]
        assert spoken.received == [(0, "/below/0"), (0, "/below/1"), (0, "/below/2")]


async def test_over_tls_and_an_untrusted_client_is_sent_nothing() -> None:
    authority = Authority()
    trust = ssl.create_default_context(cadata=authority.pem.decode())
    async with speaking(echo, server_context(authority.issue("server"), None), trust) as spoken:
        assert (await spoken.ask("/a")).body == b"/below/a"
    stranger = Authority()
    async with speaking(echo, server_context(stranger.issue("server"), None), trust) as spoken:
        with pytest.raises(ssl.SSLCertVerificationError):
            await spoken.ask("/a")
        assert spoken.received == []


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n"
        + answer(b"words", "Retry-After: 7", status="429 Too Many Requests"),
        (
            b"HTTP/1.1 429 X\r\nTransfer-Encoding: chunked\r\nretry-after: "
            b"7\r\n\r\n2\r\nwo\r\n3\r\nrds\r\n0\r\n\r\n"
        ),
    ],
    ids=["length, behind a 100", "chunks"],
)
async def test_forms_of_an_answer(reply: bytes) -> None:
    async def speak(number: int, path: bytes) -> bytes:
        return reply

    async with speaking(speak) as spoken:
        assert [await spoken.ask("/a"), await spoken.ask("/b")] == [Reply(429, b"words", "7")] * 2
        assert spoken.opened == 1


async def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async def speak(number: int, path: bytes) -> bytes:
        return answer(path, "Connection: close") if number == 0 else answer(path)

    async with speaking(speak) as spoken:
        assert (await spoken.ask("/a")).body == b"/below/a"
        assert (await spoken.ask("/b")).body == b"/below/b"
        assert spoken.opened == 2


async def test_nor_is_one_that_was_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "IDLE_SECONDS", 0.0)
    async with speaking(echo) as spoken:
        for path in ("/a", "/b"):
            await spoken.ask(path)
        assert spoken.opened == 2
        await spoken.settled()


async def test_what_was_sent_is_not_sent_again_when_the_connection_breaks() -> None:
    async def speak(number: int, path: bytes) -> bytes | None:
        return answer(path) if path == b"/below/first" else None

    async with speaking(speak) as spoken:
        await spoken.ask("/first")
        with pytest.raises(NO_ANSWER):
            await spoken.ask("/second")  # on the kept connection, which dies with it
        assert spoken.received == [(0, "/below/first"), (0, "/below/second")]


async def test_an_answer_that_comes_too_late_is_no_other_requests() -> None:
    go_on = asyncio.Event()

    async def speak(number: int, path: bytes) -> bytes:
        if path == b"/below/late":
            await go_on.wait()
        return answer(path)

    async with speaking(speak) as spoken:
        with pytest.raises(TimeoutError):
            await spoken.ask("/late", seconds=0.05)
        waiting = asyncio.ensure_future(spoken.ask("/cancelled/late"))
        await asyncio.sleep(0)
        waiting.cancel()
        go_on.set()
        assert (await spoken.ask("/next")).body == b"/below/next"


@pytest.mark.parametrize("more", [answer(b"unasked"), b"no HTTP at all\r\n\r\n"])
async def test_a_server_that_returned_more_than_was_asked_is_not_asked_again(more: bytes) -> None:
    async def speak(number: int, path: bytes) -> bytes:
        return answer(path) + (more if number == 0 else b"")

    async with speaking(speak) as spoken:
        assert [(await spoken.ask(path)).body for path in ("/a", "/b")] == [
            b"/below/a",
            b"/below/b",
        ]
        assert spoken.opened == 2


@pytest.mark.parametrize(
    "reply",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf",
    ],
)
async def test_an_answer_that_is_none_or_half_of_one(reply: bytes) -> None:
    async def speak(number: int, path: bytes) -> bytes:
        return reply

    async with speaking(speak) as spoken:
        with pytest.raises(NO_ANSWER):
            await spoken.ask("/a")


async def test_what_is_sent_is_decided_when_the_connection_stands() -> None:
    async with speaking(echo) as spoken:

        def refuse() -> tuple[bytes, float]:
            assert spoken.kept is not None
            raise LookupError

        for _ in range(2):
            with pytest.raises(LookupError):
                await spoken.kept.exchange(refuse)
        await spoken.ask("/a")
        assert (spoken.opened, spoken.received) == (1, [(0, "/below/a")])


async def test_connections_are_bounded_and_those_in_use_end_after_the_close() -> None:
    go_on, most = asyncio.Event(), 0

    async def speak(number: int, path: bytes) -> bytes:
        nonlocal most
        most = max(most, spoken.open)
        await go_on.wait()
        return answer(path)

    async with speaking(speak) as spoken:
        asked = [
            asyncio.ensure_future(spoken.ask(f"/{number}"))
            for number in range(CONNECTIONS_MAX + 10)
        ]
        await until(lambda: most == CONNECTIONS_MAX, 5, pause_seconds=0.001)
        spoken.kept.close()
        go_on.set()
        assert [(await each).body for each in asked] == [
            f"/below/{number}".encode() for number in range(CONNECTIONS_MAX + 10)
        ]
        assert most == CONNECTIONS_MAX
        await spoken.settled()


def test_a_header_is_one_line() -> None:
    with pytest.raises(ValueError) as caught:
        KeptConnections("http://x", None, None).render(
            "POST", "/", [("Authorization", "Bearer a\r\nX: y")], b""
        )
    assert str(caught.value) == "a line break in a header"


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.0 201 Created\r\n\r\n", b"HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n"],
)
async def test_an_answer_without_length_ends_with_its_connection(head: bytes) -> None:
    """Proxies may answer like this."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(head + b"words")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    kept = KeptConnections(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None, None)
    request = kept.render("POST", "/a", [], b"{}")
    assert await kept.exchange(lambda: (request, 5.0)) == Reply(201, b"words")
    server.close()


async def test_a_server_that_changes_the_protocol_has_not_answered() -> None:
    async def speak(number: int, path: bytes) -> bytes:
        return b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"

    async with speaking(speak) as spoken:
        with pytest.raises(NO_ANSWER):
            await spoken.ask("/a", seconds=2)
