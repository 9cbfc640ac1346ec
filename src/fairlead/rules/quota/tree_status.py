"""The quota tree's status as the controller writes it: on change, at most once a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.model.actions import Outcome, Result, WriteTreeStatus
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import AdmittedUse, QuotaTree, Violation
from fairlead.rules.quota.validate import over_max_now

# the shortest time between two writes
WRITE_SECONDS: Final = 1.0
# the time after which a write that failed, or that has no answer yet, is repeated
AGAIN_SECONDS: Final = 10.0


class TreeStatus:
    """Writes the tree's status.

    `want` takes the status as it should be, `next` returns the write that is due, and `done` takes
    its outcome.
    """

    def __init__(self) -> None:
        self._wanted: WriteTreeStatus | None = None
        self._nodes: Callable[[], Sequence[QuotaNodeUse]] | None = None
        self._pods: Callable[[], Iterable[QuotaPod]] = tuple
        self._users: Callable[[], Iterable[AdmittedUse]] = tuple
        self._written: WriteTreeStatus | None = None
        self._may_be_news = False
        self._in_flight_until = 0.0
        self._free_at = 0.0

    def want(
        self,
        tree: QuotaTree,
        nodes: Callable[[], Sequence[QuotaNodeUse]],
        violations: Sequence[Violation],
        not_enforced: str,
        now: float,
        pods: Callable[[], Iterable[QuotaPod]] = tuple,
        users: Callable[[], Iterable[AdmittedUse]] = tuple,
    ) -> None:
        """`nodes` and `users` are called when the status may be written. `pods` (admitted pods of
        all leaves) is called if a node uses more than its max, which is the first warning of the
        status.
        """
        self._wanted = WriteTreeStatus(tree, (), tuple(violations), not_enforced, now)
        self._nodes, self._pods, self._users = nodes, pods, users
        self._may_be_news = True

    def next(self, now: float) -> list[WriteTreeStatus]:
        wanted = self._wanted
        if (
            wanted is None
            or not self._may_be_news
            or now < self._free_at
            or now < self._in_flight_until
        ):
            return []
        if self._nodes is not None:
            wanted = self._wanted = self._with_nodes(wanted, tuple(self._nodes()))
            self._nodes = None
        is_news = self._written is None or replace(wanted, at=0.0) != replace(self._written, at=0.0)
        self._written = wanted
        self._may_be_news = False
        if not is_news:
            return []
        self._in_flight_until = now + AGAIN_SECONDS
        self._free_at = now + WRITE_SECONDS
        return [wanted]

    def _with_nodes(
        self, wanted: WriteTreeStatus, nodes: tuple[QuotaNodeUse, ...]
    ) -> WriteTreeStatus:
        root = wanted.tree.root
        is_over = root is not None and any(use.over_max for use in nodes)
        over = over_max_now(root, nodes, self._pods()) if root is not None and is_over else ()
        violations = (*over, *wanted.violations)
        return replace(wanted, nodes=nodes, violations=violations, users=tuple(self._users()))

    def step_back(self, now: float) -> None:
        self._free_at, self._in_flight_until = (
            min(self._free_at, now),
            min(self._in_flight_until, now + AGAIN_SECONDS),
        )

    def done(self, outcome: Outcome, now: float) -> None:
        self._in_flight_until = 0.0
        if outcome.result is not Result.DONE:
            self._written, self._may_be_news = None, True
            self._free_at = now + AGAIN_SECONDS

    def next_after(self, now: float) -> float | None:
        return max(self._free_at, self._in_flight_until, now) if self._may_be_news else None
