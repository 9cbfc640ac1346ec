"""The modules that the READMEs and the glossary name exist, and each module contains what the
glossary places there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "fairlead"
README = sorted((ROOT / "src").rglob("README.md"))
GLOSSARY = ROOT / "docs" / "glossary.md"
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[a-z_]+(?:[./][a-z_]+)*(?:\.[A-Za-z_]+|/)?")
NOT_MODULES = {"now", "kubectl", "default"}
"""Spans in the READMEs that look like modules: an argument of every rule, a program, a
ServiceAccount.
"""


def place(name: str, *rooms: Path) -> Path | None:
    """The module, folder or file with this name, in one of the rooms, in the package or in the
    repository.
    """
    for room in (*rooms, SOURCE, SOURCE.parent, ROOT):
        for path in (
            room / f"{name.replace('.', '/')}.py",
            room / name.replace(".", "/"),
            room / name,
        ):
            if path.exists() and path != room:
                return path
    return None


def text_of(path: Path) -> str:
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return "".join(file.read_text(encoding="utf-8") for file in files)


def is_there(name: str, room: Path) -> bool:
    """Whether a span names a module (`scheduler`, `holding.account`), a path, or a name in a module
    (`scheduler.MOST_LOOKS`).
    """
    if place(name.rstrip("/"), room):
        return True
    module, _, word = name.rpartition(".")
    found = place(module, room) if module else None
    return found is not None and re.search(rf"\b{word}\b", text_of(found)) is not None


def test_there_are_such_readmes() -> None:
    assert {"rules", "fairlead_sim"} <= {page.parent.name for page in README}


@pytest.mark.parametrize("page", README, ids=lambda page: page.parent.name)
def test_what_a_readme_calls_a_module_is_one(page: Path) -> None:
    named = {
        span for span in SPAN.findall(page.read_text(encoding="utf-8")) if PATH.fullmatch(span)
    } - NOT_MODULES
    assert len(named) > 10
    assert sorted(name for name in named if not is_there(name, page.parent)) == []


TERMS = GLOSSARY.read_text(encoding="utf-8").partition("\n## ")[0]
ROWS = [line.strip("|").split("|") for line in TERMS.splitlines() if line.startswith("| ")][1:]


def test_the_glossary_has_one_word_for_one_thing() -> None:
    assert len(ROWS) > 40
    for column in (0, 1):
        words = [row[column].strip().partition(":")[0] for row in ROWS]
        assert sorted({word for word in words if words.count(word) > 1}) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1].strip().partition(":")[0])
def test_a_word_of_the_glossary_is_the_code_s(row: list[str]) -> None:
    _, english, code, where = (cell.strip() for cell in row)
    modules = SPAN.findall(where)
    for module in modules:
        found = place(module.rstrip("/"))
        assert found is not None, f"there is no `{module}` ({english})"
        for name in SPAN.findall(code):
            words = re.findall(r"\w+", name)
            assert all(re.search(rf"\b\w*{word}\b", text_of(found)) for word in words), (
                f"`{name}` is not in {module}"
            )
