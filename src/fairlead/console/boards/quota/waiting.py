"""Units that wait for quota, and their reasons.

The rows are the units of a plan that were not admitted.

Units that the plan admits wait, too, until their gates are removed: they come first, without a
reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from fairlead.console.boards.quota.usage_rows import shown_amount, unit_of
from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.envelope import Sentence, counted, timestamp
from fairlead.console.pages.quota import (
    BorrowerRow,
    QuotaNodeWithoutRoom,
    SparedPod,
    TreeFault,
    WaitingUnit,
)
from fairlead.model.quota.clauses import Clauses
from fairlead.model.quota.plan import QuotaAdmission, QuotaPlan, QuotaWaiting, Reason
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import QuotaNode, Violation


class PlannedQuota:
    """The quota plan of one moment, made when its first question is asked.

    `make` None: there is no tree.
    """

    def __init__(self, make: Callable[[], QuotaPlan] | None) -> None:
        self._make = make

    @cached_property
    def plan(self) -> QuotaPlan:
        return QuotaPlan() if self._make is None else self._make()

    @cached_property
    def _row_by_uid(self) -> Mapping[str, QuotaWaiting]:
        return {pod.uid: row for row in self.plan.waiting for pod in row.pods}

    def clauses(self, reason: str, uids: Iterable[str]) -> Clauses:
        """Why the first of these pods waits, if the plan gives the reason that its condition gives.

        () where it does not: the condition is older than the plan, and has its own words.
        """
        if self._make is None or reason not in _REASONS:
            return ()
        rows = filter(None, map(self._row_by_uid.get, uids))
        return next((row.clauses for row in rows if row.reason == reason), ())


_REASONS: Final = frozenset(Reason)
BORROWERS_MAX: Final = 10
PROTECTED_MAX: Final = 50
HAS_ROOM: Final = "there is room for it; its scheduling gate is not removed yet"


def waiting_rows(plan: QuotaPlan, root: QuotaNode | None) -> RowSet[WaitingUnit]:
    """By leaf in the order of the tree, and by position."""
    if root is None:
        return RowSet(WaitingUnit, [], _facets([]), ties="unit")
    paths = {leaf.name: leaf.path for leaf in root.leaves()}
    order = {name: place for place, name in enumerate(paths)}
    rows = [
        *(_ready(each, paths) for each in plan.admit),
        *(waiting_unit(each, paths) for each in plan.waiting),
    ]
    rows.sort(
        key=lambda row: (
            order.get(row.leaf, -1),
            row.reason is not None,
            row.position or len(rows),
            row.unit,
        )
    )
    return RowSet(WaitingUnit, [_entry(row) for row in rows], _facets(rows), ties="unit")


def waiting_sentence(rows: Sequence[WaitingUnit]) -> Sentence:
    """How many pods wait in how many leaves."""
    pods = sum(row.pods for row in rows)
    if not pods:
        return Sentence("quota-waiting-none", {}, "No pod waits for quota.")
    leaves = len({row.leaf for row in rows})
    text = (
        f"{counted(pods, 'pod')} {'waits' if pods == 1 else 'wait'} for quota in {leaves} "
        f"{'leaf' if leaves == 1 else 'leaves'}."
    )
    return Sentence("quota-waiting", {"pods": pods, "leaves": leaves}, text)


def waiting_unit(waiting: QuotaWaiting, paths: Mapping[str, str]) -> WaitingUnit:
    """`paths`: of leaves, by name."""
    namespace, _, name = waiting.unit.partition("/")
    users = {pod.user for pod in waiting.pods}
    job = waiting.workload
    return WaitingUnit(
        unit=waiting.unit,
        namespace=namespace,
        name=name,
        pods=waiting.pod_count,
        leaf=waiting.leaf,
        path=paths.get(waiting.leaf, waiting.leaf),
        position=waiting.position,
        reason=waiting.reason.value,
        message=waiting.message,
        clauses=clause_sentences(waiting.clauses),
        user=(users.pop() if len(users) == 1 else job.user if job else "") or None,
        since=_since(waiting.pods)
        or (timestamp(job.created_at) if job and job.created_at else None),
        blocked=[
            QuotaNodeWithoutRoom(
                node=each.node,
                resource=each.resource,
                unit=unit_of(each.resource)[0],
                asks=shown_amount(each.resource, each.asks),
                used=shown_amount(each.resource, each.used),
                claimed=shown_amount(each.resource, each.claimed),
                max=shown_amount(each.resource, each.max),
            )
            for each in waiting.blocked
        ],
        borrowers=[
            BorrowerRow(
                each.leaf,
                each.resource,
                unit_of(each.resource)[0],
                shown_amount(each.resource, each.over),
            )
            for each in waiting.borrowers[:BORROWERS_MAX]
        ],
        borrowers_count=len(waiting.borrowers),
        spared=[SparedPod(each.pod, each.why) for each in waiting.spared[:PROTECTED_MAX]],
    )


def clause_sentences(clauses: Clauses) -> list[Sentence]:
    """The clauses of a reason, for translation."""
    return [Sentence(f"clause-{each.code}", dict(each.values), each.text) for each in clauses]


def fault_rows(violations: Iterable[Violation]) -> list[TreeFault]:
    return [
        TreeFault(
            each.path,
            str(each.code),
            each.message,
            "error" if each.is_error else "warning",
            each.stops,
        )
        for each in violations
    ]


def _ready(admission: QuotaAdmission, paths: Mapping[str, str]) -> WaitingUnit:
    pod = admission.pod
    return WaitingUnit(
        unit=pod.key,
        namespace=pod.namespace,
        name=pod.name,
        pods=1,
        leaf=admission.leaf,
        path=paths.get(admission.leaf, admission.leaf),
        position=0,
        reason=None,
        message=HAS_ROOM,
        clauses=[Sentence("quota-has-room", {}, HAS_ROOM)],
        user=pod.user or None,
        since=_since((pod,)),
        blocked=[],
        borrowers=[],
        borrowers_count=0,
        spared=[],
    )


def _since(pods: Iterable[QuotaPod]) -> str | None:
    created = [pod.created_at for pod in pods if pod.created_at]
    return timestamp(min(created)) if created else None


def _entry(row: WaitingUnit) -> Entry[WaitingUnit]:
    """A path answers to itself and to every path above it."""
    steps = row.path.split(".")
    answers = {
        "path": lowered(*(".".join(steps[: length + 1]) for length in range(len(steps)))),
        "name": lowered(row.leaf),
        "namespace": lowered(row.namespace),
        "reason": lowered(row.reason or ""),
        "user": lowered(row.user or ""),
    }
    return Entry(row, "\n".join((row.unit, row.leaf, row.message, row.user or "")).lower(), answers)


def _facets(rows: Sequence[WaitingUnit]) -> dict[str, list[str]]:
    reasons = Counter(row.reason for row in rows if row.reason)
    return {
        "namespace": choices(row.namespace for row in rows),
        "reason": sorted(reasons),
        "user": choices(row.user for row in rows if row.user),
    }
