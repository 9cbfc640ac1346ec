"""Quota trees as a person writes them, one a file, with what is said to each: the scenario of
docs/spec/quota.md#scenario-trees-that-are-refused, and bad input.

# refused: CODE: sentence           # an error of `validate`; a line each. Without one nothing is
wrong # definition: words                 # what the API server says by its definition alone;
without it the definition lets the tree in # needs: standing                   # `standing.yaml` is
the tree until then, and a pod runs in the namespace `busy`
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

STANDING = "standing"
STOPPING = ("BadShape", "DuplicateName", "NamespaceInTwoLeaves", "ParentWithNamespaces")
"""Codes with a star in docs/spec/quota.md#validation: such a tree admits and evicts nothing, should
it have got in.
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
    said = [line[2:].partition(": ") for line in text.splitlines() if line.startswith("# ")]
    errors = tuple(
        (code, words)
        for key, _, rest in said
        if key == "refused"
        for code, _, words in [rest.partition(": ")]
    )
    more = {key: rest for key, _, rest in said if rest}
    return TreeFile(
        path,
        yaml.safe_load(text),
        errors,
        more.get("definition", ""),
        more.get("needs") == STANDING,
    )


def standing() -> TreeFile:
    return read_tree_file(Path(__file__).parent / f"{STANDING}.yaml")
