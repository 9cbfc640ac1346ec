"""`arena version`: arena's lines in arena's order, and the commit of a checkout.

See docs/spec/arena-cli.md#version.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.command import run_command

from fairlead import __version__
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.run.machine import checkout_commit

NOTHING = ClusterSnapshot()


def test_the_first_line_is_the_version_and_the_others_are_indented() -> None:
    lines = run_command("version", NOTHING).out.splitlines()
    assert lines[0] == f"arena: v{__version__}"
    assert [re.match(r"  (\w+): \S", line)[1] for line in lines[1:]] == [  # type: ignore[index]
        "BuildDate",
        "GitCommit",
        "GitTreeState",
        "PythonVersion",
        "Compiler",
        "Platform",
    ]


def test_short_is_one_line_and_fairlead_prints_its_own_name() -> None:
    assert run_command("version --short", NOTHING).out == f"arena: v{__version__}\n"
    assert run_command("version --short", NOTHING, program="fairlead").out == (
        f"fairlead: v{__version__}\n"
    )


def test_verbose_adds_the_libraries() -> None:
    assert "\n  msgspec: " in run_command("version -v", NOTHING).out


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "files",
    [
        {"HEAD": COMMIT},
        {"HEAD": "ref: refs/heads/main", "refs/heads/main": COMMIT},
        {"HEAD": "ref: refs/heads/main", "packed-refs": f"# pack-refs\n{COMMIT} refs/heads/main\n"},
    ],
    ids=["detached", "loose", "packed"],
)
def test_a_checkouts_commit_is_read_from_its_files(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        path = tmp_path / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert checkout_commit(tmp_path) == COMMIT


def test_what_is_no_checkout_has_no_commit(tmp_path: Path) -> None:
    assert checkout_commit(tmp_path) == ""
