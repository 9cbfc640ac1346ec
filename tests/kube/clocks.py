"""Processes whose clock is wrong: libfaketime shifts the time of day, and leaves the monotonic
clock alone, as on a machine whose clock was never set.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HOUR = 3600.0
_LIBRARIES = tuple(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def clock_ahead(seconds: float) -> dict[str, str]:
    """Variables for a process whose clock is this far ahead; behind, if negative."""
    if not seconds:
        return {}
    library = next(iter(_LIBRARIES), None)
    if library is None:
        pytest.fail("Debian's package libfaketime is not installed (tools/debian.py)")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{seconds:+.0f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
