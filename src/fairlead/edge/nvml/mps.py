"""The MPS daemons of this node: one per card, with a pipe directory that has the card's UUID.

NVIDIA defines no place for several daemons, so Fairlead does: an administrator starts each with
`CUDA_MPS_PIPE_DIRECTORY=/run/nvidia/mps/<uuid>` (docs/how-to/gpu-node.md). The daemon writes its
process id there, and the file remains when it is killed. Nothing here starts or ends a daemon: its
clients would not survive its end.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pynvml
from msgspec import Struct
from pynvml import NVMLError

from fairlead.edge.nvml.cards import ShownCard
from fairlead.edge.nvml.library import is_gone, words
from fairlead.model.devices.driver import MpsLimit
from fairlead.wire.devices.mps_control import (
    SERVERS,
    is_limit,
    parse_servers,
    render_limit,
    render_question,
)

PIPES: Final = Path("/run/nvidia/mps")
CONTROL: Final = "nvidia-cuda-mps-control"
COMMAND_SECONDS: Final = 5.0
"""The longest time for one command of the control program."""
_PID_FILE: Final = f"{CONTROL}.pid"
_PROGRAM: Final = CONTROL[:15]
"""The name of the daemon's process; the kernel keeps 15 characters of it."""
_DEFAULT: Final = pynvml.NVML_COMPUTEMODE_DEFAULT
_EXCLUSIVE: Final = pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS


class MpsPlaces(Struct, frozen=True):
    """`control`: the control program, a name in `PATH` or a path. The agent must see the node's
    `processes`.
    """

    pipes: Path = PIPES
    processes: Path = Path("/proc")
    control: str = CONTROL


PLACES: Final = MpsPlaces()


def has_daemon(uuid: str, places: MpsPlaces) -> bool:
    """Whether the daemon of this card runs now."""
    try:
        pid = int((places.pipes / uuid / _PID_FILE).read_text(encoding="ascii"))
        return (places.processes / str(pid) / "comm").read_text(
            encoding="utf-8", errors="replace"
        ).strip() == _PROGRAM
    except (OSError, ValueError):
        return False


def bound(card: ShownCard, limit: MpsLimit, places: MpsPlaces) -> str:
    """Let only the daemon's clients use the card, each with at most this memory.

    Why not; "" = done. Raises NVMLError if the driver has gone.
    """
    return _exclusive(card, places) or (_limited(limit, places) if limit.memory_mib else "")


def release(card: ShownCard, places: MpsPlaces) -> str:
    """Let all programs use a card again whose mode `bound` has changed. Why not; "" = done."""
    mark = _mark(card.uuid, places)
    if not mark.exists():
        return ""
    try:
        if pynvml.nvmlDeviceGetComputeMode(card.handle) == _EXCLUSIVE:
            pynvml.nvmlDeviceSetComputeMode(card.handle, _DEFAULT)
        mark.unlink(missing_ok=True)
    except NVMLError as error:
        if is_gone(error):
            raise
        return f"GPU {card.uuid} stays in compute mode EXCLUSIVE_PROCESS: {words(error)}"
    except OSError as error:
        return f"`{mark}` cannot be removed: {_reason(error)}"
    return ""


def _exclusive(card: ShownCard, places: MpsPlaces) -> str:
    mark = _mark(card.uuid, places)
    try:
        if pynvml.nvmlDeviceGetComputeMode(card.handle) == _EXCLUSIVE:
            return ""
        mark.touch()
        pynvml.nvmlDeviceSetComputeMode(card.handle, _EXCLUSIVE)
    except NVMLError as error:
        if is_gone(error):
            raise
        return f"GPU {card.uuid} is not in compute mode EXCLUSIVE_PROCESS: {words(error)}"
    except OSError as error:
        return f"`{mark}` cannot be written: {_reason(error)}"
    return ""


def _mark(uuid: str, places: MpsPlaces) -> Path:
    """It exists while the card's compute mode is one that `bound` has set. A reboot resets both."""
    return places.pipes / f"{uuid}.exclusive"


def _limited(limit: MpsLimit, places: MpsPlaces) -> str:
    """The default is that of servers to come; a server that runs has its own."""

    def asked(command: str) -> str:
        return _answer(limit.uuid, command, places)

    try:
        asked(render_limit(limit.uuid, limit.memory_mib))
        for server in parse_servers(asked(SERVERS)):
            asked(render_limit(limit.uuid, limit.memory_mib, server))
        kept = asked(render_question(limit.uuid))
    except OSError as error:
        return f"`{places.control}` cannot be started: {_reason(error)}"
    except subprocess.TimeoutExpired:
        return f"the MPS daemon of GPU {limit.uuid} has not answered for {COMMAND_SECONDS:.0f} s"
    except subprocess.CalledProcessError as failed:
        printed = " ".join(f"{failed.stdout} {failed.stderr}".split())[:200]
        return f"the MPS daemon of GPU {limit.uuid} refuses `{failed.cmd}`: {printed}"
    if is_limit(kept, limit.memory_mib):
        return ""
    return (
        f"the MPS daemon of GPU {limit.uuid} was given the limit {limit.memory_mib}M and reports "
        f"`{kept.strip()[:50]}`"
    )


def _answer(uuid: str, command: str, places: MpsPlaces) -> str:
    done = subprocess.run(
        [places.control],
        input=f"{command}\n",
        env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(places.pipes / uuid)},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=COMMAND_SECONDS,
        check=False,
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
