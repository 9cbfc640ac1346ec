"""The rows of the list of GPUs: the cells of the GPU map, with everything a row has room for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.console.boards.gpu_map_cells import CardState, card_states, in_order
from fairlead.console.boards.idle_cards import card_idle_seconds
from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.envelope import neat_or_null, percent
from fairlead.console.pages.gpu_map import STATES
from fairlead.console.pages.gpus import ListedGpu
from fairlead.model.devices.gpu import CardMode, Health
from fairlead.model.node import Node
from fairlead.model.occupancy import CardOccupancy, NodeOccupancy
from fairlead.model.pod import Pod
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.nodes.status import SHARE, is_silent

HEALTH_WORDS: Final = {True: Health.HEALTHY, False: Health.UNHEALTHY, None: Health.UNKNOWN}


Shown = Callable[[Pod], bool]
"""Whether a pod may be named."""


def every_pod(pod: Pod) -> bool:
    return True


def listed_gpus(
    occupancy: ClusterOccupancy, now: float, shown: Shown = every_pod
) -> RowSet[ListedGpu]:
    """All GPUs by node and index."""
    words = FilterKeys()
    entries = [
        entry
        for each in in_order(occupancy.nodes)
        for entry in gpu_entries(each, words, now, shown)
    ]
    rows = [entry.row for entry in entries]
    facets = {
        "gpu_node": choices(row.node for row in rows),
        "GPU": [str(index) for index in sorted({row.index for row in rows})],
        "status": choices(row.state for row in rows),
        "mode": choices(row.mode for row in rows),
        "model": choices(row.model for row in rows),
    }
    return RowSet(ListedGpu, entries, facets, ties="")


def gpu_entries(
    on: NodeOccupancy, words: FilterKeys, now: float, shown: Shown
) -> list[Entry[ListedGpu]]:
    """The rows of one node's GPUs."""
    return [_entry(seen, on, words, now, shown) for seen in card_states(on)]


def health_word(card: CardOccupancy, node: Node) -> Health:
    """The card's health; unknown on an unreachable node, unless the card was broken before."""
    return HEALTH_WORDS[None if card.is_healthy and is_silent(node) else card.is_healthy]


class FilterKeys(dict[str, tuple[str, ...]]):
    """A word -> what a filter compares. 40,000 rows have few words, and share them."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        self[word] = lowered(word)
        return self[word]


def _entry(
    seen: CardState, on: NodeOccupancy, words: FilterKeys, now: float, shown: Shown
) -> Entry[ListedGpu]:
    row = _row(seen, on, now, shown)
    answers = {
        "gpu_node": words[row.node],
        "GPU": (str(row.index), row.uuid.lower()) if row.uuid else words[str(row.index)],
        "status": words[row.state],
        "mode": words[row.mode],
        "model": words[row.model],
    }
    return Entry(
        row,
        "\n".join((row.node, row.uuid, row.model, row.mode, row.state, *row.holders)).lower(),
        answers,
    )


def _row(seen: CardState, on: NodeOccupancy, now: float, shown: Shown) -> ListedGpu:
    card, reading = seen.card, seen.card.reading
    return ListedGpu(
        node=card.node,
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        mode=_mode(card, on.mode),
        state=STATES[seen.state],
        health=health_word(card, on.node),
        holders=_holders(seen, card, shown),
        units=card.units if card.is_divided else 0,
        units_allocated=card.units_allocated,
        util_percent=percent(reading.utilization_ratio if reading else None),
        memory_used_mib=neat_or_null(reading.memory_used_mib if reading else None),
        memory_allocated_mib=neat_or_null(seen.memory_allocated_mib),
        memory_total_mib=neat_or_null(card.memory_total_mib),
        temperature_c=neat_or_null(reading.temperature_celsius if reading else None),
        power_w=neat_or_null(reading.power_watts if reading else None),
        idle_seconds=card_idle_seconds(card, on.node, now),
    )


def _mode(card: CardOccupancy, node_mode: str) -> str:
    """The mode in the words of the Nodes board. A draining card is on its way to its node's."""
    if card.is_draining:
        return node_mode
    return SHARE if card.mode == CardMode.SHARED else card.mode


def _holders(seen: CardState, card: CardOccupancy, shown: Shown) -> list[str]:
    """Each pod once, however many of its containers sit on the card."""
    pods = [seen.claimant] if seen.claimant else [holder.pod for holder in card.holders]
    return list(dict.fromkeys(pod.key for pod in pods if shown(pod)))
