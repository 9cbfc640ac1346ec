"""Which shared card takes a pod that asks for a part of one? The scheduler's extender hook, and its plain default.

`Extender` has the shape of a real scheduler extender, so that the laptop can fill it with the product's own placement rules.
Until then `BestFit` stands in: the fullest card that still has room, one card per pod.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from fairlead.model.resources import GPU_MEMORY
from fairlead.sim.allocation import granted
from fairlead.sim.cluster import Cluster
from fairlead.sim.conditions import phase_of
from fairlead.sim.needs import limit_of
from fairlead.sim.resources import NODES, PODS
from fairlead.sim.watch_log import DELETED, WatchEvent
from fairlead.wire import names

Object = dict[str, Any]


class Extender(Protocol):
    """What the simulated scheduler asks about pods that want a part of a GPU."""

    def wants(self, pod: Object) -> bool:
        """Whether this pod is the extender's business at all."""
        ...

    def filter(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, str]:
        """The nodes that cannot take the pod, each with the reason to show."""
        ...

    def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        """A score of 0..10 per node; more is better."""
        ...

    def bind(self, pod: Object, node: str, now: float) -> Mapping[str, str] | None:
        """Choose GPUs and return the annotations that say so; None when the room is gone meanwhile."""
        ...


class BestFit:
    """Keeps its ledger from the pods' own annotations, so it needs no state beyond the cluster's."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._grants: dict[str, list[tuple[str, int]]] = {}
        self._used: dict[str, int] = {}
        cluster.subscribe(PODS, self._on_pod)

    def wants(self, pod: Object) -> bool:
        return _units_of(pod) > 0

    def filter(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, str]:
        need = _units_of(pod)
        largest = {node: max((free for _, free in self._free(node)), default=None) for node in nodes}
        return {node: _refusal(need, free) for node, free in largest.items() if free is None or free < need}

    def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        scores = {}
        for node in nodes:
            card, free = self._choose(pod, node) or ({"units": 1}, 1)
            is_untouched = free == card["units"]
            leftover = free - _units_of(pod)
            scores[node] = 0 if is_untouched else 1 + 9 * (card["units"] - leftover) // card["units"]
        return scores

    def bind(self, pod: Object, node: str, now: float) -> Mapping[str, str] | None:
        chosen = self._choose(pod, node)
        if chosen is None:
            return None
        card, _ = chosen
        return _annotations(pod, card, now)

    def _choose(self, pod: Object, node: str) -> tuple[Object, int] | None:
        """The card with the least free units that suffice, ties to the lowest index."""
        need = _units_of(pod)
        fitting = [(free, card["index"], card) for card, free in self._free(node) if free >= need]
        if not fitting:
            return None
        free, _, card = min(fitting, key=lambda item: item[:2])
        return card, free

    def _free(self, node_name: str) -> list[tuple[Object, int]]:
        node = self._cluster.get(NODES, None, node_name)
        text = (node["metadata"].get("annotations") or {}).get(names.ANNOTATION_GPUS, "[]") if node else "[]"
        cards = [card for card in _inventory(text) if card["mode"] == "shared" and card["health"] == "Healthy"]
        return [(card, max(0, card["units"] - self._used.get(card["uuid"], 0))) for card in cards]

    def _on_pod(self, event: WatchEvent) -> None:
        pod = event.object
        uid = pod["metadata"]["uid"]
        is_over = event.type == DELETED or phase_of(pod) in ("Succeeded", "Failed")
        if is_over:
            for uuid, units in self._grants.pop(uid, ()):
                self._used[uuid] -= units
        elif uid not in self._grants and pod["spec"].get("nodeName"):
            grants = [(grant["uuid"], int(grant["units"])) for cards in granted(pod).values() for grant in cards]
            if grants:
                self._grants[uid] = grants
            for uuid, units in grants:
                self._used[uuid] = self._used.get(uuid, 0) + units


def _units_of(pod: Object) -> int:
    return sum(limit_of(container, GPU_MEMORY) for container in pod["spec"]["containers"])


def _refusal(need: int, largest_free: int | None) -> str:
    if largest_free is None:
        return "node does not share GPUs (label cgpu=true missing)"
    return f"Insufficient {GPU_MEMORY} on one GPU: need {need} GiB, largest free {largest_free} GiB"


@lru_cache(maxsize=8192)
def _inventory(text: str) -> list[Object]:
    return list(json.loads(text))


def _annotations(pod: Object, card: Object, now: float) -> dict[str, str]:
    """The annotations of gpu-sharing 1.4, both ours and the reference's."""
    ours: dict[str, list[Object]] = {}
    reference: dict[str, dict[str, int]] = {}
    for index, container in enumerate(pod["spec"]["containers"]):
        units = limit_of(container, GPU_MEMORY)
        if units:
            mib = card["memoryMiB"] * units // card["units"]
            ours[container["name"]] = [{"uuid": card["uuid"], "index": card["index"], "units": units, "mib": mib, "core": 0}]
            reference[str(index)] = {str(card["index"]): units}
    nanoseconds = str(round(now * 1000) * 1_000_000)
    return {
        names.ANNOTATION_ALLOCATION: _compact(ours),
        names.ANNOTATION_REFERENCE_ALLOCATION: _compact(reference),
        names.ANNOTATION_GPU_INDEX: str(card["index"]),
        names.ANNOTATION_GPU_POD: str(_units_of(pod)),
        names.ANNOTATION_GPU_DEVICE: str(card["units"]),
        names.ANNOTATION_GPU_ASSIGNED: "false",
        names.ANNOTATION_REFERENCE_ASSIGNED: "false",
        names.ANNOTATION_GPU_ASSUME_TIME: nanoseconds,
        names.ANNOTATION_REFERENCE_ASSUME_TIME: nanoseconds,
    }


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
