"""The occupancy of a node without the names of other teams' pods.

All figures stay: the pods that hold a card are replaced by ones without namespace, labels and
measurements, with the same requests for GPUs.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import structs

from fairlead.console.boards.gpu_map_cells import ANOTHER_TEAM
from fairlead.model.occupancy import CardHolder, CardOccupancy, NodeOccupancy
from fairlead.model.pod import Container, Pod
from fairlead.model.resources import is_gpu_resource


def nameless(occupied: NodeOccupancy, namespaces: Collection[str] = ()) -> NodeOccupancy:
    """The same figures. Pods of `namespaces` stay as they are."""
    stand_ins: dict[str, Pod] = {}

    def shown(pod: Pod) -> Pod:
        if pod.namespace in namespaces:
            return pod
        if pod.key not in stand_ins:
            stand_ins[pod.key] = _stand_in(pod, len(stand_ins))
        return stand_ins[pod.key]

    def held(card: CardOccupancy) -> CardOccupancy:
        if all(holder.pod.namespace in namespaces for holder in card.holders):
            return card
        return structs.replace(card, holders=tuple(map(of, card.holders)))

    def of(holder: CardHolder) -> CardHolder:
        if holder.pod.namespace in namespaces:
            return holder
        return structs.replace(
            holder,
            pod=shown(holder.pod),
            container="",
            memory_used_mib=None,
            utilization_ratio=None,
        )

    return structs.replace(
        occupied,
        cards=tuple(map(held, occupied.cards)),
        unplaced=tuple(map(shown, occupied.unplaced)),
    )


def _stand_in(pod: Pod, number: int) -> Pod:
    """A pod of the same size. Its number keeps pods of one node apart."""
    amounts = {name: amount for name, amount in pod.limits.items() if is_gpu_resource(name)}
    return Pod(
        ANOTHER_TEAM,
        str(number),
        node=pod.node,
        phase=pod.phase,
        containers=(Container("", requests=amounts, limits=amounts),),
    )
