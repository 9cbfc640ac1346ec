"""`arena attach` in a terminal: the test's pseudo-terminal around the command, and the server's
around the remote shell.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cli.arena import PROGRAM
from tests.cli.jobs.attaching import CA, SECONDS, environment, eventually, jobs
from tests.edge.exec_server import STDOUT, ExecServer


class Terminal:
    """One `arena attach` behind a pseudo-terminal: its output, and a way to type."""

    def __init__(
        self, folder: Path, server: ExecServer, *words: str, size: tuple[int, int] = (100, 30)
    ) -> None:
        self._master, self._slave = pty.openpty()
        self.resize(*size)
        self.shown = b""
        self.before = termios.tcgetattr(self._slave)
        self.process = subprocess.Popen(
            [*PROGRAM, "attach", *words],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=environment(folder, server),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(SECONDS)
        os.close(self._master)
        os.close(self._slave)

    @property
    def mode(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def wait_for(self, text: bytes) -> None:
        """Waits until this text appears; removes everything up to it from the output."""
        deadline = time.monotonic() + SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} in {self.shown!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                self.shown += os.read(self._master, 1 << 16)
        self.shown = self.shown.partition(text)[2]

    def end(self) -> int:
        """The exit status. Reads the remaining output, so that the process is never blocked."""
        deadline = time.monotonic() + SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it goes on: {self.shown!r}"
            if select.select([self._master], [], [], 0.05)[0]:
                self.shown += os.read(self._master, 1 << 16)
        while select.select([self._master], [], [], 0)[0]:
            self.shown += os.read(self._master, 1 << 16)
        return int(self.process.returncode)


@pytest.fixture(scope="module")
def server() -> Iterator[ExecServer]:
    with ExecServer(jobs(), CA.issue("api")) as running:
        yield running


def test_a_shell_in_a_terminal(tmp_path: Path, server: ExecServer) -> None:
    """The terminal's size at the start and after a change; Ctrl-C reaches the remote program; the
    exit status; the mode is restored.
    """
    with Terminal(tmp_path, server, "bert") as terminal:
        terminal.wait_for(b"Hello! Arena attach the container main of instance bert-launcher-x\r\n")
        terminal.type(b"PS1='ready> '; stty size\n")
        terminal.wait_for(b"30 100\r\n")
        terminal.wait_for(b"ready> ")
        assert terminal.mode != terminal.before, "every key goes over"
        terminal.resize(132, 50)
        eventually(lambda: (132, 50) in server.sizes, "the new size was sent")
        terminal.type(b"stty size\n")
        terminal.wait_for(b"50 132\r\n")
        terminal.type(
            b'sh -c \'trap "echo caught; exit 9" INT; echo ar""med; while :; do sleep 0.1; done\'\n'
        )
        # the echo of the typed line contains quotes, and may come before the prompt
        terminal.wait_for(b"armed\r\n")
        terminal.type(b"\x03")
        terminal.wait_for(b"caught\r\n")
        terminal.type(b"echo status $?\n")
        terminal.wait_for(b"status 9\r\n")
        terminal.type(b"exit 4\n")
        assert terminal.end() == 4
        assert terminal.mode == terminal.before
        assert b"command terminated with exit code 4" in terminal.shown
    query = server.executed[-1].query
    assert query["tty"] == "true" and "stderr" not in query


def test_ctrl_c_reaches_a_program_that_never_stops_writing(
    tmp_path: Path, server: ExecServer
) -> None:
    with Terminal(tmp_path, server, "bert", "--", "yes") as terminal:
        terminal.wait_for(b"y\r\ny\r\n")
        terminal.type(b"\x03")
        assert terminal.end() == 130
        assert terminal.mode == terminal.before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_from_elsewhere_finds_the_terminal_given_back(
    number: signal.Signals, tmp_path: Path, server: ExecServer
) -> None:
    before = server.killed
    with Terminal(tmp_path, server, "bert", "--", "sh", "-c", "echo ready; sleep 1000") as terminal:
        terminal.wait_for(b"ready\r\n")
        eventually(lambda: terminal.mode != terminal.before, "every key goes over")
        terminal.process.send_signal(number)
        assert terminal.end() == (130 if number is signal.SIGINT else -number)
        assert terminal.mode == terminal.before
    eventually(lambda: server.killed == before + 1, "the command lost its caller")


async def _die(request: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(bytes([STDOUT]) + b"ready\r\n")
    await socket.receive()  # the size
    await socket.receive()
    assert request.transport is not None
    request.transport.abort()
    await asyncio.sleep(0)


def test_a_server_that_dies_leaves_a_usable_terminal(tmp_path: Path) -> None:
    with (
        ExecServer(jobs(), CA.issue("api"), on_exec=_die) as server,
        Terminal(tmp_path, server, "bert") as terminal,
    ):
        terminal.wait_for(b"ready\r\n")
        eventually(lambda: terminal.mode != terminal.before, "every key goes over")
        terminal.type(b"x")
        assert terminal.end() == 1
        assert terminal.mode == terminal.before
        assert b"Traceback" not in terminal.shown
        assert terminal.shown.endswith(b"\r\n") and b"\x1b[31mERRO\x1b[0m" in terminal.shown, (
            "the message has its own lines again"
        )
