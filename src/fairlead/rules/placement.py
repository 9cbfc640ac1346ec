"""Which cards of a node does a pod get? Best fit or spread, one card or several, container by container if the pod says so.

(sharing contract 2.3) What a newcomer gets wrong: room that preemption freed for a waiting pod is not free for a less important one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from fairlead.model.gpu import Grant
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.sharing import BINPACK, SPREAD, ContainerNeed, GpuNeed
from fairlead.rules.holding.account import CardAccount, NodeAccount, Tenant
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.holding.units import grant_mib

Choice = Mapping[str, Sequence[CardAccount]]
"""Cards by container."""


class SharePolicies(Struct, frozen=True, gc=False):
    """The cluster's own settings: how nodes are chosen, and cards of a node."""

    node: str = BINPACK
    gpu: str = BINPACK


DEFAULT_POLICIES = SharePolicies()


def gpu_policy(need: GpuNeed, account: NodeAccount, policies: SharePolicies) -> str:
    """The pod's wish, else the node's label, else the cluster's."""
    return need.policy or account.mode.placement or policies.gpu


def choose_cards(account: NodeAccount, need: GpuNeed, policy: str) -> Choice | None:
    """The cards of each container, or None. `account` is not changed."""
    if need.is_split:
        return _choose_each(account.cards, need, policy)
    cards = first_fitting(account.cards, need.units, need.core_percent, need.cards, policy)
    return None if cards is None else {part.name: cards for part in (*need.running, *need.passing)}


def hardest_first(need: GpuNeed) -> list[ContainerNeed]:
    """The parts that a pod with containers on different cards places one after another: what init containers need counts for the first."""
    first, *rest = need.running
    units = max(first.units, *(part.units for part in need.passing)) if need.passing else first.units
    core = max(first.core_percent, *(part.core_percent for part in need.passing)) if need.passing else first.core_percent
    return sorted([ContainerNeed(first.name, units, core), *rest], key=lambda part: -part.units)


def grants_of(choice: Choice, need: GpuNeed) -> GrantsByContainer:
    """What bind writes for these cards: units, and MiB in proportion, less where the pod wishes less."""
    return {part.name: tuple(_grant(card, part) for card in choice[part.name]) for part in (*need.running, *need.passing)}


def as_seen_by(account: NodeAccount, pod: Pod) -> NodeAccount:
    """The account with room held back that others were promised: unbound pods of the same or higher priority, nominated for this node."""
    if not account.promised:
        return account
    ahead = [
        other
        for uid, other in account.promised.items()
        if uid != pod.uid and other.priority >= pod.priority and uid not in account.tenants  # not: it is being bound here already
    ]
    if not ahead:
        return account
    seen = account.without(())
    for other in sorted(ahead, key=lambda other: (-other.priority, other.key)):
        _hold_back(seen, other)
    return seen


def _hold_back(seen: NodeAccount, promised: Pod) -> None:
    """Where the promised pod will sit: on what is free, else on what leaving pods free, else on what less important ones hold."""
    need = gpu_need(promised)
    if need.fault or need.is_nothing:
        return
    leaving = [uid for uid, tenant in seen.tenants.items() if tenant.pod.deleted_at is not None]
    lower = [uid for uid, tenant in seen.tenants.items() if is_below(tenant, promised)]
    for gone in ((), leaving, {*leaving, *lower}):
        choice = choose_cards(seen.without(gone), need, need.policy or BINPACK)
        if choice is not None:
            by_key = {card.key: card for card in seen.cards}
            for card in {card.key: card for cards in choice.values() for card in cards}.values():
                by_key[card.key].take(need.units, need.core_percent)
            return


def is_below(tenant: Tenant, pod: Pod) -> bool:
    return tenant.priority < pod.priority


def _choose_each(cards: Sequence[CardAccount], need: GpuNeed, policy: str) -> Choice | None:
    chosen: dict[str, Sequence[CardAccount]] = {}
    taken: dict[str, tuple[int, int]] = {}
    for part in hardest_first(need):
        left = [_less(card, *taken.get(card.key, (0, 0))) for card in cards]
        found = first_fitting(left, part.units, part.core_percent, need.cards, policy)
        if found is None:
            return None
        chosen[part.name] = found
        for card in found:
            units, core = taken.get(card.key, (0, 0))
            taken[card.key] = (units + part.units, core + part.core_percent)
    first = chosen[need.running[0].name]
    return {**chosen, **{part.name: first for part in need.passing}}


def _less(card: CardAccount, units: int, core_percent: int) -> CardAccount:
    if not units and not core_percent:
        return card
    other = CardAccount(
        card.key, card.index, card.uuid, card.units, card.memory_mib, card.core_total, card.trouble, card.used, card.core_used
    )
    other.aside, other.core_aside = card.aside, card.core_aside
    other.take(units, core_percent)
    return other


def first_fitting(cards: Sequence[CardAccount], units: int, core_percent: int, count: int, policy: str) -> list[CardAccount] | None:
    """Smallest free first (best fit), or largest first; ties to the lowest index, in whose order cards come, since sorting is stable."""
    fitting = [card for card in cards if card.free >= units and card.core_free >= core_percent and not card.trouble]
    if len(fitting) < count:
        return None
    if count == 1:
        return [max(fitting, key=_free) if policy == SPREAD else min(fitting, key=_free)]
    if len(fitting) > 1:
        fitting.sort(key=_free, reverse=policy == SPREAD)
    return fitting[:count]


_free = attrgetter("free")


def _grant(card: CardAccount, part: ContainerNeed) -> Grant:
    mib = grant_mib(card.memory_mib, part.units, card.units) if card.units else 0
    if part.limit_mib is not None:
        mib = min(mib, part.limit_mib)
    return Grant(card.uuid, card.index, part.units, mib, part.core_percent)
