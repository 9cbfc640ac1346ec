"""Tenants that hold memory."""

from __future__ import annotations

import subprocess

from tests.native.driver import Machine


def hold(machine: Machine, size: int, way: str = "dlsym") -> tuple[subprocess.Popen[str], int]:
    """A tenant that holds memory, and the code that it got."""
    process = machine.start(way, "hold", size)
    assert process.stdout
    word, code = process.stdout.readline().split()
    assert word == "held"
    return process, int(code)
