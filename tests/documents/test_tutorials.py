"""Every command of docs/get-started, typed as printed into the world that the page describes, and
what the page prints below it.

`tutorials.toml` is the whole list of exceptions, each with its reason. "A cluster of your own" is
played by a laptop: `~/.kube/config` of the terminal opens it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.kube.addresses import free_port
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.programs import program
from tests.kube.servers import environment
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "test-output" / "kube"
FOLDER = ROOT / "docs" / "get-started"
LIST = tomllib.loads(Path(__file__).with_name("tutorials.toml").read_text(encoding="utf-8"))
PAGES: dict[str, str] = LIST["pages"]
LINES: dict[str, dict[str, str]] = {each["line"]: each for each in LIST["lines"]}
KEYS = {"line", "skipped", "typed", "because", "until", "then", "status"}
PORTS = {"console": 8080, "cluster_exporter": 9401, "gpu_exporter": 9400, "prometheus": 9090}
"""The ports that pages print; each laptop of a test has others."""
CONNECT = ('eval "$(.venv/bin/fairlead env)"', 'export PATH="$PWD/.venv/bin:$PATH"')
"""laptop.md's "Connect a terminal", which other pages ask for."""


class Line(NamedTuple):
    command: str
    prints: list[str]


def blocks(page: str) -> Iterator[tuple[str, list[str], str]]:
    """Language, lines and the text before each block of code of a page; indented ones, too."""
    before = ""
    text = (FOLDER / page).read_text(encoding="utf-8")
    for found in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
        indent, language, code = found.groups()
        before = text[: found.start()].rstrip().rpartition("\n\n")[2]
        yield language, [line.removeprefix(indent) for line in code.splitlines()], before


def commands(lines: list[str]) -> list[Line]:
    """The commands of a block without their comments, each with the output printed below it."""
    found: list[Line] = []
    for text in lines:
        if text.startswith("$ "):
            found.append(Line(re.sub(r"\s+# .*", "", text.removeprefix("$ ")), []))
        else:
            found[-1].prints.append(text)
    return found


class Terminal:
    """A shell in a folder like a clone's. Exported variables and the current folder stay."""

    def __init__(self, folder: Path, home: Path, variables: dict[str, str]) -> None:
        self._folder = folder
        self._kept = home / "kept"
        self._environment = {
            **environment(),
            "XDG_STATE_HOME": str(home),
            "HOME": str(home),
            **variables,
        }

    def type(self, command: str, status: int = 0) -> str:
        """The output; AssertionError when the command ends with another status."""
        script = f"{command}\nstatus=$?\nenv -0 > {self._kept}\npwd > {self._kept}.folder\n"
        done = subprocess.run(
            ["bash", "-c", f"{script}exit $status"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == status, f"$ {command}\n{done.stdout}"
        variables = self._kept.read_text(encoding="utf-8").rstrip("\0").split("\0")
        self._environment = dict(each.split("=", 1) for each in variables)
        self._folder = Path((self._kept.with_name("kept.folder")).read_text("utf-8").strip())
        return "".join(
            line for line in done.stdout.splitlines(keepends=True) if "level=info" not in line
        )


def alike(text: str) -> list[str]:
    """Lines without what differs from run to run: numbers with a point or a stroke, and the
    number of blanks. `…` stands for anything.

    >>> alike("gpu-shared-1   12/15  54/60\\nstep 50 loss 6.1450 (40.7 samples/s)\\n")
    ['gpu-shared-1 #/# #/#', 'step 50 loss # (# samples/s)']
    """
    lines = [
        re.sub(r"\d+\.\d+(?!\.)", "#", re.sub(r"\b\d+/\d+\b", "#/#", line))
        for line in text.splitlines()
    ]
    return [" ".join(line.split()) for line in lines if line.strip()]


def missing(prints: list[str], actual: str) -> list[str]:
    """Lines of a page that the output has not, in their order; with `…` a line is compared by its
    beginning and its end.
    """
    waiting, found = alike("\n".join(prints)), alike(actual)
    whole = not any("…" in line for line in waiting)
    if whole:
        return [] if waiting == found else waiting
    for line in found:
        if waiting and re.fullmatch(re.escape(waiting[0]).replace("…", ".*"), line):
            waiting.pop(0)
    return waiting


class World(NamedTuple):
    laptop: Laptop
    home: Path
    folder: Path


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    """A laptop for each kind of world that pages need."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        found: dict[str, World] = {}
        for number, arguments in enumerate(dict.fromkeys(PAGES.values())):
            home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("fairlead")
            for name in ("examples", "deploy"):
                (folder / name).symlink_to(ROOT / name)
            (folder / ".venv").mkdir()
            (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
            running = running_laptop(
                LOGS / f"tutorials-{number}.log", *arguments.split(), state_home=home
            )
            laptop = stack.enter_context(running)
            (home / ".kube").mkdir()
            (home / ".kube" / "config").write_bytes(laptop.kubeconfig.read_bytes())
            found[arguments] = World(laptop, home, folder)
        yield found


def ports_of(world: World) -> dict[str, int]:
    laptop = world.laptop
    servers = {
        "console": laptop.console,
        "cluster_exporter": laptop.cluster_exporter,
        "gpu_exporter": laptop.gpu_exporter,
    }
    named = {name: int(server.url.rpartition(":")[2]) for name, server in servers.items()}
    return {**named, "prometheus": free_port()}


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_played_as_it_is_written(
    worlds: dict[str, World], page: str, tmp_path: Path
) -> None:
    world = worlds[PAGES[page]]
    ports = ports_of(world)
    (tmp_path / "kubectl").symlink_to(program("kubectl"))
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PORT": str(free_port()),
        "CHECKOUT": str(ROOT),
    }
    terminal = Terminal(world.folder, world.home, variables)

    def here(text: str) -> str:
        for name, port in PORTS.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{ports[name]}")
        return text

    if page != "laptop.md":
        for command in CONNECT:
            terminal.type(command)
    try:
        for language, lines, before in blocks(page):
            if named := re.search(r"Write `([\w.]+)`", before):
                (world.folder / named[1]).write_text(here("\n".join(lines)), encoding="utf-8")
            if language == "console":
                for command, prints in commands(lines):
                    play(terminal, LINES.get(command, {"line": command}), prints, here)
    finally:
        started = world.folder / "server.pid"
        if started.exists():
            os.kill(int(started.read_text(encoding="utf-8")), signal.SIGTERM)
            started.unlink()


def play(terminal: Terminal, entry: dict[str, str], prints: list[str], here: Any) -> None:
    """Type the command, unless it is skipped; compare what the page prints, wait for `until`."""
    if "skipped" in entry:
        return
    command = here(entry.get("typed", entry["line"]))
    actual = terminal.type(command, int(entry.get("status", "0")))
    if prints:
        assert missing(prints, actual) == [], f"$ {command}\n{actual}"
    if "until" in entry:
        pattern = re.compile(entry["until"])
        again = entry.get("then", command)
        if "then" in entry or not pattern.search(actual):
            wait_until(
                f"`{again}` prints {entry['until']}",
                lambda: pattern.search(terminal.type(again)) is not None,
            )


def test_every_page_and_exception_is_used() -> None:
    """No page is left out, no line of the list has gone, and each has its reason."""
    assert set(PAGES) == {page.name for page in FOLDER.glob("*.md")}
    printed = {
        command
        for page in PAGES
        for language, lines, _ in blocks(page)
        if language == "console"
        for command, _ in commands(lines)
    }
    assert sorted(set(LINES) - printed) == []
    for entry in LIST["lines"]:
        assert set(entry) <= KEYS, entry
        assert ("typed" in entry) == ("because" in entry), entry
        assert len(entry) > 1 and not ("skipped" in entry and len(entry) > 2), entry


def test_what_make_up_prints_is_what_the_laptop_prints(worlds: dict[str, World]) -> None:
    """Addresses aside."""
    (prints,) = [
        line.prints
        for _, lines, _ in blocks("laptop.md")
        for line in (commands(lines) if lines[0].startswith("$ ") else [])
        if line.command == "make up"
    ]
    world = worlds[PAGES["laptop.md"]]
    log = world.laptop.component.log.read_text(encoding="utf-8")

    def without_addresses(text: str) -> list[str]:
        text = re.sub(r"127\.0\.0\.1:\d+", "<address>", text)
        return alike(re.sub(r"/\S+/fairlead/laptop/", "<folder>/", text))

    assert without_addresses("\n".join(prints)) == without_addresses(log)[: len(prints)]


def test_a_difference_is_found() -> None:
    assert missing(["a  1/2  b"], "a 3/4 b\n") == []
    assert missing(["a  1/2  b"], "a 3/4 c\n") != []
    assert missing(["a  1/2  b"], "a 3/4 b\nmore\n") != []
    assert missing(["a 1/2 …  b", "…"], "head\na 3/4 5/6 b\n1\n") == []
    assert missing(["a 1/2 …  b"], "a 3/4 5/6 c\n") != []
