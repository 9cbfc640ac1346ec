"""Does a program of the test cluster live until a test stops it, or until the tests end?"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from tests.kube.component import Component
from tests.waiting import wait_until

ENDED = """
import sys
from pathlib import Path
from tests.kube.component import Component
component = Component("sleep", ["sleep", "600"], Path(sys.argv[1]))
component.start()
print(component.pid)
sys.stdout.flush()
sys.stdin.read()
"""
ROOT = Path(__file__).parents[2]


def test_a_program_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    component = Component("sleep", ["sleep", "600"], tmp_path / "sleep.log")

    def start() -> None:
        component.start()
        wait_until("the program runs", lambda: _is_sleep(component.pid))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    try:
        # the kernel has ended the thread when its number is free
        wait_until("the thread has ended", lambda: not _task(thread).exists())
        assert component.is_running
    finally:
        component.stop()


def test_a_program_ends_with_the_test_process(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", ENDED, str(tmp_path / "sleep.log")]
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        wait_until("the program runs", lambda: _is_sleep(pid))
        process.kill()
    wait_until("it has ended", lambda: _is_over(pid))


def _is_sleep(pid: int) -> bool:
    """`setpriv` has asked for the signal when it becomes the program."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0")


def _task(thread: threading.Thread) -> Path:
    return Path(f"/proc/self/task/{thread.native_id}")


def _is_over(pid: int) -> bool:
    """Whether the process is gone, or has ended and no parent has asked for its status."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return True
    return text.rpartition(")")[2].split()[0] == "Z"
