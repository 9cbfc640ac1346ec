"""The memory of servers, which read and write texts of megabytes: given back when they are gone."""

from __future__ import annotations

import ctypes
from typing import Final

LARGE_BYTES: Final = 128 * 1024
"""A block of at least this size is mapped on its own and unmapped when it is freed.

glibc begins with this size and raises it to that of the largest block that was freed, up to 32 MiB.
Then pages of exporters and of metrics lie between small objects that stay, and their room is never
given back: a cluster exporter of 100 nodes had 95 MiB instead of 70.
"""
ARENAS: Final = 2
"""Heaps at most: else each thread that works for a moment leaves one behind."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


def give_back_large_blocks() -> None:
    """Call it before the first large text. Another C library than glibc is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    chosen = ((_MMAP_THRESHOLD, LARGE_BYTES), (_TRIM_THRESHOLD, LARGE_BYTES), (_ARENA_MAX, ARENAS))
    for option, value in chosen:
        mallopt(option, value)
