"""An API server whose pods are processes of this machine: it speaks `v5.channel.k8s.io` over a
WebSocket and really runs the commands.

The WebSocket side is aiohttp's, so Fairlead's client is tested against another implementation. All
other requests are answered by script, as in `scripted`. `on_exec` replaces the running of a command
by a coroutine of the test, for servers that misbehave.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import signal
import struct
import termios
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import WSMsgType, web
from tests.edge.pki import Pair
from tests.edge.scripted import ReceivedRequest, Reply, Stream, server_context, status
from tests.waiting import HANG_SECONDS

V5 = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, SIZE, CLOSE = 0, 1, 2, 3, 4, 255
Script = dict[str, list[Reply | Stream]]
OnExec = Callable[[web.Request, web.WebSocketResponse], Awaitable[None]]


class ExecServer:
    """`executed`: the requests for `exec`; `sizes`: the terminal sizes received; `killed`: the
    number of commands whose caller disconnected.
    """

    def __init__(
        self,
        script: Script,
        pair: Pair | None = None,
        *,
        client_ca: bytes | None = None,
        on_exec: OnExec | None = None,
    ) -> None:
        self.script = script
        self.refusal: Reply | None = None
        self.protocols: tuple[str, ...] = (V5,)
        self.answers_pings = True
        self.executed: list[ReceivedRequest] = []
        self.sizes: list[tuple[int, int]] = []
        self.killed = 0
        self._on_exec = on_exec or self._run
        self._tls = server_context(pair, client_ca) if pair else None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> ExecServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(HANG_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(HANG_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANG_SECONDS)
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/exec", self._exec)
        app.router.add_route("*", "/{path:.*}", self._scripted)
        self._runner = web.AppRunner(app, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()

    async def _scripted(self, request: web.Request) -> web.Response:
        steps = self.script.get(request.path)
        step = (
            steps[0]
            if steps
            else status(404, "NotFound", "the server could not find the requested resource")
        )
        assert isinstance(step, Reply)
        return web.Response(
            body=step.content(),
            status=step.status,
            headers={"Content-Type": "application/json"} | step.headers,
        )

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.executed.append(
            ReceivedRequest(
                request.method, request.path, dict(request.query), headers, b"", _peer(request)
            )
        )
        if self.refusal is not None:
            return web.Response(
                body=self.refusal.content(),
                status=self.refusal.status,
                headers=self.refusal.headers,
            )
        socket = web.WebSocketResponse(protocols=self.protocols, autoping=self.answers_pings)
        await socket.prepare(request)
        await self._on_exec(request, socket)
        return socket

    async def _run(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        """Follows the order of the API server and the kubelet: streams first, then the Status, then
        a normal close.
        """
        is_terminal = request.query.get("tty") == "true"
        session = _Session(socket, self.sizes)
        await session.start(request.query.getall("command"), is_terminal=is_terminal)
        feeding = asyncio.create_task(session.feed())
        ending = asyncio.create_task(session.code())
        done, _ = await asyncio.wait({feeding, ending}, return_when=asyncio.FIRST_COMPLETED)
        if ending not in done and feeding.result() == "gone":
            self.killed += 1
            session.kill()
        code = await ending
        feeding.cancel()
        with suppress(ConnectionError):
            await socket.send_bytes(bytes([STATUS]) + ended(code))
            await socket.close()


class _Session:
    """One process, with pipes or behind a pseudo-terminal."""

    def __init__(self, socket: web.WebSocketResponse, sizes: list[tuple[int, int]]) -> None:
        self._socket = socket
        self._sizes = sizes
        self._master = -1

    async def start(self, command: list[str], *, is_terminal: bool) -> None:
        if not is_terminal:
            pipes = {
                "stdin": asyncio.subprocess.PIPE,
                "stdout": asyncio.subprocess.PIPE,
                "stderr": asyncio.subprocess.PIPE,
            }
            self._process = await asyncio.create_subprocess_exec(
                *command, **pipes, start_new_session=True
            )
            assert self._process.stdout and self._process.stderr
            readers = [(self._process.stdout, STDOUT), (self._process.stderr, STDERR)]
            self._pumps = [
                asyncio.create_task(self._pump(reader, channel)) for reader, channel in readers
            ]
            return
        self._master, slave = pty.openpty()
        loop = asyncio.get_running_loop()
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=lambda: _own_terminal(slave),
        )
        os.close(slave)
        self._pumps = [loop.create_task(self._pump_terminal())]

    async def feed(self) -> str:
        """Passes on stdin until the caller disconnects ("gone")."""
        async for message in self._socket:
            assert message.type is WSMsgType.BINARY, message
            channel, data = message.data[0], message.data[1:]
            if channel == SIZE:
                size = json.loads(data)
                self._sizes.append((size["Width"], size["Height"]))
                fcntl.ioctl(
                    self._master,
                    termios.TIOCSWINSZ,
                    struct.pack("HHHH", size["Height"], size["Width"], 0, 0),
                )
            elif self._master >= 0 and channel == STDIN:
                os.write(self._master, data)
            elif self._process.stdin and (channel, data) == (CLOSE, bytes([STDIN])):
                self._process.stdin.close()
            elif self._process.stdin and channel == STDIN:
                with suppress(ConnectionError):
                    self._process.stdin.write(data)
                    await self._process.stdin.drain()
        return "gone"

    async def code(self) -> int:
        code = await self._process.wait()
        await asyncio.gather(*self._pumps)
        return code if code >= 0 else 128 - code

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _pump(self, reader: asyncio.StreamReader, channel: int) -> None:
        while data := await reader.read(1 << 15):
            with suppress(ConnectionError):
                await self._socket.send_bytes(bytes([channel]) + data)

    async def _pump_terminal(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # EIO: the other end is closed
            while data := await loop.run_in_executor(None, os.read, self._master, 1 << 15):
                with suppress(ConnectionError):
                    await self._socket.send_bytes(bytes([STDOUT]) + data)


def ended(code: int) -> bytes:
    """The Status that the API server makes of an exit code."""
    if code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    return json.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": (
                "command terminated with non-zero exit code: command terminated with exit code "
                f"{code}"
            ),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    ).encode()


def _own_terminal(slave: int) -> None:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def _peer(request: web.Request) -> str:
    certificate: dict[str, Any] | None = (
        request.transport.get_extra_info("peercert") if request.transport else None
    )
    pairs = [pair for group in (certificate or {}).get("subject", ()) for pair in group]
    return str(dict(pairs).get("commonName", ""))
