"""The cards of a node that a pod gets: best fit or spread, one card or several, or one for each container.

docs/spec/gpu-sharing.md#choice-of-gpu-and-node. Room that preemption freed for a waiting pod is not free for
a less important one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct, structs

from fairlead.model.devices.gpu import Grant
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.resources import MemoryUnit
from fairlead.model.sharing import BINPACK, SPREAD, ContainerNeed, GpuNeed, Placement
from fairlead.rules.holding.account import CardAccount, NodeAccount, Tenant
from fairlead.rules.holding.need import gpu_need, peak_of
from fairlead.rules.holding.units import GIB, grant_mib

Choice = Mapping[str, Sequence[CardAccount]]
"""Cards by container."""


class SharePolicies(Struct, frozen=True, gc=False):
    """The cluster's own settings: how nodes are chosen, and how the cards of a node.

    `unit`: that in which its pods ask.
    """

    node: Placement = BINPACK
    gpu: Placement = BINPACK
    unit: MemoryUnit = GIB


DEFAULT_POLICIES = SharePolicies()


def gpu_policy(need: GpuNeed, account: NodeAccount, policies: SharePolicies) -> Placement:
    """The pod's wish, else the node's label, else the cluster's."""
    return need.policy or account.mode.placement or policies.gpu


def choose_cards(account: NodeAccount, need: GpuNeed, policy: Placement) -> Choice | None:
    """The cards of each container; None when they do not fit. `account` is not changed."""
    if need.is_split:
        choice = choose_for_each(account.cards, need, policy)
        return None if isinstance(choice, NoCard) else choice
    cards = first_fitting(account.cards, need.units, need.core_percent, need.cards, policy)
    return None if cards is None else {part.name: cards for part in (*need.running, *need.passing)}


class NoCard(Struct, frozen=True, gc=False):
    """Of a pod whose containers may sit on different cards, the first that finds none.

    What it needs, and what is `left` of the cards.
    """

    units: int
    core_percent: int
    left: list[CardAccount]


class Together(Struct, frozen=True, gc=False):
    """Running containers that get the same cards, of those with these `keys`; None = any."""

    names: tuple[str, ...]
    keys: frozenset[str] | None = None


def choose_for_each(cards: Sequence[CardAccount], need: GpuNeed, policy: Placement, groups: Sequence[Together] = ()) -> Choice | NoCard:
    """Container by container, the largest first. What init containers need counts for the first running one.

    `groups`: which containers are to have the same cards; each by itself where none are named.

    A container next to others of its pod takes as much as the peak of them all grows by it: they may not all
    run at the moment at which one of them holds most.
    """
    given = {card.key: card for card in cards}
    left = dict(given)
    on: dict[str, list[str]] = {}
    chosen: dict[str, Sequence[CardAccount]] = {}
    alone = {group: peak_of(need, group.names) for group in groups or [Together((part.name,)) for part in need.running]}
    for group in sorted(alone, key=lambda each: -alone[each][0]):
        more = {key: _growth(need, there, group.names) for key, there in on.items()}
        may_have = left.values() if group.keys is None else [card for card in left.values() if card.key in group.keys]
        found = _in_order([card for card in may_have if _has_room(card, *more.get(card.key, alone[group]))], need.cards, policy)
        if found is None:
            return NoCard(*alone[group], list(left.values()))
        cards_found = [given[card.key] for card in found]
        chosen |= dict.fromkeys(group.names, cards_found)
        for card in found:
            fuller = left[card.key] = structs.replace(card)
            fuller.take(*more.get(card.key, alone[group]))
            on.setdefault(card.key, []).extend(group.names)
    first = chosen[need.running[0].name]
    return {**chosen, **{part.name: first for part in need.passing}}


def _has_room(card: CardAccount, units: int, core_percent: int) -> bool:
    return card.free >= units and card.core_free >= core_percent and not card.trouble


def _growth(need: GpuNeed, there: Sequence[str], names: Sequence[str]) -> tuple[int, int]:
    """How much fuller a card is with these containers, where others of their pod are `there`.

    In units and core percent.
    """
    units, core = peak_of(need, [*there, *names])
    before_units, before_core = peak_of(need, there)
    return units - before_units, core - before_core


def held_of_cards(choice: Choice, need: GpuNeed) -> dict[str, tuple[int, int]]:
    """Units and core percent that the pod will hold of each card, by key, when it is fullest."""
    keys = dict.fromkeys(card.key for cards in choice.values() for card in cards)
    if not need.is_split:
        return dict.fromkeys(keys, (need.units, need.core_percent))
    return {key: peak_of(need, [part.name for part in need.running if _is_on(choice[part.name], key)]) for key in keys}


def _is_on(cards: Iterable[CardAccount], key: str) -> bool:
    return any(card.key == key for card in cards)


def grants_of(choice: Choice, need: GpuNeed) -> GrantsByContainer:
    """What bind writes for these cards: units, and MiB in proportion, less where the pod wishes less."""
    return {part.name: tuple(grant_on(card, part) for card in choice[part.name]) for part in (*need.running, *need.passing)}


Clear = Callable[[NodeAccount, Pod], NodeAccount]
"""The account without the tenants that leave and those that are less important than the pod."""


def cleared_for(account: NodeAccount, pod: Pod) -> NodeAccount:
    """See `Clear`."""
    return account.without([uid for uid, tenant in account.tenants.items() if makes_way(tenant, pod)])


def as_seen_by(account: NodeAccount, pod: Pod, clear: Clear = cleared_for) -> NodeAccount:
    """The account with room held back that others were promised.

    Those are unbound pods of the same or higher priority, nominated for this node. `clear`: for who asks
    about one node often and can answer that faster.
    """
    if not account.promised:
        return account
    ahead = [
        other
        for uid, other in account.promised.items()
        if uid != pod.uid and other.priority >= pod.priority and uid not in account.tenants  # not: it is being bound here already
    ]
    if not ahead:
        return account
    seen = with_own_cards(account)
    for other in sorted(ahead, key=lambda other: (-other.priority, other.key)):
        _hold_back(seen, other, clear)
    return seen


def with_own_cards(account: NodeAccount) -> NodeAccount:
    """A copy on whose cards something may be taken. It shares its tenants, which must not be changed."""
    return structs.replace(account, cards=[structs.replace(card) for card in account.cards])


def _hold_back(seen: NodeAccount, promised: Pod, clear: Clear) -> None:
    """Take the room where the promised pod will sit.

    On what is free, else on what leaving pods free, else on what less important ones hold.
    """
    need = gpu_need(promised)
    if need.fault or need.is_nothing:
        return
    policy = need.policy or BINPACK
    choice = choose_cards(seen, need, policy)
    if choice is None:
        leaving = [uid for uid, tenant in seen.tenants.items() if tenant.pod.deleted_at is not None]
        choice = choose_cards(seen.without(leaving), need, policy) if leaving else None
    if choice is None:
        choice = choose_cards(clear(seen, promised), need, policy)
    if choice is not None:
        held = held_of_cards(choice, need)
        for card in seen.cards:
            if card.key in held:
                card.take(*held[card.key])


def is_below(tenant: Tenant, pod: Pod) -> bool:
    """Whether the tenant is less important than the pod."""
    return tenant.priority < pod.priority


def makes_way(tenant: Tenant, pod: Pod) -> bool:
    """Whether the tenant leaves anyway, or is less important than the pod."""
    return tenant.pod.deleted_at is not None or is_below(tenant, pod)


def first_fitting(cards: Sequence[CardAccount], units: int, core_percent: int, count: int, policy: Placement) -> list[CardAccount] | None:
    """`count` cards with this much free: the smallest free first (best fit), or the largest (spread).

    Ties go to the lowest index, in whose order cards come, since sorting is stable. None when there are too
    few.
    """
    return _in_order([card for card in cards if card.free >= units and card.core_free >= core_percent and not card.trouble], count, policy)


def _in_order(fitting: list[CardAccount], count: int, policy: Placement) -> list[CardAccount] | None:
    if len(fitting) < count:
        return None
    if count == 1:
        return [max(fitting, key=_free) if policy == SPREAD else min(fitting, key=_free)]
    if len(fitting) > 1:
        fitting.sort(key=_free, reverse=policy == SPREAD)
    return fitting[:count]


_free = attrgetter("free")


def grant_on(card: CardAccount, part: ContainerNeed) -> Grant:
    """What this container gets of the card."""
    mib = grant_mib(card.memory_mib, part.units, card.units) if card.units else 0
    if part.limit_mib is not None:
        mib = min(mib, part.limit_mib)
    return Grant(card.uuid, card.index, part.units, mib, part.core_percent)
