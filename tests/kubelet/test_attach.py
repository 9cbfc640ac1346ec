"""`arena attach` through a real API server and kubelet into containers that really run: bytes,
terminals, exit codes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pty
import random
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kubelet.jobs import SECONDS, Arena, two_containers
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 0)

CHIEF, WORKER = "att-chief-0", "att-worker-0"


@pytest.fixture(scope="module")
def att(cluster: ControlPlane) -> Arena:
    """A TFJob `att` with a chief and a worker, both running."""
    arena = Arena(cluster)
    arena.submit("tf", "att", "--chief", "--workers=1")
    arena.until_obeys(CHIEF, WORKER)
    return arena


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_status_is_that_of_the_command(att: Arena, code: int) -> None:
    ended = att.run("attach", "att", "--", "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (ended.returncode, ended.stdout) == (code, "out\n")
    assert ended.stderr.splitlines()[0] == "err"
    assert (f"command terminated with exit code {code}" in ended.stderr) == (code != 0)


def test_a_command_that_a_signal_ends_and_one_that_is_absent(att: Arena) -> None:
    assert att.run("attach", "att", "--", "sh", "-c", "kill -9 $$").returncode == 137
    absent = att.run("attach", "att", "--", "nosuch")
    assert absent.returncode != 0 and "executable file not found in $PATH" in absent.stderr
    assert "Traceback" not in absent.stderr


def test_the_chief_unless_another_pod_or_container_is_named(
    att: Arena, cluster: ControlPlane
) -> None:
    assert att.shown("attach", "att", "--", "hostname") == f"{CHIEF}\n"
    assert att.shown("attach", "att", "-i", WORKER, "--", "hostname") == f"{WORKER}\n"
    cluster.admin.create([two_containers("pair")])
    att.until_running("pair-master-0")
    for flags, name in (((), "pytorch"), (("-c", "beside"), "beside")):
        assert att.shown("attach", "pair", *flags, "--", "sh", "-c", "echo $NAME") == f"{name}\n"
    wrong = att.run("attach", "pair", "-c", "nosuch")
    assert (
        wrong.returncode == 1
        and "container nosuch is not valid for pod pair-master-0" in wrong.stderr
    )


def test_without_a_command_it_is_a_shell_that_reads_stdin_to_its_end(att: Arena) -> None:
    ended = att.run("attach", "att", stdin="echo $((6 * 7))\nexit 9\n")
    assert (ended.returncode, ended.stdout) == (9, "42\n")
    assert att.run("attach", "att", "--", "cat", stdin="no newline at its end").stdout == (
        "no newline at its end"
    )


def test_all_bytes_arrive_in_both_directions(att: Arena) -> None:
    sent = random.Random(6).randbytes(3_000_000)
    process = subprocess.run(
        att.argv("attach", "att", "--", "sh", "-c", "tee /dev/stderr"),
        input=sent,
        capture_output=True,
        timeout=SECONDS,
        env=att.environment,
        check=False,
    )
    assert process.returncode == 0
    assert [hashlib.sha256(got).hexdigest() for got in (process.stdout, process.stderr)] == [
        hashlib.sha256(sent).hexdigest()
    ] * 2


def test_what_is_reported_of_a_pod_that_has_ended(cluster: ControlPlane) -> None:
    arena = Arena(cluster)
    arena.submit("pytorch", "over", program_text="echo done")
    wait_until("it has ended", lambda: arena.phase("over-master-0") == "Succeeded", SECONDS)
    ended = arena.run("attach", "over")
    assert (
        ended.returncode == 1
        and "cannot exec into a container in a completed Instance; current phase is Succeeded"
        in ended.stderr
    )


def test_a_terminal_has_its_size_and_learns_of_another(att: Arena) -> None:
    with terminal(att, "attach", "att", "--", "sh", rows=31, columns=101) as here:
        here.type("stty size; tty\n")
        here.until("31 101")
        here.until("/dev/pts/")
        here.resize(rows=40, columns=77)
        here.type("while ! stty size | grep -q '40 77'; do sleep 0.1; done; echo res''ized\n")
        here.until("resized")
        here.type("exit 5\n")
        assert here.wait() == 5


def test_ctrl_c_in_a_terminal_ends_the_command_there_and_not_arena(att: Arena) -> None:
    with terminal(att, "attach", "att", "--", "sh") as here:
        here.type("trap 'echo caught; exit 6' INT; echo rea''dy; while :; do sleep 1; done\n")
        here.until("ready")
        here.type("\x03")
        here.until("caught")
        assert here.wait() == 6
        assert here.mode() == here.mode_before


class Terminal:
    """A program on a terminal of its own; its output is read until the expected text appears."""

    def __init__(self, own: int, theirs: int, process: subprocess.Popen[bytes]) -> None:
        self._own, self._theirs, self._process = own, theirs, process
        self.mode_before = self.mode()
        self._shown = b""

    def mode(self) -> list[object]:
        return termios.tcgetattr(self._theirs)

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        set_size(self._theirs, rows, columns)
        # SIGWINCH, which the kernel sends only to a foreground process group
        self._process.send_signal(28)

    def until(self, words: str) -> None:
        limit = time.monotonic() + SECONDS
        while words.encode() not in self._shown:
            assert time.monotonic() < limit, f"{words!r} was not shown: {self._shown!r}"
            self._read()
        self._shown = self._shown.partition(words.encode())[2]

    def wait(self) -> int:
        """The exit status. Output is read meanwhile, because the
        program could not end otherwise.
        """
        wait_until(
            "arena has ended", lambda: self._read() or self._process.poll() is not None, SECONDS
        )
        return self._process.returncode

    def _read(self) -> bool:
        try:
            self._shown += os.read(self._own, 4096)
        except BlockingIOError:
            select.select([self._own], [], [], 0.02)
        return False


@contextmanager
def terminal(arena: Arena, *words: str, rows: int = 24, columns: int = 80) -> Iterator[Terminal]:
    own, theirs = pty.openpty()
    os.set_blocking(own, False)
    set_size(theirs, rows, columns)
    with arena.started(*words, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        yield Terminal(own, theirs, process)
    os.close(own)
    os.close(theirs)


def set_size(descriptor: int, rows: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
