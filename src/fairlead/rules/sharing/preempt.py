"""Preemption: whom a pod must push aside to get its part of a GPU (sharing contract 2.5).

It corrects what kube-scheduler proposes, which trusts the freed *sum* of a node: two halves of a card on two
cards are no card. Victims that hold no shared GPU stay victims: they were chosen for something else, which
only kube-scheduler sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from fairlead.model.pod import Pod
from fairlead.model.sharing import GpuNeed
from fairlead.rules.holding.account import RESERVED, NodeAccount, Tenant
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.sharing.alike import choose_on
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.placement import as_seen_by, gpu_policy, is_below
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

    def fits(left: NodeAccount) -> bool:
        return choose_on(as_seen_by(left, pod), need, policy) is not None

    sitting = [(tenant, None if tenant.pod.uid in account.hidden else _cards_of(account, tenant)) for tenant in candidates]
    plans = []
    tried: dict[tuple[str, ...], list[Tenant] | None] = {}
    """By who may go: of cards on which nobody can say who sits, the same pods may."""
    for index, cards in enumerate(_card_sets(account, need)):
        on_cards = [tenant for tenant, held in sitting if held is None or cards & held]
        who = tuple(tenant.pod.uid for tenant in on_cards)
        if who not in tried:
            tried[who] = _fewest(on_cards, frozenset(proposed), account.without(()), fits)
        chosen = tried[who]
        if chosen is not None:
            plans.append((_cost(chosen), index, chosen))
    if not plans:
        return None
    return [*strangers, *(tenant.pod.uid for tenant in min(plans, key=lambda plan: plan[:2])[2])]


def _cards_of(account: NodeAccount, tenant: Tenant) -> set[str]:
    """Keys of the cards of which the tenant holds a part."""
    return {seat.key for seat in account.seats(tenant) if not seat.is_whole}


def _card_sets(account: NodeAccount, need: GpuNeed) -> list[set[str]]:
    """Each card by itself; all together for a pod that wants several."""
    usable = [card.key for card in account.usable()]
    return [set(usable)] if need.cards > 1 or need.is_split else [{key} for key in usable]


def _fewest(tenants: Sequence[Tenant], proposed: frozenset[str], left: NodeAccount, fits: _Fits) -> list[Tenant] | None:
    """The fewest tenants whose going makes the pod fit; None if not even all do.

    Proposed victims first, then the least important, until the pod fits; then whoever is not needed is
    spared. `left`: the node's own copy, from which one tenant after another goes and comes back, so that a
    question costs what one tenant does, however many there are.
    """
    gone: list[Tenant] = []
    for tenant in sorted(tenants, key=lambda tenant: (tenant.pod.uid not in proposed, _importance(tenant))):
        gone.append(tenant)
        left.unseat(tenant.pod.uid)
        if fits(left):
            break
    else:
        return None
    needed = []
    for tenant in sorted(gone, key=_importance, reverse=True):
        left.seat(tenant)
        if len(gone) == 1 or not fits(left):
            left.unseat(tenant.pod.uid)
            needed.append(tenant)
        else:
            gone.remove(tenant)
    return needed


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
