"""This process's stdin, stdout and stderr, which may be closed, full, or a pipe without a reader.

A descriptor below 3 that is closed is given to the next file or socket that opens, and "stdout"
then writes into it; so the gaps are filled before anything else opens. A pipe without a reader is
no failure (docs/spec/arena-cli.md#exit-status), a full disk is.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TextIO

from fairlead.errors import OutsideError
from fairlead.wire.text.terminal_text import escape_terminal


def fill_standard_streams() -> None:
    """Put /dev/null wherever descriptor 0, 1 or 2 is closed, and a stream where Python has none
    because of that.

    Both streams speak UTF-8, as the cluster does and kubectl: the same bytes in every locale. What
    is no text at all is shown escaped.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    sys.stdout = sys.stdout or _null_stream()
    sys.stderr = sys.stderr or _null_stream()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a test may have put something else there
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _null_stream() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def silence(stream: TextIO) -> None:
    """Lead a stream that failed to /dev/null, or the interpreter fails once more when it flushes at
    exit (and ends with 120).
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Stdout:
    """Where verbs print: text as a terminal may show it, bytes (logs, what a program in a container
    writes) as they are.

    Its failures are `OutsideError`, so that a full disk is never taken for a bug. A broken pipe
    stays a BrokenPipeError.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> object:
        try:
            return self._stream.write(escape_terminal(text))
        except OSError as error:
            raise self._failure(error) from error

    def write_bytes(self, data: bytes) -> None:
        """As they are and at once, after what was written as text."""
        try:
            self._stream.flush()
            self._stream.buffer.write(data)
            self._stream.buffer.flush()
        except OSError as error:
            raise self._failure(error) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> Exception:
        silence(self._stream)
        if isinstance(error, BrokenPipeError):
            return error
        return OutsideError(
            "stdout",
            f"stdout cannot be written: {error.strerror}",
            "free some space, or send the output elsewhere",
        )
