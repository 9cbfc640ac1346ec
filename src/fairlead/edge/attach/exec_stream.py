"""Runs a program in a container as `kubectl exec`: stdin, stdout and stderr over one WebSocket.

All I/O is in one thread that waits for the first event. It reads stdin only while the connection
accepts data, and checks stdin between any two pieces of output, so that Ctrl-C reaches a program
that writes without end.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from typing import Final

from fairlead.edge.attach.handshake import open_web_socket
from fairlead.edge.attach.web_socket import WebSocket
from fairlead.edge.kube.api_failure import Unreachable
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import PODS
from fairlead.errors import OutsideError
from fairlead.ports import Streams
from fairlead.wire.kube import exec_channels
from fairlead.wire.kube.exec_channels import ProgramEnd

PING_SECONDS: Final = 5.0
PINGS_UNANSWERED: Final = 12  # as in kubectl: a server that is silent for a minute counts as gone
_PIECE: Final = 1 << 15
_BACKLOG: Final = 1 << 17


def execute(
    api: KubeBlocking,
    namespace: str,
    pod: str,
    container: str,
    command: Sequence[str],
    streams: Streams,
) -> ProgramEnd:
    """Runs the command to its end.

    Raises ApiFailure when the server refuses, or the connection breaks before the end.
    """
    query = exec_channels.exec_query(container, command, is_terminal=streams.is_terminal)
    with (
        open_web_socket(
            api, f"{PODS.path(namespace, pod, 'exec')}?{query}", exec_channels.PROTOCOL
        ) as web,
        streams.raw(),
    ):
        return ExecStream(web, streams).run()


class ExecStream:
    """One running program. `ping_seconds`: how often a silent server is pinged."""

    def __init__(
        self, web: WebSocket, streams: Streams, *, ping_seconds: float = PING_SECONDS
    ) -> None:
        self._web = web
        self._streams = streams
        self._ping_seconds = ping_seconds
        self._ping_at = time.monotonic() + ping_seconds
        self._unanswered = 0
        self._has_input = True
        self._end: ProgramEnd | None = None

    def run(self) -> ProgramEnd:
        """Runs until the program has ended and the server has closed the connection."""
        if self._streams.is_terminal:
            self._web.send(exec_channels.render_size(*self._streams.size()))
        try:
            while not self._web.is_closed:
                self._turn()
        except Unreachable:
            if self._end is None:
                raise
        if self._end is None:
            why = f": {self._web.reason}" if self._web.reason else ""
            raise OutsideError(
                "kubernetes",
                f"the API server hung up before the command ended{why}",
                "whether it still runs is not known",
            )
        return self._end

    def _turn(self) -> None:
        self._web.flush()
        ready = self._wait()
        if ready.get(self._web.fileno(), 0) & ~select.POLLOUT:
            self._unanswered = 0
            for message in self._web.receive():
                self._receive(message)
        if self._streams.resized in ready:
            self._web.send(exec_channels.render_size(*self._streams.size()))
        if self._streams.stdin in ready:
            self._send_input()
        if time.monotonic() >= self._ping_at:
            self._ping()

    def _wait(self) -> dict[int, int]:
        """The descriptors that are ready, and for what; empty when it is time to ping."""
        poll = select.poll()
        poll.register(self._web, self._web.awaited)
        if self._has_input and self._end is None and self._web.backlog < _BACKLOG:
            poll.register(self._streams.stdin, select.POLLIN)
        if self._streams.resized >= 0:
            poll.register(self._streams.resized, select.POLLIN)
        if self._web.has_more:
            return {**dict(poll.poll(0)), self._web.fileno(): select.POLLIN}
        return dict(poll.poll(max(0.0, self._ping_at - time.monotonic()) * 1000))

    def _receive(self, message: bytes) -> None:
        channel, data = message[0] if message else -1, message[1:]
        if channel == exec_channels.STDOUT:
            self._streams.write(data)
        elif channel == exec_channels.STDERR:
            self._streams.write_error(data)
        elif channel == exec_channels.STATUS and data:
            try:
                self._end = exec_channels.parse_end(data)
            except ValueError as error:
                raise OutsideError(
                    "kubernetes",
                    f"the API server did not report with a Status how the command ended: {error}",
                ) from error
            self._ping_at = time.monotonic() + self._ping_seconds

    def _send_input(self) -> None:
        try:
            data = os.read(self._streams.stdin, _PIECE)
        except OSError as error:
            raise OutsideError(
                "stdin",
                f"stdin cannot be read: {error.strerror}",
                "give it `< /dev/null` if it needs none",
            ) from error
        self._has_input = bool(data)
        self._web.send(exec_channels.render_input(data) if data else exec_channels.END_OF_INPUT)

    def _ping(self) -> None:
        if self._end is not None:
            raise Unreachable("the API server does not hang up, though the command has ended")
        if self._unanswered >= PINGS_UNANSWERED:
            raise Unreachable(
                (
                    "the API server has sent nothing for "
                    f"{self._unanswered * self._ping_seconds:.0f} s"
                ),
                "check the network",
            )
        self._unanswered += 1
        self._ping_at = time.monotonic() + self._ping_seconds
        self._web.ping()
