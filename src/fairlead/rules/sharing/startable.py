"""What one new pod could get now, by model of GPU: whole cards of a node, or shared memory.

The memory is that of one card.

Both nodes and quota are checked: a pod that asks for `amount` is admitted by the next plan and fits
on a node; a pod that asks for more waits. The pod asks for nothing else, tolerates no taint and
belongs to a workload, since quota lends nothing to a bare pod. No pod is evicted for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from fairlead.model.keys import LABEL_GPU_MODEL, LABEL_GPU_PRODUCT, LABEL_HOSTNAME
from fairlead.model.node import Node
from fairlead.model.node_choice import NodeChoice
from fairlead.model.pod import Container, Pod
from fairlead.model.quota.plan import QuotaAdmission, QuotaWaiting
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU, PODS
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.nodes.choice import may_use
from fairlead.rules.nodes.room import NodeRooms
from fairlead.rules.nodes.status import gpu_model, is_ready
from fairlead.rules.quota.what_if import outcome_of
from fairlead.rules.sharing.ledger import Ledger

_UID = "startable"


class Startable(Struct, frozen=True):
    """A size that could start.

    `amount` of `resource`: whole GPUs, or units of memory of a shared one; 0 if quota has no room.

    `selector`: makes a pod ask for this model; empty if labels do not identify it. `node`: one of
    `nodes` that has the room. `on_nodes`: what nodes alone would allow. `is_guaranteed` None: quota
    does not count the namespace. `waiting`: why a pod that asks for one more would wait, if quota
    is the limit.
    """

    resource: str
    model: str
    amount: int
    node: str
    nodes: int
    on_nodes: int
    selector: tuple[tuple[str, str], ...] = ()
    is_guaranteed: bool | None = None
    waiting: QuotaWaiting | None = None


class NodeOffer(Struct, frozen=True):
    """The most that nodes of one model would give one pod now; the same for all users."""

    resource: str
    model: str
    amount: int
    node: str
    nodes: int
    selector: tuple[tuple[str, str], ...]


def node_offers(
    snapshot: ClusterSnapshot, rooms: NodeRooms, ledger: Ledger, free_cards: Mapping[str, int]
) -> list[NodeOffer]:
    """Offers, the largest first, whole cards before shared ones.

    `free_cards`: by node, whole cards that are neither unhealthy nor draining; kube-scheduler
    counts without regard to that.
    """
    by_model: dict[tuple[str, str], list[Node]] = {}
    for node in snapshot.nodes:
        if is_ready(node) and not node.unschedulable and may_use(NodeChoice(), node):
            for resource in (NVIDIA_GPU, GPU_MEMORY):
                if node.allocatable.get(resource, 0) > 0:
                    by_model.setdefault((resource, gpu_model(node, snapshot)), []).append(node)
    found = [
        _whole(model, nodes, rooms, free_cards)
        if resource == NVIDIA_GPU
        else _shared(model, nodes, rooms, ledger)
        for (resource, model), nodes in by_model.items()
    ]
    offers = [offer for offer in found if offer is not None]
    return sorted(
        offers, key=lambda offer: (offer.resource == GPU_MEMORY, -offer.amount, offer.model)
    )


def startable(
    offers: Sequence[NodeOffer], quota: QuotaState | None, namespace: str, user: str
) -> Iterator[Startable]:
    """What a pod of this user in this namespace could get of each offer.

    `quota` None: no tree.
    """
    counts = quota is not None and any(namespace in leaf.namespaces for leaf in quota.tree.leaves())
    for offer in offers:
        if quota is None or not counts:
            yield _of(offer, offer.amount)
            continue

        @cache
        def outcome(
            amount: int, offer: NodeOffer = offer, state: QuotaState = quota
        ) -> QuotaAdmission | QuotaWaiting | None:
            return outcome_of(state, _asking(offer, amount, namespace, user, state.now))

        most = _largest(offer.amount, lambda amount: isinstance(outcome(amount), QuotaAdmission))
        last, next_one = (
            outcome(most) if most else None,
            outcome(most + 1) if most < offer.amount else None,
        )
        sure = last.is_guaranteed if isinstance(last, QuotaAdmission) else None
        yield _of(offer, most, sure, next_one if isinstance(next_one, QuotaWaiting) else None)


def _of(
    offer: NodeOffer,
    amount: int,
    is_guaranteed: bool | None = None,
    waiting: QuotaWaiting | None = None,
) -> Startable:
    return Startable(
        offer.resource,
        offer.model,
        amount,
        offer.node,
        offer.nodes,
        offer.amount,
        offer.selector,
        is_guaranteed,
        waiting,
    )


def _asking(offer: NodeOffer, amount: int, namespace: str, user: str, now: float) -> QuotaPod:
    return QuotaPod(
        namespace,
        f"{_UID}-{offer.resource}-{offer.model}",
        _UID,
        {offer.resource: amount},
        created_at=now,
        user=user,
        choice=NodeChoice(offer.selector),
        card_units=amount if offer.resource == GPU_MEMORY else 0,
    )


def _whole(
    model: str, nodes: Sequence[Node], rooms: NodeRooms, free_cards: Mapping[str, int]
) -> NodeOffer | None:
    free = {
        node.name: min(rooms.left(node).get(NVIDIA_GPU, 0), free_cards.get(node.name, 0))
        for node in nodes
        if _takes_a_pod(node, rooms)
    }
    most = max(free.values(), default=0)
    if most < 1:
        return None
    able = [node for node in nodes if free.get(node.name) == most]
    return NodeOffer(NVIDIA_GPU, model, most, able[0].name, len(able), _selector(nodes, able[0]))


def _shared(
    model: str, nodes: Sequence[Node], rooms: NodeRooms, ledger: Ledger
) -> NodeOffer | None:
    left = {
        node.name: rooms.left(node).get(GPU_MEMORY, 0)
        for node in nodes
        if _takes_a_pod(node, rooms)
    }

    def able(units: int) -> list[str]:
        asked = {GPU_MEMORY: units}
        asker = Pod("", _UID, _UID, containers=(Container("main", requests=asked, limits=asked),))
        return ledger.filter(asker, [name for name, free in left.items() if free >= units]).passed

    most = _largest(max(left.values(), default=0), lambda units: bool(able(units)))
    if most < 1:
        return None
    names = able(most)
    [first] = [node for node in nodes if node.name == names[0]]
    return NodeOffer(GPU_MEMORY, model, most, first.name, len(names), _selector(nodes, first))


def _takes_a_pod(node: Node, rooms: NodeRooms) -> bool:
    return rooms.left(node).get(PODS, 1) > 0


def _selector(nodes: Sequence[Node], chosen: Node) -> tuple[tuple[str, str], ...]:
    """The model's label that all these nodes have alike, else the name of the chosen node."""
    for key in (LABEL_GPU_MODEL, LABEL_GPU_PRODUCT):
        value = chosen.labels.get(key)
        if value and all(node.labels.get(key) == value for node in nodes):
            return ((key, value),)
    host = chosen.labels.get(LABEL_HOSTNAME)
    return ((LABEL_HOSTNAME, host),) if host else ()


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number from 0 to `most` for which `holds`, which holds for all smaller ones.

    >>> [_largest(9, lambda number: number < most) for most in (4, 20, 1)]
    [3, 9, 0]
    """
    if most < 1 or holds(most):
        return max(0, most)
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
