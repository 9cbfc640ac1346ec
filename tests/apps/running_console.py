"""A console over a world that stands still, on a free port, and a client that returns
every byte.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from tests.console.clusters import living_cluster
from tests.console.worlds import still_world
from tests.waiting import HANG_SECONDS

from fairlead.apps.console_server import ConsoleServer, ConsoleSettings, PastMoment
from fairlead.apps.server import bind_socket
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.subjects import Subjects
from fairlead.console.http.writing.job_forms import JobForms
from fairlead.console.pages.endpoints import BASE
from fairlead.ports import Ports, UsageLedger


class Page:
    """A running console: `get` answers (status, headers, body)."""

    def __init__(self, server: ConsoleServer, session: aiohttp.ClientSession, url: str) -> None:
        self.server, self.session, self.url = server, session, url

    async def get(self, path: str, **more: Any) -> tuple[int, Any, bytes]:
        async with self.session.request(
            more.pop("method", "GET"), self.url + path, **more
        ) as answer:
            return answer.status, answer.headers, await answer.read()

    async def json(self, path: str, **more: Any) -> Any:
        return json.loads((await self.get(BASE + path, **more))[2])

    async def ask_as(self, who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the JSON for the user with the token `token-of-WHO`."""
        headers = {"Authorization": f"Bearer token-of-{who}", "Content-Type": "application/json"}
        data = b"" if body is None else json.dumps(body).encode()
        status, _, answer = await self.get(BASE + path, method=method, data=data, headers=headers)
        return status, json.loads(answer)


@asynccontextmanager
async def console(
    world: Ports | None = None,
    settings: ConsoleSettings | None = None,
    past: Callable[[], Sequence[PastMoment]] | None = None,
    desk: SignInDesk | None = None,
    subjects: Subjects | None = None,
    forms: JobForms | None = None,
    ledger: UsageLedger | None = None,
) -> AsyncIterator[Page]:
    given = {} if subjects is None else {"subjects": subjects}
    server = ConsoleServer(
        world or still_world(living_cluster()),
        settings,
        past,
        desk=desk,
        forms=forms,
        ledger=ledger,
        **given,
    )
    sock = bind_socket("127.0.0.1", 0)
    service = server.service(sock)
    task = asyncio.create_task(service.run())
    try:
        await asyncio.wait_for(service.accepting.wait(), HANG_SECONDS)
        async with aiohttp.ClientSession(
            auto_decompress=False,
            headers={"Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            yield Page(server, session, f"http://127.0.0.1:{sock.getsockname()[1]}")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
