"""The lint of plain English finds the words it is made for, and passes correct text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.plain_english import GLOSSARY, HEADING, findings, read_table

TABLE = read_table(GLOSSARY.read_text(encoding="utf-8"))


def words(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    return [each.word.lower() for each in findings([path], TABLE)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""What the kubelet told."""\n', ["told"]),  # plain-english: quoted
        ("x = 1  # nobody reads it\n", ["nobody"]),  # plain-english: quoted
        ('x = "So many rows at once."\n', ["so many"]),  # plain-english: quoted
        ("def told_cards() -> None: ...\n", ["told_cards"]),
        ("class ToldCards: ...\n", ["toldcards"]),
        ("def f(nobody: int) -> None: ...\n", ["nobody"]),  # plain-english: quoted
        ("ours = 1\n", ["ours"]),  # plain-english: quoted
        ("odd_rows = 1\n", ["odd_rows"]),
        ("def hear() -> None: ...\n", ["hear"]),  # plain-english: quoted
        ("def install() -> None: ...\n", []),
        ("b = 1\n", []),
        ("def test_a_pod_says_so() -> None: ...\n", ["test_a_pod_says_so"]),
        ("def test_it_waits_as_long_as_it_may(): ...\n", ["test_it_waits_as_long_as_it_may"]),
        ("def test_a_job_whose_pods_are_gone() -> None: ...\n", []),
        ('x = f"`{x}` is never heard (`{x}`)"\n', ["heard"]),  # plain-english: quoted
        ('x = f"{x} of ours: {x}"\n', ["ours"]),  # plain-english: quoted
        ('"""`told` is the name of a key."""\n', []),
        ('x = "told"\n', []),  # plain-english: quoted
        ('x = "We are told"  # plain-english: quoted\n', []),
        ('"""The API server reports it."""\n', []),
    ],
)
def test_python(tmp_path: Path, text: str, found: list[str]) -> None:
    assert words(tmp_path / "module.py", text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Who tells\n", ["tells"]),  # plain-english: quoted
        ("```\nnobody\n```\nFine.\n", []),
        ("A key `told`.\n", []),
    ],
)
def test_markdown(tmp_path: Path, text: str, found: list[str]) -> None:
    assert words(tmp_path / "page.md", text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# nobody reads it\nname = 1\n", ["nobody"]),  # plain-english: quoted
        ('why = "it tells the time"\n', ["tells"]),  # plain-english: quoted
        ('manifest = """\nkind: nobody here\n"""\n', []),  # plain-english: quoted
        ("name = 1\n", []),  # plain-english: quoted
    ],
)
def test_toml(tmp_path: Path, text: str, found: list[str]) -> None:
    assert words(tmp_path / "table.toml", text) == found


def test_the_list_of_words_is_the_glossarys() -> None:
    assert len(TABLE) > 10
    with pytest.raises(ValueError) as caught:
        read_table("# Glossary\n")
    assert str(caught.value) == f"{GLOSSARY} has no rows below `{HEADING}`"
