"""Quota trees as a user writes them, one per file, with the errors for each: the scenario of
docs/spec/quota.md#scenario-trees-that-are-refused, and invalid input.

    # refused: CODE: sentence   # an error of `validate`, one per line; none: a valid tree
    # definition: words         # the API server's error from the CRD alone; without it the CRD
                                # accepts the tree
    # needs: standing           # `standing.yaml` is the tree before, and a pod runs in the
                                # namespace `busy`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

STANDING = "standing"
STOPPING = ("BadShape", "DuplicateName", "NamespaceInTwoLeaves", "ParentWithNamespaces")
"""Codes with a star in docs/spec/quota.md#validation: if such a tree is written all the same, quota
admits and evicts nothing.
"""


class TreeFile(Struct, frozen=True):
    """`errors`: (code, sentence)."""

    path: Path
    tree: dict[str, Any]
    errors: tuple[tuple[str, str], ...]
    definition: str
    needs_standing: bool

    @property
    def is_stopping(self) -> bool:
        return any(code in STOPPING for code, _ in self.errors)


def tree_files() -> list[TreeFile]:
    return [read_tree_file(path) for path in sorted(Path(__file__).parent.glob("*.yaml"))]


def read_tree_file(path: Path) -> TreeFile:
    text = path.read_text(encoding="utf-8")
    printed = [line[2:].partition(": ") for line in text.splitlines() if line.startswith("# ")]
    errors = tuple(
        (code, words)
        for key, _, rest in printed
        if key == "refused"
        for code, _, words in [rest.partition(": ")]
    )
    more = {key: rest for key, _, rest in printed if rest}
    return TreeFile(
        path,
        yaml.safe_load(text),
        errors,
        more.get("definition", ""),
        more.get("needs") == STANDING,
    )


def standing() -> TreeFile:
    return read_tree_file(Path(__file__).parent / f"{STANDING}.yaml")
