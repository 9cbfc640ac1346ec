"""The ledger as tables and as a document: which pods hold which shared cards, what is free.

Specification: docs/spec/gpu-sharing.md#inspect.

A running pod with an unknown card counts as used (`pending`), and so does a pod whose annotation
names a card that the node does not have. A card in exclusive use counts with the units that it will
share, as the reference counts it (document 001); `draining_cards` names the pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import structs

from fairlead.model.devices.gpu import CardMode, GpuReading, GpuSlot, Grant
from fairlead.model.inspection import (
    ContainerPart,
    DrainingCards,
    InspectedCard,
    InspectedNode,
    InspectedPod,
)
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU, counted
from fairlead.rules.holding.account import (
    DRAINING,
    UNHEALTHY,
    CardAccount,
    ClosedReason,
    NodeAccount,
    Tenant,
)
from fairlead.rules.holding.units import grant_mib
from fairlead.rules.nodes.status import node_ip, share_mode
from fairlead.rules.sharing.isolation import isolation_of
from fairlead.rules.sharing.ledger import Ledger

_REASONS: Final[Mapping[ClosedReason | None, str]] = {
    UNHEALTHY: "taken out of use",
    DRAINING: "draining",
}
Readings = Mapping[tuple[str, int], GpuReading]
"""Readings of exporters, by node and GPU index."""


def inspect_shares(
    ledger: Ledger, names: Collection[str] = (), readings: Iterable[GpuReading] = ()
) -> list[InspectedNode]:
    """Nodes that share GPUs, by name; only those in `names`, if any are given.

    `unknown_node` names one that does not exist.
    """
    wanted = sorted(set(names) & ledger.nodes.keys() if names else ledger.nodes)
    read = {(reading.node, reading.index): reading for reading in readings}
    return [
        _inspected(ledger.nodes[name], node, read)
        for name in wanted
        if shares_gpus(node := ledger.node(name))
    ]


def draining_cards(
    ledger: Ledger, names: Collection[str] = (), pods: Iterable[Pod] = ()
) -> list[DrainingCards]:
    """Nodes with cards that wait for pods of the old mode to stop, by name.

    `pods`: the pods that are searched for those.
    """
    wanted = {
        name
        for name, account in ledger.nodes.items()
        if (not names or name in names) and _draining(ledger.node(name))
    }
    holders: dict[str, list[str]] = {name: [] for name in wanted}
    for pod in pods:
        if pod.is_holding and pod.node in wanted:
            old = NVIDIA_GPU if ledger.nodes[pod.node].mode.is_shared else GPU_MEMORY
            holders[pod.node] += [pod.key] * (counted(pod.limits, old) > 0)
    return [
        DrainingCards(
            name,
            _draining(ledger.node(name)),
            tuple(sorted(holders[name])),
            ledger.nodes[name].mode.is_shared,
        )
        for name in sorted(wanted)
    ]


def _draining(node: Node) -> tuple[int, ...]:
    return tuple(slot.index for slot in node.gpus if slot.mode == CardMode.DRAINING)


def shares_gpus(node: Node) -> bool:
    """Whether the node has shared memory to give, or will have it when its cards are drained.

    They are drained of exclusive use.

    An amount of 0 counts as absent.
    """
    return counted(node.capacity, GPU_MEMORY) > 0 or (
        share_mode(node.labels).is_shared and bool(_draining(node))
    )


def unknown_node(ledger: Ledger, names: Iterable[str]) -> str:
    """A sentence about the first of these names that no node has, "" if all nodes exist.

    >>> unknown_node(Ledger(), ["x"])
    'node "x" not found'
    """
    return next((f'node "{name}" not found' for name in names if name not in ledger.nodes), "")


def _inspected(account: NodeAccount, node: Node, readings: Readings) -> InspectedNode:
    slots = {slot.index: slot for slot in node.gpus}
    tenants = sorted(
        account.tenants.values(), key=lambda tenant: (tenant.pod.namespace, tenant.pod.name)
    )
    cards = tuple(
        _card(
            account,
            card,
            slots.get(card.index, GpuSlot(card.index)),
            tenants,
            readings.get((node.name, card.index)),
        )
        for card in account.cards
    )
    pending = tuple(pod for tenant in tenants if (pod := _pending_pod(account, tenant)) is not None)
    return InspectedNode(
        name=node.name,
        address=node_ip(node),
        unit=account.unit,
        mode=CardMode.DRAINING
        if not account.mode.is_shared or _is_all_draining(node)
        else CardMode.SHARED,
        isolation=isolation_of(node),
        total=sum(card.total for card in cards)
        if node.gpus
        else max(counted(node.capacity, GPU_MEMORY), 0),
        used=sum(card.used for card in cards) + sum(pod.used for pod in pending),
        overcommitted=account.overcommitted,
        cards=cards,
        pending=pending,
    )


def _is_all_draining(node: Node) -> bool:
    return bool(node.gpus) and len(_draining(node)) == len(node.gpus)


def _card(
    account: NodeAccount,
    card: CardAccount,
    slot: GpuSlot,
    tenants: Iterable[Tenant],
    reading: GpuReading | None,
) -> InspectedCard:
    is_whole = (
        card.trouble == DRAINING
        and not card.used
        and not (account.mode.is_shared and card.gpu.is_draining)
    )
    reason = slot.reason or _REASONS.get(card.trouble, "")
    return InspectedCard(
        index=card.index,
        uuid=slot.uuid,
        model=slot.model,
        total=0 if is_whole else card.units,
        used=card.used,
        memory_mib=card.memory_mib,
        is_healthy=card.trouble != UNHEALTHY,
        reason=reason,
        core_total=card.core_total,
        core_used=card.core_used,
        pods=tuple(
            pod
            for tenant in tenants
            if (pod := _pod_on(account, card, tenant, reading)) is not None
        ),
    )


def _pod_on(
    account: NodeAccount, card: CardAccount, tenant: Tenant, reading: GpuReading | None
) -> InspectedPod | None:
    """What the tenant holds of this card; None if nothing."""
    parts = _parts(account, tenant, card)
    return _pod(tenant, parts, _used_mib(reading, tenant.pod)) if parts else None


def _pending_pod(account: NodeAccount, tenant: Tenant) -> InspectedPod | None:
    """The part of a tenant that is on no known card; None if all of it is on known cards."""
    if not tenant.booked:
        asked = counted(tenant.pod.limits, GPU_MEMORY)
        return structs.replace(_pod(tenant, {}, None), used=asked) if asked > 0 else None
    parts = _parts(account, tenant, None)
    return _pod(tenant, parts, None) if parts else None


def _parts(
    account: NodeAccount, tenant: Tenant, card: CardAccount | None
) -> dict[str, ContainerPart]:
    """What each container holds of the card; for None, of cards that the node does not have."""
    parts: dict[str, ContainerPart] = {}
    for container, grants in tenant.booked.items():
        for grant in grants:
            if (grant.units or grant.core_percent) and account.card_of(grant) is card:
                parts[container] = _plus(parts.get(container), grant, card)
    return parts


def _plus(part: ContainerPart | None, grant: Grant, card: CardAccount | None) -> ContainerPart:
    """A container has one grant per card; an annotation that names the card twice means the sum."""
    mib = grant.memory_mib
    if mib is None and card is not None and card.units:
        mib = grant_mib(card.memory_mib, grant.units, card.units)
    if part is None:
        return ContainerPart(grant.units, mib, grant.core_percent)
    both = None if mib is None or part.mib is None else part.mib + mib
    return ContainerPart(part.units + grant.units, both, part.core_percent + grant.core_percent)


def _pod(
    tenant: Tenant, parts: Mapping[str, ContainerPart], used_mib: float | None
) -> InspectedPod:
    pod = tenant.pod
    return InspectedPod(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        used=sum(part.units for part in parts.values()),
        containers=parts,
        state=tenant.shown_state,
        is_terminating=pod.deleted_at is not None,
        used_mib=used_mib,
    )


def _used_mib(reading: GpuReading | None, pod: Pod) -> float | None:
    """What the pod's containers use of the card together, None if none of them was measured."""
    holders = reading.holders if reading else ()
    known = [
        holder.memory_used_mib
        for holder in holders
        if (holder.namespace, holder.pod) == (pod.namespace, pod.name)
        and holder.memory_used_mib is not None
    ]
    return sum(known) if known else None
