"""The grant of a container with device ids, or the refusal that its owner reads.

Specification: docs/spec/gpu-sharing.md#refusals-of-an-allocation.

The problem. The scheduler chooses the cards of a pod and writes them into its annotation (the
placement). The kubelet later chooses device ids for each container by itself, from any card. So the
ids only prove how many units the container may have; which cards it gets is known from the
placement alone, and only after the owner of the ids is known (`rules/devices/owner`).

Two situations:

- `granted`: the kubelet's lists name the owner. Its placement decides.
- `guarded_grant`: the agent must answer before the kubelet's lists name the owner
  (docs/spec/gpu-sharing.md#guarded-mode). All containers with this number of units that have
  received nothing yet are candidates. The answer is given only if it is the same for all of them;
  the scheduler's side places equal containers alike so that this is the usual case
  (`rules/sharing/alike`).

The invariants:

- A grant never exceeds the container's limit, and its MiB never exceed what its units of the card
  are worth.
- A grant names only cards of this node that are shared and not held as a whole. A card that an
  operator took out of use gets no new pods, but pods that are placed on it already may start.
- A refusal is final only if neither a new placement nor a healthy card nor a later list can change
  it. The kubelet does not repeat the question by itself for a final refusal, so a wrong "final"
  would strand a pod.

Checks come in this order because each later one reads what an earlier one proved: ids of this node,
a placement for the container, units and core percent equal to the limits, then card by card whether
it can give its part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import structs

from fairlead.model.devices.gpu import CardMode, GpuSlot, Grant, Health
from fairlead.model.devices.granted import ContainerGrant, DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import CardLimit, GivenShare, HeldDevices
from fairlead.model.pod import Container, GrantsByContainer, Pod
from fairlead.model.resources import GPU_CORE, GPU_MEMORY
from fairlead.rules.devices.ids import token, uuid_of
from fairlead.rules.devices.owner import IdsOwner, kubelet_uid
from fairlead.rules.holding.booked import grants_in_full
from fairlead.rules.holding.cards import WITHHELD
from fairlead.rules.holding.units import grant_mib

_NO_PLACEMENT: Final = RefusalCode.FAILED_PRECONDITION
_WRONG: Final = RefusalCode.INVALID_ARGUMENT
_LATER: Final = RefusalCode.UNAVAILABLE
_HEALTHY: Final = Health.HEALTHY
_EXCLUSIVE: Final = CardMode.EXCLUSIVE
_DRAINING: Final = CardMode.DRAINING


def foreign_ids(device_ids: Iterable[str], cards: Iterable[GpuSlot]) -> DeviceRefusal | None:
    """The refusal for ids of no card of this node; None if there is none."""
    known = {card.uuid for card in cards}
    return _foreign(device_id for device_id in device_ids if uuid_of(device_id) not in known)


def whole_cards(
    device_ids: Collection[str], cards: Iterable[GpuSlot]
) -> tuple[GpuSlot, ...] | DeviceRefusal:
    """The cards of ids of `nvidia.com/gpu`; each id is a whole card."""
    by_uuid = {card.uuid: card for card in cards}
    if refusal := _foreign(device_id for device_id in device_ids if device_id not in by_uuid):
        return refusal
    given = sorted((by_uuid[uuid] for uuid in set(device_ids)), key=lambda card: card.index)
    for card in given:
        if card.mode != _EXCLUSIVE:
            held = "draining from shared use" if card.mode == _DRAINING else "shared"
            return DeviceRefusal(_LATER, f"GPU {card.uuid} is {held}")
        if card.health != _HEALTHY:
            return _unhealthy(card)
    return tuple(given)


def granted(
    device_ids: Collection[str],
    owner: IdsOwner,
    cards: Sequence[GpuSlot],
    whole: Collection[str] = (),
) -> ContainerGrant | DeviceRefusal:
    """The grant of the container that starts with these ids of `aliyun.com/gpu-mem`.

    `whole`: UUIDs of cards that a container holds as a whole. If an init container that ends has
    the same ids as an app container, both get the smaller of the two grants: it is unknown which of
    them starts.
    """
    pod = owner.pod
    if refusal := foreign_ids(device_ids, cards):
        return refusal
    found: list[tuple[Grant, ...]] = []
    for name in owner.containers:
        given = container_grant(pod, name, cards, whole)
        if isinstance(given, DeviceRefusal):
            return given
        units = sum(grant.units for grant in given)
        if units != len(device_ids):
            return DeviceRefusal(
                _WRONG, f"the kubelet gave {len(device_ids)} devices, container limit is {units}"
            )
        found.append(given)
    together = _smallest(found)
    if together is None:
        return DeviceRefusal(
            _LATER,
            f"containers {' and '.join(owner.containers)} have the same devices and other GPUs",
        )
    return ContainerGrant(
        token=token(GPU_MEMORY, device_ids),
        units=len(device_ids),
        cards=together,
        namespace=pod.namespace,
        pod=pod.name,
        pod_uid=kubelet_uid(pod),
        mirror_uid="" if kubelet_uid(pod) == pod.uid else pod.uid,
        containers=owner.containers,
        pod_units=pod.limits.get(GPU_MEMORY, 0),
    )


def guarded_grant(
    device_ids: Collection[str],
    pods: Iterable[Pod],
    held: Iterable[HeldDevices],
    cards: Sequence[GpuSlot],
    whole: Collection[str] = (),
) -> ContainerGrant | DeviceRefusal:
    """The one grant of all containers that may be asking.

    The kubelet has not named the container yet.

    Candidates are the containers with this number of units to which the kubelet has given nothing
    yet. If they have different cards or MiB, the container is refused: nothing is guessed. If their
    shares of compute time differ, the smallest is used.
    """
    if refusal := foreign_ids(device_ids, cards):
        return refusal
    served = {(each.pod_uid, each.container) for each in held if each.resource == GPU_MEMORY}
    waiting = [
        (pod, part)
        for pod in pods
        if pod.is_holding and pod.deleted_at is None
        for part in (*pod.init_containers, *pod.containers)
        if part.limits.get(GPU_MEMORY, 0) == len(device_ids)
        and (kubelet_uid(pod), part.name) not in served
    ]
    if not waiting:
        return DeviceRefusal(
            _LATER, f"no container of this node waits for {len(device_ids)} units of {GPU_MEMORY}"
        )
    found: list[tuple[Grant, ...]] = []
    for pod, part in waiting:
        given = container_grant(pod, part.name, cards, whole)
        if isinstance(given, DeviceRefusal):
            return given
        found.append(given)
    together = _smallest(found)
    if together is None or len({tuple(grant.memory_mib for grant in given) for given in found}) > 1:
        names = ", ".join(sorted(f"{pod.key}/{part.name}" for pod, part in waiting))
        return DeviceRefusal(
            _LATER,
            f"containers of {len(device_ids)} units wait for different GPUs or memory: {names}",
        )
    asked = {pod.limits.get(GPU_MEMORY, 0) for pod, _ in waiting}
    return ContainerGrant(
        token=token(GPU_MEMORY, device_ids),
        units=len(device_ids),
        cards=together,
        pod_units=asked.pop() if len(asked) == 1 else None,
    )


def otherwise_answered(
    given: ContainerGrant, answered: Sequence[CardLimit]
) -> DeviceRefusal | None:
    """Why a container may not start if it was answered before its owner was known (guarded mode).

    Its environment cannot be changed any more, so it will never start.
    """
    was, is_now = (
        [(each.uuid, each.memory_mib) for each in answered],
        [(grant.uuid, grant.memory_mib) for grant in given.cards],
    )
    if was == is_now:
        return None
    answer, placed = (
        (" and ").join(f"{mib} MiB of GPU {uuid}" for uuid, mib in each) or "an unreadable one"
        for each in (was, is_now)
    )
    return DeviceRefusal(
        _NO_PLACEMENT,
        f"the kubelet was given {answer}, the pod's placement is {placed}; delete the pod",
        is_final=True,
    )


def as_remembered(pod: Pod, given: Iterable[GivenShare]) -> Pod:
    """The pod with its containers' earlier grants, if its annotation has lost them."""
    if pod.grants:
        return pod
    grants: dict[str, tuple[Grant, ...]] = {}
    for share in given:
        if share.pod_uid == kubelet_uid(pod):
            grants[share.container] = (*grants.get(share.container, ()), share.grant)
    return structs.replace(pod, grants=grants) if grants else pod


def container_grant(
    pod: Pod, name: str, cards: Sequence[GpuSlot], whole: Collection[str] = ()
) -> tuple[Grant, ...] | DeviceRefusal:
    """The grants of one container as its node can give them, by index, with their MiB."""
    part = next(each for each in (*pod.containers, *pod.init_containers) if each.name == name)
    given = _placement(pod).get(name)
    if not given:
        reason = (
            f"pod {pod.key} container {name} has no GPU placement; it must be scheduled by "
            "fairlead-scheduler"
        )
        return DeviceRefusal(_NO_PLACEMENT, reason)
    if refusal := _not_its_limit(part, given):
        return refusal
    by_uuid, by_index = {card.uuid: card for card in cards}, {card.index: card for card in cards}
    checked: dict[str, Grant] = {}
    for grant in given:
        card = by_uuid.get(grant.uuid) if grant.uuid else by_index.get(grant.index)
        if refusal := _unfit(grant, card, whole):
            return refusal
        assert card is not None
        if card.uuid in checked:
            return DeviceRefusal(_WRONG, f"placement names GPU {card.uuid} twice")
        mib = (
            grant_mib(card.memory_mib or 0, grant.units, card.units)
            if grant.memory_mib is None
            else grant.memory_mib
        )
        checked[card.uuid] = structs.replace(
            grant, uuid=card.uuid, index=card.index, memory_mib=mib
        )
    return tuple(sorted(checked.values(), key=lambda grant: grant.index))


def _foreign(device_ids: Iterable[str]) -> DeviceRefusal | None:
    first = min(device_ids, default=None)
    return (
        None
        if first is None
        else DeviceRefusal(_WRONG, f"device {first} is of no GPU of this node", is_final=True)
    )


def _placement(pod: Pod) -> GrantsByContainer:
    """The grants by container.

    The reference scheduler names no UUID and omits core percent and init containers; they are
    added.
    """
    return grants_in_full(pod) or pod.grants


def _not_its_limit(part: Container, given: Sequence[Grant]) -> DeviceRefusal | None:
    limit, core_limit = part.limits.get(GPU_MEMORY, 0), part.limits.get(GPU_CORE, 0)
    units, core = sum(grant.units for grant in given), sum(grant.core_percent for grant in given)
    if units != limit:
        return DeviceRefusal(_WRONG, f"placement grants {units} units, container limit is {limit}")
    if nothing := [grant.uuid or str(grant.index) for grant in given if grant.units < 1]:
        return DeviceRefusal(_WRONG, f"placement grants no units of GPU {nothing[0]}")
    if core != core_limit:
        return DeviceRefusal(
            _WRONG, f"placement grants {core} core percent, container limit is {core_limit}"
        )
    return None


def _unfit(grant: Grant, card: GpuSlot | None, whole: Collection[str]) -> DeviceRefusal | None:
    """Why this card cannot give what the placement grants."""
    if card is None:
        return DeviceRefusal(
            _NO_PLACEMENT,
            f"placement names GPU {grant.uuid or grant.index}, which is not on this node",
        )
    if grant.index != card.index:
        return DeviceRefusal(
            _WRONG,
            (
                f"placement names GPU {card.uuid} as GPU {grant.index}, on this node it is GPU "
                f"{card.index}"
            ),
        )
    if not card.memory_mib:
        return DeviceRefusal(_LATER, f"the driver does not report the memory of GPU {card.uuid}")
    if grant.units > card.units:
        return DeviceRefusal(
            _WRONG, f"placement grants {grant.units} units, GPU {card.uuid} has {card.units}"
        )
    most = grant_mib(card.memory_mib, grant.units, card.units)
    if grant.memory_mib is not None and not 0 < grant.memory_mib <= most:
        return DeviceRefusal(
            _WRONG,
            (
                f"placement grants {grant.memory_mib} MiB, {grant.units} units of GPU "
                f"{card.uuid} are {most} MiB"
            ),
        )
    if card.mode == _EXCLUSIVE or card.uuid in whole:
        return DeviceRefusal(_LATER, f"GPU {card.uuid} is in exclusive use")
    # a card that an operator took out of use gets no new pods; pods that are placed on it may go on
    return None if card.health == _HEALTHY or card.reason == WITHHELD else _unhealthy(card)


def _unhealthy(card: GpuSlot) -> DeviceRefusal:
    return DeviceRefusal(_LATER, f"GPU {card.uuid} is Unhealthy ({card.reason})")


def _smallest(found: Sequence[tuple[Grant, ...]]) -> tuple[Grant, ...] | None:
    """The smallest of these grants in each part; None if they are of different cards or units."""
    if len({tuple((grant.uuid, grant.units) for grant in given) for given in found}) != 1:
        return None
    return tuple(
        structs.replace(
            same[0],
            memory_mib=min(grant.memory_mib or 0 for grant in same),
            core_percent=min(grant.core_percent for grant in same),
        )
        for same in zip(*found, strict=True)
    )
