"""What a pod asks of shared GPUs, or why no node can give it (sharing contract 2.2).

Init containers that end use the card of the first container that keeps running, before it starts; so the larger of the two counts and not
the sum. Sidecars count as containers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.model.keys import ANNOTATION_GPU_PLACEMENT, ANNOTATION_GPU_SPLIT
from fairlead.model.pod import Container, Pod
from fairlead.model.resources import GPU_CORE, GPU_COUNT, GPU_MEMORY, counted
from fairlead.model.sharing import BINPACK, SPREAD, ContainerNeed, GpuNeed

MANAGED: Final = (GPU_MEMORY, GPU_CORE)
"""The resources of the extender: kube-scheduler asks us about every pod that names one of them, whatever the amount."""
PER_CONTAINER: Final = "per-container"
_CORES: Final = range(5, 101, 5)


def asks_share(pod: Pod) -> bool:
    """Whether the pod names a resource of shared GPUs."""
    return any(name in amounts for part in _all(pod) for amounts in (part.limits, part.requests) for name in MANAGED)


def gpu_need(pod: Pod) -> GpuNeed:
    """The pod's need on each of its GPUs; with `fault` when nothing can meet it.

    >>> gpu_need(Pod("ns", "p", containers=(Container("a", limits={GPU_MEMORY: 3}), Container("b", limits={GPU_MEMORY: 1})))).units
    4
    """
    if not any(_units(part) or _core(part) for part in _all(pod)):
        return GpuNeed()
    fault = _fault(pod)
    if fault:
        return GpuNeed(fault=fault)
    cards = int(pod.labels.get(GPU_COUNT, "1"))
    keep = [part for part in pod.containers if _units(part)] + [part for part in pod.init_containers if part.restartable and _units(part)]
    end = [part for part in pod.init_containers if not part.restartable and _units(part)]
    running, passing = _needs(pod, keep, cards), _needs(pod, end, cards)
    return GpuNeed(
        units=max(sum(part.units for part in running), max((part.units for part in passing), default=0)),
        core_percent=max(sum(part.core_percent for part in running), max((part.core_percent for part in passing), default=0)),
        cards=cards,
        running=running,
        passing=passing,
        is_split=pod.annotations.get(ANNOTATION_GPU_SPLIT) == PER_CONTAINER and len(running) > 1,
        policy=pod.annotations.get(ANNOTATION_GPU_PLACEMENT, ""),
    )


def _needs(pod: Pod, parts: Iterable[Container], cards: int) -> tuple[ContainerNeed, ...]:
    wished = pod.memory_limits_mib
    return tuple(
        ContainerNeed(
            part.name, _units(part) // cards, _core(part) // cards, max(1, wished[part.name] // cards) if part.name in wished else None
        )
        for part in parts
    )


def _fault(pod: Pod) -> str:
    """What a person wrote that no node can meet."""
    placement, split = pod.annotations.get(ANNOTATION_GPU_PLACEMENT), pod.annotations.get(ANNOTATION_GPU_SPLIT)
    if placement not in (None, BINPACK, SPREAD):
        return f"annotation {ANNOTATION_GPU_PLACEMENT}={_short(placement)} is neither {BINPACK} nor {SPREAD}"
    if split not in (None, PER_CONTAINER):
        return f"annotation {ANNOTATION_GPU_SPLIT}={_short(split)} is not {PER_CONTAINER}"
    text = pod.labels.get(GPU_COUNT, "1")
    cards = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0
    if cards < 1:
        return f"label {GPU_COUNT}={_short(text)} is not a number of GPUs"
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
    """A person's text in a sentence that goes into every pod's status: not all of a long one."""
    text = text or '""'
    return text if len(text) <= 40 else f"{text[:40]}…"
