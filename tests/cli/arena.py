"""Runs `arena` in this process or in its own, and writes the smallest kubeconfig that leads to a
server of the test.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from tests.programs import run_program

from fairlead.run.main import main

PROGRAM = (sys.executable, "-c", "from fairlead.run.programs import run_arena; run_arena()")
"""argv of the installed `arena`."""

_ALONE = threading.Lock()


def environment(home: Path, **env: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **env}


def arena(home: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs `arena` in this process: a process of its own takes a third of a second, and few tests
    need one.
    """
    return run_main("arena", arguments, environment(home, **env))


def run_main(
    program: str, arguments: Sequence[str], env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs `program` in this process with this environment. Its stdin is that of pytest: empty."""
    out, err = _utf8_stream(), _utf8_stream()
    assert _ALONE.acquire(blocking=False), "one at a time: the environment is that of the process"
    try:
        with patch.dict(os.environ, env, clear=True), redirect_stdout(out), redirect_stderr(err):
            time.tzset()
            status = main(program, arguments)
    finally:
        _ALONE.release()
    time.tzset()
    return subprocess.CompletedProcess([program, *arguments], status, _text(out), _text(err))


def arena_process(home: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs `arena` as a process, for tests of the locale, the hash seed and the exit status."""
    return run_program([*PROGRAM, *arguments], env=environment(home, **env))


def kubeconfig(folder: Path, server: str) -> Path:
    path = folder / "config"
    path.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "current-context": "c",
            }
        )
    )
    return path


def _utf8_stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
