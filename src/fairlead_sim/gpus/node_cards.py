"""Simulated GPUs of one node, for its agent and exporter: the port `CardDriver`.

A text such as `2xTesla-T4` names them. The same node and text give the same UUIDs in every process,
so that what the agent grants is what the exporter measures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fairlead.errors import UserError
from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.driver import (
    CardAnswer,
    CgroupLimit,
    DriverXid,
    IsolationMeans,
    MpsLimit,
    ProcessMemory,
)
from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.devices.gpu_load import SimulatedLoad
from fairlead_sim.gpus.cards import CARD_MODELS, CardModel, known_model
from fairlead_sim.gpus.devices import SimulatedDevices
from fairlead_sim.gpus.sampled import SampledDevices
from fairlead_sim.objects.chance import uuid_of
from fairlead_sim.time.clock import SimClock

MOST_CARDS: Final = 64
_SOME: Final = re.compile(r"(\d{1,3})x(\S+)", re.ASCII)


def parse_models(text: str) -> tuple[CardModel, ...]:
    """The models that the text names, a card each. Raises UserError.

    >>> [model.name for model in parse_models("2xTesla-T4,1xNVIDIA-H200")]
    ['Tesla T4', 'Tesla T4', 'NVIDIA H200']
    """
    models: list[CardModel] = []
    for part in text.split(","):
        match = _SOME.fullmatch(part.strip())
        if match is None:
            raise UserError(
                f"`{part.strip()}` names no simulated GPUs",
                "write for example `2xTesla-T4,1xNVIDIA-H200`",
            )
        model = known_model(match[2])
        if model is None:
            known = ", ".join(name.replace(" ", "-") for name in CARD_MODELS)
            raise UserError(f"no GPU model is called `{match[2]}`", f"known are {known}")
        models += [model] * int(match[1])
    if len(models) > MOST_CARDS:
        raise UserError(f"`{text}` are {len(models)} GPUs", f"a node has at most {MOST_CARDS}")
    return tuple(models)


def simulated_uuid(node: str, index: int) -> str:
    """
    >>> simulated_uuid("n1", 0) == simulated_uuid("n1", 0) != simulated_uuid("n2", 0)
    True
    """
    return f"GPU-{uuid_of(0, 'gpu', node, index)}"


class SimulatedDriver:
    """`ports.CardDriver` of a node without a GPU: healthy cards without processes."""

    def __init__(self, node: str, models: Sequence[CardModel]) -> None:
        self._cards = tuple(
            GpuSlot(index, simulated_uuid(node, index), index, model.name, model.memory_mib)
            for index, model in enumerate(models)
        )

    def cards(self) -> Sequence[GpuSlot]:
        return self._cards

    def xids(self) -> Sequence[DriverXid]:
        return ()

    def probe(self, uuid: str) -> CardAnswer:
        return CardAnswer(
            "" if any(card.uuid == uuid for card in self._cards) else "there is no such GPU"
        )

    def processes(self) -> Sequence[ProcessMemory]:
        return ()

    def means(self) -> IsolationMeans:
        return IsolationMeans()

    def cgroup_limit(self, uuid: str, cgroup: str) -> CgroupLimit:
        return CgroupLimit(fault="simulated GPUs have no limits by cgroup")

    def bound_mps(self, limits: Sequence[MpsLimit]) -> str:
        return "simulated GPUs have no MPS" if limits else ""


def simulated_node(
    node: str,
    models: Sequence[CardModel],
    now: Callable[[], float],
    interval_seconds: float,
    loads: Callable[[], Sequence[SimulatedLoad]] = tuple,
) -> SampledDevices:
    """`ports.Devices` of such a node: its cards, idle except for `loads`."""
    clock = SimClock(now())
    devices = SimulatedDevices(0, clock)
    devices.add_cards(node, models)

    def read() -> Iterator[Sequence[DeviceSample]]:
        clock.advance_to(max(now(), clock.now()))
        devices.show_loads(loads())
        yield devices.sample()

    return SampledDevices(read, clock.now, interval_seconds)
