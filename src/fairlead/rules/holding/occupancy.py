"""The account as boards and exporters show it: which pod is on which GPU, grants, and sums.

Specification: docs/spec/telemetry.md#definitions.

`Pod.is_holding` alone decides which pods count (a terminating pod still holds). Exclusive counts
come from limits, never from devices: which card an exclusive pod has is known only from a grant or
a reading. The mean utilization is over GPUs that report; a pod with an unknown card has counts
(from its limits) but no utilization.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import ceil
from operator import is_
from typing import Final

from msgspec import structs

from fairlead.model.devices.gpu import GpuHolder, GpuMode, GpuReading, Grant
from fairlead.model.node import Node
from fairlead.model.occupancy import (
    TIME_SHARED_MODES,
    CardHolder,
    CardOccupancy,
    GpuTotals,
    NodeOccupancy,
    PodUse,
)
from fairlead.model.pod import Pod
from fairlead.model.resources import (
    ALIYUN_GPU,
    GPU_COUNT,
    GPU_MEMORY,
    NVIDIA_GPU_SHARED,
    Amounts,
    counted,
    nvidia_gpus,
)
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.account import CardAccount, NodeAccount, account
from fairlead.rules.holding.units import GIB, MIB_PER_UNIT, grant_mib
from fairlead.rules.nodes.status import EXCLUSIVE, MIG, NO_GPU, SHARE, gpu_mode, is_ready
from fairlead.rules.pods.devices import memory_units, mig_compute, mig_slices, whole_gpus

_WHOLE: Final = 1.0
_NO_USE: Final = PodUse()
HeldSeat = tuple[CardOccupancy, CardHolder]


def node_occupancy(node: Node, snapshot: ClusterSnapshot) -> NodeOccupancy:
    """The node's GPUs, their holders and their sums."""
    mode = gpu_mode(node, snapshot)
    if mode == NO_GPU:
        return NodeOccupancy(node, NO_GPU)
    asking, whole = _asking(snapshot.pods_on(node.name))
    readings = snapshot.gpus_on(node.name)
    held = account(
        node, (pod for pod, _ in asking), readings, snapshot.withheld.get(node.name, ()), mode
    )
    total = (
        len(readings)
        or len(node.gpus)
        or nvidia_gpus(node.capacity)
        or counted(node.capacity, GPU_COUNT)
        or len(held.cards)
    )
    gpu_worth, mig_worth = (
        _gpu_worth(node, readings, total),
        _mig_worth(mode, node, readings, total),
    )
    holders, placed = _holders(held, mig_worth)
    cards = tuple(
        _occupied(card, holders[card.key], is_shared=held.mode.is_shared) for card in held.cards
    )
    used, ratios = (
        _known(reading.memory_used_mib for reading in readings),
        _known(reading.utilization_ratio for reading in readings),
    )
    units_total = counted(node.capacity, GPU_MEMORY)
    return NodeOccupancy(
        node=node,
        mode=mode,
        gpus_total=total,
        gpus_allocated=_gpus_allocated(
            mode, cards, _limits_worth(asking, whole, gpu_worth, mig_worth), total
        ),
        gpus_unhealthy=_gpus_unhealthy(mode, node, cards, total, gpu_worth, mig_worth),
        gpus_reporting=len(ratios),
        units_total=units_total,
        units_allocated=sum(card.units_allocated for card in cards) if mode == SHARE else 0,
        unit=held.unit,
        memory_total_mib=_memory_total(node, cards, total, units_total * MIB_PER_UNIT[held.unit]),
        memory_allocated_mib=_memory_allocated(mode, cards, len(asking), whole),
        memory_used_mib=sum(used) if used else None,
        memory_used_of_mib=_sum_if_known(
            [card.memory_total_mib for card in cards if _reports_memory(card)]
        )
        if used
        else None,
        utilization_ratio=sum(ratios) / len(ratios) if ratios else None,
        cards=cards,
        unplaced=tuple(pod for pod, _ in asking if pod.key not in placed),
        gpu_worth=gpu_worth,
        mig_worth=mig_worth,
    )


def granted_mib(card: CardOccupancy, units: int) -> int | None:
    """MiB of `units` on a card, in proportion to its memory.

    Specification: docs/spec/gpu-sharing.md#units-and-the-proportional-grant.

    None when the card's memory or units are unknown.

    >>> granted_mib(CardOccupancy("n", 0, units=15, memory_total_mib=16130), 4)
    4301
    """
    if card.memory_total_mib is None or card.units <= 0:
        return None
    return grant_mib(int(card.memory_total_mib), units, card.units)


def _asking(pods: Iterable[Pod]) -> tuple[list[tuple[Pod, Amounts]], int]:
    """Pods that hold GPUs, with their limits, and how many whole GPUs they hold together."""
    asking, together = list[tuple[Pod, Amounts]](), 0
    for pod in pods:
        if pod.is_holding and (limits := pod.limits):
            whole = whole_gpus(limits)
            if whole or memory_units(limits) or mig_slices(limits):
                asking.append((pod, limits))
                together += whole
    return asking, together


def _holders(held: NodeAccount, mig_worth: float) -> tuple[dict[str, list[CardHolder]], set[str]]:
    """Holders by card, and the keys of the pods that are on one.

    Grants come first, since they were promised; then what a device's exporter has seen.
    """
    holders: dict[str, list[CardHolder]] = {card.key: [] for card in held.cards}
    placed: set[str] = set()
    bare: dict[tuple[str, str], Pod] = {}
    for tenant in held.tenants.values():
        pod, is_placed = tenant.pod, False
        for container, given in tenant.booked.items():
            for grant in given:
                card = held.card_of(grant)
                if card is not None:
                    holders[card.key].append(_granted(container, grant, card.gpu, pod))
                    is_placed = True
        if is_placed:
            placed.add(pod.key)
        if not tenant.booked:
            bare[pod.namespace, pod.name] = pod
    for card in held.cards if bare else ():
        for seen in card.gpu.reading.holders if card.gpu.reading else ():
            found = bare.get((seen.namespace, seen.pod))
            if found is not None:
                holders[card.key].append(_measured_sole_holder(card.gpu, found, seen, mig_worth))
                placed.add(found.key)
    return holders, placed


def _granted(container: str, grant: Grant, card: CardOccupancy, pod: Pod) -> CardHolder:
    seen = _measured_holder(card.reading, pod, container) if card.reading is not None else None
    is_whole = grant.is_whole
    if is_whole:
        ratio, mib = _WHOLE, card.memory_total_mib
    else:
        ratio = grant.units / card.units if card.units else 0.0
        mib = grant.memory_mib if grant.memory_mib is not None else granted_mib(card, grant.units)
    return CardHolder(
        pod=pod,
        container=container,
        mode=EXCLUSIVE if is_whole else SHARE,
        ratio=ratio,
        units=grant.units,
        core_percent=grant.core_percent,
        memory_granted_mib=mib,
        memory_used_mib=seen.memory_used_mib if seen else None,
        utilization_ratio=seen.utilization_ratio if seen else None,
    )


def _measured_sole_holder(
    card: CardOccupancy, pod: Pod, seen: GpuHolder, mig_worth: float
) -> CardHolder:
    """A seat known from the exporter alone.

    An exclusive pod takes the card, MIG the compute slices of its instances; in other modes the
    limit comes from the exporter.
    """
    mib, total = seen.memory_limit_mib, card.memory_total_mib
    if seen.mode == EXCLUSIVE:
        ratio, mib = _WHOLE, total
    elif seen.mode == MIG and mig_worth:
        ratio = min(_WHOLE, mig_worth * _compute_slices(card, seen))
    elif seen.mode in TIME_SHARED_MODES or not mib or not total:
        ratio = 0.0
    else:
        ratio = min(_WHOLE, mib / total)
    return CardHolder(
        pod,
        seen.container,
        seen.mode,
        ratio,
        0,
        0,
        mib,
        memory_used_mib=seen.memory_used_mib,
        utilization_ratio=seen.utilization_ratio,
    )


def _compute_slices(card: CardOccupancy, seen: GpuHolder) -> int:
    """Compute slices of this container's instances of the card."""
    who = (seen.namespace, seen.pod, seen.container)
    instances = card.reading.instances if card.reading else ()
    return sum(
        each.compute_slices
        for each in instances
        for holder in each.holders
        if (holder.namespace, holder.pod, holder.container) == who
    )


def _measured_holder(reading: GpuReading | None, pod: Pod, container: str) -> GpuHolder | None:
    """The exporter's measurement for the seat; a grant to the
    whole pod ("") uses the pod's first.
    """
    for holder in reading.holders if reading else ():
        if (
            holder.pod == pod.name
            and holder.namespace == pod.namespace
            and container in ("", holder.container)
        ):
            return holder
    return None


def _occupied(booked: CardAccount, holders: list[CardHolder], *, is_shared: bool) -> CardOccupancy:
    """The card with its holders; on a node whose labels allow no pod, nothing is free."""
    if len(holders) > 1:
        holders.sort(key=lambda holder: (holder.pod.namespace, holder.pod.name, holder.container))
    return structs.replace(
        booked.gpu,
        holders=tuple(holders),
        units_free=booked.free if is_shared else 0,
        core_total=booked.core_total,
        core_used=booked.core_used,
        core_free=booked.core_free,
    )


def _gpus_allocated(
    mode: GpuMode,
    cards: Sequence[CardOccupancy],
    held: float,
    total: int,
) -> float:
    """In cards, what its pods hold together (`ClusterOccupancy.use`); shared ones by granted part.
    `held`: by the limits of pods.

    At most the number of reporting cards, if that is less than what the node offers.
    """
    if mode == SHARE:
        shared = sum(holder.ratio for card in cards for holder in card.holders if holder.units)
        return held + shared if held else shared
    return min(held, total) if total else held


def _limits_worth(
    asking: Iterable[tuple[Pod, Amounts]], whole: int, gpu_worth: float, mig_worth: float
) -> float:
    slices = sum(mig_compute(limits) for _, limits in asking) if mig_worth else 0
    return whole * gpu_worth + (slices * mig_worth if slices else 0)


def _gpu_worth(node: Node, readings: Sequence[GpuReading], total: int) -> float:
    """The part of a card that is one GPU of the node's count.

    With time slices a card is counted several times.

    Holders show how they have their cards. Without holders, a count that is a multiple of the cards
    means time slices; otherwise some card does not report.
    """
    offered = nvidia_gpus(node.capacity) or counted(node.capacity, ALIYUN_GPU)
    if not 0 < total < offered:
        return 1
    modes = {holder.mode for reading in readings for holder in reading.holders}
    is_renamed = counted(node.capacity, NVIDIA_GPU_SHARED) == offered
    by_turns = (
        is_renamed
        or not modes.isdisjoint(TIME_SHARED_MODES)
        or (EXCLUSIVE not in modes and offered % total == 0)
    )
    return total / offered if by_turns else 1


def _mig_worth(mode: GpuMode, node: Node, readings: Sequence[GpuReading], total: int) -> float:
    """The part of a card that is one compute slice: all offered slices are worth the divided cards.

    If other cards are whole, only exporters know their number.
    """
    divided = total if mode == MIG else sum([bool(reading.instances) for reading in readings])
    offered = mig_compute(node.capacity) if divided else 0
    return divided / offered if offered else 0.0


def _gpus_unhealthy(
    mode: GpuMode,
    node: Node,
    cards: Sequence[CardOccupancy],
    total: int,
    gpu_worth: float,
    mig_worth: float,
) -> int:
    """The larger of what the device plugin withholds and what devices report.

    Of a card with time slices or instances the plugin withholds several parts: they are one card.

    Draining cards are withheld, too, and are not unhealthy (decision 4).
    """
    draining = sum([card.is_draining for card in cards])
    if mode == SHARE:
        capacity, allocatable = (
            counted(node.capacity, GPU_MEMORY),
            counted(node.allocatable, GPU_MEMORY),
        )
        withheld = total * max(0, capacity - allocatable) // capacity if capacity else 0
    else:
        count = nvidia_gpus if nvidia_gpus(node.capacity) else _aliyun_gpus
        parts = gpu_worth * max(0, count(node.capacity) - count(node.allocatable))
        if mig_worth:
            parts += mig_worth * max(0, mig_compute(node.capacity) - mig_compute(node.allocatable))
        withheld = ceil(round(parts, 6))
    return min(total, max(withheld - draining, sum([card.is_healthy is False for card in cards])))


def _aliyun_gpus(amounts: Amounts) -> int:
    return counted(amounts, ALIYUN_GPU)


def _memory_total(
    node: Node, cards: Sequence[CardOccupancy], total: int, offered_mib: int
) -> float | None:
    known = _known([card.memory_total_mib for card in cards])
    if known and len(known) == len(cards):
        return sum(known)
    if node.card_memory_mib is not None:
        return float(node.card_memory_mib * total)
    return float(offered_mib) if offered_mib else None


def _memory_allocated(
    mode: GpuMode, cards: Sequence[CardOccupancy], pods: int, wanted: int
) -> float | None:
    """The allocated memory. `wanted`: the number of cards of its `pods` that are not shared.

    Shared: the grants. Exclusive: the full memory of the held cards, and the held instances of
    divided ones.

    If cards differ and it is unknown which are held: their mean.
    """
    if mode == SHARE:
        parts = [card.memory_allocated_mib for card in cards]
        known = _known(parts)
        return sum(known) if len(known) == len(parts) else None
    if mode == MIG:
        return _memory_of_slices(cards)
    divided = [card for card in cards if card.reading and card.reading.instances]
    whole = [card for card in cards if card not in divided] if divided else cards
    sizes = _known([card.memory_total_mib for card in whole])
    if not sizes or len(sizes) < len(whole):
        return None if pods or not cards else 0.0
    seated = [card.memory_total_mib or 0.0 for card in whole if card.allocated_ratio > 0]
    held = (
        sum(seated) if len(seated) == wanted else min(sum(sizes), wanted * sum(sizes) / len(sizes))
    )
    return held + (_memory_of_slices(divided) or 0.0)


def _memory_of_slices(cards: Sequence[CardOccupancy]) -> float | None:
    known = _known(card.memory_allocated_mib for card in cards if card.holders)
    return sum(known) if known else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


class ClusterOccupancy:
    """Occupancy of every GPU node in order of names, without nodes that have no GPUs.

    Made once per snapshot and used many times.
    """

    def __init__(self, nodes: Sequence[NodeOccupancy]) -> None:
        self.nodes = tuple(nodes)
        self.by_node = {each.node.name: each for each in self.nodes}
        self._uses: dict[str, PodUse] = {}

    @cached_property
    def _seats(self) -> dict[str, list[HeldSeat]]:
        """By key of the pod. The map of all cards does not need it."""
        found: dict[str, list[HeldSeat]] = {}
        pod, seats = None, list[HeldSeat]()
        for each in self.nodes:
            for card in each.cards:
                for holder in card.holders:
                    if holder.pod is not pod:  # most pods have several cards in a row
                        pod = holder.pod
                        seats = found.setdefault(pod.key, [])
                    seats.append((card, holder))
        return found

    @property
    def unit_mib(self) -> int:
        """MiB of one unit of `aliyun.com/gpu-mem`, for a pod without a node.

        A cluster has one unit.
        """
        return next(
            (MIB_PER_UNIT[each.unit] for each in self.nodes if each.units_total), MIB_PER_UNIT[GIB]
        )

    def seats(self, pod: Pod) -> list[HeldSeat]:
        """The cards that the pod is known to be on."""
        return self._seats.get(pod.key, [])

    def use(self, pod: Pod) -> PodUse:
        """What the pod holds and uses; nothing if it is not bound or has finished.

        The result is kept: it is needed for the pod and for its job.
        """
        found = self._uses.get(pod.key)
        if found is None:
            found = self._uses[pod.key] = self._use(pod) if pod.is_holding else _NO_USE
        return found

    def _use(self, pod: Pod) -> PodUse:
        limits, occupied = pod.limits, self.by_node.get(pod.node)
        seats, whole = self.seats(pod), whole_gpus(limits)
        gpus: float = whole * occupied.gpu_worth if occupied is not None else whole
        if occupied is not None and occupied.mig_worth:
            gpus += mig_compute(limits) * occupied.mig_worth
        for _, holder in seats:
            if holder.units:
                gpus += holder.ratio
        if not seats and not gpus:
            return _NO_USE
        if len(seats) == 1:  # nearly every pod: nothing to add up
            used, ratio = seat_used(*seats[0]), seat_utilization(*seats[0])
        else:
            used, ratio = (
                _sum_known(seat_used(*seat) for seat in seats),
                _mean_known(seat_utilization(*seat) for seat in seats),
            )
        used_of = _sum_if_known(
            holder.memory_granted_mib
            for card, holder in seats
            if seat_used(card, holder) is not None
        )
        return PodUse(gpus, self._memory_allocated(pod, seats, whole), used, ratio, used_of)

    def use_together(self, pods: Iterable[Pod]) -> PodUse:
        """A job's use: sums over its pods, and the mean
        utilization of the cards its pods sit on.
        """
        held = [pod for pod in pods if pod.is_holding]
        uses = [self.use(pod) for pod in held]
        return PodUse(
            gpus=sum(use.gpus for use in uses),
            memory_allocated_mib=_sum_known(use.memory_allocated_mib for use in uses),
            memory_used_mib=_sum_known(use.memory_used_mib for use in uses),
            utilization_ratio=_mean_known(
                seat_utilization(*seat) for pod in held for seat in self.seats(pod)
            ),
            memory_used_of_mib=_sum_if_known(
                use.memory_used_of_mib for use in uses if use.memory_used_mib is not None
            ),
        )

    def totals(self) -> GpuTotals:
        """Sums over all GPU nodes.

        Memory sums omit nodes with unknown memory; None if it is unknown on all.
        """
        ratios = [
            card.reading.utilization_ratio
            for each in self.nodes
            for card in each.cards
            if card.reading
        ]
        return GpuTotals(
            nodes=len(self.nodes),
            nodes_allocated=sum(each.is_allocated for each in self.nodes),
            nodes_unhealthy=sum(not is_ready(each.node) for each in self.nodes),
            nodes_faulty=sum(each.gpus_unhealthy > 0 for each in self.nodes),
            gpus=sum(each.gpus_total for each in self.nodes),
            gpus_allocated=sum(each.gpus_allocated for each in self.nodes),
            gpus_unhealthy=sum(each.gpus_unhealthy for each in self.nodes),
            gpus_reporting=sum(each.gpus_reporting for each in self.nodes),
            memory_total_mib=_sum_known(each.memory_total_mib for each in self.nodes),
            memory_allocated_mib=_sum_known(each.memory_allocated_mib for each in self.nodes),
            memory_used_mib=_sum_known(each.memory_used_mib for each in self.nodes),
            memory_used_of_mib=_sum_if_known(
                each.memory_used_of_mib for each in self.nodes if each.memory_used_mib is not None
            ),
            utilization_ratio=_mean_known(ratios),
        )

    def _memory_allocated(self, pod: Pod, seats: Sequence[HeldSeat], whole: int) -> float | None:
        known = [
            holder.memory_granted_mib
            for _, holder in seats
            if holder.memory_granted_mib is not None
        ]
        if seats and len(known) == len(seats) and len(seats) >= whole:
            return sum(known)
        node = self.by_node.get(pod.node)
        if not whole or node is None or not node.gpus_total or node.memory_total_mib is None:
            return None
        return whole * node.memory_total_mib / node.gpus_total


def cluster_occupancy(
    snapshot: ClusterSnapshot, before: tuple[ClusterSnapshot, ClusterOccupancy] | None = None
) -> ClusterOccupancy:
    """The occupancy of every node with GPUs. `before`: another snapshot and its occupancy; nodes
    whose rows are the same objects in both are taken from there.
    """
    occupied = (
        (_unchanged(node, snapshot, *before) if before is not None else None)
        or node_occupancy(node, snapshot)
        for node in snapshot.nodes
    )
    return ClusterOccupancy([each for each in occupied if each.mode != NO_GPU])


def _unchanged(
    node: Node, snapshot: ClusterSnapshot, before: ClusterSnapshot, known: ClusterOccupancy
) -> NodeOccupancy | None:
    """The node's occupancy before, if all that `node_occupancy` reads is the same."""
    name = node.name
    found = known.by_node.get(name)
    is_same = (
        found is not None
        and found.node is node
        and found.mode == gpu_mode(node, snapshot)
        and _are_same(snapshot.pods_on(name), before.pods_on(name))
        and _are_same(snapshot.gpus_on(name), before.gpus_on(name))
        and snapshot.withheld.get(name, ()) == before.withheld.get(name, ())
    )
    return found if is_same else None


def _are_same(rows: Sequence[object], others: Sequence[object]) -> bool:
    return len(rows) == len(others) and all(map(is_, rows, others))


def seat_used(card: CardOccupancy, holder: CardHolder) -> float | None:
    """The container's own use; on a card that it has alone, the
    device's (with the driver's part).
    """
    if holder.memory_used_mib is not None:
        return holder.memory_used_mib
    return card.reading.memory_used_mib if card.reading and holder.mode == EXCLUSIVE else None


def seat_utilization(card: CardOccupancy, holder: CardHolder) -> float | None:
    """The device's utilization for a card held alone, the container's own share on a shared one."""
    if holder.mode == EXCLUSIVE and card.reading:
        return card.reading.utilization_ratio
    return holder.utilization_ratio


def _sum_known(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return sum(known) if known else None


def _sum_if_known(values: Iterable[float | None]) -> float | None:
    """The sum; None if a part is unknown, or if there are no parts."""
    parts = list(values)
    return _sum_known(parts) if None not in parts else None


def _reports_memory(card: CardOccupancy) -> bool:
    return card.reading is not None and card.reading.memory_used_mib is not None


def _mean_known(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None
