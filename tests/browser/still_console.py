"""A console over a world that a test made, in this process."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager

from tests.waiting import HANG_SECONDS

from fairlead.apps.console_server import ConsoleServer
from fairlead.apps.server import bind_socket
from fairlead.console.http.sign_in.desk import SignInDesk
from fairlead.console.http.writing.job_forms import JobForms
from fairlead.ports import Ports, UsageLedger


@contextmanager
def served(
    world: Ports,
    desk: SignInDesk | None = None,
    closing: Callable[[], Coroutine[None, None, None]] | None = None,
    forms: JobForms | None = None,
    ledger: UsageLedger | None = None,
) -> Iterator[str]:
    """A console over a cluster that does not change, in a thread of this process. `desk`: None =
    without sign-in. `closing` is awaited at the end. `forms`: how jobs are submitted.
    `ledger`: of usage, None = there is none.
    """
    server = ConsoleServer(world, desk=desk, forms=forms, ledger=ledger)
    sock = bind_socket("127.0.0.1", 0)
    address = f"http://127.0.0.1:{sock.getsockname()[1]}"
    loop = asyncio.new_event_loop()
    task = loop.create_task(server.service(sock).run())

    async def life() -> None:
        await asyncio.gather(task, return_exceptions=True)
        if closing is not None:
            await closing()

    thread = threading.Thread(target=lambda: loop.run_until_complete(life()))
    thread.start()
    try:
        first = "overview" if desk is None else "signin/methods"
        urllib.request.urlopen(f"{address}/api/v1/{first}", timeout=HANG_SECONDS).read()
        yield address
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
