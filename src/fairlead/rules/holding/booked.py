"""A pod's grants as they add up to what it holds of each card.

Grants may not simply be summed. An init container that ends has a grant of its own on the card of a container that runs later; the card
holds the larger of the two.
"""

from __future__ import annotations

import msgspec

from fairlead.model.gpu import Grant
from fairlead.model.pod import Container, GrantsByContainer, Pod
from fairlead.model.resources import GPU_MEMORY

Card = tuple[str, int]
"""uuid ("" when only the index is known) and index."""
_NONE: GrantsByContainer = {}


def booked_grants(pod: Pod) -> GrantsByContainer:
    """Grants that add up to what the pod holds: of init containers that end only what exceeds the others. Empty if none is usable.

    Grants whose units are not the container's limit are not usable: somebody else wrote them, or the annotation is damaged.
    """
    grants = pod.grants
    if not grants or not _is_right(pod):
        return _NONE
    passing = [part.name for part in pod.init_containers if not part.restartable and part.name in grants]
    if not passing:
        return grants
    booked = {name: given for name, given in grants.items() if name not in passing}
    held = _sums(booked)
    peaks = {name: _excess(grants[name], held) for name in passing}
    highest = max(passing, key=lambda name: sum(grant.units for grant in peaks[name]))
    return {**booked, highest: peaks[highest]} if peaks[highest] else booked


def _is_right(pod: Pod) -> bool:
    """Whether every container with a limit of GPU memory has exactly that, and no other container has any."""
    given = {name: sum(grant.units for grant in grants) for name, grants in pod.grants.items()}
    if not any(given.values()):
        return True  # whole cards: no units are granted
    parts: tuple[Container, ...] = (*pod.containers, *pod.init_containers) if pod.init_containers else pod.containers
    kept = pod.containers if not any(part.name in given for part in pod.init_containers) else parts
    asked = {part.name: units for part in kept if (units := part.limits.get(GPU_MEMORY, 0))}
    return asked == given


def _sums(grants: GrantsByContainer) -> dict[Card, Grant]:
    sums: dict[Card, Grant] = {}
    for given in grants.values():
        for grant in given:
            before = sums.get((grant.uuid, grant.index))
            sums[grant.uuid, grant.index] = grant if before is None else _plus(before, grant, 1)
    return sums


def _excess(grants: tuple[Grant, ...], held: dict[Card, Grant]) -> tuple[Grant, ...]:
    """What goes beyond the held, card by card."""
    over = [_plus(grant, held[card], -1) if (card := (grant.uuid, grant.index)) in held else grant for grant in grants]
    return tuple(grant for grant in over if grant.units > 0 or grant.core_percent > 0)


def _plus(grant: Grant, other: Grant, sign: int) -> Grant:
    mib = None if grant.memory_mib is None or other.memory_mib is None else max(0, grant.memory_mib + sign * other.memory_mib)
    return msgspec.structs.replace(
        grant,
        units=max(0, grant.units + sign * other.units),
        memory_mib=mib,
        core_percent=max(0, grant.core_percent + sign * other.core_percent),
    )
