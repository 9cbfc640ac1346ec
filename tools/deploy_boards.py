"""Writes deploy/grafana/, the Grafana boards, from `boards/`. `tests/docs` compares."""

from __future__ import annotations

from pathlib import Path

from boards.catalogue import BOARDS, file_name
from boards.grafana import board_text

FOLDER = Path(__file__).parent.parent / "deploy" / "grafana"


def boards_texts() -> dict[str, str]:
    """What each file of the folder holds."""
    return {file_name(board): board_text(board) for board in BOARDS}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in boards_texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
