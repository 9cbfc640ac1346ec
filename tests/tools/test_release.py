"""`make release` refuses what is not ready, each with what mends it, and its files are whole."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = """# Changelog

<!-- towncrier: releases begin here -->

## 0.2.0 (2030-01-02)

- **Console.** New.

## 0.1.0 (2029-01-02)

- Old.
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("release")


def git(root: Path, *arguments: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(root), *name, *arguments], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout of 0.2.0 that can be released; 0.1.0 was."""
    root = tmp_path / "clone"
    (root / "src" / "fairlead").mkdir(parents=True)
    (root / "newsfragments").mkdir()
    for name in ("README.md", "template.md.jinja"):
        shutil.copy(ROOT / "newsfragments" / name, root / "newsfragments" / name)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    written = project.replace('\nversion = "', '\nversion = "0.2.0"\n# "', 1)
    (root / "pyproject.toml").write_text(written, encoding="utf-8")
    (root / "src" / "fairlead" / "__init__.py").write_text('__version__ = "0.2.0"\n')
    (root / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    (root / ".gitignore").write_text("build/\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "all")
    git(root, "tag", "v0.1.0")
    return root


def built(folder: Path) -> None:
    (folder / "fairlead-0.2.0.oci.tar").write_bytes(b"an image")


def must_not_build(folder: Path) -> None:
    raise AssertionError("built, although it is refused")


def test_the_files_are_whole(tool: ModuleType, clone: Path) -> None:
    folder = clone / "build" / "release"
    folder.mkdir(parents=True)
    (folder / "of-an-older-release").touch()
    written = tool.release("0.2.0", folder, (built,), clone)
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in written)
    assert {path.name for path in written} == {
        "fairlead-0.2.0.oci.tar",
        "RELEASE-NOTES.md",
        "SHA256SUMS",
    }
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert checked.stdout.count(": OK") == 2
    notes = (folder / "RELEASE-NOTES.md").read_text(encoding="utf-8")
    assert notes == "# Fairlead 0.2.0\n\n- **Console.** New.\n"


def change(path: str, old: str, new: str) -> Callable[[Path], None]:
    def run(root: Path) -> None:
        file = root / path
        file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        git(root, "commit", "--quiet", "--all", "--message", "changed")

    return run


def tag_two(root: Path) -> None:
    git(root, "tag", "v0.9.0")
    git(root, "tag", "v0.10.0")


def add_fragment(root: Path) -> None:
    (root / "newsfragments" / "a.added.md").write_text(f"Console: a page.{' More' * 30}\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "a fragment")


@pytest.mark.parametrize(
    ("version", "prepare", "words"),
    [
        ("0.2", None, "VERSION is `0.2`"),
        ("", None, "VERSION is ``"),
        ("v0.2.0", None, "VERSION is `v0.2.0`"),
        ("0.2.0", lambda root: (root / "new").touch(), "not committed: new"),
        (
            "0.2.0",
            lambda root: (root / "CHANGELOG.md").write_text(CHANGELOG + "- more\n"),
            "not committed: CHANGELOG.md",
        ),
        ("0.3.0", None, "pyproject.toml has version 0.2.0, not 0.3.0"),
        (
            "0.2.0",
            change("src/fairlead/__init__.py", "0.2.0", "0.2.1"),
            "src/fairlead/__init__.py has version 0.2.1, not 0.2.0",
        ),
        ("0.2.0", lambda root: git(root, "tag", "v0.2.0"), "not newer than 0.2.0"),
        ("0.2.0", tag_two, "not newer than 0.10.0"),
        ("0.2.0", add_fragment, "1 news fragments are not in CHANGELOG.md: a.added.md"),
        (
            "0.2.0",
            change("CHANGELOG.md", "2030-01-02", "unreleased"),
            "no section `## 0.2.0 (DATE)`",
        ),
        ("0.2.0", change("CHANGELOG.md", "- **Console.** New.\n", ""), "no section `## 0.2.0"),
    ],
)
def test_what_is_not_ready_is_refused(
    tool: ModuleType,
    clone: Path,
    version: str,
    prepare: Callable[[Path], None] | None,
    words: str,
) -> None:
    if prepare:
        prepare(clone)
    folder = clone / "build" / "release"
    with pytest.raises(tool.StepFailed) as refused:
        tool.release(version, folder, (must_not_build,), clone)
    assert words in refused.value.what
    assert refused.value.hint
    assert not folder.exists()


def test_notes_join_fragments_and_what_is_unreleased(
    tool: ModuleType, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "make_environment", lambda kind: None)
    change("CHANGELOG.md", "2030-01-02", "unreleased")(clone)
    add_fragment(clone)
    tool.write_notes("0.2.0", clone, today="2030-02-03")
    text = (clone / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.count("## 0.2.0") == 1
    date, section = tool.sections(text)["0.2.0"]
    assert date == "2030-02-03"
    assert " ".join(section.split()) == (
        f"### Added - Console: a page.{' More' * 30} - **Console.** New."
    )
    assert max(map(len, text.splitlines())) <= 100
    assert tool.unbuilt_fragments(clone) == []
    git(clone, "commit", "--quiet", "--all", "--message", "notes")
    assert list(tool.refusals("0.2.0", clone)) == []
    with pytest.raises(tool.StepFailed) as caught:
        tool.write_notes("0.2.0", clone)
    assert caught.value.what == "CHANGELOG.md has a dated section 0.2.0 already"


def test_an_unreleased_section_without_fragments_is_dated(tool: ModuleType, clone: Path) -> None:
    change("CHANGELOG.md", "2030-01-02", "unreleased")(clone)
    tool.write_notes("0.2.0", clone, today="2030-02-03")
    assert tool.sections((clone / "CHANGELOG.md").read_text(encoding="utf-8"))["0.2.0"] == (
        "2030-02-03",
        "- **Console.** New.",
    )
    with pytest.raises(tool.StepFailed) as caught:
        tool.write_notes("0.3.0", clone)
    assert caught.value.what == "there is nothing new for 0.3.0"
