"""The workloads that run in both worlds. A registry: one function per workload, whose name is the
sentence of the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.kube.places import Place


@dataclass(frozen=True)
class Case:
    """`changes_nodes`: runs when all others are over, because their messages count nodes."""

    name: str
    steps: Callable[[Place], None]
    changes_nodes: bool = False

    @property
    def namespace(self) -> str:
        return self.name.replace("_", "-")[:60].rstrip("-")


CASES: dict[str, Case] = {}


def workload(steps: Callable[[Place], None]) -> Callable[[Place], None]:
    CASES[steps.__name__] = Case(steps.__name__, steps)
    return steps


def workload_with_nodes(steps: Callable[[Place], None]) -> Callable[[Place], None]:
    CASES[steps.__name__] = Case(steps.__name__, steps, changes_nodes=True)
    return steps
