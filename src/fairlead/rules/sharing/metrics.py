"""The families `fairlead_gpushare_*`: what the scheduler extender reports about shared cards and
about itself (docs/spec/gpu-sharing.md, metrics).

Units of a card by state: `reserved`, `bound` and `assigned` are held by pods; `free` may be given;
no pod can have the rest of `total`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.model.metric import NO_LABELS, Family, Key, MetricName
from fairlead.rules.holding.account import ASSIGNED, BOUND, RESERVED, NodeAccount
from fairlead.rules.sharing.ledger import Ledger

UNITS: Final = MetricName(
    "fairlead_gpushare_units",
    "gauge",
    ("node_name", "uuid", "state"),
    "Units of a shared GPU: total, free, reserved, bound, assigned.",
)
OVERCOMMITTED: Final = MetricName(
    "fairlead_gpushare_overcommitted_units",
    "gauge",
    ("node_name",),
    "Units that are granted and that the node does not have (any more).",
)
PENDING: Final = MetricName(
    "fairlead_gpushare_unplaced_pods",
    "gauge",
    (),
    "Pods that run with shared GPU memory on an unknown card.",
)
BINDS: Final = MetricName(
    "fairlead_gpushare_bind_total",
    "counter",
    ("result",),
    "Bindings by result: bound, repeated, refused, unknown.",
)
DOUBTS: Final = MetricName(
    "fairlead_gpushare_unsettled_binds",
    "gauge",
    (),
    "Bindings that the watch has not confirmed yet.",
)
LEADING: Final = MetricName(
    "fairlead_gpushare_leading",
    "gauge",
    (),
    "1 when this extender holds the lease and may place pods.",
)
NAMES: Final = (UNITS, OVERCOMMITTED, PENDING, BINDS, DOUBTS, LEADING)


def share_families(
    ledger: Ledger, binds: Mapping[str, int], *, is_leading: bool, doubts: int
) -> list[Family]:
    """All families, for nodes in shared mode.

    `binds`: bindings since the start, by result; `doubts`: bindings that the watch has not
    confirmed yet.
    """
    shared = [account for account in ledger.nodes.values() if account.mode.is_shared]
    units = [line for account in shared for line in _units(account)]
    return [
        Family(UNITS, [key for key, _ in units], [count for _, count in units]),
        Family(
            OVERCOMMITTED,
            [(account.name,) for account in shared],
            [account.overcommitted for account in shared],
        ),
        Family(PENDING, NO_LABELS, [sum(1 for _ in ledger.unplaced())]),
        Family(BINDS, [(result,) for result in binds], list(binds.values())),
        Family(DOUBTS, NO_LABELS, [doubts]),
        Family(LEADING, NO_LABELS, [int(is_leading)]),
    ]


def _units(account: NodeAccount) -> Iterator[tuple[Key, int]]:
    held: dict[tuple[str, str], int] = {}
    for tenant in account.tenants.values():
        for seat in account.seats(tenant):
            key = seat.key, tenant.shown_state
            held[key] = held.get(key, 0) + seat.grant.units
    for card in account.cards:
        yield (account.name, card.key, "total"), card.units
        yield (account.name, card.key, "free"), card.free
        for state in (RESERVED, BOUND, ASSIGNED):
            yield (account.name, card.key, state), held.get((card.key, state), 0)
