"""Fairlead's own folders are accessible only to their owner, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.edge.files.own_files import make_private


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_what_is_made_is_private(tmp_path: Path, umask: int) -> None:
    make_private(tmp_path / "a" / "b" / "c")
    assert {
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c")
    } == {0o700}


def test_what_is_there_stays(tmp_path: Path, umask: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o750)
    make_private(tmp_path / "a" / "b")
    make_private(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o750


@pytest.mark.parametrize("below", ["", "b", "b/c"])
def test_a_file_in_its_place_is_an_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        make_private(tmp_path / "a" / below)
