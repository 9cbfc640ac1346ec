"""The rows of the Nodes board.

They are built from the occupancy of every node, once per change of the cluster.

A node without GPUs has unknown GPU memory (null), but knows that it has 0 GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.console.boards.rows import Entry, RowSet, by_count, choices, lowered
from fairlead.console.pages.envelope import (
    Sentence,
    counted,
    gpu_count,
    neat,
    neat_or_null,
    percent,
    timestamp,
)
from fairlead.console.pages.nodes import NodeRow
from fairlead.model.devices.gpu import CardMode
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy, GpuTotals, NodeOccupancy
from fairlead.model.resources import CPU, MEMORY
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.nodes.status import NO_GPU, SHARE, gpu_model, node_ip, role_text, status_word
from fairlead.rules.pods.devices import memory_units
from fairlead.wire import names

_MIB = 1_048_576


def node_rows(snapshot: ClusterSnapshot, occupancy: ClusterOccupancy) -> RowSet[NodeRow]:
    """All nodes, those with GPUs first, then by name."""
    entries = [
        _entry(node, occupancy.by_node.get(node.name) or NodeOccupancy(node, NO_GPU), snapshot)
        for node in snapshot.nodes
    ]
    entries.sort(key=lambda entry: (entry.row.gpu_mode == NO_GPU, by_count(entry.row.name)))
    rows = [entry.row for entry in entries]
    indexes = {card.index for each in occupancy.nodes for card in each.cards}
    facets = {
        "gpu_node": choices(row.name for row in rows if row.gpu_mode != NO_GPU),
        "GPU": [str(index) for index in sorted(indexes)],
        "status": choices(row.status for row in rows),
        "mode": choices(mode for row in rows for mode in row.gpu_mode.split(",")),
        "model": choices(model for row in rows for model in row.gpu_model.split(",")),
    }
    return RowSet(NodeRow, entries, facets)


def nodes_sentence(totals: GpuTotals) -> Sentence:
    """How many nodes, how full, how many broken."""
    values = {
        "nodes": totals.nodes,
        "gpus": totals.gpus,
        "allocated": gpu_count(totals.gpus_allocated),
        "unhealthy": totals.nodes_unhealthy,
        "faulty": totals.nodes_faulty,
    }
    if not totals.nodes:
        return Sentence("nodes-none", {}, "No node of this cluster has GPUs.")
    text = (
        f"{counted(totals.nodes, 'GPU node')} with {counted(totals.gpus, 'GPU')}, "
        f"{values['allocated']:g} allocated"
    )
    code = "nodes"
    if totals.nodes_unhealthy:
        code += "-unhealthy"
        text += f"; {counted(totals.nodes_unhealthy, 'node')} not ready"
    if totals.nodes_faulty:
        code += "-faulty"
        text += f"; {counted(totals.nodes_faulty, 'node')} with a faulty GPU"
    return Sentence(code, dict(values), text + ".")


def node_row(node: Node, occupied: NodeOccupancy, snapshot: ClusterSnapshot) -> NodeRow:
    readings = snapshot.gpus_on(node.name)
    return NodeRow(
        name=node.name,
        ip=node_ip(node),
        role=role_text(node),
        status=status_word(node),
        schedulable=not node.unschedulable,
        gpu_mode=mode_text(occupied),
        gpus_total=occupied.gpus_total,
        gpu_memory_total_mib=neat_or_null(occupied.memory_total_mib),
        gpus_allocated=neat(occupied.gpus_allocated),
        gpu_memory_allocated_mib=neat_or_null(occupied.memory_allocated_mib),
        gpu_memory_used_mib=neat_or_null(occupied.memory_used_mib),
        gpu_memory_used_of_mib=neat_or_null(occupied.memory_used_of_mib),
        gpu_util_percent=percent(occupied.utilization_ratio),
        gpu_model=gpu_model(node, snapshot),
        isolation=node.labels.get(names.LABEL_ISOLATION, ""),
        gpus_unhealthy=occupied.gpus_unhealthy,
        gpus_draining=occupied.gpus_draining,
        gpus_reporting=occupied.gpus_reporting,
        gpu_unit=occupied.unit if occupied.units_total else "",
        gpu_units_total=occupied.units_total,
        gpu_units_allocated=occupied.units_allocated,
        gpu_units_pending=sum(memory_units(pod.limits) for pod in occupied.unplaced),
        gpu_units_overcommitted=occupied.units_overcommitted,
        driver_version=",".join(sorted({reading.driver_version for reading in readings} - {""})),
        instance_type=node.labels.get(names.LABEL_INSTANCE_TYPE, ""),
        zone=node.labels.get(names.LABEL_ZONE, ""),
        created_at=timestamp(node.created_at),
        cpu_total_cores=neat(node.capacity.get(CPU, 0) / 1000),
        memory_total_mib=neat(node.capacity.get(MEMORY, 0) / _MIB, 1),
    )


def mode_text(occupied: NodeOccupancy) -> str:
    """The node's mode; where its cards differ, all of them."""
    modes = {
        SHARE if card.mode == CardMode.SHARED else card.mode
        for card in occupied.cards
        if not card.is_draining
    }
    return ",".join(sorted(modes)) if len(modes) > 1 else occupied.mode


def _entry(node: Node, occupied: NodeOccupancy, snapshot: ClusterSnapshot) -> Entry[NodeRow]:
    row = node_row(node, occupied, snapshot)
    answers = {
        "gpu_node": lowered(row.name),
        "GPU": lowered(*_card_names(occupied.cards)),
        "status": lowered(row.status),
        "mode": lowered(*row.gpu_mode.split(",")),
        "model": lowered(*row.gpu_model.split(",")),
    }
    return Entry(row, _searched(row, node), answers)


def _card_names(cards: Sequence[CardOccupancy]) -> Iterable[str]:
    for card in cards:
        yield str(card.index)
        if card.uuid:
            yield card.uuid


def _searched(row: NodeRow, node: Node) -> str:
    """What `q` looks into: the words of the row, and each label as `key:value` and `key=value`."""
    words = [
        row.name,
        row.ip,
        row.role,
        row.status,
        row.gpu_mode,
        row.gpu_model,
        row.instance_type,
        row.zone,
    ]
    labels = [f"{key}:{value}\n{key}={value}" for key, value in node.labels.items()]
    return "\n".join((*words, *labels)).lower()
