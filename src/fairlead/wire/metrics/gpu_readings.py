"""Makes `GpuReading`s from the samples of exporters' pages, or of Prometheus.

A card is identified by its uuid. Fairlead's own families have priority: for a card that has them,
the others are ignored. The others are DCGM's families and the legacy `nvidia_gpu_*`; DCGM's come
before the legacy ones, because all answers of one query have one time. Values that no card can have
(`plausible_values`) are left out and counted. A card divided by MIG has no memory or utilization of
its own; dcgm-exporter repeats its other values for each instance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from fairlead.model.devices.exporter_pod import EXPORTER_CONTAINERS
from fairlead.model.devices.gpu import (
    BUSY_FROM,
    GpuHolder,
    GpuInstance,
    GpuMode,
    GpuReading,
    instances_utilization,
)
from fairlead.model.devices.plausible_values import BLANK_TEXT, BadLine, bad_value
from fairlead.model.metric import Sample
from fairlead.wire.metrics.dcgm_names import NAMES
from fairlead.wire.metrics.one_reading import PageCards

MIB: Final = 1 << 20

_NATIVE: Final = "fairlead_gpu_"
_CONTAINER: Final = "fairlead_container_gpu_"
_DCGM: Final = "DCGM_FI_DEV_"
_LEGACY: Final = "nvidia_gpu_"
_DCGM_BUSY: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_SHARE: Final = GpuMode.SHARE
_EXCLUSIVE: Final = GpuMode.EXCLUSIVE
_MIG: Final = GpuMode.MIG

NATIVE_METRICS: Final = (
    f"{_NATIVE}up",
    f"{_NATIVE}info",
    f"{_NATIVE}healthy",
    f"{_NATIVE}utilization_ratio",
    f"{_NATIVE}memory_total_bytes",
    f"{_NATIVE}memory_used_bytes",
    f"{_NATIVE}temperature_celsius",
    f"{_NATIVE}power_watts",
    f"{_NATIVE}xid_last_timestamp_seconds",
    f"{_CONTAINER}memory_used_bytes",
    f"{_CONTAINER}memory_limit_bytes",
    f"{_CONTAINER}utilization_ratio",
)
OTHER_METRICS: Final = (
    f"{_DCGM}GPU_UTIL",
    f"{_DCGM}FB_USED",
    f"{_DCGM}FB_FREE",
    f"{_DCGM}FB_RESERVED",
    f"{_DCGM}FB_TOTAL",
    f"{_DCGM}GPU_TEMP",
    f"{_DCGM}POWER_USAGE",
    f"{_DCGM}XID_ERRORS",
    _DCGM_BUSY,
    f"{_LEGACY}duty_cycle",
    f"{_LEGACY}memory_used_bytes",
    f"{_LEGACY}memory_total_bytes",
    f"{_LEGACY}power_usage_milliwatts",
    f"{_LEGACY}temperature_celsius",
)
PROCESS_MEMORY: Final = "DCGM_CUSTOM_PROCESS_MEM_USED"
RENAMED: Final = {
    each.name: each.older
    for each in NAMES
    if each.older in OTHER_METRICS and each.name != each.older
}
"""The older name of each metric that DCGM 4.6 renamed."""
_DRIVER_ROWS: Final = ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION")
METRICS: Final = (*NATIVE_METRICS, *OTHER_METRICS, *RENAMED, PROCESS_MEMORY)
"""All metrics that are read; other lines of a page are not parsed, and queries ask for these only.
"""


_HolderKey = tuple[str, str, str]
"""Namespace, pod and container of a holder."""


@dataclass(slots=True)
class _Part:
    """One MIG instance while its samples are collected."""

    profile: str = ""
    values: dict[str, float] = field(default_factory=dict)
    holders: dict[_HolderKey, dict[str, float]] = field(default_factory=dict)
    modes: dict[_HolderKey, GpuMode] = field(default_factory=dict)


@dataclass(slots=True)
class _Card:
    """One card while its samples are collected.

    `parts`: MIG instances by id; `processes`: memory by pid.
    """

    node: str = ""
    index: int = -1
    model: str = ""
    driver: str = ""
    values: dict[str, float] = field(default_factory=dict)
    parts: dict[int, _Part] = field(default_factory=dict)
    xids: dict[int, float] = field(default_factory=dict)
    holders: dict[_HolderKey, dict[str, float]] = field(default_factory=dict)
    modes: dict[_HolderKey, GpuMode] = field(default_factory=dict)
    processes: dict[_HolderKey, dict[str, float]] = field(default_factory=dict)

    def part(self, labels: Mapping[str, str], number: str, profile: str) -> _Part | None:
        """The MIG instance that the labels with these names identify; None if they are absent."""
        if not (text := labels.get(number, "")) or (index := _index(text, -1)) < 0:
            return None
        part = self.parts.setdefault(index, _Part())
        part.profile = labels.get(profile, "") or part.profile
        return part


class CardsOfPage:
    """The cards of one page while its samples are collected.

    `node`: the node of cards whose samples have none (--no-hostname). `bad`: the number of ignored
    lines by reason.
    """

    def __init__(self, node: str = "") -> None:
        self.bad: Counter[BadLine] = Counter()
        self._node = node
        self._native: dict[str, _Card] = {}
        self._other: dict[str, _Card] = {}

    def __len__(self) -> int:
        """The number of cards; a card counts twice if two families have it."""
        return len(self._native) + len(self._other)

    def note(self, samples: Iterable[Sample], bad_lines: int = 0) -> None:
        """Adds samples, in any order. `bad_lines`: the number of unreadable lines among them."""
        if bad_lines:
            self.bad[BadLine.UNREADABLE] += bad_lines
        for sample in samples:
            if sample.name in RENAMED:
                sample = msgspec.structs.replace(sample, name=RENAMED[sample.name])
            if bad := bad_value(sample.name, sample.value) or self._note(sample):
                self.bad[bad] += 1

    def _note(self, sample: Sample) -> BadLine | None:
        uuid = sample.labels.get("uuid") or sample.labels.get("UUID")
        if not uuid and "uuid" in sample.labels and sample.name.startswith(_NATIVE):
            # a card that its exporter could not name; the sample is valid but has no uuid
            return None
        if not uuid or uuid == BLANK_TEXT:
            return BadLine.NO_UUID
        if sample.name.startswith((_NATIVE, _CONTAINER)):
            return _note_native(self._native.setdefault(uuid, _Card()), sample)
        return _note_other(self._other, uuid, sample, self._node)

    def readings(self, read_at: float) -> tuple[GpuReading, ...]:
        """One reading per card, by (node, index)."""
        cards = self._other | self._native
        for card in cards.values():
            for holder_key, used in card.processes.items():
                card.holders.setdefault(holder_key, {}).setdefault(
                    "memory_used_bytes", sum(used.values())
                )
        found = [_reading(uuid, card, read_at) for uuid, card in cards.items()]
        sound = (
            reading if is_within_total(reading) else self._without_used(reading)
            for reading in found
        )
        return tuple(sorted(sound, key=lambda each: (each.node, each.index, each.uuid)))

    def page_cards(self, page: str, read_at: float) -> PageCards:
        """The readings of this page, to be merged with those of others (`one_reading`)."""
        return PageCards(page, self.readings(read_at), frozenset(self._native))

    def _without_used(self, reading: GpuReading) -> GpuReading:
        self.bad[BadLine.OVER_TOTAL] += 1
        return msgspec.structs.replace(reading, memory_used_mib=None)


def is_within_total(reading: GpuReading) -> bool:
    """Whether used memory is at most the total, with a mebibyte of tolerance for rounding."""
    used, total = reading.memory_used_mib, reading.memory_total_mib
    return used is None or total is None or used <= total + 1


def parse_readings(
    samples: Iterable[Sample], read_at: float, node: str = ""
) -> tuple[GpuReading, ...]:
    """The readings of a whole page; see `CardsOfPage`."""
    cards = CardsOfPage(node)
    cards.note(samples)
    return cards.readings(read_at)


def with_idle_since(
    readings: Sequence[GpuReading], before: Mapping[str, GpuReading]
) -> tuple[GpuReading, ...]:
    """The readings with `idle_since`, kept from the last reading while the card stays idle.

    `before`: the last readings by uuid.
    """
    return tuple(_with_idle_since(reading, before.get(reading.uuid)) for reading in readings)


def _with_idle_since(reading: GpuReading, before: GpuReading | None) -> GpuReading:
    if reading.utilization_ratio is None or reading.utilization_ratio >= BUSY_FROM:
        return reading
    since = (
        before.idle_since
        if before is not None and before.idle_since is not None
        else reading.read_at
    )
    return msgspec.structs.replace(reading, idle_since=since)


def _note_native(card: _Card, sample: Sample) -> BadLine | None:
    labels = sample.labels
    node, index = labels.get("node_name", card.node), _index(labels.get("gpu", ""), card.index)
    if card.index >= 0 and (node, index) != (card.node, card.index):
        return BadLine.OTHER_CARD
    card.node, card.index = node, index
    card.model = labels.get("model", card.model)
    if sample.name.startswith(_CONTAINER):
        _note_holder(card, labels, sample.name.removeprefix(_CONTAINER), sample.value)
        return None
    name = sample.name.removeprefix(_NATIVE)
    if name == "info":
        card.driver = labels.get("driver_version", "")
    elif name == "xid_last_timestamp_seconds":
        card.xids[_index(labels.get("xid", ""), 0)] = sample.value
    elif part := card.part(labels, "mig_gi_id", "mig_profile"):
        part.values[name] = sample.value
    elif name != "temperature_celsius" or labels.get("sensor") == "gpu":
        card.values[name] = sample.value
    return None


def _note_holder(card: _Card, labels: Mapping[str, str], name: str, value: float) -> None:
    holder_key = (
        labels.get("namespace_name", ""),
        labels.get("pod_name", ""),
        labels.get("container_name", ""),
    )
    held = card.part(labels, "mig_gi_id", "mig_profile") or card
    held.modes[holder_key] = _MODES.get(labels.get("allocate_mode", "exclusive"), _SHARE)
    held.holders.setdefault(holder_key, {})[name] = value


_DCGM_TO_NATIVE: Final = {
    "GPU_UTIL": ("utilization_ratio", 0.01),
    "FB_USED": ("memory_used_bytes", MIB),
    "FB_TOTAL": ("memory_total_bytes", MIB),
    "FB_FREE": ("memory_free_bytes", MIB),
    "FB_RESERVED": ("memory_reserved_bytes", MIB),
    "GPU_TEMP": ("temperature_celsius", 1.0),
    "POWER_USAGE": ("power_watts", 1.0),
}
_MODES: Final = {mode.value: mode for mode in GpuMode}
_LEGACY_TO_NATIVE: Final = {
    "duty_cycle": ("utilization_ratio", 0.01),
    "memory_used_bytes": ("memory_used_bytes", 1.0),
    "memory_total_bytes": ("memory_total_bytes", 1.0),
    "temperature_celsius": ("temperature_celsius", 1.0),
    "power_usage_milliwatts": ("power_watts", 0.001),
}


def _note_other(cards: dict[str, _Card], uuid: str, sample: Sample, node: str) -> BadLine | None:
    if sample.name.startswith(_DCGM) or sample.name == _DCGM_BUSY:
        return _note_dcgm(cards.setdefault(uuid, _Card()), sample, node)
    if sample.name.startswith(_LEGACY):
        _note_legacy(cards, uuid, sample)
    elif sample.name == PROCESS_MEMORY:
        _note_process(cards.setdefault(uuid, _Card()), sample)
    return None


def _note_dcgm(card: _Card, sample: Sample, node: str) -> BadLine | None:
    labels = sample.labels
    index = _index(labels.get("gpu", ""), card.index)
    if card.index >= 0 and index != card.index:
        return BadLine.OTHER_CARD
    card.node = (
        labels.get("NodeName")
        or labels.get("Hostname")
        or labels.get("hostname")
        or card.node
        or node
    )
    card.index = index
    card.model = labels.get("modelName", card.model)
    card.driver = next((labels[row] for row in _DRIVER_ROWS if row in labels), card.driver)
    pod = labels.get("exported_pod") or labels.get("pod") or labels.get("pod_name", "")
    space = (
        labels.get("exported_namespace")
        or labels.get("namespace")
        or labels.get("pod_namespace", "")
    )
    container = (
        labels.get("exported_container")
        or labels.get("container")
        or labels.get("container_name", "")
    )
    part = card.part(labels, "GPU_I_ID", "GPU_I_PROFILE")
    if pod and space and container not in EXPORTER_CONTAINERS:
        if part is None:
            card.modes.setdefault((space, pod, container), _EXCLUSIVE)
        else:
            part.modes.setdefault((space, pod, container), _MIG)
    name = sample.name.removeprefix(_DCGM)
    if name == _DCGM_BUSY:
        if part is not None:
            part.values["utilization_ratio"] = sample.value
    elif name.startswith("FB_") and part is not None:
        native, scale = _DCGM_TO_NATIVE[name]
        part.values[native] = sample.value * scale
    elif name == "XID_ERRORS":
        if sample.value > 0:
            card.xids[int(sample.value)] = 0.0
    elif name in _DCGM_TO_NATIVE:
        native, scale = _DCGM_TO_NATIVE[name]
        card.values[native] = sample.value * scale
    return None


def _note_legacy(cards: dict[str, _Card], uuid: str, sample: Sample) -> None:
    """Fills values of the device that DCGM's families lack; `share` series are its containers."""
    labels = sample.labels
    native, scale = _LEGACY_TO_NATIVE.get(sample.name.removeprefix(_LEGACY), ("", 0.0))
    if not native:
        return
    card = cards.setdefault(uuid, _Card())
    card.node = card.node or labels.get("node_name", "")
    card.index = card.index if card.index >= 0 else _index(labels.get("minor_number", ""), -1)
    card.model = card.model or labels.get("name", "")
    holder_key = (
        labels.get("namespace_name", ""),
        labels.get("pod_name", ""),
        labels.get("container_name", ""),
    )
    if labels.get("allocate_mode") == _SHARE:
        card.modes[holder_key] = _SHARE
        if native in ("memory_used_bytes", "utilization_ratio"):
            card.holders.setdefault(holder_key, {})[native] = sample.value * scale
        return
    card.values.setdefault(native, sample.value * scale)
    if labels.get("allocate_mode") == _EXCLUSIVE and holder_key[1]:
        card.modes.setdefault(holder_key, _EXCLUSIVE)


def _note_process(card: _Card, sample: Sample) -> None:
    """Adds the memory of a pod's process on a card, in the form of one vendor's newer exporters.

    See docs/spec/arena-cli.md#gpu-metrics.
    """
    labels = sample.labels
    card.node = card.node or labels.get("NodeName", "")
    card.index = card.index if card.index >= 0 else _index(labels.get("gpu", ""), -1)
    holder_key = (
        labels.get("NamespaceName", ""),
        labels.get("PodName", ""),
        labels.get("ContainerName", ""),
    )
    if holder_key[1]:
        card.modes.setdefault(holder_key, _SHARE)
        card.processes.setdefault(holder_key, {})[labels.get("ProcessId", "")] = sample.value * MIB


def _reading(uuid: str, card: _Card, read_at: float) -> GpuReading:
    values, instances = (
        card.values,
        tuple(_instance(number, card.parts[number]) for number in sorted(card.parts)),
    )
    xid = max(card.xids, key=lambda code: card.xids[code], default=None)
    healthy = values.get("healthy")
    return GpuReading(
        node=card.node,
        index=max(0, card.index),
        uuid=uuid,
        model=card.model,
        memory_total_mib=_first(
            _mib(_memory_total(values)), _sum([each.memory_total_mib for each in instances])
        ),
        memory_used_mib=_first(
            _mib(_of_device_or_holders(card, "memory_used_bytes", sum)),
            _sum([each.memory_used_mib for each in instances]),
        ),
        utilization_ratio=_first(
            _of_device_or_holders(card, "utilization_ratio", max), instances_utilization(instances)
        ),
        temperature_celsius=values.get("temperature_celsius"),
        power_watts=values.get("power_watts"),
        healthy=None if healthy is None else healthy > 0,
        last_xid=xid,
        last_xid_at=(card.xids[xid] or None) if xid is not None else None,
        driver_version=card.driver,
        read_at=read_at,
        holders=_all_holders(card, instances),
        instances=instances,
    )


def _instance(number: int, part: _Part) -> GpuInstance:
    busy = part.values.get("utilization_ratio")
    return GpuInstance(
        id=number,
        profile=part.profile,
        memory_total_mib=_mib(_memory_total(part.values)),
        memory_used_mib=_mib(part.values.get("memory_used_bytes")),
        utilization_ratio=busy,
        holders=tuple(
            _as_busy(_holder(part, holder_key), busy) for holder_key in sorted(part.modes)
        ),
    )


def _as_busy(holder: GpuHolder, busy: float | None) -> GpuHolder:
    """The holder of a MIG instance with the instance's utilization.

    No source has the utilization of single containers.
    """
    if busy is None or holder.mode != _MIG:
        return holder
    return msgspec.structs.replace(holder, utilization_ratio=busy)


def _all_holders(card: _Card, instances: Sequence[GpuInstance]) -> tuple[GpuHolder, ...]:
    """Each container once; one on several instances has the sum of their memory."""
    found: dict[_HolderKey, list[tuple[GpuInstance, GpuHolder]]] = {}
    for instance in instances:
        for holder in instance.holders:
            found.setdefault((holder.namespace, holder.pod, holder.container), []).append(
                (instance, holder)
            )
    whole = {
        holder_key: _holder(card, holder_key)
        for holder_key in card.modes
        if holder_key not in found
    }
    return tuple(
        whole[holder_key] if holder_key in whole else _with_several(found[holder_key])
        for holder_key in sorted({*whole, *found})
    )


def _with_several(held: Sequence[tuple[GpuInstance, GpuHolder]]) -> GpuHolder:
    holder = held[0][1]
    if len(held) == 1:
        return holder
    own = [
        msgspec.structs.replace(instance, utilization_ratio=each.utilization_ratio)
        for instance, each in held
    ]
    return msgspec.structs.replace(
        holder,
        memory_used_mib=_sum([each.memory_used_mib for _, each in held]),
        memory_limit_mib=_sum([each.memory_limit_mib for _, each in held]),
        utilization_ratio=instances_utilization(own),
    )


def _first(own: float | None, of_instances: float | None) -> float | None:
    return of_instances if own is None else own


def _sum(amounts: Sequence[float | None]) -> float | None:
    """The sum; None when one of the amounts is unknown."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def _of_device_or_holders(
    card: _Card, name: str, fold: Callable[[Iterable[float]], float]
) -> float | None:
    """The device's own value, else its holders' values folded (docs/spec/arena-cli.md#gpu-metrics).

    `fold`: max for utilization, sum for memory.
    """
    if name in card.values:
        return card.values[name]
    held = [values[name] for values in card.holders.values() if name in values]
    return fold(held) if held else None


def _memory_total(values: Mapping[str, float]) -> float | None:
    """The total if it is given, else the sum of its parts if all are given."""
    if "memory_total_bytes" in values:
        return values["memory_total_bytes"]
    parts = [values.get(f"memory_{part}_bytes") for part in ("used", "free", "reserved")]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _holder(card: _Card | _Part, holder_key: _HolderKey) -> GpuHolder:
    values = card.holders.get(holder_key, {})
    return GpuHolder(
        namespace=holder_key[0],
        pod=holder_key[1],
        container=holder_key[2],
        mode=card.modes[holder_key],
        memory_used_mib=_mib(values.get("memory_used_bytes")),
        memory_limit_mib=_mib(values.get("memory_limit_bytes")),
        utilization_ratio=values.get("utilization_ratio"),
    )


def _mib(value: float | None) -> float | None:
    return None if value is None else value / MIB


def _index(text: str, absent: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else absent
