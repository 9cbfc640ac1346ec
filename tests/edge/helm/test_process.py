"""Programs that Fairlead starts: limits, and no process left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.waiting import until, wait_until

from fairlead.edge.helm.process import Ended, ended
from fairlead.errors import OutsideError

_PARENT = """
import asyncio, sys
from fairlead.edge.helm.process import ended
asyncio.run(ended(sys.argv[1:], stdin=b"", environment={}, files=(), seconds=600, most_bytes=9))
"""


async def run(script: str, *words: str, seconds: float = 60.0, most: int = 1000) -> Ended:
    return await ended(
        ("/bin/sh", "-c", script, "sh", *words),
        stdin=b"from stdin\n",
        environment={"PATH": os.environ["PATH"]},
        files=(),
        seconds=seconds,
        most_bytes=most,
    )


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def pids(path: Path, count: int) -> Sequence[int]:
    words = path.read_text().split() if path.exists() else []
    return [int(each) for each in words] if len(words) == count else ()


async def test_what_it_prints_and_how_it_ends() -> None:
    assert await run('cat; echo "$1" >&2; exit 3', "$(id) -x") == Ended(
        3, b"from stdin\n", "$(id) -x\n"
    )


async def test_a_program_that_does_not_read_its_input() -> None:
    assert (await run("exec <&-; echo a")).output == b"a\n"


async def test_too_much_output_ends_it() -> None:
    with pytest.raises(OutsideError) as caught:
        await run("while :; do echo aaaaaaaaaaaaaaaa; done")
    assert caught.value.what == "`sh` printed more than 1000 bytes"


async def test_long_errors_are_cut() -> None:
    answer = await run("head -c 1000000 /dev/zero | tr '\\0' x >&2")
    assert len(answer.errors) == 256 * 1024


async def test_a_time_limit_ends_the_whole_group(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    with pytest.raises(OutsideError) as caught:
        await run('sleep 600 & echo $$ $! > "$1"; wait', str(path), seconds=3.0)
    assert caught.value.what == "`sh` has not ended within 3 s"
    await until(lambda: not any(map(is_alive, pids(path, 2))))


async def test_a_cancelled_call_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    task = asyncio.create_task(run('sleep 600 & echo $$ $! > "$1"; wait', str(path)))
    await until(lambda: pids(path, 2))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(map(is_alive, pids(path, 2)))


async def test_no_such_program() -> None:
    answer = await ended(
        ("/nowhere/helm",), stdin=b"", environment={}, files=(), seconds=60, most_bytes=9
    )
    assert answer.status == 1
    assert answer.errors == (
        "Error: `/nowhere/helm` cannot be started: No such file or directory\n"
    )


async def test_it_has_only_the_environment_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HELM_PLUGINS", "/plugins")
    assert "HELM_PLUGINS" not in (await run("env")).output.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is of Linux")
def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    script = f"echo $$ > {path}; exec sleep 600"
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, "/bin/sh", "-c", script])
    try:
        wait_until("the program has started", lambda: pids(path, 1))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_until("the program has ended", lambda: not is_alive(pids(path, 1)[0]))
