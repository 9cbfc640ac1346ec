"""A driver's values of a card at an instant: a `DeviceSample` with DCGM's field names and units.

A card that is divided by MIG has neither utilization nor profiling as a whole; its instances have
(docs/spec/telemetry.md#mig-instances). A card that has fallen off the bus (XID 79) answers nothing:
its sample exists, `up` is False and it has no fields. A card whose call hangs is not `up` either,
and keeps its last values.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from msgspec import structs

from fairlead.model.devices.device import (
    CollectorRun,
    DeviceProcess,
    DeviceSample,
    MigInstance,
    NamedProcess,
)
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.gpu_load import (
    DRAM,
    FP16,
    FP32,
    FP64,
    GRAPHICS,
    NVLINK_RX,
    NVLINK_TX,
    OCCUPANCY,
    PCIE_RX,
    PCIE_TX,
    SM,
    TENSOR,
)
from fairlead.model.devices.readings import EngineTime
from fairlead_sim.gpus.card import Card, ForeignProgram, Hold, Run
from fairlead_sim.gpus.cards import CardModel
from fairlead_sim.gpus.division import CardPart

DRIVER_VERSION = "570.172.08"
CUDA_VERSION = "12.8"

GPU_IDLE, POWER_CAP = 0x1, 0x4
_TEXTS = {
    "DCGM_FI_NVML_VERSION": f"12.{DRIVER_VERSION}",
    "DCGM_FI_DEV_BRAND": "NVIDIA",
    "DCGM_FI_DEV_OEM_INFOROM_VER": "1.1",
    "DCGM_FI_DEV_ECC_INFOROM_VER": "6.16",
    "DCGM_FI_DEV_POWER_INFOROM_VER": "",
    "DCGM_FI_DEV_INFOROM_IMAGE_VER": "G500.0200.00.04",
}
_RATIOS = {
    "GR_ENGINE_ACTIVE": GRAPHICS,
    "SM_ACTIVE": SM,
    "SM_OCCUPANCY": OCCUPANCY,
    "PIPE_TENSOR_ACTIVE": TENSOR,
    "DRAM_ACTIVE": DRAM,
    "PIPE_FP64_ACTIVE": FP64,
    "PIPE_FP32_ACTIVE": FP32,
    "PIPE_FP16_ACTIVE": FP16,
}
_NOT_OF_DIVIDED = frozenset(
    f"DCGM_FI_DEV_{name}" for name in ("GPU_UTIL", "MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL")
)
"""The driver does not measure these of a card that is divided."""
LINKED, NOT_LINKED = 0, 5
"""NVML's status of the way to another card over NVLink; a divided card has none."""
_FIRST_PID, _PIDS = 2000, 60_000
_BUSY = 0.01
_BAR1_MIB = 256
_PROF = "DCGM_FI_PROF_"
_MIB = 1 << 20

Values = dict[str, int | float]


class _CardWork(NamedTuple):
    """A card's work at an instant, looked at once: what runs, how hard each, and together."""

    card: Card
    now: float
    runs: list[Run]
    levels: list[float]
    level: float

    def part(self, field: int) -> float:
        """How busy the part is that the profiling field measures: 0..1."""
        return min(1.0, sum((run.part(field, self.now) for run in self.runs), start=0.0))

    def codec(self) -> float:
        pairs = zip(self.levels, self.runs, strict=True)
        return min(1.0, sum((level * run.load.codec_ratio for level, run in pairs), start=0.0))


def _moment(card: Card, now: float) -> _CardWork:
    runs = card.live_runs(now)
    levels = [run.level(now) for run in runs]
    return _CardWork(card, now, runs, levels, min(1.0, sum(levels, start=0.0)))


def read_card(card: Card, now: float, *, is_brief: bool = False) -> DeviceSample:
    """One sample; pure in (card, now). Memory adds up: containers <= used <= total - reserved.

    `is_brief`: of its fields only those that boards show; of forty thousand cards all of them take
    seconds.
    """
    hangs_since = card.hangs_since(now)
    is_stuck, now = hangs_since is not None, now if hangs_since is None else hangs_since
    is_up = card.lost_at is None or now < card.lost_at
    moment = _moment(card, now)
    return DeviceSample(
        node=card.node,
        index=card.index,
        minor=card.minor,
        uuid=card.uuid,
        pci_bus_id=card.pci_bus_id,
        model=card.model.name,
        driver_version=DRIVER_VERSION,
        healthy=card.is_healthy,
        fields={} if not is_up else _essentials(moment) if is_brief else _fields(moment),
        power_limit_watts=card.model.limit_watts if is_up else None,
        serial=card.serial,
        cuda_version=CUDA_VERSION,
        vbios_version="92.00.9E.00.01",
        throttle_reasons=_throttle_reasons(moment) if is_up else None,
        xids=tuple(card.xids[code] for code in sorted(card.xids)),
        processes=_processes(card, now) if is_up else (),
        up=is_up and not is_stuck,
        sampled_at=now if is_up else card.lost_at or now,
        texts=_TEXTS,
        collectors=() if is_brief else (_run(card, now, is_up=is_up, is_stuck=is_stuck),),
        instances=tuple(_instance(moment, each, is_brief=is_brief) for each in card.instances)
        if is_up
        else (),
        mig_mode="enabled" if card.instances else "disabled",
        peers=dict.fromkeys(
            card.others, LINKED if card.model.links and not card.instances else NOT_LINKED
        )
        if not is_brief
        else {},
    )


def _instance(moment: _CardWork, instance: CardPart, *, is_brief: bool) -> MigInstance:
    """What is the instance's own: memory and, of cards that can, profiling; programs on it have no
    time of their own.
    """
    card, now = moment.card, moment.now
    holds = card.holds_of(instance)
    fields = _memory_of(
        instance.total_mib, instance.reserved_mib, card.instance_used_mib(instance, now)
    )
    if not is_brief:
        fields |= _named(_bar1(sum(1 for hold in holds if hold.run)))
    if card.model.has_gpm:
        runs = [hold.run for hold in holds if hold.run is not None and hold.run.is_live(now)]
        part = _CardWork(card, now, runs, [], 0.0)
        ratios = {"GR_ENGINE_ACTIVE": GRAPHICS} if is_brief else _RATIOS
        fields |= _named(
            {
                name: round(min(1.0, part.part(field) / instance.compute), 6)
                for name, field in ratios.items()
            },
            _PROF,
        )
    return MigInstance(
        instance.gpu_instance,
        0,
        instance.profile,
        card.instance_uuids[instance.gpu_instance],
        fields,
        processes=tuple(_untimed(_held(card, hold, now, instance.total_mib)) for hold in holds),
    )


def _run(card: Card, now: float, *, is_up: bool, is_stuck: bool) -> CollectorRun:
    errors = {"timeout": 1} if is_stuck else {}
    return CollectorRun(
        "device",
        str(card.index),
        is_up and not is_stuck,
        None,
        now if is_up else card.lost_at,
        errors,
    )


def _fields(moment: _CardWork) -> Values:
    fields = {
        **_essentials(moment),
        **_pace(moment),
        **_memory(moment),
        **_counters(moment),
        **_faults(moment.card),
    }
    fields |= _constants(moment.card.model)
    if moment.card.instances:
        return {name: value for name, value in fields.items() if name not in _NOT_OF_DIVIDED}
    return fields | _profile(moment) if moment.card.model.has_gpm else fields


def _named(values: Values, prefix: str = "DCGM_FI_DEV_") -> Values:
    return {_full_name(prefix, name): value for name, value in values.items()}


@cache
def _full_name(prefix: str, name: str) -> str:
    """One text for all cards: forty thousand of them would hold ninety names each."""
    return prefix + name


def _essentials(moment: _CardWork) -> Values:
    """What boards show of a card."""
    card, now = moment.card, moment.now
    used = card.used_mib(now)
    utilization: Values = {} if card.instances else {"GPU_UTIL": round(100 * moment.level)}
    values: Values = {
        **utilization,
        "FB_TOTAL": card.model.total_mib,
        "FB_TOTAL_BYTES": card.model.total_mib * _MIB,
        "FB_USED": used,
        "FB_USED_BYTES": used * _MIB,
        "GPU_TEMP": round(card.celsius(now)),
        "POWER_USAGE": round(card.watts(now), 3),
    }
    return _named(values)


def _pace(moment: _CardWork) -> Values:
    """Clocks, memory's temperature, and how busy the parts of the chip are."""
    card, runs = moment.card, moment.runs
    model = card.model
    values: Values = {
        "SM_CLOCK": _sm_clock(moment),
        "MEM_CLOCK": model.memory_mhz if runs else model.memory_idle_mhz,
        "POWER_USAGE_INSTANT": round(card.watts(moment.now), 3),
        "PSTATE": 0 if runs or model.memory_mhz == model.memory_idle_mhz else 8,
        "CLOCKS_EVENT_REASONS": _throttle_reasons(moment),
        "MEM_COPY_UTIL": round(100 * moment.part(DRAM)),
        "DEC_UTIL": round(100 * moment.codec()),
    }
    if model.has_memory_sensor:
        values["MEMORY_TEMP"] = round(card.celsius(moment.now) + 6 + 5 * moment.level)
    return _named(values)


@cache
def _constants(model: CardModel) -> Values:
    """The constant values of all cards of a model."""
    limit = model.limit_watts
    values: Values = dict.fromkeys(
        (
            "POWER_MGMT_LIMIT",
            "POWER_MGMT_LIMIT_MAX",
            "POWER_MGMT_LIMIT_DEF",
            "ENFORCED_POWER_LIMIT",
        ),
        limit,
    )
    values |= {
        "POWER_MGMT_LIMIT_MIN": round(limit / 4, 1),
        "MAX_SM_CLOCK": model.sm_mhz,
        "MAX_MEM_CLOCK": model.memory_mhz,
    }
    values |= {
        "PCIE_LINK_GEN": 4,
        "PCIE_LINK_WIDTH": 16,
        "PCIE_MAX_LINK_GEN": 4,
        "PCIE_MAX_LINK_WIDTH": 16,
    }
    values |= {
        "SLOWDOWN_TEMP": 90,
        "SHUTDOWN_TEMP": 95,
        "ECC_CURRENT": 1,
        "ECC_PENDING": 1,
        "VGPU_LICENSE_STATUS": 0,
    }
    never = ["ENC_UTIL", "PCIE_REPLAY_COUNTER"]
    never += [
        f"{cause}_VIOLATION"
        for cause in ("THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTIL", "RELIABILITY")
    ]
    if model.nvlink_bytes:
        never += [
            f"NVLINK_{name}_ERROR_COUNT_TOTAL"
            for name in ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
        ]
    return _named(values | dict.fromkeys(never, 0))


def _memory(moment: _CardWork) -> Values:
    model, used = moment.card.model, moment.card.used_mib(moment.now)
    return _memory_of(model.total_mib, model.reserved_mib, used) | _named(_bar1(len(moment.runs)))


def _memory_of(total: int, reserved: int, used: int) -> Values:
    mib = {"TOTAL": total, "USED": used, "RESERVED": reserved, "FREE": total - reserved - used}
    values: Values = {f"FB_{name}": amount for name, amount in mib.items()}
    values |= {f"FB_{name}_BYTES": amount * _MIB for name, amount in mib.items()}
    return _named(values | {"FB_USED_PERCENT": round(used / (total - reserved), 6)})


def _bar1(runs: int) -> Values:
    used = 4 + 2 * runs
    return {"BAR1_TOTAL": _BAR1_MIB, "BAR1_USED": used, "BAR1_FREE": _BAR1_MIB - used}


def _counters(moment: _CardWork) -> Values:
    card, totals = moment.card, moment.card.totals(moment.now)
    values: Values = {
        "TOTAL_ENERGY_CONSUMPTION": totals.energy_mj,
        "POWER_VIOLATION": totals.power_violation_ns,
        "PCIE_TX_THROUGHPUT": int(card.model.pcie_bytes * moment.part(PCIE_TX) / 1000),
        "PCIE_RX_THROUGHPUT": int(card.model.pcie_bytes * moment.part(PCIE_RX) / 1000),
        "PCIE_TX_BYTES": totals.pcie_tx_bytes,
        "PCIE_RX_BYTES": totals.pcie_rx_bytes,
    }
    if card.model.nvlink_bytes:
        values["NVLINK_BANDWIDTH_TOTAL"] = int(
            card.model.nvlink_bytes * (moment.part(NVLINK_TX) + moment.part(NVLINK_RX)) / 1_024_000
        )
        each = values["NVLINK_BANDWIDTH_TOTAL"] // card.model.links
        values |= {f"NVLINK_BANDWIDTH_L{link}": each for link in range(card.model.links)}
        values["NVLINK_TX_BYTES"] = totals.nvlink_tx_bytes
        values["NVLINK_RX_BYTES"] = totals.nvlink_rx_bytes
    return _named(values)


def _faults(card: Card) -> Values:
    """Error counters follow the XIDs: 48 is a double-bit error, 63 a row that was remapped (or a
    page retired), 64 one that was not.
    """
    double_bit, remapped, failed = (
        card.xids[code].count if code in card.xids else 0 for code in (48, 63, 64)
    )
    values: Values = {
        "XID_ERRORS": card.last_xid,
        "GPU_RECOVERY_ACTION": 1 if card.failed_by else 0,
    }
    for scope in ("VOL", "AGG"):
        values |= {f"ECC_SBE_{scope}_TOTAL": 3 * remapped, f"ECC_DBE_{scope}_TOTAL": double_bit}
    if card.model.remaps_rows:
        values |= {"UNCORRECTABLE_REMAPPED_ROWS": remapped, "CORRECTABLE_REMAPPED_ROWS": 0}
        values |= {"ROW_REMAP_FAILURE": int(failed > 0), "ROW_REMAP_PENDING": int(double_bit > 0)}
    else:
        values |= {
            "RETIRED_SBE": 0,
            "RETIRED_DBE": remapped,
            "RETIRED_PENDING": int(double_bit > 0),
        }
    return _named(values)


def _profile(moment: _CardWork) -> Values:
    """Profiling ratios: how much of the chip is at work, not only whether any of it is.

    Ratios are floats and rates ints, at rest too: an exporter prints the one as `0.000000` and the
    other as `0`.
    """
    model = moment.card.model
    values: Values = {name: round(moment.part(field), 6) for name, field in _RATIOS.items()}
    values |= {
        "PCIE_TX_BYTES": int(model.pcie_bytes * moment.part(PCIE_TX)),
        "PCIE_RX_BYTES": int(model.pcie_bytes * moment.part(PCIE_RX)),
    }
    if model.nvlink_bytes:
        values["NVLINK_TX_BYTES"] = int(model.nvlink_bytes * moment.part(NVLINK_TX))
        values["NVLINK_RX_BYTES"] = int(model.nvlink_bytes * moment.part(NVLINK_RX))
        for way in ("TX", "RX"):
            each = values[f"NVLINK_{way}_BYTES"] // model.links
            values |= {f"NVLINK_L{link}_{way}_BYTES": each for link in range(model.links)}
    return _named(values, _PROF)


def _sm_clock(moment: _CardWork) -> int:
    """The idle clock without work, else the full clock, lower where the power limit applies."""
    model = moment.card.model
    if moment.level < _BUSY and not moment.runs:
        return model.sm_idle_mhz
    return model.sm_mhz - (75 if _throttle_reasons(moment) & POWER_CAP else 0)


def _throttle_reasons(moment: _CardWork) -> int:
    if moment.level < _BUSY:
        return GPU_IDLE
    pairs = zip(moment.runs, moment.levels, strict=True)
    return (
        POWER_CAP
        if any(_is_capped(moment.card, run, level, moment.now) for run, level in pairs)
        else 0
    )


def _is_capped(card: Card, run: Run, level: float, now: float) -> bool:
    return (
        card.is_near_limit(run)
        and run.load.is_at_peak(now - run.started_at)
        and level > run.load.high
    )


def _processes(card: Card, now: float) -> tuple[DeviceProcess, ...]:
    """Processes of containers, then foreign processes."""
    strangers = zip(card.live_strangers(now), card.strange_mib(now), strict=True)
    held = (
        _held(card, hold, now, card.model.total_mib)
        for hold in card.holds
        if hold.gpu_instance is None
    )
    return (*held, *(_strange(card, stranger, mib, now) for stranger, mib in strangers))


def _strange(card: Card, stranger: ForeignProgram, mib: int, now: float) -> DeviceProcess:
    member = _member(card, stranger.run, card.strangers.index(stranger), mib, now)
    return DeviceProcess(
        "", "", "", "", GpuMode.NONE, mib * _MIB, 0, member.sm_percent, members=(member,)
    )


def _member(card: Card, run: Run, place: int, used_mib: int, now: float) -> NamedProcess:
    """The one process of a run; a new run has another number.

    `place`: among those of its card.
    """
    pid = _FIRST_PID + (int(run.started_at) * 613 + card.index * 7919 + place) % _PIDS
    busy = round(100 * run.level(now), 1)
    engines = EngineTime(
        round(100 * run.part(DRAM, now), 1),
        0.0,
        round(100 * run.level(now) * run.load.codec_ratio, 1),
    )
    return NamedProcess(pid, "python3", "C", used_mib * _MIB, busy, engines)


def _untimed(process: DeviceProcess) -> DeviceProcess:
    members = tuple(
        structs.replace(each, sm_percent=None, engines=EngineTime()) for each in process.members
    )
    return structs.replace(process, sm_percent=None, members=members)


def _held(card: Card, hold: Hold, now: float, whole_mib: int) -> DeviceProcess:
    process = DeviceProcess(
        namespace=hold.namespace,
        pod=hold.pod,
        container=hold.container,
        pod_uid=hold.pod_uid,
        allocate_mode=hold.mode,
        memory_used_bytes=hold.used_mib(now) * _MIB,
        memory_limit_bytes=_MIB * (hold.limit_mib if hold.mode == GpuMode.SHARE else whole_mib),
        sm_percent=round(100 * hold.run.level(now), 1) if hold.run else 0.0,
        processes=1 if hold.run else 0,
        members=(_member(card, hold.run, card.holds.index(hold), hold.used_mib(now), now),)
        if hold.run
        else (),
    )
    return process.with_counts(hold.counted(now))
