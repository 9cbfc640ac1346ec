"""A folder of a room can be taken in at a glance: at most 20 modules."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
MOST = 20


def test_no_folder_has_more_modules_than_a_reader_takes_in() -> None:
    counts = {
        str(folder.relative_to(SOURCE)): len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
        for folder in (SOURCE, *SOURCE.rglob("*"))
        if folder.is_dir()
    }
    assert len(counts) > 40
    assert {name: count for name, count in counts.items() if count > MOST} == {}
