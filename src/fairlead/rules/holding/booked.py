"""A pod's grants as they add up to the most that it holds of each card.

Specification: docs/spec/gpu-sharing.md#need-of-a-pod.

Grants cannot simply be summed: an init container that ends is gone when the app containers start.
What runs at the end is booked in full. Of init containers that end, only what their moment holds
beyond the end is booked, units and core percent separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from fairlead.model.devices.gpu import Grant
from fairlead.model.pod import Container, GrantsByContainer, Pod
from fairlead.model.resources import GPU_CORE, GPU_MEMORY

Card = tuple[str, int]
"""UUID ("" if only the index is known) and index."""
_NONE: GrantsByContainer = {}


def booked_grants(pod: Pod) -> GrantsByContainer:
    """Grants that add up to what the pod holds; empty if none is usable.

    Of init containers that end, only what exceeds the others counts. Grants are usable if each
    container has exactly its limits of units and core percent; otherwise a foreign program wrote
    them, or the annotation is damaged. Whole cards, which have no units, are granted only to pods
    without shared memory.
    """
    grants = pod.grants
    if not grants:
        return _NONE
    if not any(
        GPU_MEMORY in part.limits and part.limits[GPU_MEMORY]
        for part in (*pod.containers, *pod.init_containers)
    ):
        return grants if are_whole(grants) else _NONE
    full = grants_in_full(pod)
    if full is None:
        return _NONE
    passing = {
        part.name for part in pod.init_containers if not part.restartable and part.name in full
    }
    return _without_what_ends(pod, full, passing) if passing else full


def are_whole(grants: GrantsByContainer) -> bool:
    """Whether all are whole cards, which have no units."""
    return all(each.is_whole for given in grants.values() for each in given)


def grants_in_full(pod: Pod) -> GrantsByContainer | None:
    """The grant of every container that has a limit.

    None if a grant differs from its container's limits, or belongs to no container. The reference
    plugin names no UUID, does not know core percent and writes nothing for init containers: what it
    omits is taken from the limits, on the cards of the first container.
    """
    grants = pod.grants
    is_reference = not any(grant.uuid for given in grants.values() for grant in given)
    full: dict[str, tuple[Grant, ...]] = {}
    for parts, may_be_left_out in ((pod.containers, False), (pod.init_containers, is_reference)):
        for part in parts:
            units, core = part.limits.get(GPU_MEMORY, 0), part.limits.get(GPU_CORE, 0)
            given = grants.get(part.name)
            if given is None and units and may_be_left_out:
                given = _spread(units, next(iter(full.values()), ()))
            if not given:
                if units or given is not None:
                    return None
                continue
            if is_reference and core and not any(grant.core_percent for grant in given):
                given = _with_core(given, core)
            if not _is_exactly(given, units, core):
                return None
            full[part.name] = given
    return full if full and full.keys() >= grants.keys() else None


def _is_exactly(given: tuple[Grant, ...], units: int, core: int) -> bool:
    if len(given) == 1:  # nearly every grant
        return given[0].units == units > 0 and given[0].core_percent == core
    if any(grant.units <= 0 or grant.core_percent < 0 for grant in given):
        return False
    return (
        sum(grant.units for grant in given) == units
        and sum(grant.core_percent for grant in given) == core
    )


def _spread(units: int, cards: tuple[Grant, ...]) -> tuple[Grant, ...]:
    """This number of units over these cards, in equal parts; the first cards get the rest."""
    parts = _equal_parts(units, len(cards)) if cards else []
    return tuple(
        Grant(card.uuid, card.index, part) for card, part in zip(cards, parts, strict=True) if part
    )


def _with_core(given: tuple[Grant, ...], core: int) -> tuple[Grant, ...]:
    parts = _equal_parts(core, len(given))
    return tuple(
        msgspec.structs.replace(grant, core_percent=part)
        for grant, part in zip(given, parts, strict=True)
    )


def _equal_parts(amount: int, count: int) -> list[int]:
    """Whole parts that differ by one at most, the larger ones first.

    >>> _equal_parts(7, 3)
    [3, 2, 2]
    """
    return [amount // count + (place < amount % count) for place in range(count)]


def _without_what_ends(pod: Pod, full: GrantsByContainer, passing: set[str]) -> GrantsByContainer:
    booked: dict[str, tuple[Grant, ...]] = {
        name: given for name, given in full.items() if name not in passing
    }
    for card in dict.fromkeys(
        _card(grant) for name in full if name in passing for grant in full[name]
    ):
        on_card = {name: _sum(card, given) for name, given in full.items()}
        for name, grant in _excess(pod, on_card, passing, card):
            booked[name] = (*booked.get(name, ()), grant)
    return booked


def _excess(
    pod: Pod, on_card: Mapping[str, Grant], passing: set[str], card: Card
) -> Iterator[tuple[str, Grant]]:
    """What a card holds beyond the end while init containers run.

    It is listed under the name of the init container that holds most of it.
    """
    end = _sum(card, (grant for name, grant in on_card.items() if name not in passing))
    moments = dict(_moments(pod.init_containers, on_card, card))
    by_units = max(moments, key=lambda name: moments[name].units)
    by_core = max(moments, key=lambda name: moments[name].core_percent)
    units, core = (
        max(0, moments[by_units].units - end.units),
        max(0, moments[by_core].core_percent - end.core_percent),
    )
    mib, end_mib = moments[by_units].memory_mib, end.memory_mib
    more_mib = None if mib is None or end_mib is None else max(0, mib - end_mib) if units else 0
    if units and core and by_units == by_core:
        yield by_units, Grant(*card, units, more_mib, core)
        return
    if units:
        yield by_units, Grant(*card, units, more_mib)
    if core:
        yield by_core, Grant(*card, 0, None if more_mib is None else 0, core)


def _moments(
    init_containers: Iterable[Container], on_card: Mapping[str, Grant], card: Card
) -> Iterator[tuple[str, Grant]]:
    """Init containers that end, and what is held of the card while each of them runs: its own part
    and the parts of the sidecars before it.
    """
    beside: list[Grant] = []
    for part in init_containers:
        grant = on_card.get(part.name)
        if grant is None:
            continue
        if part.restartable:
            beside.append(grant)
        else:
            yield part.name, _sum(card, (*beside, grant))


def _card(grant: Grant) -> Card:
    return grant.uuid, grant.index


def _sum(card: Card, grants: Iterable[Grant]) -> Grant:
    """The sum of these grants of a card. MiB are unknown if one of them has units and no MiB."""
    here = [grant for grant in grants if _card(grant) == card]
    known = [grant.memory_mib for grant in here]
    return Grant(
        *card,
        units=sum(grant.units for grant in here),
        memory_mib=None if None in known else sum(mib or 0 for mib in known),
        core_percent=sum(grant.core_percent for grant in here),
    )
