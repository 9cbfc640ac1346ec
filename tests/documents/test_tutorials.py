"""Every command of docs/get-started, typed as printed into the world that the page describes, and
what the page prints below it.

`tutorials.toml` is the whole list of exceptions, each with its reason. "A cluster of your own" is
played by a laptop: `~/.kube/config` of the terminal opens it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.documents.typed_pages import (
    Terminal,
    alike,
    blocks,
    check_entries,
    commands,
    missing,
    play,
)
from tests.kube.addresses import free_port
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.programs import program

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "test-output" / "kube"
FOLDER = ROOT / "docs" / "get-started"
LIST = tomllib.loads(Path(__file__).with_name("tutorials.toml").read_text(encoding="utf-8"))
PAGES: dict[str, str] = LIST["pages"]
LINES: dict[tuple[str, str], dict[str, str]] = {
    (each.get("page", ""), each["line"]): each for each in LIST["lines"]
}
FIRST_PAGES = ("laptop.md", "first-job.md")
PORTS = {"console": 8080, "cluster_exporter": 9401, "gpu_exporter": 9400, "prometheus": 9090}
"""The ports that pages print; each laptop of a test has others."""
CONNECT = ('eval "$(.venv/bin/fairlead env)"', 'export PATH="$PWD/.venv/bin:$PATH"')
"""laptop.md's "Connect a terminal", which other pages ask for."""


def text_of(page: str) -> str:
    return (FOLDER / page).read_text(encoding="utf-8")


class World(NamedTuple):
    laptop: Laptop
    home: Path
    folder: Path


@pytest.fixture(scope="module")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], World]]:
    """The world of a page: a laptop for each kind that pages need, from its first page on."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:

        @cache
        def world(arguments: str) -> World:
            home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("fairlead")
            for name in ("examples", "deploy"):
                (folder / name).symlink_to(ROOT / name)
            (folder / ".venv").mkdir()
            (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
            log = LOGS / f"tutorials-{[*dict.fromkeys(PAGES.values())].index(arguments)}.log"
            log.unlink(missing_ok=True)  # of an earlier run, whose lines a test would read
            running = running_laptop(log, *arguments.split(), state_home=home)
            laptop = stack.enter_context(running)
            (home / ".kube").mkdir()
            (home / ".kube" / "config").write_bytes(laptop.kubeconfig.read_bytes())
            return World(laptop, home, folder)

        yield lambda page: world(PAGES[page])


def ports_of(world: World) -> dict[str, int]:
    laptop = world.laptop
    servers = {
        "console": laptop.console,
        "cluster_exporter": laptop.cluster_exporter,
        "gpu_exporter": laptop.gpu_exporter,
    }
    named = {name: int(server.url.rpartition(":")[2]) for name, server in servers.items()}
    return {**named, "prometheus": free_port()}


def played() -> list[Any]:
    """All pages: the first ones in each run, the others by the kind of their world."""
    kinds = [*dict.fromkeys(PAGES.values())]
    assert len(kinds) == 2
    return [
        page
        if page in FIRST_PAGES
        else pytest.param(page, marks=pytest.mark.turns(2, kinds.index(kind)))
        for page, kind in PAGES.items()
    ]


@pytest.mark.parametrize("page", played())
def test_the_page_is_played_as_it_is_written(
    world_of: Callable[[str], World], page: str, tmp_path: Path
) -> None:
    world = world_of(page)
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
        for language, lines, before in blocks(text_of(page)):
            if named := re.search(r"Write `([\w.]+)`", before):
                (world.folder / named[1]).write_text(here("\n".join(lines)), encoding="utf-8")
            if language == "console":
                for command, prints in commands(lines):
                    entry = LINES.get((page, command)) or LINES.get(("", command))
                    play(terminal, entry or {"line": command}, prints, here)
    finally:
        started = world.folder / "server.pid"
        if started.exists():
            os.kill(int(started.read_text(encoding="utf-8")), signal.SIGTERM)
            started.unlink()


def test_every_page_and_exception_is_used() -> None:
    """No page is left out, no line of the list has gone, and each has its reason."""
    assert set(PAGES) == {page.name for page in FOLDER.glob("*.md")}
    printed = {
        command
        for page in PAGES
        for language, lines, _ in blocks(text_of(page))
        if language == "console"
        for command, _ in commands(lines)
    }
    check_entries(LIST["lines"], printed)


def test_what_make_up_prints_is_what_the_laptop_prints(
    world_of: Callable[[str], World],
) -> None:
    """Addresses and the code aside."""
    (prints,) = [
        line.prints
        for _, lines, _ in blocks(text_of("laptop.md"))
        for line in (commands(lines) if lines[0].startswith("$ ") else [])
        if line.command == "make up"
    ]
    world = world_of("laptop.md")
    log = world.laptop.component.log.read_text(encoding="utf-8")

    def without_addresses(text: str) -> list[str]:
        text = re.sub(r"127\.0\.0\.1:\d+", "<address>", text)
        text = re.sub(r"#code=\S+", "#code=<code>", text)
        return alike(re.sub(r"/\S+/fairlead/laptop/", "<folder>/", text))

    assert without_addresses("\n".join(prints)) == without_addresses(log)[: len(prints)]


def test_a_difference_is_found() -> None:
    assert missing(["a  1/2  b"], "a 3/4 b\n") == []
    assert missing(["a  1/2  b"], "a 3/4 c\n") != []
    assert missing(["a  1/2  b"], "a 3/4 b\nmore\n") != []
    assert missing(["a 1/2 …  b", "…"], "head\na 3/4 5/6 b\n1\n") == []
    assert missing(["a 1/2 …  b"], "a 3/4 5/6 c\n") != []
