"""The "job in one minute" of docs/get-started/first-job.md, line by line as printed, typed by a
user whose `~/.kube/config` opens a real cluster.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.servers import environment
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "test-output" / "kube"
PAGE = ROOT / "docs" / "get-started" / "first-job.md"
TITLE = "## A job in one minute"


class Line(NamedTuple):
    command: str
    prints: list[str]


def story() -> list[Line]:
    """The commands of the page's section, each with the output that the page prints."""
    section = PAGE.read_text(encoding="utf-8").split(TITLE)[1].split("\n## ")[0]
    lines: list[Line] = []
    for text in section.split("```console\n")[1].split("```")[0].splitlines():
        if text.startswith("$ "):
            lines.append(Line(text.removeprefix("$ "), []))
        else:
            lines[-1].prints.append(text)
    return lines


PRODUCTION = """clusters: [{name: prod, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: prod, context: {cluster: prod}}]
current-context: prod
"""


class Terminal:
    """A shell in the folder in which the section works, on the machine where the laptop runs.
    Exported variables stay.
    """

    def __init__(self, state_home: Path) -> None:
        self._environment = {
            **environment(),
            "XDG_STATE_HOME": str(state_home),
            "HOME": str(state_home),
        }
        self._folder = ROOT
        (state_home / ".kube").mkdir()
        (state_home / ".kube" / "config").write_text(PRODUCTION)

    def type(self, command: str) -> str:
        """The output; AssertionError when the command fails or prints more on standard error than
        the name of its cluster.
        """
        if command == "cd .venv/bin":
            # the same folder, unless the tests run from another environment
            self._folder = Path(sys.executable).parent
            return ""
        if command.startswith('eval "$(.venv/bin/'):
            program = str(Path(sys.executable).with_name("fairlead"))
            kubeconfig = self.type(
                f'{command.replace(".venv/bin/fairlead", program)}\nprintf %s "$KUBECONFIG"'
            )
            self._environment["KUBECONFIG"] = kubeconfig
            return ""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        said = [line for line in done.stderr.splitlines() if "level=info" not in line]
        assert (done.returncode, said) == (0, []), f"$ {command}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Laptop, Terminal]]:
    LOGS.mkdir(parents=True, exist_ok=True)
    home = tmp_path_factory.mktemp("home")
    with running_laptop(LOGS / "one-minute.log", "--speed=2", state_home=home) as one:
        yield one, Terminal(home)


def test_the_story_is_played_as_it_is_written(laptop: tuple[Laptop, Terminal]) -> None:
    running, terminal = laptop
    checks: dict[str, Callable[[str], bool]] = {
        "list": lambda printed: (
            re.search(
                (
                    r"^first +(PENDING|RUNNING) +PYTORCHJOB "
                    r"+\S+ +1 +[01] +\S+$"
                ),
                printed,
                re.MULTILINE,
            )
            is not None
        ),
        "get": lambda printed: (
            re.search(
                (
                    r"^ +first-master-0 +\S+ +\S+ "
                    r"+true +1 +gpu-\S+$"
                ),
                printed,
                re.MULTILINE,
            )
            is not None
        ),
        "top": lambda printed: (
            re.search(
                (
                    r"^ +first-master-0 +Running +1 +\S+ +\d "
                    r"+[\d.]+% +[\d.]+/[\d.]+\(MiB\)$"
                ),
                printed,
                re.MULTILINE,
            )
            is not None
        ),
    }
    lines = story()
    assert [re.sub(r"\./arena (\S+).*|  +#.*", r"\1", line.command) for line in lines] == [
        'eval "$(.venv/bin/fairlead env)"',
        "cd .venv/bin",
        "submit",
        "list",
        "get",
        "logs",
        "top",
        "delete",
    ]
    for command, prints in lines:
        verb = command.partition("./arena ")[2].partition(" ")[0]
        if verb in checks:
            wait_until(
                f"`{command}` shows what the comment beside it says",
                lambda command=command, verb=verb: checks[verb](terminal.type(command)),
            )
        else:
            printed = terminal.type(command).splitlines()
            assert [numbers_aside(line) for line in printed] == [
                numbers_aside(line) for line in prints
            ], command
    wait_until(
        "nothing of it stays",
        lambda: (
            not [
                pod
                for pod in running.kubectl.get("pods")
                if pod["metadata"]["name"].startswith("first-")
            ]
        ),
    )
    assert "first" not in terminal.type("./arena list")


def numbers_aside(line: str) -> str:
    """The text without numbers: losses and speeds are the job's own.

    >>> numbers_aside("step 50 loss 6.1450 (40.7 samples/s)"), numbers_aside("starting train:20s")
    ('step 50 loss # (# samples/s)', 'starting train:20s')
    """
    return re.sub(r"\d+\.\d+", "#", line)
