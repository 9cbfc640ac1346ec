"""One run of another program: no shell, limits of time and output, and no process left behind.

The program has a process group of its own, which ends with the call. If this process is killed, the
kernel sends SIGTERM to the program, so that it does not go on beside its successor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from fairlead.errors import OutsideError

END_SECONDS: Final = 10.0
"""How long a program may take to end after SIGTERM, before SIGKILL."""
_ERROR_BYTES: Final = 256 * 1024
_PART: Final = 64 * 1024
_GUARD: Final = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
try:
    os.execv(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"Error: `{sys.argv[2]}` cannot be started: {error.strerror}")
"""
"""Asks for a signal at the parent's death (PR_SET_PDEATHSIG), then becomes the program. It is a
process and no function between fork and exec, which could hang in a process with threads.
"""


class Ended(Struct, frozen=True):
    """`errors`: what it printed on stderr, at most 256 KiB of it."""

    status: int
    output: bytes
    errors: str


class OutputLimit(Exception):
    """The program printed more than it may."""


async def ended(
    words: Sequence[str],
    *,
    stdin: bytes,
    environment: Mapping[str, str],
    files: Sequence[int],
    seconds: float,
    most_bytes: int,
) -> Ended:
    """Runs the program, whose path is the first word, to its end.

    `files`: descriptors that it may read. Raises OutsideError if it exceeds a limit. When the call
    is cancelled, the program ends first.
    """
    name = Path(words[0]).name
    process = await _started(words, environment, files)
    try:
        async with asyncio.timeout(seconds):
            return await _talk(process, stdin, most_bytes)
    except TimeoutError as error:
        what = f"`{name}` has not ended within {seconds:.0f} s"
        raise OutsideError(name, what, "look at the objects of the release") from error
    except OutputLimit as error:
        what = f"`{name}` printed more than {most_bytes} bytes"
        raise OutsideError(name, what, "use a smaller chart") from error
    finally:
        await asyncio.shield(_end(process))


async def _started(
    words: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
) -> asyncio.subprocess.Process:
    """A start that is cancelled goes on in the background, and the program ends then: asyncio would
    end only the program, and wait for the pipes that its children hold.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid()), *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            pass_fds=tuple(files),
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.shield(_end_of(starting))
        raise


async def _end_of(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    with contextlib.suppress(OSError):
        await _end(await starting)


async def _talk(process: asyncio.subprocess.Process, stdin: bytes, most_bytes: int) -> Ended:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    _, output, errors = await asyncio.gather(
        _write(process.stdin, stdin),
        _read(process.stdout, most_bytes),
        _read(process.stderr, _ERROR_BYTES, is_cut=True),
    )
    return Ended(await process.wait(), output, errors.decode("utf-8", "replace"))


async def _write(stream: asyncio.StreamWriter, content: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(content)
        await stream.drain()
    stream.close()


async def _read(stream: asyncio.StreamReader, most: int, *, is_cut: bool = False) -> bytes:
    """All that it prints; the rest is dropped (`is_cut`), or raises OutputLimit."""
    found = bytearray()
    while part := await stream.read(_PART):
        found += part[: most - len(found)] if is_cut else part
        if len(found) > most:
            raise OutputLimit
    return bytes(found)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the program and all that it started, unless it has ended."""
    if process.returncode is not None:
        return
    _signal(process, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
