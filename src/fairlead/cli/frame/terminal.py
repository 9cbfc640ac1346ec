"""Stdin, stdout and stderr as the streams of a remote program (`ports.Streams`).

It also switches the terminal to raw mode and back.

A terminal keeps its mode when a process dies. It is given back on every way out, also by a signal.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

from fairlead.cli.frame.context import Output
from fairlead.cli.frame.standard_streams import silence

# Ctrl-C from outside is a KeyboardInterrupt, which unwinds by itself
_ENDS_US: Final = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
_USUAL: Final = (80, 24)
_NOTICES: Final = 512


class OwnStreams:
    """The streams of this process. A failing stdout ends the command; a failing stderr does not."""

    def __init__(self, stdout: Output, stderr: TextIO | None = None) -> None:
        self.stdin = 0
        self.resized = -1
        self._stdout = stdout
        self._stderr = stderr or sys.stderr

    @property
    def is_terminal(self) -> bool:
        return os.isatty(self.stdin)

    def size(self) -> tuple[int, int]:
        if self.resized >= 0:
            _drain(self.resized)
        try:
            columns, rows = os.get_terminal_size(self.stdin)
        except OSError:
            return _USUAL
        return columns or _USUAL[0], rows or _USUAL[1]

    @contextmanager
    def raw(self) -> Iterator[None]:
        if not self.is_terminal:
            yield
            return
        before = termios.tcgetattr(self.stdin)

        def give_back() -> None:
            termios.tcsetattr(self.stdin, termios.TCSANOW, before)

        with _before_we_end(give_back), self._sends_sizes():
            try:
                tty.setraw(self.stdin, termios.TCSANOW)
                yield
            finally:
                give_back()

    def write(self, data: bytes) -> None:
        self._stdout.write_bytes(data)

    def write_error(self, data: bytes) -> None:
        try:
            self._stderr.flush()
            self._stderr.buffer.write(data)
            self._stderr.buffer.flush()
        except OSError:
            silence(self._stderr)

    @contextmanager
    def _sends_sizes(self) -> Iterator[None]:
        """`resized` is a pipe into which the signal of the terminal writes."""
        self.resized, notices = os.pipe()
        for end in (self.resized, notices):
            os.set_blocking(end, False)

        def notice(*_: object) -> None:
            try:
                os.write(notices, b".")
            except BlockingIOError:
                return  # there are notices enough

        try:
            with _handling((signal.SIGWINCH,), notice):
                yield
        finally:
            os.close(self.resized)
            os.close(notices)
            self.resized = -1


def _before_we_end(act: Callable[[], None]) -> Any:
    """While it lasts, a signal that ends us does so after `act`."""

    def act_and_end(number: int, _: object) -> None:
        act()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return _handling(_ENDS_US, act_and_end)


@contextmanager
def _handling(
    signals: Sequence[signal.Signals], handler: Callable[[int, object], None]
) -> Iterator[None]:
    """A signal that is ignored (`nohup`) stays so."""
    before = {number: signal.getsignal(number) for number in signals}
    for number, old in before.items():
        if old is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, _NOTICES):
            pass
    except BlockingIOError:
        return
