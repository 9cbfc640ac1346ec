"""A node with shared GPUs, and notebooks that run on it."""

from __future__ import annotations

import msgspec
from tests.rules.sharing import node, placed
from tests.rules.sharing import pod as sharing_pod

from fairlead.model.node import Node
from fairlead.model.pod import Pod

T4_MIB = 15_079


def t4(name: str = "t4", **more: object) -> Node:
    """The card of 14 units in document 003."""
    return msgspec.structs.replace(
        node(name, (14,), slots={0: {"memory_mib": T4_MIB, "model": "Tesla T4", **more}}),
        uid=f"uid-{name}",
    )


def notebook(number: int, **more: object) -> Pod:
    made = placed(sharing_pod(f"notebook-{number}", 4), "t4", {"main": [(0, 4)]})
    return msgspec.structs.replace(made, phase="Running", **more)
