"""The commands of the five documents print what the documents print: each document in a laptop with
its scenario, with the real kubectl.

`commands.toml` is the whole list, with the commands that cannot be typed yet and why.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.documents.document_commands import COMMANDS, EXAMPLES, HERE, SCRIPTS, differences
from tests.documents.printed import alike, compared
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.programs import program
from tests.kube.servers import environment
from tests.programs import run_program

LOGS = HERE.parents[1] / "test-output" / "kube"
STANDS_STILL = ("000",)
"""Documents that print how long something has run: their time
moves only by their `before` steps.
"""
TYPED = [each for each in COMMANDS if "needs" not in each]
KEYS = {
    "document",
    "line",
    "now",
    "needs",
    "typed",
    "with",
    "stdin",
    "before",
    "times",
    "prints",
    "exact",
    "environment",
    "stderr",
    "holds",
    "ignore",
    "partial",
    "pending",
    "because",
}


@pytest.fixture(scope="module", params=sorted({each["document"] for each in TYPED}))
def laptop(request: pytest.FixtureRequest) -> Iterator[tuple[str, Laptop]]:
    LOGS.mkdir(parents=True, exist_ok=True)
    with running_laptop(
        LOGS / f"document-{request.param}.log", f"--scenario=documents-{request.param}"
    ) as one:
        if request.param in STANDS_STILL:
            stop_on_a_whole_minute(one)
        yield request.param, one


def test_a_documents_commands_work_as_printed(laptop: tuple[str, Laptop], tmp_path: Path) -> None:
    """The commands run in the document's order, because each builds on the one before. All
    differences are reported, not only the first.
    """
    document, running = laptop
    for manifest in EXAMPLES.glob("*.yaml"):
        (tmp_path / manifest.name).write_text(
            manifest.read_text(encoding="utf-8"), encoding="utf-8"
        )
    differing = [
        reported
        for command in TYPED
        if command["document"] == document
        for reported in typed(command, running, tmp_path)
    ]
    assert not differing, "\n\n".join(differing)


def typed(command: dict[str, Any], laptop: Laptop, folder: Path) -> list[str]:
    """The differences between the command's output and the document."""
    advance(laptop, command.get("before", "2s"))
    line = command.get("now", command["line"])
    arguments = shlex.split(line.replace("<the", "'<the") + "'" if "<the" in line else line)[1:]
    if "pending" in command:
        arguments[-1] = pending_pod(laptop, command["pending"])
    stdin = (folder / command["stdin"]).read_text(encoding="utf-8") if "stdin" in command else None
    typed_in = {
        **environment(),
        **laptop.kubectl.folders,
        "KUBECONFIG": str(laptop.kubeconfig),
        "PATH": f"{SCRIPTS}:{os.environ['PATH']}",
        **command.get("environment", {}),
    }
    argv = [
        str(SCRIPTS / "arena") if line.startswith("arena ") else str(program("kubectl")),
        *arguments,
    ]
    done = run_program(argv, stdin=stdin, cwd=folder, env=typed_in)
    if done.returncode:
        return [f"$ {line}\nended with {done.returncode}: {done.stderr}"]
    if command.get("stderr", "") not in done.stderr:
        return [f"$ {line}\nmissing on stderr: {command['stderr']}\nin:\n{done.stderr}"]
    return [f"$ {line}\n{reported}" for reported in differences(command, done.stdout)]


def advance(laptop: Laptop, span: str) -> None:
    """Let this amount of simulated time pass; a document that
    prints `3m15s` needs no real waiting.
    """
    fairlead_time(laptop, "advance", span)


def stop_on_a_whole_minute(laptop: Laptop) -> None:
    """The API server writes whole seconds: from here, eight seconds later is `8s`."""
    fairlead_time(laptop, "pause")
    now = datetime.fromisoformat(fairlead_time(laptop, "show")["now"])
    fairlead_time(
        laptop,
        "until",
        (now.replace(second=0, microsecond=0) + timedelta(minutes=1)).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        ),
    )


def fairlead_time(laptop: Laptop, *words: str) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "fairlead",
        "time",
        *words,
        f"--state-dir={laptop.state_dir}",
        "-o",
        "json",
    ]
    done = run_program(command, env=environment(), check=True)
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def pending_pod(laptop: Laptop, app: str) -> str:
    pods = json.loads(laptop.kubectl.run("get", "pods", "-l", f"app={app}", "-o", "json"))["items"]
    (name,) = (pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Pending")
    return str(name)


def test_every_line_of_the_list_is_typed_or_states_what_it_needs() -> None:
    for command in COMMANDS:
        assert set(command) <= KEYS, command
        assert ("needs" in command) is not bool({"prints", "holds", "exact"} & set(command)), (
            command
        )
        assert "because" in command or not {"ignore", "partial", "holds", "now"} & set(command), (
            f"give the reason: {command['line']}"
        )
        assert "with" not in command or (EXAMPLES / command["with"]).exists()
    assert {each["document"] for each in COMMANDS} == {f"{number:03}" for number in range(5)}


def test_what_is_aside_is_aside_and_nothing_else() -> None:
    printed = "NAME  READY  RESTARTS  AGE\na-695cb6cf89-dsjmv  1/1  0  6s\n".replace("  ", "    ")
    same = "NAME  READY  RESTARTS  AGE  MORE\na-1234567890-zzzzz  1/1  0 (5s ago)  9d  x\n"
    theirs, own = compared(_table(printed), _table(same))
    assert theirs == own
    for old, new in (
        ("1/1", "0/1"),
        ("a-", "b-"),
        ("0 (5s ago)", "1 (5s ago)"),
        ("9d", "<unknown>"),
    ):
        theirs, own = compared(_table(printed), _table(same.replace(old, new)))
        assert theirs != own, f"{new} instead of {old} goes unnoticed"
    assert alike("cn-zhangjiakou.192.168.3.184", "NODE") == "cn-zhangjiakou.192.168.3.184"


def _table(text: str) -> str:
    """The same for tables below each other."""
    lines = [
        [cell for cell in line.split("  ") if cell.strip()] for line in text.strip().splitlines()
    ]
    return "\n".join("".join(f"{cell.strip():24}" for cell in line) for line in lines)
