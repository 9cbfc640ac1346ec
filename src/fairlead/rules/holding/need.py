"""What a pod needs of shared GPUs, or why no node can give it.

Specification: docs/spec/gpu-sharing.md#need-of-a-pod.

Its need is the most that it holds at one instant. The kubelet starts init containers one after
another. A sidecar holds its part from its place in the list to the end of the pod. An init
container that ends runs beside the sidecars before it, on the cards of the first app container that
has some. Units and core percent have separate peaks, perhaps at different moments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from fairlead.model.keys import ANNOTATION_GPU_PLACEMENT, ANNOTATION_GPU_SPLIT
from fairlead.model.pod import Container, Pod
from fairlead.model.resources import GPU_CORE, GPU_COUNT, GPU_MEMORY, MemoryUnit, counted
from fairlead.model.sharing import (
    BINPACK,
    PLACEMENTS,
    SPREAD,
    ContainerNeed,
    GpuNeed,
    name_shared_gpus,
)
from fairlead.rules.pods.devices import whole_gpus

PER_CONTAINER: Final = "per-container"
WHOLE_AND_SHARED: Final = "asks for whole and shared GPUs; no node offers both"
_CORES: Final = range(5, 101, 5)
_BYTES_LEAST: Final = 1 << 20
"""`_BYTES_LEAST`: from this number on, units are probably bytes.

In MiB it would be a card of 1 TiB.
"""
_UNIT_BYTES: Final = {MemoryUnit.GIB: 1 << 30, MemoryUnit.MIB: 1 << 20}


def asks_share(pod: Pod) -> bool:
    """Whether the pod names a resource of shared GPUs."""
    return name_shared_gpus(_all(pod))


def gpu_need(pod: Pod) -> GpuNeed:
    """The pod's need on each of its GPUs; with `fault` if no node can meet it.

    >>> parts = (Container("a", limits={GPU_MEMORY: 3}), Container("b", limits={GPU_MEMORY: 1}))
    >>> gpu_need(Pod("ns", "p", containers=parts)).units
    4
    """
    if not any(_units(part) or _core(part) for part in _all(pod)):
        return GpuNeed()
    fault = _fault(pod)
    if fault:
        return GpuNeed(fault=fault)
    cards = int(pod.labels.get(GPU_COUNT, "1"))
    keep = (*pod.containers, *(part for part in pod.init_containers if part.restartable))
    running, passing = (
        tuple(_container_need(pod, part, cards) for part in keep if _units(part)),
        tuple(_passing(pod, cards)),
    )
    units, core_percent = _peak(running, passing)
    return GpuNeed(
        units=units,
        core_percent=core_percent,
        cards=cards,
        running=running,
        passing=passing,
        is_split=pod.annotations.get(ANNOTATION_GPU_SPLIT) == PER_CONTAINER and len(running) > 1,
        policy=PLACEMENTS.get(pod.annotations.get(ANNOTATION_GPU_PLACEMENT, "")),
    )


def units_for_bytes(units: int, unit: str = MemoryUnit.GIB) -> str:
    """A hint for a size in bytes (`4Gi`) where units are expected; "" for a number of units.

    >>> units_for_bytes(4 << 30, "MiB"), units_for_bytes(15079)
    ('aliyun.com/gpu-mem counts MiB, not bytes: write 4096', '')
    """
    if units < _BYTES_LEAST:
        return ""
    return (
        f"{GPU_MEMORY} counts {unit}, not bytes: write {-(-units // _UNIT_BYTES[MemoryUnit(unit)])}"
    )


def peak_of(need: GpuNeed, names: Collection[str]) -> tuple[int, int]:
    """The most units and core percent that these running containers hold on one card, separately.

    Init containers that end count with the first running container: they use its cards.
    """
    here = [part for part in need.running if part.name in names]
    return _peak(here, need.passing if here and here[0] is need.running[0] else ())


def _peak(running: Sequence[ContainerNeed], passing: Iterable[ContainerNeed]) -> tuple[int, int]:
    """The highest units and core percent, separately.

    >>> side, app = ContainerNeed("side", 2), ContainerNeed("app", 2)
    >>> _peak([app, side], [ContainerNeed("init", 4, beside=("side",))])
    (6, 0)
    >>> _peak([], [ContainerNeed("a", 8, 10), ContainerNeed("b", 2, 90)])
    (8, 90)
    """
    units, core = sum(part.units for part in running), sum(part.core_percent for part in running)
    for part in passing:
        beside = [each for each in running if each.name in part.beside] if part.beside else ()
        units = max(units, part.units + sum(each.units for each in beside))
        core = max(core, part.core_percent + sum(each.core_percent for each in beside))
    return units, core


def _container_need(
    pod: Pod, part: Container, cards: int, beside: tuple[str, ...] = ()
) -> ContainerNeed:
    wished = pod.memory_limits_mib.get(part.name)
    return ContainerNeed(
        part.name,
        _units(part) // cards,
        _core(part) // cards,
        None if wished is None else max(1, wished // cards),
        beside,
    )


def _passing(pod: Pod, cards: int) -> Iterator[ContainerNeed]:
    """The init containers that end, each with the sidecars that it starts beside."""
    sidecars: tuple[str, ...] = ()
    for part in pod.init_containers:
        if not _units(part):
            continue
        if part.restartable:
            sidecars = (*sidecars, part.name)
        else:
            yield _container_need(pod, part, cards, sidecars)


def _fault(pod: Pod) -> str:
    """What is wrong with the request, so that no node can meet it; "" = nothing."""
    placement, split = (
        pod.annotations.get(ANNOTATION_GPU_PLACEMENT),
        pod.annotations.get(ANNOTATION_GPU_SPLIT),
    )
    if placement is not None and placement not in PLACEMENTS:
        return (
            f"annotation {ANNOTATION_GPU_PLACEMENT}={_short(placement)} is neither {BINPACK} nor "
            f"{SPREAD}"
        )
    if split not in (None, PER_CONTAINER):
        return f"annotation {ANNOTATION_GPU_SPLIT}={_short(split)} is not {PER_CONTAINER}"
    text = pod.labels.get(GPU_COUNT, "1")
    cards = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    if cards < 1:
        return f"label {GPU_COUNT}={_short(text)} is not a number of GPUs"
    if any(whole_gpus(part.limits) for part in _all(pod)) and any(
        _units(part) for part in _all(pod)
    ):
        return WHOLE_AND_SHARED
    return next((fault for part in _all(pod) if (fault := _part_fault(part, cards))), "")


def _part_fault(part: Container, cards: int) -> str:
    units, core = _units(part), _core(part)
    if core and not units:
        return "gpu-core needs gpu-mem"
    if core and core not in _CORES:
        return f"gpu-core {core} is not a multiple of 5 from 5 to 100"
    if units % cards:
        return f"gpu-mem {units} cannot be split over {cards} GPUs"
    if core % cards:
        return f"gpu-core {core} cannot be split over {cards} GPUs"
    return ""


def _all(pod: Pod) -> Sequence[Container]:
    return (*pod.containers, *pod.init_containers) if pod.init_containers else pod.containers


def _units(part: Container) -> int:
    return counted(part.limits, GPU_MEMORY)


def _core(part: Container) -> int:
    return counted(part.limits, GPU_CORE)


def _short(text: str | None) -> str:
    """A text for a sentence that goes into every pod's status: a long one is cut."""
    text = text or '""'
    return text if len(text) <= 40 else f"{text[:40]}…"
