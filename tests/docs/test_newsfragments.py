"""Each news fragment has a known type and plain words, and towncrier puts it into the changelog."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from tests.programs import run_program
from tools.plain_english import GLOSSARY, findings, read_table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "newsfragments"
OTHERS = {"README.md", "template.md.jinja"}
FRAGMENTS = sorted(path for path in FOLDER.iterdir() if path.name not in OTHERS)
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "towncrier"
]
TYPES = {each["directory"] for each in CONFIGURATION["type"]}
TABLE = read_table(GLOSSARY.read_text(encoding="utf-8"))
MOST_CHARACTERS = 400


def faults(path: Path) -> list[str]:
    """Faults of a fragment; its name is `<short-slug>.<type>.md`."""
    found = []
    slug, _, rest = path.name.partition(".")
    if rest.removesuffix(".md") not in TYPES or not rest.endswith(".md"):
        found.append(f"{path.name}: the name is not <slug>.<{'|'.join(sorted(TYPES))}>.md")
    if not slug or slug != slug.lower() or "_" in slug or " " in slug:
        found.append(f"{path.name}: the slug is not lower case with hyphens")
    text = path.read_text(encoding="utf-8").strip()
    if not text or len(text) > MOST_CHARACTERS or "\n\n" in text:
        found.append(
            f"{path.name}: {len(text)} characters, expected one paragraph of 1 to {MOST_CHARACTERS}"
        )
    if text[:2] in ("- ", "# "):
        found.append(f"{path.name}: begins with `{text[:2]}`, which the template adds")
    found += [
        f"{path.name}: avoid `{each.word}`; use {each.use}" for each in findings([path], TABLE)
    ]
    return found


def test_every_fragment_is_whole() -> None:
    assert [fault for path in FRAGMENTS for fault in faults(path)] == []


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        (
            "a-slug.fixed.md",
            "The console shows what the node told.",  # plain-english: quoted
            "reported",
        ),
        ("a-slug.feature.md", "The console shows nodes.", "added|changed|fixed|removed"),
        ("a-slug.fixed", "The console shows nodes.", "added|changed|fixed|removed"),
        ("A_Slug.fixed.md", "The console shows nodes.", "slug"),
        ("a-slug.fixed.md", "", "0 characters"),
        ("a-slug.fixed.md", "- The console shows nodes.", "template"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, name: str, text: str, word: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    (fault,) = faults(path)
    assert word in fault


def test_towncrier_writes_fragments_into_the_changelog(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(FOLDER, tmp_path / "newsfragments")
    for kind in sorted(TYPES):
        (tmp_path / "newsfragments" / f"example.{kind}.md").write_text(
            f"Example of {kind}.\n", encoding="utf-8"
        )
    command = [
        sys.executable,
        "-m",
        "towncrier",
        "build",
        "--yes",
        "--version",
        "9.9.9",
        "--date",
        "2030-01-02",
    ]
    run_program(command, cwd=tmp_path, check=True)
    before = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    after = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    head, mark, rest = before.partition(CONFIGURATION["start_string"])
    assert mark
    assert after.startswith(f"{head}{mark}\n## 9.9.9 (2030-01-02)\n")
    assert after.endswith(rest.lstrip("\n"))
    assert all(
        f"### {kind.capitalize()}\n" in after and f"- Example of {kind}.\n" in after
        for kind in TYPES
    )
    lines = " ".join(after.split())
    assert all(" ".join(path.read_text(encoding="utf-8").split()) in lines for path in FRAGMENTS)
    assert sorted(path.name for path in (tmp_path / "newsfragments").iterdir()) == sorted(OTHERS)
