"""The pools of the Cluster board: the number of GPUs of each model that a pod could get now.

That is not `gpus - gpus_allocated`: broken, draining and unreachable cards have no holder but are
not available.
"""

from __future__ import annotations

from fairlead.console.boards.gpu_map_cells import free_cards, is_open, withheld_gpus
from fairlead.console.pages.cluster import Pool
from fairlead.console.pages.envelope import neat
from fairlead.model.devices.gpu import CardMode
from fairlead.model.occupancy import NodeOccupancy
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy, granted_mib
from fairlead.rules.nodes.status import SHARE, gpu_model


def gpu_pools(snapshot: ClusterSnapshot, occupancy: ClusterOccupancy) -> list[Pool]:
    """GPUs by model and mode, the largest pool first."""
    members: dict[tuple[str, str], list[NodeOccupancy]] = {}
    for each in occupancy.nodes:
        members.setdefault((gpu_model(each.node, snapshot), each.mode), []).append(each)
    found = [_pool(model, mode, nodes) for (model, mode), nodes in members.items()]
    return sorted(found, key=lambda pool: (-pool.gpus, pool.model, pool.mode))


def _free_gpus(occupied: NodeOccupancy) -> float:
    """Number of cards, with fractions, that pods could get now.

    On a Ready, schedulable node, of cards neither broken nor draining. What pods hold without a
    known card, and unknown cards that the node withholds, are subtracted, so that the number is
    never too large.
    """
    if not is_open(occupied.node):
        return 0
    usable = [
        card for card in occupied.cards if card.is_healthy is not False and not card.is_draining
    ]
    seated = sum(card.allocated_ratio for card in occupied.cards)
    unseated = max(0.0, occupied.gpus_allocated - seated)
    return max(
        0.0, sum(1 - card.allocated_ratio for card in usable) - unseated - withheld_gpus(occupied)
    )


def whole_cards_free(occupied: NodeOccupancy) -> int:
    """Whole cards that a pod could get on the node now."""
    return int(_free_gpus(occupied) + 1e-6)


def largest_free_mib(occupied: NodeOccupancy) -> float:
    """Memory in MiB that a pod could get on one shared card of the node now.

    A card that may be the broken one is not counted. Rooms of two cards do not add up: a request
    for 4 GiB needs one card with 4 GiB.
    """
    if not _free_gpus(occupied):
        return 0
    usable = [
        card
        for card in occupied.cards
        if card.is_healthy is not False and not card.is_draining and card.mode == CardMode.SHARED
    ]
    return max(
        (granted_mib(card, max(0, card.units - card.units_allocated)) or 0 for card in usable),
        default=0,
    )


def _pool(model: str, mode: str, nodes: list[NodeOccupancy]) -> Pool:
    free = [free_cards(each) for each in nodes]
    return Pool(
        model=model,
        mode=mode,
        nodes=len(nodes),
        gpus=sum(each.gpus_total for each in nodes),
        gpus_allocated=neat(sum(each.gpus_allocated for each in nodes)),
        gpus_free=sum(named for named, _ in free),
        gpus_free_unnamed=sum(unnamed for _, unnamed in free),
        largest_free_mib=neat(max(map(largest_free_mib, nodes))) if mode == SHARE else None,
        gpus_unhealthy=sum(each.gpus_unhealthy for each in nodes),
    )
