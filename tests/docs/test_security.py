"""The tests that docs/concepts/security.md names exist, and a threat has a test or a reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "concepts" / "security.md").read_text(encoding="utf-8")
THREATS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
    for line in PAGE.partition("\n### ")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| threat |")
]
SPAN = re.compile(r"`([^`]+)`")
PIPS_AND_NPMS = ("(pip's own)", "(npm's own)")


def named_tests() -> list[tuple[Path, str]]:
    """File and function of each named test; `::function` alone is of the file before it."""
    named = []
    for row in THREATS:
        file = ""
        for span in SPAN.findall(row[2]):
            path, _, function = span.partition("::")
            file = path or file
            named.append((ROOT / file, function))
    return named


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_named_test_exists() -> None:
    named = named_tests()
    assert len(named) > 60
    missing = [
        f"{file.relative_to(ROOT)}::{function}"
        for file, function in named
        if not file.is_file() or (function and function not in functions(file))
    ]
    assert missing == []


def test_a_threat_has_a_test_or_is_not_defended() -> None:
    assert len(THREATS) > 50
    assert {len(row) for row in THREATS} == {3}
    unproven = [
        threat
        for threat, defence, tests in THREATS
        if not SPAN.search(tests)
        and "**not defended**" not in defence
        and not tests.endswith(PIPS_AND_NPMS)
    ]
    assert unproven == []


def test_what_is_not_defended_comes_with_what_to_do() -> None:
    """Not only the two words: a reason, a remedy or a link follows."""
    bare = [
        threat
        for threat, defence, _ in THREATS
        if "**not defended**" in defence and len(defence.partition("**not defended**")[2]) < 20
    ]
    assert bare == []


def test_the_number_of_attacks_is_that_of_their_table() -> None:
    source = (ROOT / "tests" / "kube" / "test_quota_attacks.py").read_text(encoding="utf-8")
    (table,) = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Dict)
        and ast.unparse(node).startswith("ATTACKS")
    ]
    assert f"test_nothing_is_gained` ({len(table.keys)} attacks)" in PAGE
