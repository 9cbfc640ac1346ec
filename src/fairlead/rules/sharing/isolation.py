"""How pods on a node's shared cards are isolated from each other, and how strictly.

Specification: docs/spec/gpu-sharing.md#isolation-providers.

`guard` is cooperative: a limit for well-behaved programs. No word here may promise more than is
enforced. A node without a label is `unknown`, which does not mean safe.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.inspection import Isolation
from fairlead.model.keys import LABEL_ISOLATION, LABEL_NO_ISOLATION
from fairlead.model.node import Node

UNKNOWN: Final = "unknown"
_LEVELS: Final = {
    "cgroup": ("enforced", "none", "shared"),
    "mig": ("enforced", "enforced", "isolated"),
    "mps": ("per client", "SM fraction", "one fatal fault kills all clients"),
    "guard": ("cooperative", "soft", "shared"),
    "none": ("none", "none", "none"),
}
"""By provider: memory, compute, fault."""


def isolation_of(node: Node) -> Isolation:
    """The isolation that the node's labels declare.

    >>> isolation_of(Node("n", labels={"fairlead.io/gpu-isolation": "guard"})).memory
    'cooperative'
    >>> isolation_of(Node("n")).provider
    'unknown'
    """
    return isolation_by(
        "none"
        if node.labels.get(LABEL_NO_ISOLATION) == "true"
        else node.labels.get(LABEL_ISOLATION, "")
    )


def isolation_by(provider: str) -> Isolation:
    """What this provider enforces."""
    if provider not in _LEVELS:
        provider = UNKNOWN
    return Isolation(str(provider), *_LEVELS.get(provider, (UNKNOWN, UNKNOWN, UNKNOWN)))


def isolation_text(isolation: Isolation) -> str:
    """The provider with the level of its memory limit, in one cell.

    >>> isolation_text(Isolation("guard", "cooperative", "soft", "shared"))
    'guard(cooperative)'
    >>> isolation_text(Isolation("none", "none", "none", "none"))
    'none'
    """
    return (
        isolation.provider
        if isolation.memory in ("none", UNKNOWN)
        else f"{isolation.provider}({isolation.memory})"
    )
