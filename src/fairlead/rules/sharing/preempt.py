"""Preemption: which pods must be evicted so that a pod gets its part of a GPU.

Specification: docs/spec/gpu-sharing.md#preempt.

It corrects what kube-scheduler proposes, which relies on the freed *sum* of a node: two free halves
of two cards are not a free card. Proposed victims without a shared GPU stay victims: kube-scheduler
chose them for another resource, which only it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from fairlead.model.pod import Pod
from fairlead.model.sharing import GpuNeed
from fairlead.rules.holding.account import RESERVED, Hidden, NodeAccount, Tenant
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.sharing.alike import choose_on
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.placement import (
    Clear,
    as_seen_by,
    cleared_for,
    gpu_policy,
    is_below,
    makes_way,
    with_own_cards,
)
from fairlead.rules.sharing.verdict import verdict

_Fits = Callable[[NodeAccount], bool]


class Victims(Struct, frozen=True, gc=False):
    """Uids of the pods to evict from one node.

    `violations` of disruption budgets are kube-scheduler's count, returned unchanged.
    """

    uids: tuple[str, ...]
    violations: int = 0


def plan_preemption(
    ledger: Ledger, pod: Pod, proposed: Mapping[str, Victims], spared: Collection[str] = ()
) -> dict[str, Victims]:
    """By node the victims that really make room on one card (or M cards); nodes without are absent.

    None of `spared` is among them. Nor is a pod that is only reserved: kube-scheduler would not
    find it on the node and would give up the whole round.
    """
    need = gpu_need(pod)
    found = {}
    for node, victims in proposed.items():
        account = ledger.nodes.get(node)
        uids = (
            _victims_on(ledger, account, pod, need, victims.uids, spared)
            if account is not None
            else None
        )
        if uids:
            found[node] = Victims(tuple(uids), victims.violations)
    return found


def _victims_on(
    ledger: Ledger,
    account: NodeAccount,
    pod: Pod,
    need: GpuNeed,
    proposed: Sequence[str],
    spared: Collection[str],
) -> list[str] | None:
    no = verdict(account, need, pod, ledger.policies)
    if no is None:
        # there is room already: kube-scheduler evicts them for another resource
        return list(proposed)
    if no.is_final:
        return None
    strangers = [uid for uid in proposed if uid not in account.tenants]
    may_go = [
        tenant
        for tenant in account.tenants.values()
        if tenant.state != RESERVED and tenant.pod.uid not in spared
    ]
    candidates = [
        tenant for tenant in may_go if is_below(tenant, pod) or tenant.pod.uid in proposed
    ]
    policy = gpu_policy(need, account, ledger.policies)

    cleared: dict[int, NodeAccount] = {}
    is_simple = not need.is_split and not account.is_guarded

    def fits(left: NodeAccount) -> bool:
        if left.promised and is_simple and choose_on(left, need, policy) is None:
            return False  # before promises are counted, which is slow and only takes room away
        return (
            choose_on(
                as_seen_by(left, pod, _clearing(account, left, candidates, cleared)), need, policy
            )
            is not None
        )

    ranked = sorted(candidates, key=_importance)
    traces = _traces(account, ranked)
    plans = []
    tried: dict[tuple[str, ...], list[Tenant] | None] = {}
    """By the pods that may be evicted: for cards with unknown holders they are the same."""
    for index, cards in enumerate(_card_sets(account, need)):
        here = {trace for trace in set(traces.values()) if trace.may_be_on(cards)}
        on_cards = [tenant for tenant in ranked if traces[tenant.pod.uid] in here]
        who = tuple(tenant.pod.uid for tenant in on_cards)
        if who not in tried:
            tried[who] = _fewest(
                on_cards,
                frozenset(proposed),
                account,
                fits,
                traces,
                0 if need.is_split else need.units,
            )
        chosen = tried[who]
        if chosen is not None:
            plans.append((_cost(chosen), index, chosen))
    if not plans:
        return None
    return [*strangers, *(tenant.pod.uid for tenant in min(plans, key=lambda plan: plan[:2])[2])]


def _clearing(
    account: NodeAccount,
    left: NodeAccount,
    candidates: Sequence[Tenant],
    cleared: dict[int, NodeAccount],
) -> Clear:
    """A `cleared_for` for `left`, which is `account` without some of the candidates.

    If all candidates make way for the promised pod, the same tenants stay whichever candidates have
    left already. So they are counted once per priority, and kept in `cleared`.
    """

    def clear(seen: NodeAccount, promised: Pod) -> NodeAccount:
        if promised.priority not in cleared:
            if not all(makes_way(tenant, promised) for tenant in candidates):
                return cleared_for(seen, promised)
            cleared[promised.priority] = cleared_for(account, promised)
        found = with_own_cards(cleared[promised.priority])
        for card, with_promises, without in zip(found.cards, seen.cards, left.cards, strict=True):
            card.take(
                with_promises.used - without.used, with_promises.core_used - without.core_used
            )
        found.seat_all(())  # promises narrow down where hidden tenants can be
        return found

    return clear


class _FreedRoom(Struct, frozen=True, eq=False, gc=False):
    """What a tenant frees by leaving: tenants with equal traces are interchangeable.

    `hidden`: what it may hold of an unknown card, else None. `held`: for each card that it holds a
    part of, key, units and core percent. `promised`: number of the node's promised pods for which
    it makes way. `most_units`: units of one card that become free at most.
    """

    promised: int
    hidden: Hidden | None
    held: tuple[tuple[str, int, int], ...]
    most_units: int

    def may_be_on(self, cards: Collection[str]) -> bool:
        return self.hidden is not None or any(key in cards for key, _, _ in self.held)


def _traces(account: NodeAccount, tenants: Iterable[Tenant]) -> dict[str, _FreedRoom]:
    """By uid; equal traces are the same object."""
    found: dict[tuple[int, Hidden | None, tuple[tuple[str, int, int], ...]], _FreedRoom] = {}
    traces = {}
    for tenant in tenants:
        uid = tenant.pod.uid
        hidden = account.hidden.get(uid)
        seats = [seat for seat in account.seats(tenant) if not seat.is_whole]
        held = tuple([(seat.key, seat.grant.units, seat.grant.core_percent) for seat in seats])
        key = sum(makes_way(tenant, other) for other in account.promised.values()), hidden, held
        if key not in found:
            found[key] = _FreedRoom(
                *key, sum(seat.grant.units for seat in seats) if hidden is None else hidden.units
            )
        traces[uid] = found[key]
    return traces


def _card_sets(account: NodeAccount, need: GpuNeed) -> list[set[str]]:
    """Sets of cards that could hold the pod.

    Each card alone, or all together for a pod with several cards.
    """
    usable = [card.key for card in account.usable()]
    return [set(usable)] if need.cards > 1 or need.is_split else [{key} for key in usable]


def _fewest(
    ranked: Sequence[Tenant],
    proposed: frozenset[str],
    account: NodeAccount,
    fits: _Fits,
    traces: Mapping[str, _FreedRoom],
    units: int,
) -> list[Tenant] | None:
    """The fewest of these tenants that must leave so that the pod fits; None if it never fits.

    `ranked`: the least important first. Proposed victims leave first, then the least important,
    until the pod fits; then each tenant that is not needed is spared. `account` is not changed.
    `units`: the least that the pod needs of one card.
    """
    order = [tenant for tenant in ranked if tenant.pod.uid in proposed]
    order += [tenant for tenant in ranked if tenant.pod.uid not in proposed]
    found = _until_it_fits(order, account, fits, _at_least(order, account, traces, units))
    if found is None:
        return None
    count, left = found
    gone = frozenset(tenant.pod.uid for tenant in order[:count])
    needed = [tenant for tenant in reversed(ranked) if tenant.pod.uid in gone]
    while spared := _spared(needed, left, fits, traces):
        needed = [tenant for tenant in needed if tenant.pod.uid not in spared]
    return needed


def _spared(
    gone: Sequence[Tenant], left: NodeAccount, fits: _Fits, traces: Mapping[str, _FreedRoom]
) -> set[str]:
    """Uids of those of `gone` that can stay while the pod fits.

    They take their seats again in `left`.

    The most important come first. As many as fit are spared at once; if a tenant does not fit,
    those with the same trace do not fit either.
    """
    spared: set[str] = set()
    pending, step = list(gone), 1
    while pending:
        batch = pending[:step]
        uids = [tenant.pod.uid for tenant in batch]
        left.seat_all(batch)
        if fits(left):
            spared.update(uids)
            pending, step = pending[step:], 2 * step
            continue
        left.unseat_all(uids)
        if len(batch) == 1:
            trace = traces[uids[0]]
            pending = [tenant for tenant in pending if traces[tenant.pod.uid] is not trace]
        step = max(1, len(batch) // 2)
    return spared


def _until_it_fits(
    order: Sequence[Tenant], account: NodeAccount, fits: _Fits, at_least: int
) -> tuple[int, NodeAccount] | None:
    """How many of the first of `order` must leave until the pod fits, and the account without them;
    None if it never fits.

    `at_least`: with fewer gone it does not fit. More tenants gone usually means more room, so the
    number is doubled until the pod fits, and then found by bisection. But when a tenant with a
    known card leaves, a hidden tenant may sit on that card, so it can have less room: before
    "never" is returned, each number is tried.
    """
    uids = [tenant.pod.uid for tenant in order]
    if at_least > len(uids):
        return None
    short, step = at_least - 1, 1
    before = account.without(uids[:short]) if short else account
    while True:
        enough = min(len(uids), short + step)
        after = before.without(uids[short:enough])
        if fits(after):
            break
        if enough == len(uids):
            return _first_that_fits(uids, account, fits) if account.hidden else None
        short, before, step = enough, after, 2 * step
    while enough - short > 1:
        middle = (short + enough) // 2
        between = before.without(uids[short:middle])
        if fits(between):
            enough, after = middle, between
        else:
            short, before = middle, between
    return enough, after


def _at_least(
    order: Sequence[Tenant], account: NodeAccount, traces: Mapping[str, _FreedRoom], units: int
) -> int:
    """A number of the first of `order`: with fewer gone, no card has `units` free. Never 0.

    Each tenant counts as if all that it frees were on the card with most free.
    """
    missing = units - max(
        (card.units - card.used - card.aside for card in account.usable()), default=0
    )
    for count, tenant in enumerate(order, 1):
        missing -= traces[tenant.pod.uid].most_units
        if missing <= 0:
            return count
    return len(order) + 1


def _first_that_fits(
    uids: Sequence[str], account: NodeAccount, fits: _Fits
) -> tuple[int, NodeAccount] | None:
    """`_until_it_fits`, trying each number."""
    left = account.without(())
    for place, uid in enumerate(uids):
        left.unseat(uid)
        if fits(left):
            return place + 1, left
    return None


def _importance(tenant: Tenant) -> tuple[bool, int, float, str]:
    """Sort key, least important first: tenants that stop anyway, low priority, youngest."""
    pod = tenant.pod
    return pod.deleted_at is None, pod.priority, -(pod.started_at or pod.created_at or 0.0), pod.uid


def _cost(victims: Sequence[Tenant]) -> tuple[int, int, int]:
    """The priority of the most important victim, the sum of priorities, the number of victims.

    Pods that stop anyway cost nothing.
    """
    staying = [tenant.priority for tenant in victims if tenant.pod.deleted_at is None]
    return (
        max(staying, default=-(2**31)),
        sum(priority + 2**31 for priority in staying),
        len(staying),
    )
