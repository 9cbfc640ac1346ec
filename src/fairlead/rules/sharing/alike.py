"""Guarded nodes: equal containers that start at the same time get the same cards and MiB.

Specification: docs/spec/gpu-sharing.md#guarded-mode.

The agent of such a node answers the kubelet before it knows which container asks, so all candidates
must have the same grant. A pod that cannot have it waits until they have started. Other nodes need
none of this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import structs

from fairlead.model.devices.gpu import Grant
from fairlead.model.pod import GrantsByContainer
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import ContainerNeed, GpuNeed, Placement, Verdict
from fairlead.rules.holding.account import CardAccount, NodeAccount
from fairlead.rules.holding.booked import grants_in_full
from fairlead.rules.holding.units import grant_mib
from fairlead.rules.sharing.placement import (
    CardGroup,
    Choice,
    NoCard,
    choose_cards,
    choose_for_each,
    first_fitting,
    grant_on,
    grants_of,
)

Allotment = tuple[tuple[str, int, int], ...]
"""For each card its key, the units and the MiB; sorted by key."""
Starting = Mapping[int, Collection[Allotment]]
"""By units, the allotments of containers of that size that start on the node; usually one."""
NONE_STARTING: Final[Starting] = {}


class NotYet(Refusal, frozen=True, gc=False):
    """There is room, but other pods must start before this pod can be given it."""


def starting_on(account: NodeAccount, but: str = "") -> Starting:
    """Allotments of containers that the agent of this guarded node may still be asked for.

    Without those of pod `but`.

    Empty for a node that is not guarded.
    """
    if not account.is_guarded:
        return NONE_STARTING
    found: dict[int, set[Allotment]] = {}
    for uid, tenant in account.tenants.items():
        if uid != but and tenant.is_starting:
            full = (
                grants_in_full(structs.replace(tenant.pod, grants=tenant.grants)) or tenant.grants
            )
            for units, allotment in _allotments(account, full):
                found.setdefault(units, set()).add(allotment)
    return found


def choose_on(
    account: NodeAccount, need: GpuNeed, policy: Placement, starting: Starting = NONE_STARTING
) -> Choice | None:
    """`choose_cards` for a node.

    On a guarded node equal containers of the pod and those `starting` get equal cards.
    """
    if not account.is_guarded:
        return choose_cards(account, need, policy)
    groups = [_keys_for(account.cards, need, parts, starting) for parts in _groups(need)]
    choice = _choose_among(account.cards, need, policy, groups)
    return (
        choice
        if choice is not None and agrees(account, grants_of(choice, need), starting)
        else None
    )


def agrees(account: NodeAccount, grants: GrantsByContainer, starting: Starting) -> bool:
    """Whether each grant equals those of other containers of its size, in pod and `starting`."""
    given = {units: set(allotments) for units, allotments in starting.items()}
    for units, allotment in _allotments(account, grants):
        given.setdefault(units, set()).add(allotment)
        if len(given[units]) > 1:
            return False
    return True


def never_alike(account: NodeAccount, need: GpuNeed, policy: Placement) -> Verdict:
    """The verdict on a pod with room, but none in which its equal containers are alike."""
    sizes = [part.units * need.cards for part in (*need.running, *need.passing)]
    units = next(size for size in sizes if sizes.count(size) > 1)
    empty = account.without(list(account.tenants))
    by_node = (
        f"containers of {units} {account.unit} of one pod need one GPU and memory limit on a "
        "guarded node"
    )
    return Verdict(by_node, choose_on(empty, need, policy) is None)


def not_yet(account: NodeAccount, need: GpuNeed, starting: Starting) -> NotYet:
    """The message for a pod that waits for other pods with containers of its size."""
    sizes = sorted(
        {part.units * need.cards for part in (*need.running, *need.passing)} & starting.keys()
    )
    units = " and ".join(str(size) for size in sizes)
    return NotYet(
        f"guarded node {account.name}: containers of {units} {account.unit} are starting "
        "there, on a GPU without room "
        "for this pod or with another memory limit"
    )


def _allotments(account: NodeAccount, grants: GrantsByContainer) -> Sequence[tuple[int, Allotment]]:
    return [
        (sum(grant.units for grant in given), _allotment(account, given))
        for given in grants.values()
        if any(g.units for g in given)
    ]


def _allotment(account: NodeAccount, given: Sequence[Grant]) -> Allotment:
    """A grant without MiB (the reference scheduler's) has those of its units."""
    found = []
    for grant in given:
        card, mib = account.card_of(grant), grant.memory_mib
        if mib is None and card is not None and card.units:
            mib = grant_mib(card.memory_mib, grant.units, card.units)
        found.append(
            (
                card.key if card is not None else grant.uuid or f"#{grant.index}",
                grant.units,
                mib or 0,
            )
        )
    return tuple(sorted(found))


def _groups(need: GpuNeed) -> list[list[ContainerNeed]]:
    """Groups that must get the same cards.

    All containers of a pod that is not split, else those of equal units.

    Init containers that end use the cards of the first running container.
    """
    if not need.is_split:
        return [[*need.running, *need.passing]]
    by_units: dict[int, list[ContainerNeed]] = {}
    with_first = {need.running[0].units, *(part.units for part in need.passing)}
    for part in (*need.running, *need.passing):
        by_units.setdefault(
            need.running[0].units if part.units in with_first else part.units, []
        ).append(part)
    return list(by_units.values())


def _keys_for(
    cards: Sequence[CardAccount], need: GpuNeed, parts: Sequence[ContainerNeed], starting: Starting
) -> CardGroup:
    """The cards that the group may have: those of other containers of its sizes, else all that give
    equal units equal MiB.
    """
    names = tuple(part.name for part in parts if part not in need.passing)
    given = {
        tuple(key for key, _, _ in each)
        for part in parts
        for each in starting.get(part.units * need.cards, ())
    }
    if given:
        keys = next(iter(given)) if len(given) == 1 else ()
        return CardGroup(names, frozenset(keys) if len(keys) == need.cards else frozenset())
    return CardGroup(names, frozenset(card.key for card in cards if _is_even(card, parts)))


def _is_even(card: CardAccount, parts: Sequence[ContainerNeed]) -> bool:
    mib: dict[int, int | None] = {}
    return all(
        mib.setdefault(part.units, given) == given
        for part in parts
        for given in (grant_on(card, part).memory_mib,)
    )


def _choose_among(
    cards: Sequence[CardAccount], need: GpuNeed, policy: Placement, groups: Sequence[CardGroup]
) -> Choice | None:
    if need.is_split:
        choice = choose_for_each(cards, need, policy, groups)
        return None if isinstance(choice, NoCard) else choice
    keys = groups[0].keys or ()
    found = first_fitting(
        [card for card in cards if card.key in keys],
        need.units,
        need.core_percent,
        need.cards,
        policy,
    )
    return None if found is None else {part.name: found for part in (*need.running, *need.passing)}
