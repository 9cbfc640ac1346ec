"""The shell of every process: one failure ends all tasks, a stop waits for them; signals, probes,
and the moment when everything is ready.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest
from starlette.applications import Starlette
from tests.apps.plain_requests import ask
from tests.waiting import HANG_SECONDS, until

from fairlead.apps.server import bind_socket
from fairlead.apps.service import Loop, Probes, ServedApp, pages_app, run, together
from fairlead.errors import UserError


async def endless() -> None:
    await asyncio.Event().wait()


async def failing() -> None:
    raise UserError("no", "yes")


def service(unready: Callable[[], str] = lambda: "", **more: object) -> ServedApp:
    return ServedApp(
        app=Starlette(), sock=bind_socket("127.0.0.1", 0), probes=Probes(unready=unready), **more
    )  # type: ignore[arg-type]


async def test_the_first_failure_ends_every_loop() -> None:
    ended = asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await endless()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async def returning() -> None:
        return

    with pytest.raises(UserError, match="no"):
        await together(slow_to_end(), returning(), failing())
    assert ended.is_set(), "the others have ended before the failure is raised"


async def test_a_stop_waits_for_every_loop_and_interrupts_no_end() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        try:
            began.set()
            await endless()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async def nested() -> None:
        await together(slow_to_end(), endless())

    task = asyncio.create_task(together(nested(), endless()))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_is_an_end_without_error_and_a_second_one_changes_nothing(
    number: signal.Signals,
) -> None:
    ended = asyncio.Event()

    async def slow_to_end() -> None:
        try:
            await endless()
        finally:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)
            ended.set()

    await run(service(), loops=(slow_to_end(),), on_ready=lambda: os.kill(os.getpid(), number))
    assert ended.is_set()


async def test_one_that_lingers_answers_after_the_signal_and_closes_each_connection() -> None:
    """No request meets a connection that is being closed."""
    made = service(linger_seconds=600.0)
    host, port = made.sock.getsockname()
    running = asyncio.ensure_future(run(made, on_ready=lambda: None))
    await until(made.accepting.is_set)
    reader, writer = await asyncio.open_connection(host, port)
    request = f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    for is_leaving in (False, True):
        if is_leaving:
            os.kill(os.getpid(), signal.SIGTERM)
            await until(made.leaving.is_set)
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 404 ")
        assert (b"connection: close" in head) == is_leaving
        body = int(head.partition(b"content-length: ")[2].split()[0])
        await reader.readexactly(body)
    assert await reader.read() == b"", "the answer was the last one of its connection"
    writer.close()
    ended, _ = await asyncio.wait({running}, timeout=0.5)
    assert not ended, "it lingers"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_loop_of_a_service_that_fails_ends_the_process_with_its_error() -> None:
    with pytest.raises(UserError, match="no"):
        await run(service(), service(loops=(failing,)), on_ready=lambda: None)


async def test_a_hangup_lets_every_service_read_again_or_ends_all() -> None:
    reloads: list[str] = []

    def hang_up() -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    services = [
        service(reload=lambda: reloads.append("a")),
        service(),
        service(reload=lambda: reloads.append("b")),
    ]
    running = asyncio.create_task(run(*services, on_ready=hang_up))
    await until(lambda: len(reloads) == 2)
    assert not running.done() and reloads == ["a", "b"]
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    await asyncio.wait_for(run(service(), on_ready=hang_up, ends_on_hangup=True), HANG_SECONDS)


async def test_all_is_up_once_every_service_accepts_and_is_ready() -> None:
    reasons = {"first": "the cluster is still being read", "second": ""}
    opens = asyncio.Event()
    printed: list[bool] = []
    asked = 0

    def unready() -> str:
        nonlocal asked
        asked += 1
        return reasons["first"]

    services = (service(unready), service(opens=opens))
    running: Loop = run(*services, on_ready=lambda: printed.append(True))
    task = asyncio.create_task(running)
    await until(lambda: asked > 3)
    assert not printed, "one is unready"
    before, reasons["first"] = asked, ""
    await until(lambda: asked > before)
    await asyncio.sleep(0)
    assert not services[1].accepting.is_set() and not printed, "the second does not accept"
    opens.set()
    await until(lambda: printed)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_probes_get_the_reason_and_other_methods_are_refused() -> None:
    trouble, unready = [""], ["not yet read:\npods: syncing"]

    async def metrics(request: object) -> object:
        raise AssertionError

    probes = Probes(lambda: trouble[0], lambda: unready[0])
    sock = bind_socket("127.0.0.1", 0)
    app = pages_app("tester", probes, metrics)  # type: ignore[arg-type]
    task = asyncio.create_task(ServedApp(app=app, sock=sock, probes=probes).run())
    assert await ask(sock, "GET /healthz") == (200, "ok\n")
    assert await ask(sock, "GET /readyz") == (503, "not yet read:\npods: syncing\n")
    trouble[0], unready[0] = "no page made for 61 s", ""
    assert await ask(sock, "GET /healthz") == (503, "no page made for 61 s\n")
    assert await ask(sock, "GET /readyz") == (200, "ok\n")
    assert await ask(sock, "HEAD /readyz") == (200, "")
    assert (await ask(sock, "POST /readyz"))[0] == 405
    status, index = await ask(sock, "GET /")
    assert (
        status == 200
        and index.startswith("Fairlead tester ")
        and index.endswith("\n/metrics\n/healthz\n/readyz\n")
    )
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
