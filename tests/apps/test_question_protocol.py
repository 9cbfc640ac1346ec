"""HTTP/1.1 with whole answers: answers come in the order of the questions, a question behind a slow
answer keeps its full time, and a connection ends only after a complete answer.

What every server guarantees besides (half requests, heads without end, unexpected framings) is in
`test_slow_requests` and `test_strange_requests`, where the scheduler extender uses this protocol.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.apps.every_server import Stranger
from tests.waiting import HANG_SECONDS, until

from fairlead.apps import question_protocol
from fairlead.apps.question_protocol import TEXT, Answer, Question
from fairlead.apps.server import bind_socket, serve

PATIENCE = 2.0
SLOW = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Answers:
    """`/slow` waits for `go_on`; `/refused` is refused by its head; all others return
    the request.
    """

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.asked: list[Question] = []
        self.stop: Callable[[], object] = lambda: None

    def refusal(self, asked: Question) -> Answer | None:
        return (403, TEXT, b"no\n") if asked.path == "/refused" else None

    async def answer(self, asked: Question) -> Answer:
        self.asked.append(asked)
        if asked.path == "/slow":
            await self.go_on.wait()
        return (
            200,
            TEXT,
            asked.path.encode()
            + b" "
            + (asked.body if len(asked.body) < 1000 else b"%d bytes" % len(asked.body)),
        )


@asynccontextmanager
async def answering() -> AsyncIterator[tuple[Stranger, Answers]]:
    sock, ready, answers = bind_socket("127.0.0.1", 0), asyncio.Event(), Answers()
    serving = asyncio.create_task(serve(answers, sock=sock, ready=ready, read_seconds=PATIENCE))
    answers.stop = serving.cancel
    try:
        async with asyncio.timeout(HANG_SECONDS):
            await ready.wait()
            yield Stranger(sock.getsockname()[1], None), answers
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def begun(answers: Answers) -> None:
    await until(lambda: answers.asked, pause_seconds=0.001)


async def test_a_body_in_chunks_and_a_head_alone() -> None:
    async with answering() as (stranger, answers):
        chunks = (
            b"POST /a%20b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n2\r\nwo\r\n3\r\nrds\r\n0\r\n\r\n"
        )
        answer = await stranger.say(
            chunks + b"HEAD /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        first, _, second = answer.partition(b"/a b words")
        assert (
            first.startswith(b"HTTP/1.1 200 OK\r\n")
            and b"content-length: 10\r\n" in first
            and b"\r\ndate: " in first
        )
        assert second.startswith(b"HTTP/1.1 200 OK\r\n") and b"content-length: 3\r\n" in second
        assert second.endswith(b"connection: close\r\n\r\n")
        assert [(asked.method, asked.path, asked.client) for asked in answers.asked] == [
            ("POST", "/a b", "127.0.0.1"),
            ("HEAD", "/c", "127.0.0.1"),
        ]


async def test_a_body_that_means_nothing_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any client may ask for a page, even for one that is refused."""
    monkeypatch.setattr(question_protocol, "BODY_BYTES_MAX", 100)
    async with answering() as (stranger, answers):
        ask = b"%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000
        answer = await stranger.say(ask % b"GET /a" + ask % b"POST /refused" + LAST)
        assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"403", b"200"]
        assert [asked.body for asked in answers.asked] == [b"", b""]


async def test_a_request_behind_a_slow_answer_has_its_own_after_it_and_all_the_time_it_needs() -> (
    None
):
    async with answering() as (stranger, answers):
        reader, writer = await stranger.connect()
        writer.write(SLOW + b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
        await begun(answers)
        assert await stranger.say(b"") == b"", "the clock: a patience is over"
        answers.go_on.set()
        assert await reader.readuntil(b"/slow {}")
        writer.write(b" body" + LAST)
        rest = await reader.read()
        assert (
            rest.startswith(b"HTTP/1.1 403")
            and rest.endswith(b"/last ")
            and rest.count(b"HTTP/1.1") == 2
        )
        writer.close()


@pytest.mark.parametrize(
    ("behind", "status"),
    [
        (b"no HTTP\r\n\r\n", b" 400 "),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % ((128 << 20) + 1), b" 413 "),
    ],
)
async def test_a_refusal_behind_a_slow_answer_does_not_cut_it_short_and_is_the_last(
    behind: bytes, status: bytes
) -> None:
    async with answering() as (stranger, answers):
        saying = asyncio.ensure_future(stranger.say(SLOW + behind))
        await begun(answers)
        await asyncio.sleep(0.05)
        answers.go_on.set()
        first, _, second = (await saying).partition(b"/slow {}")
        assert first.startswith(b"HTTP/1.1 200") and status in second.splitlines()[0]
        assert second.count(b"HTTP/1.1") == 1 and b"connection: close" in second


async def test_a_body_that_grows_too_large_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_protocol, "BODY_BYTES_MAX", 100)
    async with answering() as (stranger, answers):
        answer = await stranger.say(
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"40\r\n%s\r\n" % (b"x" * 64) * 2
        )
        assert answer.startswith(b"HTTP/1.1 413") and answers.asked == []


async def test_another_protocol_is_answered_in_this_one_and_ends() -> None:
    async with answering() as (stranger, _):
        answer = await stranger.say(
            b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + LAST
        )
        assert (
            answer.startswith(b"HTTP/1.1 200")
            and answer.count(b"HTTP/1.1") == 1
            and b"connection: close" in answer
        )


async def test_a_client_that_never_reads_does_not_fill_the_memory() -> None:
    """More questions than the sockets hold answers for: when the client does not read, no more are
    answered.
    """
    async with answering() as (stranger, answers):
        sock = socket.create_connection(("127.0.0.1", stranger.port))
        sock.setblocking(False)
        ask, loop = (
            b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 8000),
            asyncio.get_running_loop(),
        )
        sending = asyncio.ensure_future(loop.sock_sendall(sock, ask * 5000))  # 40 MB
        seen = -1
        while seen != len(answers.asked):
            seen = len(answers.asked)
            await asyncio.sleep(0.3)
        assert 0 < seen < 5000 and not sending.done()
        received, tail = 0, b""
        while received < 5000:
            text = tail + await loop.sock_recv(sock, 1 << 20)
            received, tail = received + text.count(b"HTTP/1.1"), text[-7:]
        await sending
        sock.close()


async def test_a_stop_lets_an_answer_be_finished_and_ends_idle_connections() -> None:
    async with answering() as (stranger, answers):
        reader, writer = await stranger.connect()
        idle_reader, idle_writer = await stranger.connect()
        writer.write(SLOW)
        await begun(answers)
        answers.stop()
        assert await idle_reader.read() == b""
        answers.go_on.set()
        printed = await reader.read()
        assert printed.endswith(b"/slow {}") and b"connection: close" in printed
        for each in (writer, idle_writer):
            each.close()
