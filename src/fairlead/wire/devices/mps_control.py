"""What the control program of MPS (`nvidia-cuda-mps-control`) reads and prints.

Specification: docs/spec/gpu-sharing.md#clients-of-mps.

The program takes one command a line on its standard input. NVIDIA documents the commands, and that
a limit is an integer with `G` or `M`; how a limit is printed is not documented.
"""

from __future__ import annotations

import re
from typing import Final

SERVERS: Final = "get_server_list"
_LIMIT: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s?([GM])B?", re.IGNORECASE)
_PID: Final = re.compile(r"[1-9]\d{0,9}", re.ASCII)
_MIB_PER_GIB: Final = 1024


def render_limit(uuid: str, memory_mib: int, server: int | None = None) -> str:
    """The command that limits the new clients of one server, or (None) of all later servers.

    >>> render_limit("GPU-a", 4301)
    'set_default_device_pinned_mem_limit GPU-a 4301M'
    >>> render_limit("GPU-a", 4301, 77)
    'set_device_pinned_mem_limit 77 GPU-a 4301M'
    """
    words = (
        ("set_default_device_pinned_mem_limit",)
        if server is None
        else ("set_device_pinned_mem_limit", str(server))
    )
    return " ".join((*words, uuid, f"{memory_mib}M"))


def render_question(uuid: str) -> str:
    """The command that prints the limit of all later servers."""
    return f"get_default_device_pinned_mem_limit {uuid}"


def parse_servers(answer: str) -> tuple[int, ...]:
    """Process ids of the servers, one a line. Other lines are no servers.

    >>> parse_servers("4711\\n4712\\n")
    (4711, 4712)
    """
    return tuple(int(line) for each in answer.splitlines() if _PID.fullmatch(line := each.strip()))


def is_limit(answer: str, memory_mib: int) -> bool:
    """Whether a printed limit is this one: exact in MiB, or rounded down to a whole number of GiB.

    >>> is_limit("4301M\\n", 4301), is_limit("4G", 4301), is_limit("4.2G", 4301)
    (True, True, True)
    >>> is_limit("5G", 4301), is_limit("3G", 4301), is_limit("", 4301)
    (False, False, False)
    """
    found = _LIMIT.fullmatch(answer.strip())
    if found is None:
        return False
    if found[2].upper() == "M":
        return float(found[1]) == memory_mib
    return 0 <= memory_mib - float(found[1]) * _MIB_PER_GIB < _MIB_PER_GIB
