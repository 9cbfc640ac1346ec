"""docs/get-started/cluster.md, typed on real nodes as it is printed, section after section.

`tutorial.toml` has the words that stand for others, and each exception with its reason.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from tests.documents.typed_pages import Line, Terminal, blocks, check_entries, commands, play
from tests.kube.addresses import free_port
from tests.kube.programs import program
from tests.nodes.cluster import Cluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "get-started" / "cluster.md"
_LIST = tomllib.loads(Path(__file__).with_name("tutorial.toml").read_text(encoding="utf-8"))
_WORDS: dict[str, str] = _LIST["words"]
_LINES: dict[str, dict[str, str]] = {each["line"]: each for each in _LIST["lines"]}
_COMMAND = """#!/bin/sh
PYTHONPATH='{packages}' exec '{python}' -m fairlead "$@"
"""
SECONDS = 400.0
"""For one command; an installation waits until all is ready."""


def sections() -> dict[str, list[list[Line]]]:
    """Lines of each block of commands, by the title of its section."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {
        part.partition("\n")[0]: [
            commands(lines) for language, lines, _ in blocks(part) if language == "console"
        ]
        for part in parts
    }


class Tutorial:
    """`left`: blocks that have not been typed yet, by section."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.left = {title: found for title, found in sections().items() if found}
        check_entries(list(_LINES.values()), {line.command for line in all_lines()})
        home, clone = folder / "home", folder / "fairlead"
        programs = clone / ".venv" / "bin"
        (home / ".kube").mkdir(parents=True)
        (home / ".kube" / "config").write_bytes(cluster.plane.kubeconfig.read_bytes())
        programs.mkdir(parents=True)
        (clone / "examples").symlink_to(ROOT / "examples")
        for each in Path(sys.executable).parent.iterdir():
            if each.name != "fairlead":
                (programs / each.name).symlink_to(each)
        (programs / "kubectl").symlink_to(program("kubectl"))
        self._command = programs / "fairlead"
        self.use(ROOT / "src")
        variables = {"PATH": os.environ["PATH"], "PORT": str(free_port())}
        self._terminal = Terminal(clone, home, variables, SECONDS)

    def use(self, packages: Path) -> None:
        """From now on `fairlead` is the command of the package in this folder."""
        self._command.unlink(missing_ok=True)
        text = _COMMAND.format(packages=packages, python=sys.executable)
        self._command.write_text(text, encoding="utf-8")
        self._command.chmod(0o755)

    def play(self, title: str) -> None:
        """Type the next block of the section."""
        for command, prints in self.left[title].pop(0):
            play(self._terminal, _LINES.get(command, {"line": command}), prints, _in_words)
        if not self.left[title]:
            del self.left[title]

    def play_all(self, *titles: str) -> None:
        """Type all blocks of these sections that have not been typed."""
        for title in titles:
            while title in self.left:
                self.play(title)


def all_lines() -> list[Line]:
    return [line for found in sections().values() for block in found for line in block]


def _in_words(command: str) -> str:
    for word, other in _WORDS.items():
        command = command.replace(word, other)
    return command
