"""Runs a server as a process on a free port, and reads its pages."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.arena import environment
from tests.waiting import HANG_SECONDS, wait_until

SECONDS = 30.0


@contextmanager
def running(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its address, which it prints."""
    argv = [sys.executable, "-m", "fairlead", *arguments, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment(home))
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        while " http://127.0.0.1:" not in line:
            assert line, "it ended without a word"
            line = process.stderr.readline()
        yield process, "http://" + line.split(" http://", 1)[1].split("/", 1)[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str], words: str) -> str:
    """The next line on the process's stderr with these words."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise AssertionError(f"it never printed `{words}`")


def status_of(url: str) -> int:
    statuses: list[int] = []

    def has_answered() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=HANG_SECONDS) as answer:
                statuses.append(answer.status)
        except urllib.error.HTTPError as error:
            statuses.append(error.code)
        except OSError:
            return False
        return True

    wait_until(f"{url} answers", has_answered, SECONDS, 0.05)
    return statuses[0]


def page_of(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=HANG_SECONDS) as answer:
        return str(answer.read().decode())
