"""Which GPUs have their own MPS daemon: one pipe directory per card, named by its UUID.

NVIDIA defines no place for several daemons, so Fairlead does: start each with
`CUDA_MPS_PIPE_DIRECTORY=/run/nvidia/mps/<uuid>`. The daemon writes its process id there, and the
file remains when it is killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PIPES: Final = Path("/run/nvidia/mps")
_PID_FILE: Final = "nvidia-cuda-mps-control.pid"
_PROGRAM: Final = "nvidia-cuda-mps-control"[:15]
"""The name of the daemon's process; the kernel keeps 15 characters of it."""


def has_daemon(uuid: str, pipes: Path = PIPES, processes: Path = Path("/proc")) -> bool:
    """Whether the daemon of this card runs now. The caller must see the node's processes."""
    try:
        pid = int((pipes / uuid / _PID_FILE).read_text(encoding="ascii"))
        return (processes / str(pid) / "comm").read_text(
            encoding="utf-8", errors="replace"
        ).strip() == _PROGRAM
    except (OSError, ValueError):
        return False
