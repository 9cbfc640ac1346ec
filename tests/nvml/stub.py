"""The library of `stub.c`, built, and what it shows: a directory of files that a test writes."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

SONAME = "libnvidia-ml.so.1"
MIB = 1 << 20
SOURCE = Path(__file__).with_name("stub.c")


def build_stub(folder: Path, *, is_old: bool = False) -> Path:
    """Its path. `is_old`: without what drivers before 510 do not have."""
    built = folder / SONAME
    options = [
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-Wl,-soname,{SONAME}",
        "-pthread",
        *(["-DOLD"] if is_old else []),
    ]
    subprocess.run(["cc", *options, "-o", str(built), str(SOURCE)], check=True, timeout=60)
    return built


def uuid(card: int) -> str:
    return f"GPU-{card:08x}-0000-0000-0000-000000000000"


class StubState:
    """What the library shows, until it is changed. It reads its files at every call."""

    def __init__(self, folder: Path, cards: int = 2) -> None:
        self.folder = folder
        self._rows: dict[str, object] = {}
        self.show_cards(cards)

    def show_cards(self, count: int) -> None:
        rows: dict[str, object] = {"count": count}
        for card in range(count):
            rows |= {f"{card}.uuid": uuid(card), f"{card}.minor": card, f"{card}.total": 15360 * MIB, f"{card}.reserved": 281 * MIB}
        self.say(rows)

    def say(self, rows: Mapping[str, object]) -> None:
        """Change these; None takes a row away."""
        self._rows = {key: value for key, value in (self._rows | dict(rows)).items() if value is not None}
        written = self.folder / "state.new"
        written.write_text("".join(f"{key} {value}\n" for key, value in self._rows.items()), encoding="utf-8")
        written.replace(self.folder / "state")

    def fail(self, call: str, code: int | None, card: int | None = None) -> None:
        """The call answers with this code from now on, for one card or for all; None = it is well again."""
        self.say({f"error.{call}" if card is None else f"error.{call}.{card}": code})

    def report_xid(self, xid: int, card: int = -1) -> None:
        with (self.folder / "events").open("a", encoding="utf-8") as events:
            events.write(f"{card} {xid}\n")

    def calls(self) -> list[str]:
        """What was begun and ended, in order."""
        path = self.folder / "calls"
        return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
