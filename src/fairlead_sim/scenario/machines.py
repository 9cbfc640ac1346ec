"""A machine of a pool as a Node object, kept in step with its cards. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fairlead.model.devices.gpu import CardMode, Health
from fairlead.model.resources import GPU_CORE, GPU_COUNT, GPU_MEMORY, MIG_PREFIX, NVIDIA_GPU
from fairlead.wire import names
from fairlead.wire.kube.quantity import parse_quantity
from fairlead.wire.kube.time import render_micro_time, render_time
from fairlead_sim.gpus.card import Card
from fairlead_sim.objects.chance import uuid_of
from fairlead_sim.objects.conditions import conditions_of, status_of, with_condition
from fairlead_sim.scenario.scenario import NodePool, node_address

Object = dict[str, Any]

LEASE_NAMESPACE = "kube-node-lease"
_RESERVED_CPU_MILLIS = 100
_RESERVED_MEMORY = 1 << 30
_CONDITIONS = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_CORE_MEM = "core_mem"
_PROVIDERS = {"share": "none", "mps": "mps"}
"""What keeps sharers apart, by the value of `ack.node.gpu.schedule`; the guard for every other."""
SHARING_LABELS = (names.LABEL_GPU_SCHEDULE, names.LABEL_NO_ISOLATION)
"""Beside those that make a node share: how it does."""
_READY = ("True", "KubeletReady", "kubelet is posting ready status")
_SILENT = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


def render_node(
    pool: NodePool, name: str, number: int, cards: Sequence[Card], created_at: float, now: float
) -> Object:
    """The Node of the `number`-th machine of the cluster (from 1): its address and pod network
    follow from the number.
    """
    high, low = divmod(number, 250)
    spec: Object = {
        "podCIDR": f"10.{244 + high}.{low}.0/24",
        "podCIDRs": [f"10.{244 + high}.{low}.0/24"],
        "providerID": f"sim://{name}",
    }
    if pool.taints:
        spec["taints"] = [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in pool.taints
        ]
        spec["taints"] = [
            {key: value for key, value in taint.items() if value} for taint in spec["taints"]
        ]
    if pool.cordoned:
        spec["unschedulable"] = True
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": _labels(pool, name, cards),
            "creationTimestamp": render_time(created_at),
        },
        "spec": spec,
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": node_address(pool, name, number)},
                {"type": "Hostname", "address": name},
            ],
            "capacity": _capacity(pool),
            "allocatable": _allocatable(pool),
            "conditions": _conditions(pool, created_at, now),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _node_info(name, pool.kubelet_version),
        },
    }
    return with_cards(node, cards)


def with_cards(node: Object, cards: Sequence[Card]) -> Object:
    """The node with its cards' resources: a failed card counts in capacity, not in allocatable.

    A card that is still held by pods of the mode that the node had before offers nothing in the new
    mode, and in the old one no more.
    """
    if not cards:
        return node
    is_shared = cards[0].is_shared
    joined, draining = (
        [card for card in cards if not card.is_draining],
        [card for card in cards if card.is_draining],
    )
    healthy = [card for card in joined if card.is_healthy]
    before = _offer(draining, not is_shared, has_cores=False) if draining else {}
    has_cores = (node["metadata"].get("labels") or {}).get(names.LABEL_GPU_SCHEDULE) == _CORE_MEM
    annotations = {
        **(node["metadata"].get("annotations") or {}),
        names.ANNOTATION_GPUS: _inventory(cards),
    }
    if is_shared:
        annotations[names.ANNOTATION_GPU_UNIT] = "GiB"
    status = status_of(node)
    return {
        **node,
        "metadata": {
            **node["metadata"],
            "annotations": annotations,
            "labels": _with_isolation(node, is_sharing=is_shared or bool(draining)),
        },
        "status": {
            **status,
            "capacity": {
                **_without_cards(status.get("capacity")),
                **before,
                **_offer(joined, is_shared, has_cores),
            },
            "allocatable": {
                **_without_cards(status.get("allocatable")),
                **dict.fromkeys(before, "0"),
                **_offer(healthy, is_shared, has_cores),
            },
        },
    }


def _with_isolation(node: Object, *, is_sharing: bool) -> dict[str, str]:
    """The node agent's label for the isolation provider, while the node shares: here the guard,
    unless labels ask for something else.

    Other labels stay as they are.
    """
    labels = node["metadata"].get("labels") or {}
    if not is_sharing:
        return {name: value for name, value in labels.items() if name != names.LABEL_ISOLATION}
    if labels.get(names.LABEL_ISOLATION, "guard") not in ("guard", *_PROVIDERS.values()):
        return labels
    asked = _PROVIDERS.get(labels.get(names.LABEL_GPU_SCHEDULE, ""), "guard")
    return {
        **labels,
        names.LABEL_ISOLATION: "none" if labels.get(names.LABEL_NO_ISOLATION) == "true" else asked,
    }


def with_heartbeat(node: Object, now: float) -> Object:
    time = render_time(now)
    conditions = [{**condition, "lastHeartbeatTime": time} for condition in conditions_of(node)]
    return {**node, "status": {**status_of(node), "conditions": conditions}}


def with_voice(node: Object, now: float, is_reporting: bool) -> Object:
    """The node when its kubelet fell silent (every condition unknown), or reports again."""
    time = render_time(now)
    states = {kind: ("False", reason, message) for kind, reason, message in _CONDITIONS} | {
        "Ready": _READY
    }
    conditions = conditions_of(node)
    for kind, state in states.items():
        conditions = with_condition(conditions, kind, *(state if is_reporting else _SILENT), time)
    beats = [
        {"lastHeartbeatTime": time, **condition} if is_reporting else condition
        for condition in conditions
    ]
    return {**node, "status": {**status_of(node), "conditions": beats}}


def render_lease(node: Object, now: float) -> Object:
    """The node's Lease, renewed at `now`."""
    metadata = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": metadata["name"],
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [owner],
        },
        "spec": {
            "holderIdentity": metadata["name"],
            "leaseDurationSeconds": 40,
            "renewTime": render_micro_time(now),
        },
    }


def _without_cards(amounts: dict[str, str] | None) -> dict[str, str]:
    """What is left when its cards are taken away, in whichever mode they were."""
    counted = (NVIDIA_GPU, GPU_COUNT, GPU_MEMORY, GPU_CORE)
    return {
        name: amount
        for name, amount in (amounts or {}).items()
        if name not in counted and not name.startswith(MIG_PREFIX)
    }


def _offer(cards: Sequence[Card], is_shared: bool, has_cores: bool) -> dict[str, str]:
    if not is_shared:
        instances = Counter(
            f"{MIG_PREFIX}{each.profile}" for card in cards for each in card.instances
        )
        whole = sum(not card.instances for card in cards)
        return {name: str(count) for name, count in instances.items()} | (
            {NVIDIA_GPU: str(whole)} if whole or not instances else {}
        )
    cores = {GPU_CORE: str(100 * len(cards))} if has_cores else {}
    return {
        GPU_COUNT: str(len(cards)),
        GPU_MEMORY: str(sum(card.model.units for card in cards)),
        **cores,
    }


def inventory_of(node: Object, *, is_wished_shared: bool = False) -> list[Object]:
    """The cards in a node's annotation; none if there is no annotation or it is malformed.

    `mode` is the node's: whether a card drains follows from its holders.
    """
    wish = CardMode.SHARED if is_wished_shared else CardMode.EXCLUSIVE
    try:
        detail = json.loads(
            (node["metadata"].get("annotations") or {}).get(names.ANNOTATION_GPUS) or "[]"
        )
        known = [
            entry
            for entry in detail
            if {"index", "minor", "uuid", "model", "memoryMiB", "health", "mode"} <= entry.keys()
        ]
        return [
            {**entry, "mode": wish} if entry["mode"] == CardMode.DRAINING else entry
            for entry in known
        ]
    except (ValueError, AttributeError, TypeError):
        return []


def has_draining_cards(node: Object) -> bool:
    """Whether the node has cards that wait for pods of its old mode to stop."""
    return f'"mode":"{CardMode.DRAINING}"' in (node["metadata"].get("annotations") or {}).get(
        names.ANNOTATION_GPUS, ""
    )


def _inventory(cards: Sequence[Card]) -> str:
    entries = [
        {
            "index": card.index,
            "minor": card.minor,
            "uuid": card.uuid,
            "model": card.model.name,
            "memoryMiB": card.model.memory_mib,
            "units": card.model.units,
            "health": Health.HEALTHY if card.is_healthy else Health.UNHEALTHY,
            "reason": f"XID {card.failed_by}" if card.failed_by > 0 else "",
            "mode": _card_mode(card),
        }
        for card in cards
    ]
    return json.dumps(entries, separators=(",", ":"))


def _card_mode(card: Card) -> CardMode:
    if card.is_draining:
        return CardMode.DRAINING
    if card.instances:
        return CardMode.MIG
    return CardMode.SHARED if card.is_shared else CardMode.EXCLUSIVE


def _labels(pool: NodePool, name: str, cards: Sequence[Card]) -> dict[str, str]:
    labels = {
        "kubernetes.io/arch": "amd64",
        names.LABEL_HOSTNAME: name,
        "kubernetes.io/os": "linux",
    }
    if pool.instance_type:
        labels[names.LABEL_INSTANCE_TYPE] = pool.instance_type
    if pool.zone:
        labels |= {
            names.LABEL_ZONE: pool.zone,
            "topology.kubernetes.io/region": pool.zone.rpartition("-")[0] or pool.zone,
        }
    if pool.role:
        labels[f"{names.LABEL_ROLE_PREFIX}{pool.role}"] = ""
    if cards:
        model = cards[0].model
        labels |= {
            names.LABEL_GPU_MODEL: model.name.replace(" ", "-"),
            names.LABEL_GPU_CARD_MEMORY: f"{model.memory_mib}MiB",
            names.LABEL_GPU_CARD_COUNT: str(len(cards)),
        }
        if pool.shared:
            labels[names.LABEL_SHARED] = "true"
    return {**labels, **pool.labels}


def _capacity(pool: NodePool) -> dict[str, str]:
    memory = parse_quantity(pool.memory) // 1024
    return {
        "cpu": str(pool.cpu),
        "ephemeral-storage": "515928484Ki",
        "memory": f"{memory}Ki",
        "pods": str(pool.pods),
    }


def _allocatable(pool: NodePool) -> dict[str, str]:
    memory = (parse_quantity(pool.memory) - _RESERVED_MEMORY) // 1024
    cpu = f"{pool.cpu * 1000 - _RESERVED_CPU_MILLIS}m"
    return {
        "cpu": cpu,
        "ephemeral-storage": "475479690Ki",
        "memory": f"{memory}Ki",
        "pods": str(pool.pods),
    }


def _conditions(pool: NodePool, created_at: float, now: float) -> list[Object]:
    beat, since = render_time(now), render_time(created_at + 20)
    conditions = [
        {
            "type": kind,
            "status": "False",
            "lastHeartbeatTime": beat,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        for kind, reason, message in _CONDITIONS
    ]
    state = _READY if pool.ready else _SILENT
    ready = {
        "lastHeartbeatTime": beat,
        "lastTransitionTime": since,
        "reason": state[1],
        "message": state[2],
    }
    return [*conditions, {"type": "Ready", "status": state[0], **ready}]


def _node_info(name: str, version: str) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "bootID": uuid_of(0, "boot", name),
        "containerRuntimeVersion": "containerd://2.2.9",
        "kernelVersion": "6.1.0-44-amd64",
        "kubeProxyVersion": "",
        "kubeletVersion": version,
        "machineID": uuid_of(0, "machine", name).replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "Debian GNU/Linux 12 (bookworm)",
        "systemUUID": uuid_of(0, "system", name),
    }
