"""The rows of the Quota board: one per node of the tree and managed resource, in the tree's order.

`lent`: what others take of a leaf's unused guarantee. Borrowers first use what no leaf is
guaranteed; the rest is split over the leaves in proportion to what each leaves unused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.envelope import Sentence, counted, neat
from fairlead.console.pages.quota import NamespaceUse, QuotaRow, TreeFault, UserUse
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.quota.use import QuotaUse
from fairlead.model.resources import CPU, GPU_MEMORY, is_byte_resource

_UNITS: Final = {CPU: ("cores", 1000), GPU_MEMORY: ("GiB", 1)}


WaitingJobs = Mapping[tuple[str, str], int]
"""Namespace and resource -> jobs of which something that asks for it waits."""


def quota_rows(
    uses: Sequence[QuotaUse], resources: Sequence[str], waiting_jobs: WaitingJobs
) -> RowSet[QuotaRow]:
    """All rows, resource by resource, parents before children."""
    places = places_of(uses)
    entries: list[Entry[QuotaRow]] = []
    for resource in resources:
        lent = lent_by_leaf(uses, resource)
        entries += [quota_entry(_row(use, resource, places, lent, waiting_jobs)) for use in uses]
    rows = [entry.row for entry in entries]
    facets = {
        "path": choices(row.path for row in rows),
        "name": choices(row.name for row in rows),
        "resource": list(resources),
    }
    return RowSet(QuotaRow, entries, facets)


def quota_sentence(rows: Sequence[QuotaRow]) -> Sentence:
    """How many leaves borrow, and how many wait below what they are guaranteed."""
    leaves = {row.path for row in rows if row.is_leaf}
    if not leaves:
        return Sentence("quota-none", {}, "This cluster has no quota tree.")
    borrowing = {row.path for row in rows if row.is_leaf and row.borrowed > 0}
    starved = starved_paths(rows)
    values = {"leaves": len(leaves), "borrowing": len(borrowing), "starved": len(starved)}
    verb = "borrows" if len(borrowing) == 1 else "borrow"
    text = f"{len(borrowing)} of {counted(len(leaves), 'leaf').replace('leafs', 'leaves')} {verb}"
    be = "is" if len(starved) == 1 else "are"
    if starved:
        return Sentence(
            "quota-starved",
            dict(values),
            f"{text}; {len(starved)} {be} below the guaranteed minimum while pods wait.",
        )
    return Sentence(
        "quota", dict(values), f"{text}; no leaf is below its guaranteed minimum while pods wait."
    )


def invalid_sentence(fault: TreeFault) -> Sentence:
    """Of a tree that stops everything."""
    text = f"The quota tree is invalid: {fault.message}. No pods are admitted or evicted."
    return Sentence("quota-invalid", {"fault": fault.message, "kind": fault.code}, text)


def starved_paths(rows: Iterable[QuotaRow]) -> set[str]:
    """Leaves whose waiting pods ask only for what the leaf is still owed.

    That is, below its minimum in every resource they ask for. A leaf that has its minimum of GPUs
    and waits for more GPUs is not starved, however much of its cores it leaves unused.
    """
    owed: dict[str, bool] = {}
    for row in rows:
        if row.is_leaf and row.waiting_pods and row.requested > row.used:
            owed[row.path] = owed.get(row.path, True) and row.used < row.min
    return {path for path, is_owed in owed.items() if is_owed}


def unit_of(resource: str) -> tuple[str, int]:
    """The unit shown, and how many of the model's units make one.

    >>> [unit_of(name) for name in ("cpu", "memory", "nvidia.com/gpu")]
    [('cores', 1000), ('bytes', 1), ('count', 1)]
    """
    return _UNITS.get(resource) or ("bytes" if is_byte_resource(resource) else "count", 1)


def shown_amount(resource: str, amount: float) -> float:
    """An amount of the model in the unit shown.

    >>> shown_amount("cpu", 1500), shown_amount("memory", 7)
    (1.5, 7)
    """
    return neat(amount / unit_of(resource)[1])


def lent_by_leaf(uses: Sequence[QuotaUse], resource: str) -> dict[str, float]:
    """Path -> what other leaves use of this leaf's minimum, in the model's units."""
    leaves = [use for use in uses if use.node.is_leaf]
    root_max = uses[0].node.max.get(resource) if uses else None
    if root_max is None:
        return {}
    guaranteed = sum(use.min_of(resource) for use in leaves)
    borrowed = sum(use.own.borrowed.get(resource, 0) for use in leaves)
    unused = {
        use.node.path: max(0, use.min_of(resource) - use.own.used.get(resource, 0))
        for use in leaves
    }
    taken = max(0, borrowed - max(0, root_max - guaranteed))
    offered = sum(unused.values())
    return (
        {path: min(float(part), taken * part / offered) for path, part in unused.items()}
        if offered
        else {}
    )


class Place(Struct, frozen=True):
    """`parent`: its path."""

    parent: str
    depth: int


def places_of(uses: Sequence[QuotaUse]) -> dict[str, Place]:
    """Path -> where it hangs."""
    if not uses:
        return {}
    places = {uses[0].node.path: Place("", 0)}

    def visit(node: QuotaNode) -> None:
        for child in node.children:
            places[child.path] = Place(node.path, places[node.path].depth + 1)
            visit(child)

    visit(uses[0].node)
    return places


def _row(
    use: QuotaUse,
    resource: str,
    places: Mapping[str, Place],
    lent: Mapping[str, float],
    waiting_jobs: WaitingJobs,
) -> QuotaRow:
    node = use.node
    used, least, most = use.own.used.get(resource, 0), use.min_of(resource), node.max.get(resource)
    below = [leaf for leaf in node.walk() if leaf.is_leaf]
    return QuotaRow(
        name=node.name,
        path=node.path,
        parent=places[node.path].parent,
        depth=places[node.path].depth,
        is_leaf=node.is_leaf,
        namespaces=list(node.namespaces),
        resource=resource,
        unit=unit_of(resource)[0],
        max=None if most is None else shown_amount(resource, most),
        min=shown_amount(resource, least),
        min_written=shown_amount(resource, node.min.get(resource, 0)),
        over_max=shown_amount(resource, use.own.over_max.get(resource, 0)),
        used=shown_amount(resource, used),
        requested=shown_amount(resource, use.own.request.get(resource, 0)),
        borrowed=shown_amount(resource, use.own.borrowed.get(resource, 0)),
        lent=shown_amount(resource, sum(lent.get(leaf.path, 0.0) for leaf in below)),
        claimed=shown_amount(resource, use.own.claimed.get(resource, 0)),
        lost=shown_amount(resource, use.own.lost.get(resource, 0)),
        waiting_pods=use.own.waiting_by_resource.get(resource, 0),
        waiting_jobs=sum(
            waiting_jobs.get((name, resource), 0) for leaf in below for name in leaf.namespaces
        ),
        by_namespace=[
            NamespaceUse(name, shown_amount(resource, amounts.get(resource, 0)))
            for name, amounts in use.own.used_by_namespace.items()
        ],
        by_user=[
            UserUse(name or None, shown_amount(resource, amounts[resource]))
            for name, amounts in sorted(
                use.own.used_by_user.items(), key=lambda each: -each[1].get(resource, 0)
            )
            if amounts.get(resource)
        ],
    )


def quota_entry(row: QuotaRow) -> Entry[QuotaRow]:
    """A path answers to itself and to every path above it."""
    steps = row.path.split(".")
    answers = {
        "path": lowered(*(".".join(steps[: length + 1]) for length in range(len(steps)))),
        "name": lowered(row.name),
        "resource": lowered(row.resource),
    }
    return Entry(
        row, "\n".join((row.name, row.path, row.resource, *row.namespaces)).lower(), answers
    )
