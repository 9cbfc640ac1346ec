"""Event streams and logs: hints are of the own picture, and both end with the right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.requests import Request
from tests.console.tenants import BOB, Others, SignedIn, TenantsFiles, snapshot, world
from tests.console.worlds import StillCluster
from tests.waiting import until

from fairlead.apps.console_server import ConsoleServer
from fairlead.console.http import subjects as subjects_module
from fairlead.console.http.answers import Refused
from fairlead.console.pages.endpoints import BASE
from fairlead.errors import OutsideError
from fairlead.model.people.subject import Subject
from fairlead.ports import LogRequest

LOG = f"{BASE}/jobs/team-a/pytorchjob/bert/logs?follow=true&pod=bert-worker-0"
CHANGES = f"{BASE}/changes"


class Revocable(SignedIn):
    """Refuses every request once a test signs the subject out."""

    is_out = False

    async def of(self, request: Request) -> Subject:
        if self.is_out:
            raise Refused(401, "you are signed out", "sign in again")
        return self.subject


class EndlessLogs(TenantsFiles):
    """`lost`: accounts that the API server does not let read logs any more."""

    lost: frozenset[str] = frozenset()
    answers = True
    asked = 0

    async def may_read_logs(self, namespace: str, account: str) -> bool:
        self.asked += 1
        if not self.answers:
            raise OutsideError("kubernetes", "no answer")
        return account not in self.lost

    async def log(
        self, namespace: str, pod: str, wish: LogRequest, account: str
    ) -> AsyncGenerator[bytes, None]:
        yield b"first\n"
        await asyncio.Event().wait()


class Stream:
    """What an open request has sent so far."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.is_over = False

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.sent)


@asynccontextmanager
async def opened(server: ConsoleServer, address: str) -> AsyncIterator[Stream]:
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost")],
    }
    stream, gone = Stream(), asyncio.Event()

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        stream.sent.append(message)

    async def ask() -> None:
        await server.app(scope, receive, send)  # type: ignore[arg-type]
        stream.is_over = True

    asking = asyncio.create_task(ask())
    try:
        await until(lambda: stream.body != b"")
        assert stream.sent[0]["status"] == 200
        yield stream
    finally:
        gone.set()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


def console(subjects: SignedIn) -> ConsoleServer:
    others = Others()
    return ConsoleServer(replace(world(others), job_files=EndlessLogs(others)), subjects=subjects)


@pytest.mark.parametrize("address", [CHANGES, LOG])
async def test_a_stream_ends_when_the_right_is_gone(address: str) -> None:
    subjects = Revocable(BOB)
    async with opened(console(subjects), address) as stream:
        subjects.is_out = True
        await until(lambda: stream.is_over)


@pytest.mark.parametrize("address", [CHANGES, LOG])
async def test_a_stream_ends_when_its_namespaces_are_others(address: str) -> None:
    subjects = Revocable(BOB)
    async with opened(console(subjects), address) as stream:
        subjects.subject = replace(BOB, namespaces=frozenset({"team-b"}))
        await until(lambda: stream.is_over)


async def test_a_log_ends_when_the_api_server_withdraws_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A RoleBinding is gone, and the user's status still names the namespace."""
    monkeypatch.setattr(subjects_module, "RECHECK_SECONDS", 0.01)
    monkeypatch.setattr("fairlead.console.http.log_streams.RIGHT_SECONDS", 0.05)
    server = console(SignedIn(replace(BOB, account="bob")))
    files = server.world.job_files
    assert isinstance(files, EndlessLogs)
    async with opened(server, LOG) as stream:
        files.answers = False
        begun = files.asked
        await until(lambda: files.asked >= begun + 3)
        assert not stream.is_over, "an API server that does not answer ends no log"
        files.answers, files.lost = True, frozenset({"bob"})
        await until(lambda: stream.is_over)


async def test_a_log_that_is_cut_does_not_look_whole_and_an_event_stream_does() -> None:
    for address, is_whole in ((CHANGES, True), (LOG, False)):
        subjects = Revocable(BOB)
        async with opened(console(subjects), address) as stream:
            subjects.is_out = True
            await until(lambda stream=stream: stream.is_over)  # type: ignore[misc]
            assert (stream.sent[-1].get("more_body") is False) is is_whole


async def test_hints_are_of_what_the_researcher_sees() -> None:
    """Another tenant's job brings none; a pod of the own namespace does."""
    server = console(SignedIn(BOB))
    cluster = server.world.cluster
    assert isinstance(cluster, StillCluster)
    await server.pictures.of(BOB).latest()
    async with opened(server, CHANGES) as stream:
        await server.pictures.follow()
        first = stream.body
        cluster.show(snapshot(Others(jobs=3, waiting=2)))
        await server.board_states.renew()
        await server.pictures.follow()
        more = snapshot(Others(jobs=3, waiting=2))
        cluster.show(replace(more, pods=more.pods[1:]))
        await server.board_states.renew()
        await server.pictures.follow()
        await until(lambda: stream.body != first)
        hints = stream.body.removeprefix(first)
        assert hints.count(b'"topic":"jobs"') == 1
        assert b'"topic":"nodes"' in hints
    assert server.pictures.stream_count == 0


async def test_pictures_are_shared_and_let_go() -> None:
    server = console(SignedIn(BOB))
    same = replace(BOB, name="Anna", user="anna")
    assert server.pictures.of(BOB) is server.pictures.of(same)
    board = await server.pictures.of(BOB).latest()
    assert board is await server.pictures.of(same).latest()
