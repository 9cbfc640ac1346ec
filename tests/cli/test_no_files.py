"""The commands open no files themselves: `context.machine` reads the files that a user names
(`.importlinter` forbids the libraries).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

CLI = Path(__file__).resolve().parents[2] / "src" / "fairlead" / "cli"
OPENING = {
    "open",
    "read_text",
    "write_text",
    "read_bytes",
    "exists",
    "mkdir",
    "unlink",
    "expanduser",
}
STREAMS = {"frame/standard_streams.py"}
"""A module that opens /dev/null for the descriptors 0 to 2 where they are closed."""


def opened(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = (
                node.func.id
                if isinstance(node.func, ast.Name)
                else node.func.attr
                if isinstance(node.func, ast.Attribute)
                else ""
            )
            if name in OPENING:
                yield f"{path.relative_to(CLI)}:{node.lineno} {name}"


def test_no_verb_opens_a_file() -> None:
    modules = [path for path in CLI.rglob("*.py") if str(path.relative_to(CLI)) not in STREAMS]
    assert len(modules) > 90
    assert [call for path in modules for call in opened(path)] == []
    assert [call for name in STREAMS for call in opened(CLI / name)] != []
