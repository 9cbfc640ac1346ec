"""The commands that the five documents print."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.documents.printed import compared, is_table, same_endings, words

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
# `arena`, and `kubectl-inspect-cgpu`, which kubectl finds on PATH
SCRIPTS = Path(sys.executable).parent
COMMANDS: list[dict[str, Any]] = tomllib.loads(
    (HERE / "commands.toml").read_text(encoding="utf-8")
)["command"]


def differences(command: dict[str, Any], actual: str) -> list[str]:
    if "holds" in command:
        reported = words(actual)
        return [
            f"missing: {line}\nin:\n{reported}"
            for line in command["holds"]
            if words(line) not in reported
        ]
    if "exact" in command:
        theirs, own = same_endings(command["exact"]), same_endings(actual)
        return [] if theirs == own else [f"printed:\n{command['exact']}\nbut:\n{actual}"]
    printed = command["prints"].strip()
    if not is_table(printed):
        return [] if words(printed) == words(actual) else [f"printed:\n{printed}\nbut:\n{actual}"]
    theirs, own = compared(printed, actual, command.get("ignore"))
    is_so = all(row in own for row in theirs) if command.get("partial") else theirs == own
    return [] if is_so else [f"printed:\n{printed}\nbut:\n{actual}"]
