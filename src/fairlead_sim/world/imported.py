"""A world that continues from a real cluster's snapshot: its objects, and every pod's cards.

A snapshot does not always contain the cards: what the scheduler granted or the exporters saw is
kept, the other pods get the lowest free cards. Nothing here judges: a pod that runs keeps running,
also on a node with fewer cards than its pods hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from fairlead.model.devices.gpu import CardMode, GpuMode, GpuReading, Grant, Health
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY, NVIDIA_GPU, Amounts
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.gpus.allocation import render_grants
from fairlead.wire.kube.time import parse_time
from fairlead_sim.gpus.cards import card_model, known_memory_mib
from fairlead_sim.objects.chance import uuid_of
from fairlead_sim.objects.resources import RESOURCES
from fairlead_sim.objects.saved import HeldCard, SavedWorld
from fairlead_sim.scenario.machines import inventory_of

Object = dict[str, Any]


def imported_world(objects: Iterable[Object], snapshot: ClusterSnapshot) -> SavedWorld:
    """The world at the moment of the snapshot.

    `objects` are what was saved beside it (`wire.kept_objects`).
    """
    known = [obj for raw in objects if (obj := _served(raw)) is not None]
    cards = {node.name: _Cards(node, snapshot) for node in snapshot.nodes}
    for node_cards in cards.values():
        node_cards.settle()
    ready = [
        _numbered(_prepared(obj, cards, snapshot), number)
        for number, obj in enumerate(known, start=1)
    ]
    now = max(
        [snapshot.taken_at, *(parse_time(moment) for obj in known for moment in _moments(obj))]
    )
    held = {uid: each for node_cards in cards.values() for uid, each in node_cards.held.items()}
    return SavedWorld(ready, now, now, now, len(ready) + 1, held=held, is_whole=False)


def _served(obj: Object) -> Object | None:
    """The object in the version that is stored here; None for a kind that is not."""
    group = "/".join(obj["apiVersion"].split("/")[:-1])
    ref = next((ref for ref in RESOURCES if (ref.group, ref.kind) == (group, obj["kind"])), None)
    return {**obj, "apiVersion": ref.api_version} if ref else None


def _moments(obj: Object) -> Iterator[str]:
    """Times that have passed when an object stands so: a simulated cluster may be ahead of the
    clock that dated its snapshot.
    """
    yield obj["metadata"]["creationTimestamp"]
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("lastTransitionTime"):
            yield condition["lastTransitionTime"]


def _numbered(obj: Object, number: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(number)}}


def _prepared(obj: Object, cards: Mapping[str, _Cards], snapshot: ClusterSnapshot) -> Object:
    metadata = obj["metadata"]
    if obj["kind"] == "Node" and metadata["name"] in cards:
        return cards[metadata["name"]].with_inventory(obj)
    if obj["kind"] != "Pod":
        return obj
    pod = snapshot.pod_by_key.get(f"{metadata['namespace']}/{metadata['name']}")
    if pod is not None and pod.node in cards and (text := cards[pod.node].grant_text(pod)):
        annotations = {**(metadata.get("annotations") or {}), names.ANNOTATION_ALLOCATION: text}
        return {**obj, "metadata": {**metadata, "annotations": annotations}}
    return obj


class _Cards:
    """The cards of one node and their holders. Call `settle` once before asking."""

    def __init__(self, node: Node, snapshot: ClusterSnapshot) -> None:
        self._node = node
        self._pods = [pod for pod in snapshot.pods_on(node.name) if pod.is_holding]
        self._readings = {reading.index: reading for reading in snapshot.gpus_on(node.name)}
        self._inventory = [dict(entry) for entry in _listed_cards(node)] or [
            self._entry(index) for index in range(_count(node))
        ]
        self.held: dict[str, list[HeldCard]] = {}

    def settle(self) -> None:
        seen = self._seen()
        for pod in self._pods:
            self.held[pod.uid] = [*self._granted(pod), *seen.get(pod.key, ())]
        self._mark_unhealthy()
        for pod in self._pods:
            self._fill(pod)

    def with_inventory(self, obj: Object) -> Object:
        """The Node with the annotation that lists its cards."""
        if not self._inventory or inventory_of(obj):
            return obj
        text = json.dumps(self._inventory, separators=(",", ":"))
        annotations = {**(obj["metadata"].get("annotations") or {}), names.ANNOTATION_GPUS: text}
        return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}

    def grant_text(self, pod: Pod) -> str:
        """Fairlead's annotation for a pod with shares from another annotation.

        "" if it has none.
        """
        shares = {
            container: given
            for container, given in pod.grants.items()
            if container and any(grant.units for grant in given)
        }
        if not shares or names.ANNOTATION_ALLOCATION in pod.annotations:
            return ""
        return render_grants(
            {container: tuple(map(self._in_full, given)) for container, given in shares.items()}
        )

    def _in_full(self, grant: Grant) -> Grant:
        if grant.index >= len(self._inventory):
            return grant
        entry = self._inventory[grant.index]
        mib = grant.memory_mib or entry["memoryMiB"] * grant.units // max(1, entry["units"])
        return replace(grant, uuid=grant.uuid or entry["uuid"], memory_mib=mib)

    # --- which cards there are --------------------------------------------------------------------

    def _entry(self, index: int) -> Object:
        node, reading = self._node, self._readings.get(index)
        model = (
            node.labels.get(names.LABEL_GPU_PRODUCT)
            or node.labels.get(names.LABEL_GPU_MODEL)
            or (reading.model if reading else "")
        )
        mib = node.card_memory_mib or _memory_of(node.capacity, reading) or known_memory_mib(model)
        card = card_model(model or "GPU", mib)
        return {
            "index": index,
            "minor": index,
            "uuid": reading.uuid if reading else f"GPU-{uuid_of(0, 'gpu', node.name, index)}",
            "model": card.name,
            "memoryMiB": mib,
            "units": card.units,
            "health": Health.UNHEALTHY
            if reading is not None and reading.healthy is False
            else Health.HEALTHY,
            "reason": "",
            "mode": CardMode.SHARED if node.capacity.get(GPU_MEMORY) else CardMode.EXCLUSIVE,
        }

    def _mark_unhealthy(self) -> None:
        """Mark as many cards as the node does not offer.

        If it is unknown which, the last ones without holders.
        """
        if _listed_cards(self._node):
            return
        key = GPU_COUNT if self._node.capacity.get(GPU_MEMORY) else NVIDIA_GPU
        missing = self._node.capacity.get(key, 0) - self._node.allocatable.get(key, 0)
        missing -= sum(entry["health"] != Health.HEALTHY for entry in self._inventory)
        taken = {card.index for cards in self.held.values() for card in cards}
        spare = [entry for entry in reversed(self._inventory) if entry["health"] == Health.HEALTHY]
        for entry in sorted(spare, key=lambda entry: entry["index"] in taken)[: max(0, missing)]:
            entry["health"] = Health.UNHEALTHY

    # --- holders ----------------------------------------------------------------------------------

    def _granted(self, pod: Pod) -> Iterator[HeldCard]:
        first = pod.containers[0].name if pod.containers else ""
        by_uuid = {entry["uuid"]: entry["index"] for entry in self._inventory}
        for container, given in pod.grants.items():
            for grant in given:
                index = by_uuid.get(grant.uuid, grant.index)
                if index < len(self._inventory):
                    mode = GpuMode.SHARE if grant.units else GpuMode.EXCLUSIVE
                    yield HeldCard(
                        container or first,
                        index,
                        mode,
                        self._in_full(replace(grant, index=index)).memory_mib or 0,
                    )

    def _seen(self) -> dict[str, list[HeldCard]]:
        """Whole cards by pod, as the node's exporter saw them."""
        found: dict[str, list[HeldCard]] = {}
        for index, reading in sorted(self._readings.items()):
            for holder in reading.holders:
                if holder.mode == GpuMode.EXCLUSIVE and index < len(self._inventory):
                    found.setdefault(f"{holder.namespace}/{holder.pod}", []).append(
                        HeldCard(holder.container, index)
                    )
        return found

    def _fill(self, pod: Pod) -> None:
        """Give the lowest free cards, healthy first, to a pod with whole cards that are unknown."""
        mine = self.held[pod.uid]
        for container in pod.containers:
            has = sum(card.container == container.name for card in mine)
            taken = {card.index for cards in self.held.values() for card in cards}
            free = [
                entry
                for entry in self._inventory
                if entry["index"] not in taken and entry["mode"] != CardMode.SHARED
            ]
            free.sort(key=lambda entry: entry["health"] != Health.HEALTHY)
            mine += [
                HeldCard(container.name, entry["index"])
                for entry in free[: max(0, container.limits.get(NVIDIA_GPU, 0) - has)]
            ]


def _listed_cards(node: Node) -> Sequence[Object]:
    return inventory_of({"metadata": {"annotations": node.annotations}})


def _count(node: Node) -> int:
    if node.capacity.get(GPU_MEMORY):
        return node.capacity.get(GPU_COUNT, 0) or 1
    return node.capacity.get(NVIDIA_GPU, 0)


def _memory_of(capacity: Amounts, reading: GpuReading | None) -> int:
    """MiB of one card: the GiB that the node offers, or the exporter's value; 0 if unknown."""
    if capacity.get(GPU_MEMORY):
        return 1024 * (capacity[GPU_MEMORY] // max(1, capacity.get(GPU_COUNT, 1)))
    return int(reading.memory_total_mib or 0) if reading else 0
