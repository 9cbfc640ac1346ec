"""`pods/exec`: a program in a container, with its streams over a WebSocket.

A request is refused where a real API server, or the kubelet behind it, refuses it, in the same
words: first what the pod does not allow, then the upgrade. Only WebSockets are spoken: kubectl
prefers them to SPDY.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.ports import Clock
from fairlead.wire.kube import exec_channels
from fairlead.wire.kube.exec_channels import PROTOCOL, PROTOCOL_4, ProgramEnd
from fairlead_sim.api.logs import container_name
from fairlead_sim.api.reads import Reads
from fairlead_sim.api.request import ReceivedRequest
from fairlead_sim.api.watch import STALL_SECONDS, outcome_of_first
from fairlead_sim.kubelet.exec import Execution, NotStarted
from fairlead_sim.kubelet.logs import date_line
from fairlead_sim.kubelet.program import INSTANT_SECONDS, Program
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.status import bad_request, forbidden

EXEC: Final = "exec"
KILLED: Final = 137
"""The exit code of a program whose container ends before it."""
_CONTAINER_LISTS: Final = ("initContainers", "containers")
_STREAMS: Final = ("stdin", "stdout", "stderr")
_LOOK_SECONDS: Final = 0.2
_PIECE: Final = 1 << 15
_NORMAL, _GOING_AWAY = 1000, 1001


class PodPrograms(Protocol):
    """The programs that containers have."""

    def run_number(self, namespace: str, pod: str, container: str) -> int | None:
        """Which run of the container it is, counted from 0; None if it does not run."""
        ...

    def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str]
    ) -> Execution | NotStarted:
        """What the command does in a container that runs."""
        ...


class NoPrograms:
    """A cluster in which no container runs."""

    def run_number(self, namespace: str, pod: str, container: str) -> int | None:
        return None

    def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str]
    ) -> Execution | NotStarted:
        return NotStarted(f'container not found ("{container}")')


class Execs:
    """`may_create`: whether the user may create `pods/exec`.

    A WebSocket is opened by GET, for which authorization has asked for `get`; API servers from 1.35
    on require both.
    """

    def __init__(
        self,
        programs: PodPrograms,
        reads: Reads,
        clock: Clock,
        ending: asyncio.Event,
        may_create: Callable[[ReceivedRequest], bool],
    ) -> None:
        self._programs = programs
        self._reads = reads
        self._clock = clock
        self._ending = ending
        self._may_create = may_create

    def open(self, request: ReceivedRequest) -> ASGIApp:
        """The answer to one request: a refusal of the kubelet, or the session.

        Raises the refusals of the API server.
        """
        if not self._may_create(request):
            raise forbidden(request.ref, request.path.name, "")
        pod = self._reads.existing(request)
        container = _container(pod, request.query.get("container", ""))
        if not pod["spec"].get("nodeName"):
            raise bad_request(f"pod {request.path.name} does not have a host assigned")
        if not _upgrade(request.http):
            raise bad_request("Upgrade request required")
        asked = {name for name in _STREAMS if request.is_true(name)}
        if not asked:
            return PlainTextResponse("you must specify at least 1 of stdin, stdout, stderr", 400)
        place = (request.namespace, request.path.name, container)
        run = self._programs.run_number(*place)
        if run is None:
            return PlainTextResponse(f'container not found ("{container}")', 500)
        if _upgrade(request.http) != "websocket" or request.http.method != "GET":
            return PlainTextResponse(
                "the simulated API server speaks WebSocket here, and no SPDY: use kubectl 1.31 or "
                "later, without KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false",
                400,
            )
        offered = request.http.scope.get("subprotocols", ())
        protocol = next((each for each in (PROTOCOL, PROTOCOL_4) if each in offered), "")
        if not protocol:
            return Response(status_code=403)
        is_terminal = request.is_true("tty")
        return ExecSession(
            self._programs.execute(*place, request.query.getlist("command")),
            protocol,
            asked - {"stderr"} if is_terminal else asked,
            self._clock,
            self._ending,
            is_terminal=is_terminal,
            is_running=lambda: self._programs.run_number(*place) == run,
        )


def _container(pod: Object, asked: str) -> str:
    """As for the log, but a list of the names to choose from has all of them alike."""
    spec = pod["spec"]
    names = [each["name"] for key in _CONTAINER_LISTS for each in spec.get(key) or ()]
    if asked or len(spec["containers"]) == 1:
        return container_name(pod, asked)
    raise bad_request(
        f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: "
        f"[{' '.join(names)}]"
    )


def websocket_as_http(scope: Scope) -> Scope:
    """The request that asks for a WebSocket, as the GET request that it is."""
    return {**scope, "type": "http", "method": "GET"}


def refusing(send: Send) -> Send:
    """Sends an HTTP answer to a client that asked for a WebSocket."""

    async def refuse(message: Message) -> None:
        if message["type"] == "http.response.start":  # the connection ends with such an answer
            headers = [*message.get("headers", ()), (b"connection", b"close")]
            message = {**message, "headers": headers}
        await send({**message, "type": f"websocket.{message['type']}"})

    return refuse


def _upgrade(http: Request) -> str:
    """The protocol that the client wants to change to, in small letters; "" for none."""
    connection = [
        word.strip().lower()
        for value in http.headers.getlist("connection")
        for word in value.split(",")
    ]
    return http.headers.get("upgrade", "").lower() if "upgrade" in connection else ""


class ExecSession:
    """An ASGI answer: the streams of one program until it ends, the client goes or reads nothing
    for `STALL_SECONDS`, or `ending` is set.

    `streams`: those that the client wants. `is_running`: whether the container still runs.
    """

    def __init__(
        self,
        started: Execution | NotStarted,
        protocol: str,
        streams: set[str],
        clock: Clock,
        ending: asyncio.Event,
        *,
        is_terminal: bool,
        is_running: Callable[[], bool],
    ) -> None:
        self._started = started
        self._protocol = protocol
        self._streams = streams
        self._clock = clock
        self._ending = ending
        self._is_terminal = is_terminal
        self._is_running = is_running
        self._input: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
        self._takes_input = isinstance(started, Execution) and started.copies_input

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        await send({"type": "websocket.accept", "subprotocol": self._protocol})
        outcome = await outcome_of_first(self._run(send), self._read(receive), self._ending.wait())
        if outcome is None or self._ending.is_set():
            code = _NORMAL if outcome is None else _GOING_AWAY
            with contextlib.suppress(OSError):  # the client has gone
                await send({"type": "websocket.close", "code": code})
        elif isinstance(outcome, BaseException) and not isinstance(
            outcome, asyncio.CancelledError | TimeoutError | OSError
        ):
            raise outcome

    # --- what the client sends --------------------------------------------------------------------

    async def _read(self, receive: Receive) -> None:
        """Until the client closes. Input that no program reads is lost."""
        while (message := await receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            received = message.get("bytes") if text is None else text.encode()
            channel, data = exec_channels.parse_message(received or b"")
            is_end = received == exec_channels.END_OF_INPUT
            if channel == exec_channels.STDIN and self._takes_input and (data or is_end):
                await self._input.put(data)

    # --- what the program does --------------------------------------------------------------------

    async def _run(self, send: Send) -> None:
        started = self._started
        await self._send(send, exec_channels.render_output(b""))  # as a kubelet begins
        if isinstance(started, NotStarted):
            end = ProgramEnd(None, started.message)
        else:
            await self._write(send, started.output)
            await self._write(send, started.errors, is_error=True)
            end = ProgramEnd(await self._played(send, started))
        await self._send(send, exec_channels.render_end(end, self._protocol))

    async def _played(self, send: Send, started: Execution) -> int:
        """The exit code, once the program has ended."""
        if started.copies_input and "stdin" in self._streams:
            return await self._copied(send)
        if started.script is None:
            return started.exit_code
        return await self._scripted(send, started.script)

    async def _copied(self, send: Send) -> int:
        while self._is_running():
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    data = await self._input.get()
            except TimeoutError:
                continue
            if not data:
                return 0
            await self._write(send, data)
        return KILLED

    async def _scripted(self, send: Send, script: Program) -> int:
        began, count = self._clock.now(), 0
        is_short = script.run_seconds is not None and script.run_seconds <= INSTANT_SECONDS
        while True:
            lived = INSTANT_SECONDS if is_short else self._clock.now() - began
            lines = script.printed(lived)
            text = "".join(
                f"{date_line(began + at) if line is None else line}\n" for at, line in lines[count:]
            )
            await self._write(send, text.encode())
            count = len(lines)
            if script.run_seconds is not None and lived >= script.run_seconds:
                return script.exit_code
            if not self._is_running():
                return KILLED
            await asyncio.sleep(_LOOK_SECONDS)

    async def _write(self, send: Send, data: bytes, *, is_error: bool = False) -> None:
        """Output, where the client wants the stream; a terminal is one, with its line ends."""
        if self._is_terminal:
            data, is_error = data.replace(b"\n", b"\r\n"), False
        if data and ("stderr" if is_error else "stdout") in self._streams:
            for at in range(0, len(data), _PIECE):
                piece = data[at : at + _PIECE]
                await self._send(send, exec_channels.render_output(piece, is_error=is_error))

    async def _send(self, send: Send, message: bytes) -> None:
        async with asyncio.timeout(STALL_SECONDS):
            await send({"type": "websocket.send", "bytes": message})
