"""Tests go through the front door: no name with an underscore of a module or object that is not the test file's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted(TESTS.rglob("*.py"))
OF_FUNCTIONS = {"__closure__", "__code__", "__defaults__", "__globals__", "__kwdefaults__", "__wrapped__"}
PUBLIC = {"_replace"}
"""Of every NamedTuple, documented."""
BY_NAME = {"getattr", "setattr", "delattr", "hasattr", "setitem", "delitem"}
MAY_TOUCH = re.compile(r"""[.'"]_|import .*\b_[a-z]|^ +_[a-z]\w*,$""", re.MULTILINE)
"""Most files have nothing of the kind, and reading all of them takes a second."""
ALLOWED: dict[str, set[str]] = {}
"""Path below tests/ -> names that it may touch. Empty, and meant to stay so: a clock, a period or a wait is a parameter."""


def is_private(name: str) -> bool:
    return name in OF_FUNCTIONS or (name.startswith("_") and not name.startswith("__") and name != "_" and name not in PUBLIC)


def own_names(nodes: list[ast.AST]) -> set[str]:
    """What the file itself defines: functions, classes, fields, and attributes of `self`."""
    found = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def touched(nodes: list[ast.AST]) -> Iterator[str]:
    """Private names of others: attributes, imports, and words in the calls that reach by name."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
            yield from (node.module or "").split(".")
        elif isinstance(node, ast.Call) and (getattr(node.func, "id", "") or getattr(node.func, "attr", "")) in BY_NAME:
            words = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            yield from (part for word in words for part in word.split("."))


def probes(source: str) -> set[str]:
    if not MAY_TOUCH.search(source):
        return set()
    nodes = list(ast.walk(ast.parse(source)))
    return {name for name in touched(nodes) if is_private(name)} - own_names(nodes)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("world.timers._heap.clear()", {"_heap"}),
        ("from a.b import _c, d", {"_c"}),
        ("monkeypatch.setattr('a.b.c.__defaults__', ())", {"__defaults__"}),
        ("setattr(thing, '_x', 1)", {"_x"}),
        ("class A:\n    def __init__(self):\n        self._x = 1\nA()._x", set()),
        ("class A(Ours):\n    def ask(self):\n        return self._x", {"_x"}),
        ("point._replace(x=1); thing.__class__", set()),
    ],
)
def test_the_walk_sees_what_it_is_there_for(source: str, found: set[str]) -> None:
    assert probes(source) == found


def test_no_test_touches_what_is_not_its_own() -> None:
    found = {str(path.relative_to(TESTS)): probes(path.read_text(encoding="utf-8")) for path in FILES}
    assert len(found) > 300
    assert {path: names for path, names in found.items() if names} == ALLOWED
