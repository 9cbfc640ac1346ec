"""Standard streams that are closed or full: no traceback, and no write into a file that got a
closed stream's descriptor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.examples import long_case
from tests.programs import run_program
from tests.waiting import HANG_SECONDS

FULL = Path("/dev/full")


def through_shell(
    redirection: str, program: str, line: str, home: Path
) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; from fairlead.run.main import main; sys.exit(main({program!r}, sys.argv[1:]))"
    )
    script = f'exec "$0" -c "$1" {line} {redirection}'
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    return run_program(["sh", "-c", script, sys.executable, code], env=env)


@pytest.mark.parametrize("line", [long_case("top node"), "version", "--help", "top node --help"])
@pytest.mark.parametrize("redirection", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_silence_and_not_a_bug(
    line: str, redirection: str, tmp_path: Path
) -> None:
    ended = through_shell(redirection, "arena", line, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    assert "bug" not in ended.stderr and "Traceback" not in ended.stderr
    assert not list(tmp_path.rglob("reports")), "a report was written"


@pytest.mark.long
def test_what_a_closed_stdout_would_have_printed_goes_into_no_file_that_opens_next(
    tmp_path: Path,
) -> None:
    saved = tmp_path / "s"
    ended = through_shell("<&- >&-", "fairlead", f"snapshot save {saved}", tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert through_shell("", "fairlead", f"snapshot show {saved}", tmp_path).returncode == 0


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full on this system")
@pytest.mark.parametrize("line", [long_case("top node"), "version", "--help", "top node --help"])
@pytest.mark.parametrize(("program", "status"), [("fairlead", 2), ("arena", 1)])
def test_a_full_disk_under_stdout_is_a_sentence(
    line: str, program: str, status: int, tmp_path: Path
) -> None:
    ended = through_shell(f">{FULL}", program, line, tmp_path)
    assert ended.returncode == status, ended.stderr
    assert "stdout cannot be written: No space left on device" in ended.stderr
    assert "hint: free some space" in ended.stderr
    assert "bug" not in ended.stderr and "Exception ignored" not in ended.stderr


@pytest.mark.long
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full on this system")
def test_a_full_disk_under_stderr_changes_nothing(tmp_path: Path) -> None:
    ended = through_shell(f"2>{FULL}", "arena", "top node", tmp_path)
    assert ended.returncode == 0 and ended.stdout


@pytest.mark.parametrize(
    "locale",
    [
        long_case({"LC_ALL": "C"}),
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        long_case({"PYTHONIOENCODING": "latin-1"}),
    ],
)
def test_the_same_bytes_in_every_locale(locale: dict[str, str], tmp_path: Path) -> None:
    """The Chinese name comes from a file, because the bytes of a command line depend on
    the locale.
    """
    given = tmp_path / "job.yaml"
    given.write_text(
        "name: a\nimage: i\nrun: train\nworker: {replicas: 1}\nenvs: {OWNER: 训练é}\n",
        encoding="utf-8",
    )
    code = "from fairlead.run.programs import run_arena; run_arena()"
    command = [sys.executable, "-c", code, "submit", "mpijob", "-f", str(given), "--dry-run"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ended = subprocess.run(
        command, capture_output=True, timeout=HANG_SECONDS, env={**env, **locale}, check=False
    )
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), ended.stderr
    assert "训练é".encode() in ended.stdout
    refused = subprocess.run(
        [*command[:3], "get", "训练"],
        capture_output=True,
        timeout=HANG_SECONDS,
        env={**env, **locale},
        check=False,
    )
    assert (
        refused.returncode == 1
        and b"invalid name `" in refused.stderr
        and b"this is a bug" not in refused.stderr
    )
