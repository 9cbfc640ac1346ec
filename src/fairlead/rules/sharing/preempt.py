"""Preemption: whom a pod must push aside to get its part of a GPU (docs/spec/gpu-sharing.md#preempt).

It corrects what kube-scheduler proposes, which trusts the freed *sum* of a node: two halves of a card on two
cards are no card. Victims that hold no shared GPU stay victims: they were chosen for something else, which
only kube-scheduler sees.
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
from fairlead.rules.sharing.placement import Clear, as_seen_by, cleared_for, gpu_policy, is_below, makes_way, with_own_cards
from fairlead.rules.sharing.verdict import verdict

_Fits = Callable[[NodeAccount], bool]


class Victims(Struct, frozen=True, gc=False):
    """Uids of the pods to evict from one node.

    `violations` of disruption budgets are kube-scheduler's count, handed back.
    """

    uids: tuple[str, ...]
    violations: int = 0


def plan_preemption(ledger: Ledger, pod: Pod, proposed: Mapping[str, Victims], spared: Collection[str] = ()) -> dict[str, Victims]:
    """Per node the victims that really make room on one card (or M); nodes where none do are left out.

    None of `spared` is among them. Nor is a pod that is only reserved: kube-scheduler would look for it on
    the node, not find it, and give the whole round up.
    """
    need = gpu_need(pod)
    found = {}
    for node, victims in proposed.items():
        account = ledger.nodes.get(node)
        uids = _victims_on(ledger, account, pod, need, victims.uids, spared) if account is not None else None
        if uids:
            found[node] = Victims(tuple(uids), victims.violations)
    return found


def _victims_on(
    ledger: Ledger, account: NodeAccount, pod: Pod, need: GpuNeed, proposed: Sequence[str], spared: Collection[str]
) -> list[str] | None:
    no = verdict(account, need, pod, ledger.policies)
    if no is None:
        return list(proposed)  # there is room already: kube-scheduler wants them gone for another resource
    if no.is_final:
        return None
    strangers = [uid for uid in proposed if uid not in account.tenants]
    may_go = [tenant for tenant in account.tenants.values() if tenant.state != RESERVED and tenant.pod.uid not in spared]
    candidates = [tenant for tenant in may_go if is_below(tenant, pod) or tenant.pod.uid in proposed]
    policy = gpu_policy(need, account, ledger.policies)

    cleared: dict[int, NodeAccount] = {}
    is_simple = not need.is_split and not account.is_guarded

    def fits(left: NodeAccount) -> bool:
        if left.promised and is_simple and choose_on(left, need, policy) is None:
            return False  # without a look at what is promised, which takes room away and costs much
        return choose_on(as_seen_by(left, pod, _clearing(account, left, candidates, cleared)), need, policy) is not None

    ranked = sorted(candidates, key=_importance)
    traces = _traces(account, ranked)
    plans = []
    tried: dict[tuple[str, ...], list[Tenant] | None] = {}
    """By who may go: of cards on which nobody can say who sits, the same pods may."""
    for index, cards in enumerate(_card_sets(account, need)):
        here = {trace for trace in set(traces.values()) if trace.may_be_on(cards)}
        on_cards = [tenant for tenant in ranked if traces[tenant.pod.uid] in here]
        who = tuple(tenant.pod.uid for tenant in on_cards)
        if who not in tried:
            tried[who] = _fewest(on_cards, frozenset(proposed), account, fits, traces, 0 if need.is_split else need.units)
        chosen = tried[who]
        if chosen is not None:
            plans.append((_cost(chosen), index, chosen))
    if not plans:
        return None
    return [*strangers, *(tenant.pod.uid for tenant in min(plans, key=lambda plan: plan[:2])[2])]


def _clearing(account: NodeAccount, left: NodeAccount, candidates: Sequence[Tenant], cleared: dict[int, NodeAccount]) -> Clear:
    """As `cleared_for`, for `left`: `account` without some of the candidates.

    Where all candidates make way for the promised pod, the same tenants stay whichever of them are gone from
    `left` already. So they are counted once per priority, and kept in `cleared`.
    """

    def clear(seen: NodeAccount, promised: Pod) -> NodeAccount:
        if promised.priority not in cleared:
            if not all(makes_way(tenant, promised) for tenant in candidates):
                return cleared_for(seen, promised)
            cleared[promised.priority] = cleared_for(account, promised)
        found = with_own_cards(cleared[promised.priority])
        for card, with_promises, without in zip(found.cards, seen.cards, left.cards, strict=True):
            card.take(with_promises.used - without.used, with_promises.core_used - without.core_used)
        found.seat_all(())  # what is promised counts where hidden tenants cannot be
        return found

    return clear


class _Trace(Struct, frozen=True, eq=False, gc=False):
    """What tenants leave behind when they go: those of one trace are as good as each other.

    `hidden`: what it may hold of a card that nobody can name, else None. `held`: of each card that it holds a
    part of its key, the units and the core percent. `promised`: for how many of the node's promised pods it
    makes way. `most_units`: units of one card that become free at most.
    """

    promised: int
    hidden: Hidden | None
    held: tuple[tuple[str, int, int], ...]
    most_units: int

    def may_be_on(self, cards: Collection[str]) -> bool:
        return self.hidden is not None or any(key in cards for key, _, _ in self.held)


def _traces(account: NodeAccount, tenants: Iterable[Tenant]) -> dict[str, _Trace]:
    """By uid; the same object for equal ones."""
    found: dict[tuple[int, Hidden | None, tuple[tuple[str, int, int], ...]], _Trace] = {}
    traces = {}
    for tenant in tenants:
        uid = tenant.pod.uid
        hidden = account.hidden.get(uid)
        seats = [seat for seat in account.seats(tenant) if not seat.is_whole]
        held = tuple([(seat.key, seat.grant.units, seat.grant.core_percent) for seat in seats])
        key = sum(makes_way(tenant, other) for other in account.promised.values()), hidden, held
        if key not in found:
            found[key] = _Trace(*key, sum(seat.grant.units for seat in seats) if hidden is None else hidden.units)
        traces[uid] = found[key]
    return traces


def _card_sets(account: NodeAccount, need: GpuNeed) -> list[set[str]]:
    """Each card by itself; all together for a pod that wants several."""
    usable = [card.key for card in account.usable()]
    return [set(usable)] if need.cards > 1 or need.is_split else [{key} for key in usable]


def _fewest(
    ranked: Sequence[Tenant],
    proposed: frozenset[str],
    account: NodeAccount,
    fits: _Fits,
    traces: Mapping[str, _Trace],
    units: int,
) -> list[Tenant] | None:
    """The fewest of these tenants whose going makes the pod fit; None if not even all do.

    `ranked`: the least important first. Proposed victims go first, then the least important, until the pod
    fits; then whoever is not needed is spared. `account` is not changed. `units`: what it needs of one card
    at least.
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


def _spared(gone: Sequence[Tenant], left: NodeAccount, fits: _Fits, traces: Mapping[str, _Trace]) -> set[str]:
    """Uids of those of `gone` without whose going the pod fits, too; they take their seats again in `left`.

    The most important come first. As many as fit are taken at once; where one does not, nor do its like.
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


def _until_it_fits(order: Sequence[Tenant], account: NodeAccount, fits: _Fits, at_least: int) -> tuple[int, NodeAccount] | None:
    """How many of the first of `order` must go until the pod fits, and the account without them.

    None if it fits in no case. `at_least`: with fewer gone it does not fit. The more are gone, the more room
    there is, so steps are doubled until the pod fits, and then what lies between is halved. But where a
    tenant goes whose card is known, a card may become one that a hidden tenant may sit on, and so have less
    room: a no with all of them gone is not believed before each count was tried.
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


def _at_least(order: Sequence[Tenant], account: NodeAccount, traces: Mapping[str, _Trace], units: int) -> int:
    """With fewer than this many of the first of `order` gone, no card has so many units free; never 0.

    Each is counted as if all that it leaves were on the card that has most free.
    """
    missing = units - max((card.units - card.used - card.aside for card in account.usable()), default=0)
    for count, tenant in enumerate(order, 1):
        missing -= traces[tenant.pod.uid].most_units
        if missing <= 0:
            return count
    return len(order) + 1


def _first_that_fits(uids: Sequence[str], account: NodeAccount, fits: _Fits) -> tuple[int, NodeAccount] | None:
    """As `_until_it_fits`, one by one."""
    left = account.without(())
    for place, uid in enumerate(uids):
        left.unseat(uid)
        if fits(left):
            return place + 1, left
    return None


def _importance(tenant: Tenant) -> tuple[bool, int, float, str]:
    """Sorts the least important first: who leaves anyway, then lower priority, then the youngest."""
    pod = tenant.pod
    return pod.deleted_at is None, pod.priority, -(pod.started_at or pod.created_at or 0.0), pod.uid


def _cost(victims: Sequence[Tenant]) -> tuple[int, int, int]:
    """The most important victim counts first, then their priorities together, then how many they are.

    Who leaves anyway costs nothing.
    """
    staying = [tenant.priority for tenant in victims if tenant.pod.deleted_at is None]
    return max(staying, default=-(2**31)), sum(priority + 2**31 for priority in staying), len(staying)
