"""Every module of `src` opens with a statement of what it holds; the `__init__` of a folder, of what the folder holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
ROOMS = ("fairlead", "fairlead_sim")
QUESTION = re.compile(r"\?(\s|$)")


def modules(room: str) -> list[Path]:
    place = SOURCE / room
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def fault_of(source: str) -> str:
    """What is wrong with the words that a module opens with, "" = nothing."""
    docstring = (ast.get_docstring(ast.parse(source)) or "").strip()
    if not docstring:
        return "it has no docstring"
    opening = docstring.partition("\n\n")[0]
    if QUESTION.search(opening):
        return f"it opens with a question: {opening}"
    return "it speaks of a newcomer" if "newcomer" in docstring.lower() else ""


@pytest.mark.parametrize("room", ROOMS)
def test_a_module_opens_with_a_statement_of_what_it_holds(room: str) -> None:
    found = modules(room)
    assert found
    faults = {str(path.relative_to(SOURCE)): fault for path in found if (fault := fault_of(path.read_text(encoding="utf-8")))}
    assert faults == {}


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("", "no docstring"),
        ("import re\n", "no docstring"),
        ('"""  """', "no docstring"),
        ('"""What does a page show?"""', "a question"),
        ('"""What does a page show? The rows of the Nodes board."""', "a question"),
        ('"""Which of two\nlines is it?\n\nThe second."""', "a question"),
        ('"""Rows of a board.\n\nWhat a newcomer gets wrong: a row is no node."""', "a newcomer"),
    ],
)
def test_other_openings_are_seen(source: str, fault: str) -> None:
    assert fault in fault_of(source)


@pytest.mark.parametrize("source", ['"""Why a job waits."""', '"""The query `?sort=-gpus` of a list.\n\nIs it checked? Yes."""'])
def test_a_statement_may_hold_a_word_that_asks(source: str) -> None:
    assert fault_of(source) == ""
