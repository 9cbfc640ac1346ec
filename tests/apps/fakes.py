"""Ports that a test sets by hand: devices, a cluster, readings, a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import structs

from fairlead.model.devices.device import (
    CollectorRun,
    DeviceProcess,
    DeviceSample,
    DeviceSnapshot,
    XidEvent,
)
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.page_tally import PageTally
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source

EPOCH = 1767600000.0
MIB = 1 << 20


class FixedClock:
    def __init__(self, at: float = EPOCH) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


class FakeDevices:
    """Returns `samples` as of `at`; `tell` makes the next snapshot."""

    def __init__(self, samples: Sequence[DeviceSample] = (), at: float = EPOCH) -> None:
        self.snapshot = DeviceSnapshot(1, at, tuple(samples))
        self.reported: Callable[[], None] = lambda: None
        self.calls = 0
        self.wanted = frozenset[str]()

    async def run(self, on_snapshot: Callable[[], None]) -> None:
        self.reported = on_snapshot
        await asyncio.Event().wait()

    def latest(self) -> DeviceSnapshot:
        self.calls += 1
        return self.snapshot

    def want(self, fields: frozenset[str]) -> None:
        self.wanted = fields

    def change(self, **changes: object) -> None:
        """Fields that are not given keep their values."""
        self.snapshot = structs.replace(self.snapshot, number=self.snapshot.number + 1, **changes)
        self.reported()


class FakeCluster:
    """A cluster whose state a test sets with `show`; `snapshots_taken` counts reads."""

    def __init__(self, snapshot: ClusterSnapshot | None = None, *, is_ready: bool = True) -> None:
        self._snapshot = snapshot or ClusterSnapshot()
        self._version = 1
        self._changed = asyncio.Event()
        self.is_ready = is_ready
        self.snapshots_taken = 0

    def show(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._version += 1
        self._changed.set()

    async def run(self) -> None:
        await asyncio.Event().wait()

    @property
    def version(self) -> int:
        return self._version

    def snapshot(self) -> ClusterSnapshot:
        self.snapshots_taken += 1
        return self._snapshot

    async def wait_changed(self, since: int, seconds: float) -> int:
        try:
            async with asyncio.timeout(seconds):
                while self._version == since:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self._version


class FakeReadings:
    def __init__(
        self,
        readings: Sequence[GpuReading] = (),
        source: Source | None = None,
        tally: PageTally | None = None,
    ) -> None:
        self.readings = tuple(readings)
        self.reported = source or Source("gpu-telemetry", good_at=EPOCH)
        self.tallied = tally

    async def run(self) -> None:
        await asyncio.Event().wait()

    def latest(self) -> tuple[GpuReading, ...]:
        return self.readings

    def source(self) -> Source:
        return self.reported

    def tally(self) -> PageTally | None:
        return self.tallied


def process(
    pod: str,
    mode: str,
    used: float,
    limit: float,
    sm: float,
    container: str = "main",
    namespace: str = "research",
) -> DeviceProcess:
    return DeviceProcess(
        namespace,
        pod,
        container,
        f"uid-{pod}",
        mode,
        int(used * MIB),
        int(limit * MIB),
        sm,
        processes=1 if used else 0,
    )


def memory(**mib: int) -> dict[str, int | float]:
    """Fields of device memory, as a driver's bytes and as DCGM's MiB."""
    fields: dict[str, int | float] = {
        f"DCGM_FI_DEV_FB_{name}": amount for name, amount in mib.items()
    }
    return fields | {f"DCGM_FI_DEV_FB_{name}_BYTES": amount * MIB for name, amount in mib.items()}


def device(
    index: int = 0,
    node: str = "gpu-1",
    *,
    model: str = "Tesla T4",
    used: int = 500,
    util: int = 42,
    **more: object,
) -> DeviceSample:
    """A card with the fields that a T4 answers."""
    d = "DCGM_FI_DEV_"
    fields: dict[str, int | float] = {
        f"{d}SM_CLOCK": 1590,
        f"{d}MEM_CLOCK": 5001,
        f"{d}GPU_TEMP": 61,
        f"{d}POWER_USAGE": 66.125,
        f"{d}TOTAL_ENERGY_CONSUMPTION": 123456789,
        f"{d}PCIE_REPLAY_COUNTER": 0,
        f"{d}GPU_UTIL": util,
        f"{d}MEM_COPY_UTIL": 13,
        f"{d}ENC_UTIL": 0,
        f"{d}DEC_UTIL": 0,
        f"{d}XID_ERRORS": 0,
        **memory(TOTAL=15360, FREE=15079 - used, USED=used, RESERVED=281),
        f"{d}VGPU_LICENSE_STATUS": 0,
        f"{d}ECC_SBE_VOL_TOTAL": 0,
        f"{d}ECC_DBE_VOL_TOTAL": 0,
        f"{d}POWER_VIOLATION": 2_500_000_000,
    }
    given = {
        "fields": fields,
        "healthy": True,
        "power_limit_watts": 70.0,
        "throttle_reasons": 0x4,
        **more,
    }
    return DeviceSample(
        node=node,
        index=index,
        minor=index,
        uuid=f"GPU-{node}-{index}",
        pci_bus_id=f"00000000:{7 + index:02X}:00.0",
        model=model,
        driver_version="570.172.08",
        healthy=given.pop("healthy"),
        serial=f"13200000000{index}",
        cuda_version="12.8",
        vbios_version="90.04.38.00.03",
        **{
            "sampled_at": EPOCH - 1.5,
            "collectors": (
                CollectorRun("device", str(index), is_good=True, succeeded_at=EPOCH - 1.5),
            ),
            **given,
        },  # type: ignore[arg-type]
    )


def lost_device(index: int, node: str = "gpu-1") -> DeviceSample:
    """A card that fell off the bus: known, but it gives no values."""
    return device(
        index,
        node,
        fields={},
        healthy=False,
        up=False,
        power_limit_watts=None,
        throttle_reasons=None,
        xids=(XidEvent(79, 1, EPOCH - 300),),
        sampled_at=EPOCH - 300,
        collectors=(CollectorRun("device", str(index), is_good=False, succeeded_at=EPOCH - 300),),
    )


def four_cards() -> list[DeviceSample]:
    """One card with a single holder, one shared by two pods, one free, one lost."""
    return [
        device(
            0, used=6000, util=90, processes=(process("train-0", "exclusive", 5990, 15360, 90),)
        ),
        device(
            1,
            used=6396,
            util=55,
            processes=(
                process("app-1", "share", 3193, 4308, 30),
                process("app-2", "share", 3193, 4308, 25, namespace='odd"ns\\'),
            ),
        ),
        device(2, used=4, util=0),
        lost_device(3),
    ]
