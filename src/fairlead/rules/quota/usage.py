"""How much of each quota node is used and how much waits for it, from a snapshot (see `node_use`).

Boards and metrics show it. It needs no quota controller: without one no pod has the gate, so every
unfinished pod counts as used, bound or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.quota.plan import QuotaNodeUse, Reason
from fairlead.model.quota.state import QuotaState
from fairlead.model.quota.use import QuotaUse, WaitingDemand
from fairlead.model.resources import Amounts
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.quota.account import QuotaAccount, account_of
from fairlead.rules.quota.node_use import node_uses
from fairlead.rules.quota.sight import quota_state
from fairlead.rules.quota.tree import TreeIndex
from fairlead.rules.quota.units import Unit

_NOT_FOR_ROOM: Final = frozenset(
    reason.value
    for reason in Reason
    if reason
    not in (
        Reason.OVER_MAX,
        Reason.WAITING_FOR_IDLE_QUOTA,
        Reason.WAITING_FOR_EVICTIONS,
        Reason.PDB_BLOCKED,
    )
)
"""A pod whose condition has one of these reasons has room in the tree, or waits for something else.
"""


def quota_usage(snapshot: ClusterSnapshot) -> tuple[QuotaUse, ...]:
    """Use of every quota node, parents before children in the
    order written; empty without a tree.
    """
    return usage_of(quota_state(snapshot, snapshot.taken_at)) if snapshot.quota else ()


def usage_of(state: QuotaState) -> tuple[QuotaUse, ...]:
    """The same for a state: the numbers that a plan's sentences contain."""
    if any(each.stops for each in state.violations):
        return _beside(state, node_uses(state))
    account = account_of(state)
    account.settle(state.now)
    return _beside(state, node_uses(state, account.promised(), counted=account.index.counted()))


def _beside(state: QuotaState, uses: tuple[QuotaNodeUse, ...]) -> tuple[QuotaUse, ...]:
    return tuple(QuotaUse(node, use) for node, use in zip(state.tree.walk(), uses, strict=True))


def lacks_of(state: QuotaState) -> Mapping[str, Mapping[str, WaitingDemand]]:
    """By leaf (name) and resource: what waits for this resource, and not only asks for it, too.

    A unit waits for a resource if its leaf or a node above has no room for what it asks of it, up
    to what the cluster has. Amounts promised to others count as used. Empty while an invalid tree
    stops the plan.
    """
    is_waited = not all(pod.is_admitted for pod in state.pods) or any(
        job.is_suspended for job in state.workloads.values()
    )
    if not is_waited or any(each.stops for each in state.violations):
        return {}
    account = account_of(state)
    account.settle(state.now)
    units = list(_for_room(account))
    claimants = [unit for unit in units if unit.claim_since is not None]
    found: dict[str, dict[str, WaitingDemand]] = {}
    _note(found, account, claimants)
    for unit in claimants:
        account.add(unit.leaf, unit.vector)
    _note(found, account, [unit for unit in units if unit.claim_since is None])
    return found


def _for_room(account: QuotaAccount) -> Iterator[Unit]:
    """Waiting units, without those that room in the tree would not help."""
    for book in account.books.values():
        hopeless = {id(unit) for unit, _, _ in book.hopeless}
        for unit in book.units:
            if id(unit) not in hopeless and not any(
                pod.condition_reason in _NOT_FOR_ROOM for pod in unit.pods
            ):
                yield unit


def borrowable(state: QuotaState) -> Mapping[str, Amounts]:
    """By leaf (name) and resource: how much the leaf could borrow now, without any eviction.

    It is what its max, the maxes above it and the cluster's nodes leave, less what others were
    promised and what the leaf is still owed. An unlimited resource is absent; an invalid tree gives
    nothing.
    """
    account = account_of(state)
    account.settle(state.now)
    index, sums = account.index, account.sums
    is_stopped = any(each.stops for each in state.violations)
    for place, vector in [] if is_stopped else account.promises():
        account.add(place, vector)
    found: dict[str, dict[str, int]] = {}
    for leaf in account.books:
        rooms = {name: sums.room(leaf, k) for k, name in enumerate(index.resources)}
        owed = {name: max(0, -sums.over(leaf, k)) for k, name in enumerate(index.resources)}
        found[index.names[leaf]] = {
            name: 0 if is_stopped else max(0, room - owed[name])
            for name, room in rooms.items()
            if room is not None
        }
    return found


def _note(
    found: dict[str, dict[str, WaitingDemand]], account: QuotaAccount, units: list[Unit]
) -> None:
    index = account.index
    for unit in units:
        for k in {k for _, k in account.sums.blocks(unit.leaf, unit.vector)}:
            of_leaf, resource, asked = (
                found.setdefault(index.names[unit.leaf], {}),
                index.resources[k],
                unit.vector[k],
            )
            known = of_leaf.get(resource)
            of_leaf[resource] = (
                WaitingDemand(1, asked)
                if known is None
                else WaitingDemand(known.units + 1, min(known.smallest, asked))
            )


class ScarceResource(Struct, frozen=True, gc=False):
    """A resource of which the cluster has less than the leaves' mins add up to.

    Each min counts in proportion (docs/spec/quota.md#capacity-and-counted-mins).
    """

    configured: int
    available: int


def scarce_resources(snapshot: ClusterSnapshot) -> Mapping[str, ScarceResource]:
    """Scarce resources by name; empty if the cluster has enough, or its capacity is not known."""
    index = _index(snapshot)
    return {
        index.resources[k]: ScarceResource(index.promised(k), index.capacity[k] or 0)
        for k in index.scarce
    }


def _index(snapshot: ClusterSnapshot) -> TreeIndex:
    account = account_of(quota_state(snapshot, snapshot.taken_at))
    account.settle(snapshot.taken_at)
    return account.index


def node_limits(snapshot: ClusterSnapshot) -> Amounts:
    """What the cluster has of each resource of which that is less than the root's written max."""
    index = _index(snapshot)
    pairs = zip(index.resources, index.capacity, index.root_max, strict=True)
    return {
        name: there
        for name, there, most in pairs
        if there is not None and most is not None and there < most
    }
