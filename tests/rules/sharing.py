"""Builders of pods and nodes for the tests of GPU sharing: a pod by its units, a node by its cards.
Each takes what a test specifies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.node import Node
from fairlead.model.pod import Container, GrantsByContainer, Pod
from fairlead.model.resources import GPU_CORE, GPU_COUNT, GPU_MEMORY
from fairlead.rules.sharing.ledger import Ledger


def container(name: str = "main", units: int = 0, core: int = 0, **more: object) -> Container:
    limits = {key: amount for key, amount in ((GPU_MEMORY, units), (GPU_CORE, core)) if amount}
    return Container(name, requests=limits, limits=limits, **more)  # type: ignore[arg-type]


def pod(
    name: str = "p",
    units: int = 4,
    *,
    core: int = 0,
    cards: int = 1,
    containers: Sequence[Container] = (),
    **more: object,
) -> Pod:
    labels = {GPU_COUNT: str(cards)} if cards != 1 else {}
    more = {
        "labels": labels,
        "containers": tuple(containers) or (container("main", units, core),),
        **more,
    }
    return Pod("default", name, uid=f"uid-{name}", **more)  # type: ignore[arg-type]


def node(
    name: str = "n",
    units: Sequence[int] = (15, 15),
    *,
    labels: Mapping[str, str] | None = None,
    core: bool = False,
    slots: Mapping[int, Mapping[str, object]] | None = None,
    **annotations: str,
) -> Node:
    """Cards `GPU-<name>-<index>` with these units, each with slightly more memory than its units;
    `slots` changes single cards.
    """
    cards = [
        msgspec.structs.replace(
            GpuSlot(
                index, f"GPU-{name}-{index}", index, "Tesla", 1024 * each + 770, each, mode="shared"
            ),
            **(slots or {}).get(index, {}),
        )
        for index, each in enumerate(units)
    ]
    capacity = {GPU_MEMORY: sum(units), GPU_COUNT: len(units)} | (
        {GPU_CORE: 100 * len(units)} if core else {}
    )
    return Node(
        name,
        labels={"cgpu": "true"} if labels is None else labels,
        annotations=annotations,
        capacity=capacity,
        allocatable=capacity,
        gpus=tuple(cards),
    )


def ledger(*nodes: Node, used: Mapping[tuple[str, int], int] | None = None) -> Ledger:
    """Nodes (one of two cards by default) on which units of cards are held: {(node,
    index): units}.
    """
    made = Ledger()
    for each in nodes or (node(),):
        made.set_node(each)
    for (name, index), units in (used or {}).items():
        made.set_pod(placed(pod(f"holder-{name}-{index}", units), name, {"main": [(index, units)]}))
    return made


def placed(
    asker: Pod, name: str, cards: Mapping[str, Sequence[tuple[int, int]]], **more: object
) -> Pod:
    """The pod bound to a node, with grants by container: (index, units)."""
    from fairlead.model.devices.gpu import Grant

    grants = {
        part: tuple(Grant(f"GPU-{name}-{index}", index, units) for index, units in given)
        for part, given in cards.items()
    }
    return msgspec.structs.replace(asker, node=name, grants=grants, **more)


def bound(asker: Pod, name: str, grants: GrantsByContainer, **more: object) -> Pod:
    return msgspec.structs.replace(asker, node=name, grants=grants, **more)


def cards(grants: GrantsByContainer) -> dict[str, list[tuple[int, int]]]:
    return {part: [(grant.index, grant.units) for grant in given] for part, given in grants.items()}


def used(made: Ledger, name: str = "n") -> list[int]:
    return [card.used for card in made.nodes[name].cards]
