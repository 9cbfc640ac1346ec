"""Grants of running containers, recovered after the grants file was damaged or lost.

The containers' own limits files still contain the MiB of each card, and the kubelet's lists contain
the owner of the ids. Files of a container that has not started allow nothing, so no container gains
anything here. If a container has several cards, only the placement has the units of each; if the
placement names other cards, the row is omitted and comes back when the container is started again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fairlead.model.devices.gpu import GpuSlot, Grant
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import CardLimit, GivenShare, HeldDevices
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_MEMORY
from fairlead.rules.devices.ids import token
from fairlead.rules.devices.owner import find_owner, kubelet_uid
from fairlead.rules.holding.booked import grants_in_full


def regained_shares(
    limits: Mapping[str, Sequence[CardLimit]],
    held: Sequence[HeldDevices],
    pods: Sequence[Pod],
    cards: Sequence[GpuSlot],
    known: Collection[tuple[str, str]],
) -> tuple[GivenShare, ...]:
    """The missing rows. `limits`: by token, what a container's own file allows.

    `known`: pod uid and container of the rows that exist.
    """
    index = {card.uuid: card.index for card in cards}
    ids_by_token = {
        token(GPU_MEMORY, each.ids): each.ids for each in held if each.resource == GPU_MEMORY
    }
    found: list[GivenShare] = []
    for name, allowed in limits.items():
        ids = ids_by_token.get(name, ())
        owner = find_owner(GPU_MEMORY, ids, held, pods)
        if (
            not ids
            or isinstance(owner, DeviceRefusal)
            or not all(each.memory_mib and each.uuid in index for each in allowed)
        ):
            continue
        pod = owner.pod
        for container in owner.containers:
            if (kubelet_uid(pod), container) in known:
                continue
            units = _units(pod, container, allowed, len(ids))
            found += [
                GivenShare(
                    pod.namespace,
                    pod.name,
                    kubelet_uid(pod),
                    container,
                    _grant(each, index[each.uuid], units[each.uuid]),
                    name,
                )
                for each in allowed
                if units
            ]
    return tuple(found)


def _units(pod: Pod, container: str, allowed: Sequence[CardLimit], held: int) -> Mapping[str, int]:
    """Units by UUID; {} if they are unknown."""
    if len(allowed) == 1:
        return {allowed[0].uuid: held}
    placed = {
        grant.uuid: grant.units for grant in (grants_in_full(pod) or pod.grants).get(container, ())
    }
    is_same = placed.keys() == {each.uuid for each in allowed} and sum(placed.values()) == held
    return placed if is_same else {}


def _grant(limit: CardLimit, index: int, units: int) -> Grant:
    return Grant(
        uuid=limit.uuid,
        index=index,
        units=units,
        memory_mib=limit.memory_mib,
        core_percent=limit.core_percent,
    )
