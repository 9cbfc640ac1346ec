"""GPU readings out of a Prometheus answer: `nvidia_gpu_*` and `DCGM_*` samples, folded to one reading per card (arena contract §5).

What a newcomer gets wrong: both families may describe the same card at once, pods have the same name in two namespaces, and a scraped
label `pod` may be the exporter's own pod while the card's is `exported_pod`. Cards are keyed by UUID, holders by (namespace, pod).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.gpu import GpuHolder, GpuReading

DUTY, USED, TOTAL, FREE, RESERVED, PROCESS = "duty", "used", "total", "free", "reserved", "process"
_MIB: Final = 1 << 20
_METRICS: Final = {
    "nvidia_gpu_duty_cycle": (DUTY, 1.0),
    "nvidia_gpu_memory_used_bytes": (USED, 1.0 / _MIB),
    "nvidia_gpu_memory_total_bytes": (TOTAL, 1.0 / _MIB),
    "DCGM_FI_DEV_GPU_UTIL": (DUTY, 1.0),
    "DCGM_FI_DEV_FB_USED": (USED, 1.0),
    "DCGM_FI_DEV_FB_TOTAL": (TOTAL, 1.0),
    "DCGM_FI_DEV_FB_FREE": (FREE, 1.0),
    "DCGM_FI_DEV_FB_RESERVED": (RESERVED, 1.0),
    "DCGM_CUSTOM_PROCESS_MEM_USED": (PROCESS, 1.0),
}
"""Metric name -> what it tells, and the factor to percent or MiB."""
GPU_QUERY: Final = '{__name__=~"' + "|".join(_METRICS) + '"}'
"""One instant query for everything."""
_SHARE: Final = "share"


class _Value(Struct, frozen=True, gc=False):
    """`is_device`: of the card as a whole, not of one sharer on it."""

    at: float
    is_dcgm: bool
    is_device: bool
    holder: tuple[str, str, str]
    value: float


class _Card:
    def __init__(self, node: str, index: int, uuid: str) -> None:
        self.node = node
        self.index = index
        self.uuid = uuid
        self.model = ""
        self.values: dict[str, list[_Value]] = {}


def readings_of(samples: Iterable[tuple[Mapping[str, str], float, float]]) -> tuple[GpuReading, ...]:
    """Readings by node and index, from (labels with `__name__`, epoch seconds, value). Samples that name no card are left out."""
    cards: dict[str, _Card] = {}
    for labels, at, value in samples:
        told = _METRICS.get(labels.get("__name__", ""))
        if told is None or value != value:
            continue
        card = _card_of(labels, cards)
        if card is not None:
            _add(card, told[0], labels, at, value * told[1])
    readings = [_reading(card) for card in cards.values()]
    return tuple(sorted(readings, key=lambda reading: (reading.node, reading.index)))


def _card_of(labels: Mapping[str, str], cards: dict[str, _Card]) -> _Card | None:
    node = _first(labels, "node_name", "NodeName", "Hostname", "hostname")
    uuid = _first(labels, "uuid", "UUID")
    index = _first(labels, "minor_number", "gpu")
    if not node or not index.isascii() or not index.isdigit():
        return None
    key = uuid or f"{node}/{index}"
    card = cards.get(key)
    if card is None:
        card = cards[key] = _Card(node, int(index), uuid)
    card.model = card.model or _first(labels, "modelName", "name")
    return card


def _add(card: _Card, kind: str, labels: Mapping[str, str], at: float, value: float) -> None:
    is_dcgm = labels["__name__"].startswith("DCGM")
    is_device = kind != PROCESS and labels.get("allocate_mode", "") != _SHARE
    card.values.setdefault(kind, []).append(_Value(at, is_dcgm, is_device, _holder_of(labels), value))


def _holder_of(labels: Mapping[str, str]) -> tuple[str, str, str]:
    """(namespace, pod, container) of the pod on the card; empty texts when none is named."""
    if "namespace_name" in labels or "pod_name" in labels:
        return labels.get("namespace_name", ""), labels.get("pod_name", ""), labels.get("container_name", "")
    if "PodName" in labels:
        return labels.get("NamespaceName", ""), labels["PodName"], labels.get("ContainerName", "")
    prefix = "exported_" if "exported_pod" in labels else ""
    return labels.get(f"{prefix}namespace", ""), labels.get(f"{prefix}pod", ""), labels.get(f"{prefix}container", "")


def _reading(card: _Card) -> GpuReading:
    duty, used, total = _device(card, DUTY), _device(card, USED), _device(card, TOTAL)
    if duty is None:
        duty = max((value.value for value in card.values.get(DUTY, ())), default=None)
    if used is None:
        used = _sum_over_pods([*card.values.get(USED, ()), *card.values.get(PROCESS, ())])
    if total is None:
        parts = [_device(card, kind) for kind in (USED, FREE, RESERVED)]
        total = sum(part or 0.0 for part in parts) if parts[0] is not None and parts[1] is not None else None
    return GpuReading(
        node=card.node,
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        memory_total_mib=total,
        memory_used_mib=used,
        utilization_ratio=None if duty is None else duty / 100,
        read_at=max((value.at for values in card.values.values() for value in values), default=0.0),
        holders=_holders(card),
    )


def _device(card: _Card, kind: str) -> float | None:
    """The newest device value; DCGM's on a tie; the larger of two that agree in both."""
    found = [value for value in card.values.get(kind, ()) if value.is_device]
    return max(found, key=lambda value: (value.at, value.is_dcgm, value.value)).value if found else None


def _sum_over_pods(values: Iterable[_Value]) -> float | None:
    by_pod: dict[tuple[str, str], float] = {}
    for value in values:
        pod = value.holder[:2]
        by_pod[pod] = max(by_pod.get(pod, 0.0), value.value)
    return sum(by_pod.values()) if by_pod else None


def _holders(card: _Card) -> tuple[GpuHolder, ...]:
    used: dict[tuple[str, str, str], float | None] = {}
    shares: set[tuple[str, str, str]] = set()
    for kind, values in card.values.items():
        for value in values:
            if not value.holder[1]:
                continue
            if not value.is_device:
                shares.add(value.holder)
            known = used.get(value.holder)
            used[value.holder] = max(known or 0.0, value.value) if kind in (USED, PROCESS) else known
    return tuple(
        GpuHolder(namespace, pod, container, _SHARE if (namespace, pod, container) in shares else "exclusive", memory_used_mib=amount)
        for (namespace, pod, container), amount in sorted(used.items())
    )


def _first(labels: Mapping[str, str], *names: str) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
