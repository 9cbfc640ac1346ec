"""Which GPUs have an MPS daemon of their own: one pipe directory per card, named by its UUID.

NVIDIA fixes no place for more than one daemon, so this one is ours: start each with
`CUDA_MPS_PIPE_DIRECTORY=/run/nvidia/mps/<uuid>`. The daemon leaves its process id there, and stays away from
the file when it is killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PIPES: Final = Path("/run/nvidia/mps")
_PID_FILE: Final = "nvidia-cuda-mps-control.pid"
_PROGRAM: Final = "nvidia-cuda-mps-control"[:15]
"""The kernel keeps 15 characters of a program's name."""


def has_daemon(uuid: str, pipes: Path = PIPES, processes: Path = Path("/proc")) -> bool:
    """Whether the daemon of this card runs now. Only who sees the node's processes can tell."""
    try:
        pid = int((pipes / uuid / _PID_FILE).read_text(encoding="ascii"))
        return (processes / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip() == _PROGRAM
    except (OSError, ValueError):
        return False
