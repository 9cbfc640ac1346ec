"""Commands of a page and what it prints below them: read from its Markdown, typed into a shell,
compared.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.kube.servers import environment
from tests.waiting import wait_until

KEYS = frozenset({"line", "page", "skipped", "typed", "because", "until", "then", "status"})
"""Of an entry of a list of exceptions; tutorials.toml explains them."""


class Line(NamedTuple):
    command: str
    prints: list[str]


def blocks(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Language, lines and the text before each block of code of a page; indented ones, too."""
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
    """A shell in a folder like a clone's. Exported variables and the current folder stay.

    A command may take `seconds`.
    """

    def __init__(
        self, folder: Path, home: Path, variables: dict[str, str], seconds: float = 180.0
    ) -> None:
        self._seconds = seconds
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
            timeout=self._seconds,
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


def play(
    terminal: Terminal, entry: Mapping[str, str], prints: list[str], here: Callable[[str], str]
) -> None:
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


def check_entries(entries: list[dict[str, str]], printed: set[str]) -> None:
    """AssertionError for an exception of a line that no page prints, or without its reason."""
    assert sorted({each["line"] for each in entries} - printed) == []
    for entry in entries:
        assert set(entry) <= KEYS, entry
        assert ("typed" in entry) == ("because" in entry), entry
        asked = set(entry) - {"line", "page"}
        assert asked and ("skipped" not in entry or asked == {"skipped"}), entry
