"""One simulated GPU: its holders, what runs on it, and its values at any instant.

Nothing ticks. What runs is a list of loads with closed-form integrals, so levels are functions of
time and counters are exact: a run that ends adds its whole integral as an integer, a live one adds
its integral so far. A reading never changes a card.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from math import sin

from msgspec.structs import replace

from fairlead.model.devices.device import XidEvent
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.gpu_load import NVLINK_RX, NVLINK_TX, PCIE_RX, PCIE_TX
from fairlead.model.devices.kubelet import RegionCard
from fairlead.model.devices.xid import CRITICAL
from fairlead_sim.gpus.cards import CardModel
from fairlead_sim.gpus.division import CardPart
from fairlead_sim.gpus.prof_load import AnyLoad, SteadyLoad

FATAL_XIDS = frozenset({13, 31, 43, 45, 48, 62, 64, 79, 94, 95, 109, 119, 120})
"""These end the programs that use the card; the others (63: a row was remapped) they survive."""

FALLEN_OFF_BUS = 79
UNKNOWN_FAULT = -1
"""`failed_by` of a card that is not healthy for an unknown reason."""
THERMAL_LAG_SECONDS = 75.0
_FORGET_AFTER = 4 * THERMAL_LAG_SECONDS
_CAP_SHARE = 0.04  # part of its peak time that a card near its power limit spends throttled


@dataclass(slots=True)
class Run:
    """One container at work on one card."""

    load: AnyLoad
    started_at: float
    ended_at: float | None = None

    def level(self, now: float) -> float:
        return self.load.level(now - self.started_at) if self.is_live(now) else 0.0

    def part(self, field: int, now: float) -> float:
        """How busy the part of the chip is that the profiling field measures."""
        return self.load.part(field, now - self.started_at) if self.is_live(now) else 0.0

    def moved(self, field: int, until: float) -> float:
        """Full-load seconds of that part to `until` (or its end)."""
        end = until if self.ended_at is None else min(until, self.ended_at)
        return self.load.part_integral(field, max(0.0, end - self.started_at))

    def integral(self, until: float) -> float:
        """Full-load seconds from the start to `until` (or its end)."""
        end = until if self.ended_at is None else min(until, self.ended_at)
        return self.load.level_integral(max(0.0, end - self.started_at))

    def is_live(self, now: float) -> bool:
        return self.started_at <= now and (self.ended_at is None or now < self.ended_at)


@dataclass(slots=True)
class Hold:
    """A grant of (a part of) a card to a container, from its admission until its pod is gone.

    `run` is None between its runs; `gpu_instance` where it has no MIG instance. `counts`: those of
    the memory guard since the last start; None without it.
    """

    namespace: str
    pod: str
    pod_uid: str
    container: str
    mode: GpuMode
    limit_mib: int
    run: Run | None = None
    fixed_mib: int | None = None
    gpu_instance: int | None = None
    counts: RegionCard | None = None

    def used_mib(self, now: float) -> int:
        if self.run is None or not self.run.is_live(now):
            return 0
        if self.fixed_mib is not None:
            return self.fixed_mib
        load = self.run.load
        return int(
            self.limit_mib * load.memory_ratio * load.memory_filled(now - self.run.started_at)
        )

    @property
    def most_mib(self) -> int:
        """What its run takes in the end."""
        if self.run is None:
            return 0
        if self.fixed_mib is not None:
            return self.fixed_mib
        return int(self.limit_mib * self.run.load.memory_ratio)

    def counted(self, now: float) -> RegionCard | None:
        """The guard's counts: it accounts what the programs use."""
        if self.counts is None:
            return None
        return replace(self.counts, used=self.used_mib(now) << 20)


@dataclass(slots=True)
class ForeignProgram:
    """A program on a card that no container was granted, from the start of its run to its end."""

    mib: int
    run: Run


@dataclass(slots=True)
class Counters:
    """Monotonic totals, as integers so that no order of adding changes them."""

    energy_mj: int = 0
    pcie_tx_bytes: int = 0
    pcie_rx_bytes: int = 0
    nvlink_tx_bytes: int = 0
    nvlink_rx_bytes: int = 0
    power_violation_ns: int = 0

    def add(self, other: Counters) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class Card:
    """`booted_at` is when its counters began. `ambient` and `efficiency` make equal models differ a
    little, as real ones do. `others`: indexes of its node's other cards. `instances`: into which it
    is divided by MIG, with their UUIDs by id.
    """

    node: str
    index: int
    minor: int
    uuid: str
    pci_bus_id: str
    serial: str
    model: CardModel
    is_shared: bool
    booted_at: float
    ambient: float = 30.0
    efficiency: float = 1.0
    holds: list[Hold] = field(default_factory=list)
    xids: dict[int, XidEvent] = field(default_factory=dict)
    last_xid: int = 0
    failed_by: int = 0
    lost_at: float | None = None
    hangs: list[tuple[float, float | None]] = field(default_factory=list)
    strangers: list[ForeignProgram] = field(default_factory=list)
    counted: Counters = field(default_factory=Counters)
    others: tuple[int, ...] = ()
    instances: tuple[CardPart, ...] = ()
    instance_uuids: Mapping[int, str] = field(default_factory=dict)
    _recent: list[Run] = field(default_factory=list)
    _outside_load: Run | None = None

    def as_it_is(self) -> Card:
        """A card that stays as this one is now. Its values up to now are those of this one.

        Runs are shared: one that ends later does not change a value of an earlier instant.
        """
        kept = copy(self)
        kept.holds = [copy(hold) for hold in self.holds]
        kept.xids = dict(self.xids)
        kept._recent = list(self._recent)
        return kept

    @property
    def is_healthy(self) -> bool:
        return not self.failed_by

    @property
    def is_draining(self) -> bool:
        """Held by pods of the mode that its node had before."""
        return any((hold.mode == GpuMode.SHARE) is not self.is_shared for hold in self.holds)

    def start(self, hold: Hold, load: AnyLoad, at: float) -> None:
        hold.run = Run(load, at)
        self._recent = [
            run
            for run in self._recent
            if run.ended_at is not None and run.ended_at > at - _FORGET_AFTER
        ]

    def stop(self, hold: Hold, at: float) -> None:
        """End the container's run and book what it did."""
        run = hold.run
        if run is None:
            return
        run.ended_at = at
        hold.run = None
        self.counted.add(self._worked(run, at))
        self._recent.append(run)

    def show_load(self, parts: Mapping[int, float], at: float) -> None:
        """What it shows from now on beside the work of its containers; nothing ends that."""
        before = self._outside_load
        if (
            before.load.parts if before is not None and isinstance(before.load, SteadyLoad) else {}
        ) == parts:
            return
        if before is not None:
            before.ended_at = at
            self.counted.add(self._worked(before, at))
            self._recent = [
                run
                for run in self._recent
                if run.ended_at is not None and run.ended_at > at - _FORGET_AFTER
            ]
            self._recent.append(before)
        self._outside_load = Run(SteadyLoad(parts), at) if parts else None

    def report_xid(self, code: int, at: float) -> None:
        before = self.xids.get(code)
        self.xids[code] = XidEvent(code, before.count + 1 if before else 1, at)
        self.last_xid = code
        if code in CRITICAL:  # the device plugin offers the card no more
            self.failed_by = code
        if code == FALLEN_OFF_BUS:
            self.lost_at = at

    def hangs_since(self, now: float) -> float | None:
        """Since when a call has not returned; None: none hangs now."""
        return next(
            (
                since
                for since, until in self.hangs
                if since <= now and (until is None or now < until)
            ),
            None,
        )

    def live_strangers(self, now: float) -> list[ForeignProgram]:
        return [stranger for stranger in self.strangers if stranger.run.is_live(now)]

    def live_runs(self, now: float) -> list[Run]:
        runs = (
            *(hold.run for hold in self.holds),
            self._outside_load,
            *(stranger.run for stranger in self.strangers),
        )
        return [run for run in runs if run is not None and run.is_live(now)]

    def level(self, now: float) -> float:
        return min(1.0, sum((run.level(now) for run in self.live_runs(now)), start=0.0))

    def watts(self, now: float) -> float:
        return self.model.idle_watts + self._span_watts * self.level(now)

    def mean_watts(self, now: float) -> float:
        """Mean power over the thermal lag before `now`: what the temperature follows."""
        since = max(self.booted_at, now - THERMAL_LAG_SECONDS)
        if now <= since:
            return self.model.idle_watts
        ended = [stranger.run for stranger in self.strangers if not stranger.run.is_live(now)]
        runs = [*self._recent, *ended, *self.live_runs(now)]
        worked = sum(run.integral(now) - run.integral(since) for run in runs)
        return self.model.idle_watts + self._span_watts * worked / (now - since)

    def celsius(self, now: float) -> float:
        """Temperature of the chip: it rises with the mean power, over a slowly changing room."""
        rise = 46.0 * self.mean_watts(now) / self.model.limit_watts
        return self.ambient + rise + 0.6 * sin(now / 900.0 + self.index)

    def used_mib(self, now: float) -> int:
        own = _DRIVER_MIB * max(1, len(self.instances))
        return sum(hold.used_mib(now) for hold in self.holds) + own + sum(self.strange_mib(now))

    def free_mib(self, hold: Hold) -> int:
        """What a program of this holder can get, at most: what the runs of others will not take."""
        others = sum(each.most_mib for each in self.holds if each is not hold)
        return self.model.memory_mib - _DRIVER_MIB - others

    def holds_of(self, instance: CardPart) -> list[Hold]:
        return [hold for hold in self.holds if hold.gpu_instance == instance.gpu_instance]

    def instance_used_mib(self, instance: CardPart, now: float) -> int:
        return sum(hold.used_mib(now) for hold in self.holds_of(instance)) + _DRIVER_MIB

    def strange_mib(self, now: float) -> list[int]:
        """What each stranger at work has: no more than containers leave, the first ones first."""
        left = self.model.memory_mib - _DRIVER_MIB - sum(hold.used_mib(now) for hold in self.holds)
        taken = []
        for stranger in self.live_strangers(now):
            taken.append(min(stranger.mib, max(0, left)))
            left -= taken[-1]
        return taken

    def totals(self, now: float) -> Counters:
        """All counters at `now`; they stand still from the moment the card is lost."""
        until = now if self.lost_at is None else min(now, self.lost_at)
        total = Counters(
            energy_mj=int(self.model.idle_watts * max(0.0, until - self.booted_at) * 1000)
        )
        total.add(self.counted)
        ended = [
            stranger.run
            for stranger in self.strangers
            if stranger.run.started_at < until and not stranger.run.is_live(until)
        ]
        for run in (*ended, *self.live_runs(until)):
            total.add(self._worked(run, until))
        return total

    @property
    def _span_watts(self) -> float:
        return (self.model.limit_watts - self.model.idle_watts) * 0.97 * self.efficiency

    def _worked(self, run: Run, until: float) -> Counters:
        full = run.integral(until)
        peak = run.load.peak_seconds(until - run.started_at) if self.is_near_limit(run) else 0.0
        return Counters(
            energy_mj=int(self._span_watts * full * 1000),
            pcie_tx_bytes=int(self.model.pcie_bytes * run.moved(PCIE_TX, until)),
            pcie_rx_bytes=int(self.model.pcie_bytes * run.moved(PCIE_RX, until)),
            nvlink_tx_bytes=int(self.model.nvlink_bytes * run.moved(NVLINK_TX, until)),
            nvlink_rx_bytes=int(self.model.nvlink_bytes * run.moved(NVLINK_RX, until)),
            power_violation_ns=int(peak * _CAP_SHARE * 1e9),
        )

    def is_near_limit(self, run: Run) -> bool:
        """Whether the run's peaks touch the power limit."""
        return run.load.high * self.efficiency > 0.86


_DRIVER_MIB = 4
