"""The cards of a node that a pod gets (docs/spec/gpu-sharing.md#choice-of-gpu-and-node).

The problem. A pod asks for units of GPU memory and perhaps for core percent, on one card or on
several different ones; its containers may share the cards or have their own. Sums do not help: 4
units free on each of two cards are no room for 8.

The rules, in the order in which they are applied:

- Only healthy cards that are offered and have enough units and core percent free are candidates
  (`first_fitting`).
- Best fit takes the card with the least free units, so that large holes stay for large pods; spread
  takes the one with the most. Ties go to the lowest index, so that equal questions have equal
  answers.
- A pod whose containers may have different cards is laid out container by container, the largest
  first (`choose_for_each`): the largest has the fewest cards to choose from.
- A container beside others of its pod takes only as much as the peak of all of them grows by it:
  they may not all run at the moment at which one of them holds most.

Room that preemption freed for a waiting pod is not free for a less important one. `as_seen_by`
returns the account as one pod sees it: promised pods of the same or higher priority are seated
first, as they will sit once the victims have left.

Nothing here changes an account. What is tried is tried on a copy (`with_own_cards`), which shares
its tenants with the original, so only cards of the copy may be changed.
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
    """Settings of the cluster: the default choice of nodes, and of cards on a node.

    `unit`: the unit in which its pods ask.
    """

    node: Placement = BINPACK
    gpu: Placement = BINPACK
    unit: MemoryUnit = GIB


DEFAULT_POLICIES = SharePolicies()


def gpu_policy(need: GpuNeed, account: NodeAccount, policies: SharePolicies) -> Placement:
    """The pod's policy, else the node's label, else the cluster's default."""
    return need.policy or account.mode.placement or policies.gpu


def choose_cards(account: NodeAccount, need: GpuNeed, policy: Placement) -> Choice | None:
    """The cards of each container; None if they do not fit. `account` is not changed."""
    if need.is_split:
        choice = choose_for_each(account.cards, need, policy)
        return None if isinstance(choice, NoCard) else choice
    cards = first_fitting(account.cards, need.units, need.core_percent, need.cards, policy)
    return None if cards is None else {part.name: cards for part in (*need.running, *need.passing)}


class NoCard(Struct, frozen=True, gc=False):
    """The first container (or group) without a card, of a pod whose containers may have different
    cards: what it needs, and what is `left` of the cards.
    """

    units: int
    core_percent: int
    left: list[CardAccount]


class CardGroup(Struct, frozen=True, gc=False):
    """Running containers that get the same cards, from the cards with these `keys`; None = any."""

    names: tuple[str, ...]
    keys: frozenset[str] | None = None


def choose_for_each(
    cards: Sequence[CardAccount], need: GpuNeed, policy: Placement, groups: Sequence[CardGroup] = ()
) -> Choice | NoCard:
    """Cards for each container or group, the largest first.

    Init containers count for the first running one.

    `groups`: containers that must have the same cards; empty = each container alone.
    """
    given = {card.key: card for card in cards}
    left = dict(given)
    on: dict[str, list[str]] = {}
    chosen: dict[str, Sequence[CardAccount]] = {}
    alone = {
        group: peak_of(need, group.names)
        for group in groups or [CardGroup((part.name,)) for part in need.running]
    }
    for group in sorted(alone, key=lambda each: -alone[each][0]):
        more = {key: _growth(need, there, group.names) for key, there in on.items()}
        may_have = (
            left.values()
            if group.keys is None
            else [card for card in left.values() if card.key in group.keys]
        )
        found = _in_order(
            [card for card in may_have if _has_room(card, *more.get(card.key, alone[group]))],
            need.cards,
            policy,
        )
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
    """How much more a card holds with the containers `names`, if `there` of their pod are on it.

    In units and core percent.
    """
    units, core = peak_of(need, [*there, *names])
    before_units, before_core = peak_of(need, there)
    return units - before_units, core - before_core


def held_of_cards(choice: Choice, need: GpuNeed) -> dict[str, tuple[int, int]]:
    """By key of a card: the most units and core percent that the pod holds of it at one moment."""
    keys = dict.fromkeys(card.key for cards in choice.values() for card in cards)
    if not need.is_split:
        return dict.fromkeys(keys, (need.units, need.core_percent))
    return {
        key: peak_of(need, [part.name for part in need.running if _is_on(choice[part.name], key)])
        for key in keys
    }


def _is_on(cards: Iterable[CardAccount], key: str) -> bool:
    return any(card.key == key for card in cards)


def grants_of(choice: Choice, need: GpuNeed) -> GrantsByContainer:
    """What bind writes for these cards: units, and MiB in proportion or less.

    Less if the pod asks for less.
    """
    return {
        part.name: tuple(grant_on(card, part) for card in choice[part.name])
        for part in (*need.running, *need.passing)
    }


Clear = Callable[[NodeAccount, Pod], NodeAccount]
"""Returns the account without tenants that stop and without those less important than the pod."""


def cleared_for(account: NodeAccount, pod: Pod) -> NodeAccount:
    """See `Clear`."""
    return account.without(
        [uid for uid, tenant in account.tenants.items() if makes_way(tenant, pod)]
    )


def as_seen_by(account: NodeAccount, pod: Pod, clear: Clear = cleared_for) -> NodeAccount:
    """The account without the room that is promised to others.

    Those are unbound pods of the same or higher priority that are nominated for this node. `clear`:
    a faster `cleared_for`, for a caller that asks about one node often.
    """
    if not account.promised:
        return account
    ahead = [
        other
        for uid, other in account.promised.items()
        # a tenant is being bound here already
        if uid != pod.uid and other.priority >= pod.priority and uid not in account.tenants
    ]
    if not ahead:
        return account
    seen = with_own_cards(account)
    for other in sorted(ahead, key=lambda other: (-other.priority, other.key)):
        _hold_back(seen, other, clear)
    return seen


def with_own_cards(account: NodeAccount) -> NodeAccount:
    """A copy whose cards may be changed. It shares its tenants, which must not be changed."""
    return structs.replace(account, cards=[structs.replace(card) for card in account.cards])


def _hold_back(seen: NodeAccount, promised: Pod, clear: Clear) -> None:
    """Take the room where the promised pod will sit: free room, else room that stopping pods free,
    else room that less important pods hold.
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
    """Whether the tenant stops anyway, or is less important than the pod."""
    return tenant.pod.deleted_at is not None or is_below(tenant, pod)


def first_fitting(
    cards: Sequence[CardAccount], units: int, core_percent: int, count: int, policy: Placement
) -> list[CardAccount] | None:
    """`count` cards with this much free.

    The smallest free first (best fit), or the largest (spread).

    Ties go to the lowest index: cards come in that order, and sorting is stable. None if there are
    too few.
    """
    return _in_order(
        [
            card
            for card in cards
            if card.free >= units and card.core_free >= core_percent and not card.trouble
        ],
        count,
        policy,
    )


def _in_order(
    fitting: list[CardAccount], count: int, policy: Placement
) -> list[CardAccount] | None:
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
