"""What exporters report of the mixed company's cards: pages in two families, with numbers that are
chosen here.

The exporters decide which pod has which card: here the pods of a node, sorted by name, get its
healthy cards in order; pods that share a card follow the annotation. Two nodes have no exporter.
One card of `a100-2` does not report its utilization.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.kube.numbers.tied_pods import CORDONED, FAULTY, MIG_LARGE, MIG_SMALL, SILENT
from tests.kube.objects import GPU, Object

MIB = 1 << 20
PAST_SECONDS, PAST_STEP = 3 * 3600, 120
"""How long the cards have been as they are now in Prometheus's past, and the step between two
samples, in seconds.
"""
KEPT = (
    "fairlead_gpu_utilization_ratio",
    "fairlead_gpu_memory_used_bytes",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
)
LARGE, SMALL = MIG_LARGE.removeprefix("nvidia.com/mig-"), MIG_SMALL.removeprefix("nvidia.com/mig-")


class Instance(NamedTuple):
    """One MIG instance of a card. `busy`: 0..1."""

    id: int
    profile: str
    total: int
    used: int
    busy: float


class ReportedCard(NamedTuple):
    """One card. Memory in MiB; `busy` 0..1, None = not reported. `units`: of a shared card."""

    node: str
    index: int
    total: int
    used: int
    busy: float | None
    model: str = "NVIDIA A100-SXM4-80GB"
    is_healthy: bool = True
    family: str = "own"
    units: int = 0
    instances: tuple[Instance, ...] = ()

    @property
    def uuid(self) -> str:
        return f"GPU-{self.node}-{self.index}"


class Seat(NamedTuple):
    """A pod on a card, in MiB and 0..1, as the exporter reports it; DCGM reports only the pod.
    `instance`: its MIG instance.
    """

    space: str
    pod: str
    mode: str
    limit: float
    used: float
    busy: float | None
    instance: int = 0
    units: int = 0


def _whole(
    node: str, *cards: tuple[int, float | None], broken: int = -1, family: str = "own"
) -> Iterator[ReportedCard]:
    for index, (used, busy) in enumerate(cards):
        yield ReportedCard(
            node, index, 81_920, used, busy, is_healthy=index != broken, family=family
        )


DIVIDED = (
    Instance(1, LARGE, 71_000, 9_000, 0.5),
    *(Instance(6 + n, SMALL, 17_800, 30 * n, 0.1 if n == 1 else 0) for n in (1, 2, 3)),
)
CARDS = (
    *_whole("a100-1", (40_100, 0.62), (30_100, 0), (2_100, 0), (5, 0)),
    *_whole("a100-2", (10_000, 0.35), (20_000, 0.5), (21_000, 0), (3_000, None), family="dcgm"),
    *_whole(CORDONED, (50_000, 0.9), (60_000, 0.8), (5, 0), (5, 0)),
    *_whole(FAULTY, (1_100, 0), (5, 0), (0, None), (5, 0), broken=2),
    *_whole(SILENT, (7_000, 0), (8_000, 0.25), (5, 0), (5, 0)),
    ReportedCard("share-1", 0, 16_130, 6_300, 0.4, "Tesla T4", units=15),
    ReportedCard("share-1", 1, 16_130, 900, 0, "Tesla T4", units=15),
    ReportedCard("mig-1", 0, 0, 0, None, "NVIDIA H200", instances=DIVIDED),
    ReportedCard("sliced-1", 0, 23_028, 2_000, 0.2, "NVIDIA A10"),
)


def limits_of(pod: Object) -> dict[str, int]:
    """GPUs of any kind that the pod requests."""
    found: dict[str, int] = defaultdict(int)
    for container in pod["spec"]["containers"]:
        for name, amount in container.get("resources", {}).get("limits", {}).items():
            if "gpu" in name or "mig-" in name:
                found[name] += int(amount)
    return dict(found)


def key(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def is_holding(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] not in (
        "Succeeded",
        "Failed",
    )


def shares_of(pod: Object) -> dict[int, int]:
    """Units by the index of the card, of a pod of one container."""
    reported = json.loads(
        pod["metadata"].get("annotations", {}).get("scheduler.framework.gpushare.allocation", "{}")
    )
    return {int(index): units for index, units in reported.get("0", {}).items()}


def seats_of(pods: Iterable[Object]) -> dict[tuple[str, int], list[Seat]]:
    """The pods on each card of the nodes that have an exporter."""
    found: dict[tuple[str, int], list[Seat]] = defaultdict(list)
    by_node: dict[str, list[Object]] = defaultdict(list)
    for pod in sorted(filter(is_holding, pods), key=key):
        by_node[pod["spec"]["nodeName"]].append(pod)
    for node, here in by_node.items():
        cards = [card for card in CARDS if card.node == node]
        free = [card for card in cards if card.is_healthy and not card.instances and not card.units]
        parts = [(card, each) for card in cards for each in card.instances]
        for pod in here:
            who, limits = (pod["metadata"]["namespace"], pod["metadata"]["name"]), limits_of(pod)
            for card in cards:
                if units := shares_of(pod).get(card.index, 0):
                    own = 0.3 if card.busy else 0.0
                    found[card.node, card.index].append(
                        Seat(*who, "share", card.total * units // 15, 200 * units, own, units=units)
                    )
            for _ in range(limits.get(GPU, 0) if free else 0):
                if node == "sliced-1":
                    found[node, 0].append(Seat(*who, "timeslice", free[0].total, 500, 0.1))
                else:
                    card = free.pop(0)
                    found[node, card.index].append(
                        Seat(*who, "exclusive", card.total, max(0, card.used - 100), card.busy)
                    )
            for name in (MIG_LARGE, MIG_SMALL):
                for _ in range(limits.get(name, 0)):
                    place = next(
                        n
                        for n, (_, each) in enumerate(parts)
                        if f"nvidia.com/mig-{each.profile}" == name
                    )
                    card, each = parts.pop(place)
                    found[node, card.index].append(
                        Seat(*who, "mig", each.total, each.used, each.busy, each.id)
                    )
    return found


def _labels(**labels: object) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def own_page(seats: Mapping[tuple[str, int], list[Seat]]) -> str:
    """The page as Fairlead's exporter prints it."""
    lines: list[str] = []
    for card in CARDS:
        if card.family == "own":
            device = _labels(node_name=card.node, gpu=card.index, uuid=card.uuid, model=card.model)
            lines += [
                f"fairlead_gpu_up{{{device}}} 1",
                f"fairlead_gpu_healthy{{{device}}} {int(card.is_healthy)}",
            ]
            lines += _own_device(card, device)
            for seat in seats.get((card.node, card.index), ()):
                lines += _own_container(card, device, seat)
    return "\n".join(lines) + "\n"


def _own_device(card: ReportedCard, device: str) -> Iterator[str]:
    parts = [(device, card.total, card.used, card.busy)]
    if card.instances:
        parts = [
            (f"{device},{_of_instance(each)}", each.total, each.used, each.busy)
            for each in card.instances
        ]
        yield (
            f"fairlead_gpu_memory_grantable_bytes{{{device}}} "
            f"{sum(each.total for each in card.instances) * MIB}"
        )
    else:
        yield f"fairlead_gpu_memory_grantable_bytes{{{device}}} {card.total * MIB}"
    for labels, total, used, busy in parts:
        yield f"fairlead_gpu_memory_total_bytes{{{labels}}} {total * MIB}"
        yield f"fairlead_gpu_memory_used_bytes{{{labels}}} {used * MIB}"
        if busy is not None:
            yield f"fairlead_gpu_utilization_ratio{{{labels}}} {busy}"


def _of_instance(each: Instance) -> str:
    return _labels(mig_gi_id=each.id, mig_profile=each.profile)


def _own_container(card: ReportedCard, device: str, seat: Seat) -> Iterator[str]:
    who = _labels(
        namespace_name=seat.space,
        pod_name=seat.pod,
        container_name="main",
        pod_uid="u",
        allocate_mode=seat.mode,
    )
    instance = "".join(
        f",{_of_instance(each)}" for each in card.instances if each.id == seat.instance
    )
    labels = f"{device}{instance},{who}"
    yield f"fairlead_container_gpu_memory_limit_bytes{{{labels}}} {int(seat.limit * MIB)}"
    yield f"fairlead_container_gpu_memory_used_bytes{{{labels}}} {int(seat.used * MIB)}"
    if seat.busy is not None:
        yield f"fairlead_container_gpu_utilization_ratio{{{labels}}} {seat.busy}"


def dcgm_page(seats: Mapping[tuple[str, int], list[Seat]]) -> str:
    """The page as dcgm-exporter prints it: percent and MiB, no total, and the pod on the cards that
    it holds.
    """
    lines: list[str] = []
    for card in CARDS:
        if card.family == "dcgm":
            labels = _labels(
                gpu=card.index,
                UUID=card.uuid,
                device=f"nvidia{card.index}",
                modelName=card.model,
                Hostname=card.node,
            )
            for seat in seats.get((card.node, card.index), ()):
                labels += "," + _labels(container="main", namespace=seat.space, pod=seat.pod)
            values = {
                "FB_USED": card.used,
                "FB_FREE": card.total - card.used - 600,
                "FB_RESERVED": 600,
            }
            if card.busy is not None:
                values["GPU_UTIL"] = round(card.busy * 100)
            lines += [f"DCGM_FI_DEV_{name}{{{labels}}} {value}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def past_of(page: str, target: str, now: float) -> str:
    """The same page over the hours before now, as Prometheus stores it: OpenMetrics without its end
    marker.
    """
    lines = []
    for line in page.splitlines():
        if line.startswith(KEPT):
            series, _, value = line.rpartition(" ")
            name, _, labels = series.partition("{")
            times = range(int(now) - PAST_SECONDS, int(now) - 30, PAST_STEP)
            lines += [f"{name}{{{target},{labels} {value} {at}" for at in times]
    return "\n".join(lines) + "\n"
