"""Completion as a user has it: Tab in a real bash, zsh and fish, with names that the program reads
from an API server.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.api_objects import node
from tests.cli.arena import kubeconfig
from tests.cli.jobs.scripted_jobs import listed, script
from tests.edge.scripted import Reply, ScriptedServer, Stream
from tests.waiting import wait_until

SHELLS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
PATIENCE = 60.0
TAB, ENTER, CLEAR = "\t", "\r", "\x15"
STAND_IN = """#!{python}
import sys
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
from fairlead.run.programs import run_arena
run_arena()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder with an `arena` on the PATH that records how it was called, and a server with the
    jobs bert and mnist and two nodes.
    """
    program = tmp_path / "bin" / "arena"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable, log=str(tmp_path / "calls")))
    program.chmod(0o755)
    nodes: dict[str, list[Reply | Stream]] = {
        "/api/v1/nodes": [
            listed([node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "8"}), node("cpu-1", "10.0.0.2")])
        ],
        "/api/v1/pods": [listed([])],
    }
    with ScriptedServer(script() | nodes) as server:
        kubeconfig(tmp_path, server.url)
        yield tmp_path


def environment(home: Path) -> dict[str, str]:
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    return {
        "PATH": path,
        "HOME": str(home),
        "KUBECONFIG": str(home / "config"),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "PS1": "> ",
    }


class Terminal:
    """A shell at a terminal. `seen` is all that it printed."""

    def __init__(self, command: list[str], home: Path) -> None:
        self.seen = ""
        self._calls = home / "calls"
        self._pid, self._line = pty.fork()
        if self._pid == 0:
            os.chdir(home)
            os.execvpe(command[0], command, environment(home))

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self._line, text.encode())

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < deadline, f"no `{text}` in {self.seen!r}"
            if select.select([self._line], [], [], 0.1)[0]:
                self.seen += os.read(self._line, 4096).decode(errors="replace")

    def wait_for_call(self, call: str) -> None:
        def calls() -> list[str]:
            return self._calls.read_text().splitlines() if self._calls.exists() else []

        wait_until(
            lambda: f"{call} among {calls()}; seen: {self.seen!r}",
            lambda: call in calls(),
            PATIENCE,
            0.05,
        )

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._line)


@pytest.mark.parametrize("shell", SHELLS)
def test_tab(shell: str, home: Path) -> None:
    with contextlib.closing(Terminal(SHELLS[shell], home)) as terminal:
        terminal.type(f"arena completion {shell} > script; source ./script; echo loa''ded{ENTER}")
        terminal.wait_for("loaded")
        for typed, completed in (
            ("top n", "node"),
            ("get b", "bert"),
            ("top node g", "gpu-1"),
            ("list --sta", "--status"),
            ("dele", "delete"),
        ):
            terminal.type(f"arena {typed}{TAB}")
            terminal.wait_for(completed.removeprefix(typed.rpartition(" ")[2]))
            terminal.type(CLEAR)
        terminal.type(f"arena --context=c -n default delete mnist b{TAB}")
        terminal.wait_for("ert")
        terminal.wait_for_call(
            "list --context=c -n default" if shell == "zsh" else "list --context c -n default"
        )
        terminal.type(f"{CLEAR}arena get m{TAB}")
        terminal.wait_for("nist")
        terminal.type(ENTER)
        terminal.wait_for("Instances:")
        terminal.wait_for_call("get mnist")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("arena get b", {"bert"}),
        ("arena --context=c -n default delete m", {"mnist"}),
        ("arena top ", {"node", "job"}),
        ("arena top node g", {"gpu-1"}),
        ("arena list --sta", {"--status"}),
        ("arena dele", {"delete"}),
    ],
)
def test_fish(line: str, offered: set[str], home: Path) -> None:
    """fish prints its candidates."""
    asking = f"arena completion fish | source; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", asking],
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert {each.split("\t")[0] for each in done.stdout.splitlines()} == offered, done.stderr
    calls = (home / "calls").read_text().splitlines()
    assert "--context=c" not in line or "list --context=c -n default" in calls
