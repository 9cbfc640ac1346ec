"""The details of one node: conditions, taints, one row per GPU, and the pods on them.

A pod may hold part of an unknown GPU; it is among the pods of the node and on no card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.console.boards.gpu_map_cells import CardState, card_states, cards_of
from fairlead.console.boards.gpus_rows import health_word
from fairlead.console.boards.idle_cards import Idleness, card_idle_seconds
from fairlead.console.boards.jobs_rows import memory_allocated
from fairlead.console.boards.rows import by_count
from fairlead.console.pages.envelope import neat, neat_or_null, percent, timestamp
from fairlead.console.pages.nodes import (
    ConditionRow,
    GpuPod,
    GpuRow,
    LastXid,
    MigInstanceRow,
    NodePod,
    Sharing,
    TaintRow,
)
from fairlead.model.devices.gpu import CardMode, GpuHolder, GpuInstance
from fairlead.model.event import Event
from fairlead.model.node import Node
from fairlead.model.occupancy import CardHolder, CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import (
    ClusterOccupancy,
    granted_mib,
    seat_used,
    seat_utilization,
)
from fairlead.rules.nodes.status import EXCLUSIVE, SHARE, share_mode
from fairlead.rules.pods.devices import has_gpu, memory_units
from fairlead.rules.pods.status import pod_status

USED_WITHOUT_ALLOCATION_MIB: Final = 512
"""Used memory in MiB above which a card without a grant counts as used without allocation.

Drivers and daemons use a little.
"""


def condition_rows(node: Node) -> list[ConditionRow]:
    return [
        ConditionRow(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            at=timestamp(each.at),
        )
        for each in node.conditions
    ]


def taint_rows(node: Node) -> list[TaintRow]:
    return [TaintRow(key=each.key, value=each.value, effect=each.effect) for each in node.taints]


def is_about_node(node: Node) -> Callable[[Event], bool]:
    """Whether an event is about this very node.

    A kubelet writes the node's name where its uid belongs.
    """
    known = ("", node.uid, node.name)
    return lambda event: (
        event.object_kind == "Node" and event.object_name == node.name and event.object_uid in known
    )


def sharing(occupied: NodeOccupancy) -> Sharing | None:
    """How the node shares its GPUs; None if it shares nothing and no label requests sharing."""
    mode = share_mode(occupied.node.labels)
    if occupied.mode != SHARE and not mode.is_shared and not mode.conflict:
        return None
    rooms = [granted_mib(card, card.units_free) for card in occupied.cards]
    return Sharing(
        offers=mode.is_shared,
        placement=mode.placement or "",
        conflict=mode.conflict,
        units_free=sum(card.units_free for card in occupied.cards),
        largest_free=max((card.units_free for card in occupied.cards), default=0),
        largest_free_mib=neat_or_null(
            max((room for room in rooms if room is not None), default=None)
        ),
    )


def gpu_rows(
    occupied: NodeOccupancy, job_by_pod: Mapping[str, str], idle: Idleness
) -> list[GpuRow]:
    """One row per GPU by index. `job_by_pod`: pod key -> `type/name`."""
    return [_gpu_row(seen, occupied.node, job_by_pod, idle) for seen in card_states(occupied)]


def node_pods(
    occupied: NodeOccupancy,
    snapshot: ClusterSnapshot,
    occupancy: ClusterOccupancy,
    job_by_pod: Mapping[str, str],
) -> list[NodePod]:
    """Pods that hold GPUs of the node, the largest first; those
    on unknown shared cards at the end.
    """
    unplaced = {pod.key for pod in occupied.unplaced}
    holding = [
        pod for pod in snapshot.pods_on(occupied.node.name) if pod.is_holding and has_gpu(pod)
    ]
    rows = [_node_pod(pod, pod.key in unplaced, occupancy, job_by_pod) for pod in holding]
    return sorted(rows, key=lambda row: (row.pending, -row.gpus, row.namespace, by_count(row.name)))


def _node_pod(
    pod: Pod, is_unplaced: bool, occupancy: ClusterOccupancy, job_by_pod: Mapping[str, str]
) -> NodePod:
    use, seats = occupancy.use(pod), occupancy.seats(pod)
    asked = memory_units(pod.limits)
    is_pending = is_unplaced and bool(asked)
    return NodePod(
        namespace=pod.namespace,
        name=pod.name,
        job=job_by_pod.get(pod.key, ""),
        phase=pod.phase,
        status=pod_status(pod),
        terminating=pod.deleted_at is not None,
        pending=is_pending,
        gpu_indexes=sorted({card.index for card in cards_of(pod, occupancy)}),
        units=asked if is_pending else sum(holder.units for _, holder in seats),
        gpus=neat(use.gpus),
        gpu_memory_allocated_mib=neat_or_null(None if is_pending else memory_allocated(use)),
        created_at=timestamp(pod.created_at),
        held_since=timestamp(pod.held_since),
    )


def _gpu_row(seen: CardState, node: Node, job_by_pod: Mapping[str, str], idle: Idleness) -> GpuRow:
    card = seen.card
    reading, has_cores = card.reading, card.core_total > 0
    return GpuRow(
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        mode=card.mode,
        units=card.units if card.is_divided else 0,
        units_allocated=card.units_allocated,
        units_free=card.units_free,
        core_allocated_percent=card.core_used if has_cores else None,
        core_free_percent=card.core_free if has_cores else None,
        memory_total_mib=neat_or_null(card.memory_total_mib),
        memory_allocated_mib=neat_or_null(seen.memory_allocated_mib),
        memory_free_mib=neat_or_null(_free_mib(seen)),
        memory_used_mib=neat_or_null(reading.memory_used_mib if reading else None),
        util_percent=percent(reading.utilization_ratio if reading else None),
        temperature_c=neat_or_null(reading.temperature_celsius if reading else None),
        power_w=neat_or_null(reading.power_watts if reading else None),
        health=health_word(card, node),
        reason=card.reason,
        last_xid=LastXid(code=reading.last_xid, at=timestamp(reading.last_xid_at))
        if reading and reading.last_xid
        else None,
        idle_seconds=card_idle_seconds(card, node, idle.now),
        pods=[_claimant(seen.claimant, card, job_by_pod)]
        if seen.claimant
        else [_gpu_pod(card, each, job_by_pod) for each in card.holders],
        mig_instances=[_instance(each, card, job_by_pod) for each in reading.instances]
        if reading
        else [],
        flags=_flags(seen, idle),
    )


def _instance(
    instance: GpuInstance, card: CardOccupancy, job_by_pod: Mapping[str, str]
) -> MigInstanceRow:
    """A MIG instance with the holders that its exporter reports and the API server confirms."""
    here = {(holder.pod.namespace, holder.pod.name) for holder in card.holders}
    held = [holder for holder in instance.holders if (holder.namespace, holder.pod) in here]
    return MigInstanceRow(
        id=instance.id,
        profile=instance.profile,
        memory_total_mib=neat_or_null(instance.memory_total_mib),
        memory_used_mib=neat_or_null(instance.memory_used_mib),
        util_percent=percent(instance.utilization_ratio),
        pods=[_instance_pod(holder, job_by_pod) for holder in held],
    )


def _instance_pod(holder: GpuHolder, job_by_pod: Mapping[str, str]) -> GpuPod:
    return GpuPod(
        namespace=holder.namespace,
        name=holder.pod,
        container=holder.container,
        job=job_by_pod.get(f"{holder.namespace}/{holder.pod}", ""),
        mode=holder.mode,
        units=0,
        core_percent=0,
        allocated_mib=neat_or_null(holder.memory_limit_mib),
        used_mib=neat_or_null(holder.memory_used_mib),
        util_percent=percent(holder.utilization_ratio),
    )


def _gpu_pod(card: CardOccupancy, holder: CardHolder, job_by_pod: Mapping[str, str]) -> GpuPod:
    return GpuPod(
        namespace=holder.pod.namespace,
        name=holder.pod.name,
        container=holder.container,
        job=job_by_pod.get(holder.pod.key, ""),
        mode=holder.mode,
        units=holder.units,
        core_percent=holder.core_percent,
        allocated_mib=neat_or_null(holder.memory_granted_mib),
        used_mib=neat_or_null(seat_used(card, holder)),
        util_percent=percent(seat_utilization(card, holder)),
    )


def _claimant(pod: Pod, card: CardOccupancy, job_by_pod: Mapping[str, str]) -> GpuPod:
    """The pod that must have the card; its use of the card is unknown."""
    return GpuPod(
        namespace=pod.namespace,
        name=pod.name,
        container="",
        job=job_by_pod.get(pod.key, ""),
        mode=EXCLUSIVE,
        units=0,
        core_percent=0,
        allocated_mib=neat_or_null(card.memory_total_mib),
        used_mib=None,
        util_percent=None,
    )


def _free_mib(seen: CardState) -> float | None:
    """What a new pod could get of the card:
    of a whole one all or nothing, of a divided one what is left.
    """
    card = seen.card
    if card.is_healthy is False or card.is_draining:
        return 0.0
    if card.is_divided:
        return granted_mib(card, card.units_free)
    allocated = seen.memory_allocated_mib
    if allocated is None or card.memory_total_mib is None:
        return None
    if card.mode == CardMode.MIG:
        return max(0.0, card.memory_total_mib - allocated)
    return 0.0 if card.holders or seen.claimant else card.memory_total_mib


def _flags(seen: CardState, idle: Idleness) -> list[str]:
    card, is_held = seen.card, bool(seen.card.holders or seen.claimant or seen.may_be_held)
    used = card.reading.memory_used_mib if card.reading else None
    flags = []
    if card.units_overcommitted:
        flags.append("overcommitted")
    if used is not None and used > USED_WITHOUT_ALLOCATION_MIB and not is_held:
        flags.append("used-without-allocation")
    if idle.is_idle(card):
        flags.append("idle")
    return flags
