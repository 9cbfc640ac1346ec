"""What the containers of a node take of the card, as the stub of NVIDIA's driver counts it.

A process has a slot of the stub's file, and a record lock on it while it lives
(`native/stub/truth.h`). Only the kernel knows whose lock it is, so a test needs no word of the
container for it.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.native.driver import MIB, TRUTH_BYTES, UUID
from tests.nvml.stub import StubState
from tests.waiting import HANG_SECONDS, repeat

_GPUS, _SLOTS = 8, 256
_HEAD: Final = struct.Struct(f"={2 * _GPUS}Q2I40s")
_SLOT: Final = struct.Struct(f"={1 + _GPUS}Q")
_LOCK: Final = struct.Struct("@hhqqi4x")
_SHOWN_SECONDS: Final = 0.25
V100: Final = {
    "name": "Tesla V100-SXM2-16GB",
    "uuid": UUID,
    "total": 16130 * MIB,
    "reserved": 0,
    "capability-major": 7,
    "capability-minor": 0,
}
"""The card of document 001, with the memory and the UUID of the stub's first."""


@dataclass(frozen=True)
class DriverCount:
    """`path`: the stub's file."""

    path: Path

    def by_process(self) -> dict[int, int]:
        """Bytes of the first GPU, by process id of this machine, of processes that live."""
        with self.path.open("r+b") as file:
            text = file.read(TRUTH_BYTES)
            taken = {}
            for index in range(_SLOTS):
                slot = _SLOT.unpack_from(text, _HEAD.size + index * _SLOT.size)
                owner = _lock_owner(file.fileno(), index) if slot[0] else 0
                if owner:
                    taken[owner] = slot[1]
            return taken

    def of_pod(self, uid: str) -> int:
        """Bytes that processes in the pod's cgroup take."""
        return sum(size for pid, size in self.by_process().items() if uid in _of(pid, "cgroup"))

    @contextmanager
    def shown_by(self, state: StubState) -> Iterator[None]:
        """The played NVML of the node shows what this driver counts, for the block."""
        ended = threading.Event()
        state.say({f"0.{row}": value for row, value in V100.items()})

        def show() -> None:
            taken = {_pid_of_node(pid): size for pid, size in self.by_process().items()}
            rows = ",".join(f"{pid}:{size}" for pid, size in taken.items() if pid and size)
            state.say({"0.compute": rows or None, "0.used": sum(taken.values())})

        thread = threading.Thread(target=repeat, args=(ended, _SHOWN_SECONDS, show))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(HANG_SECONDS)


def _lock_owner(file: int, index: int) -> int:
    """The process that holds the slot's lock; 0: no process."""
    asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, index, 1, 0)
    kind, *_, pid = _LOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return 0 if kind == fcntl.F_UNLCK else int(pid)


def _pid_of_node(pid: int) -> int:
    """What the process is called in its node's pid namespace, which is the second one; 0 where it
    has ended.
    """
    for line in _of(pid, "status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[2])
    return 0


def _of(pid: int, name: str) -> str:
    """A file of the process; empty where it has ended."""
    try:
        return Path("/proc", str(pid), name).read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""
