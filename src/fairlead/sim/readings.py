"""What does a driver say about a card right now? A `Card` at an instant, as a `DeviceSample` with DCGM's field names and units.

A card that has fallen off the bus (XID 79) answers nothing more: its sample is there, `up` is False and it has no fields.
"""

from __future__ import annotations

from fairlead.model.device import DeviceProcess, DeviceSample
from fairlead.model.xid import WARNING
from fairlead.sim.card import Card, Run

DRIVER_VERSION = "570.172.08"
CUDA_VERSION = "12.8"

GPU_IDLE, POWER_CAP = 0x1, 0x4
_BUSY = 0.01
_BAR1_MIB = 256


def read_card(card: Card, now: float) -> DeviceSample:
    """One sample; pure in (card, now). Memory adds up: containers <= used <= total - reserved."""
    is_up = card.lost_at is None or now < card.lost_at
    return DeviceSample(
        node=card.node,
        index=card.index,
        minor=card.minor,
        uuid=card.uuid,
        pci_bus_id=card.pci_bus_id,
        model=card.model.name,
        driver_version=DRIVER_VERSION,
        healthy=card.is_healthy,
        fields=_fields(card, now) if is_up else {},
        power_limit_watts=card.model.limit_watts if is_up else None,
        serial=card.serial,
        cuda_version=CUDA_VERSION,
        vbios_version="92.00.9E.00.01",
        throttle_reasons=_throttle_reasons(card, now) if is_up else None,
        health_checks=_health_checks(card, is_up),
        xids=tuple(card.xids[code] for code in sorted(card.xids)),
        processes=_processes(card, now) if is_up else (),
        up=is_up,
        sampled_at=now,
    )


def _fields(card: Card, now: float) -> dict[str, int | float]:
    named = {**_pace(card, now), **_memory(card, now), **_counters(card, now), **_faults(card), **_limits(card)}
    profile = _profile(card, now) if card.model.has_gpm else {}
    return {f"DCGM_FI_DEV_{name}": value for name, value in named.items()} | profile


def _pace(card: Card, now: float) -> dict[str, int | float]:
    """Clocks, temperatures, power, utilisation."""
    model, runs, level = card.model, card.live_runs(now), card.level(now)
    celsius, watts = card.celsius(now), round(card.watts(now), 3)
    values: dict[str, int | float] = {
        "SM_CLOCK": _sm_clock(card, now),
        "MEM_CLOCK": model.memory_mhz if runs else model.memory_idle_mhz,
        "MAX_SM_CLOCK": model.sm_mhz,
        "MAX_MEM_CLOCK": model.memory_mhz,
        "GPU_TEMP": round(celsius),
        "SLOWDOWN_TEMP": 90,
        "SHUTDOWN_TEMP": 95,
        "POWER_USAGE": watts,
        "POWER_USAGE_INSTANT": watts,
        "PSTATE": 0 if runs or model.memory_mhz == model.memory_idle_mhz else 8,
        "CLOCKS_EVENT_REASONS": _throttle_reasons(card, now),
        "GPU_UTIL": round(100 * level),
        "MEM_COPY_UTIL": round(100 * _weighted(runs, now, "bandwidth_ratio")),
        "ENC_UTIL": 0,
        "DEC_UTIL": round(100 * _weighted(runs, now, "codec_ratio")),
    }
    if model.has_memory_sensor:
        values["MEMORY_TEMP"] = round(celsius + 6 + 5 * level)
    return values


def _limits(card: Card) -> dict[str, int | float]:
    limit = card.model.limit_watts
    named = ("POWER_MGMT_LIMIT", "POWER_MGMT_LIMIT_MAX", "POWER_MGMT_LIMIT_DEF", "ENFORCED_POWER_LIMIT")
    link: dict[str, int | float] = {"PCIE_LINK_GEN": 4, "PCIE_LINK_WIDTH": 16, "PCIE_MAX_LINK_GEN": 4, "PCIE_MAX_LINK_WIDTH": 16}
    return {"POWER_MGMT_LIMIT_MIN": round(limit / 4, 1)} | dict.fromkeys(named, limit) | link


def _memory(card: Card, now: float) -> dict[str, int | float]:
    total, reserved, used = card.model.total_mib, card.model.reserved_mib, card.used_mib(now)
    bar1_used = 4 + 2 * len(card.live_runs(now))
    return {
        "FB_TOTAL": total,
        "FB_RESERVED": reserved,
        "FB_USED": used,
        "FB_FREE": total - reserved - used,
        "FB_USED_PERCENT": round(used / (total - reserved), 6),
        "BAR1_TOTAL": _BAR1_MIB,
        "BAR1_USED": bar1_used,
        "BAR1_FREE": _BAR1_MIB - bar1_used,
    }


def _counters(card: Card, now: float) -> dict[str, int | float]:
    totals, runs = card.totals(now), card.live_runs(now)
    flow = sum(run.level(now) * run.load.bandwidth_ratio for run in runs)
    values: dict[str, int | float] = {
        "TOTAL_ENERGY_CONSUMPTION": totals.energy_mj,
        "POWER_VIOLATION": totals.power_violation_ns,
        "PCIE_TX_THROUGHPUT": int(0.35 * card.model.pcie_bytes * flow / 1000),
        "PCIE_RX_THROUGHPUT": int(card.model.pcie_bytes * flow / 1000),
        "PCIE_TX_BYTES": totals.pcie_tx_bytes,
        "PCIE_RX_BYTES": totals.pcie_rx_bytes,
    }
    for name in ("THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTIL", "RELIABILITY"):
        values[f"{name}_VIOLATION"] = 0
    if card.model.nvlink_bytes:
        values["NVLINK_BANDWIDTH_TOTAL"] = int(2 * card.model.nvlink_bytes * flow / 1_024_000)
        values["NVLINK_TX_BYTES"] = totals.nvlink_tx_bytes
        values["NVLINK_RX_BYTES"] = totals.nvlink_rx_bytes
        for name in ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY"):
            values[f"NVLINK_{name}_ERROR_COUNT_TOTAL"] = 0
    return values


def _faults(card: Card) -> dict[str, int | float]:
    """Error counters follow the XIDs: 48 is a double-bit error, 63 a row that was remapped (or a page retired), 64 one that was not."""
    double_bit, remapped, failed = (card.xids[code].count if code in card.xids else 0 for code in (48, 63, 64))
    values: dict[str, int | float] = {
        "XID_ERRORS": card.last_xid,
        "PCIE_REPLAY_COUNTER": 0,
        "ECC_CURRENT": 1,
        "ECC_PENDING": 1,
        "VGPU_LICENSE_STATUS": 0,
        "GPU_RECOVERY_ACTION": 1 if card.failed_by else 0,
    }
    for scope in ("VOL", "AGG"):
        values |= {f"ECC_SBE_{scope}_TOTAL": 3 * remapped, f"ECC_DBE_{scope}_TOTAL": double_bit}
    if card.model.remaps_rows:
        rows: dict[str, int | float] = {"UNCORRECTABLE_REMAPPED_ROWS": remapped, "CORRECTABLE_REMAPPED_ROWS": 0}
        return values | rows | {"ROW_REMAP_FAILURE": int(failed > 0), "ROW_REMAP_PENDING": int(double_bit > 0)}
    return values | {"RETIRED_SBE": 0, "RETIRED_DBE": remapped, "RETIRED_PENDING": int(double_bit > 0)}


def _profile(card: Card, now: float) -> dict[str, int | float]:
    """Profiling ratios: how much of the chip is at work, not only whether any of it is.

    Ratios are floats and rates ints, at rest too: an exporter prints the one as `0.000000` and the other as `0`.
    """
    runs, level = card.live_runs(now), card.level(now)
    flow = sum((run.level(now) * run.load.bandwidth_ratio for run in runs), start=0.0)
    tensor = _weighted(runs, now, "tensor_ratio")
    values: dict[str, int | float] = {
        "GR_ENGINE_ACTIVE": round(level, 6),
        "SM_ACTIVE": round(0.93 * level, 6),
        "SM_OCCUPANCY": round(0.41 * level, 6),
        "PIPE_TENSOR_ACTIVE": round(tensor, 6),
        "DRAM_ACTIVE": round(flow, 6),
        "PIPE_FP64_ACTIVE": 0.0,
        "PIPE_FP32_ACTIVE": round(0.22 * level, 6),
        "PIPE_FP16_ACTIVE": round(0.08 * level, 6),
        "PCIE_TX_BYTES": int(0.35 * card.model.pcie_bytes * flow),
        "PCIE_RX_BYTES": int(card.model.pcie_bytes * flow),
    }
    if card.model.nvlink_bytes:
        values |= dict.fromkeys(("NVLINK_TX_BYTES", "NVLINK_RX_BYTES"), int(card.model.nvlink_bytes * flow))
    return {f"DCGM_FI_PROF_{name}": value for name, value in values.items()}


def _weighted(runs: list[Run], now: float, ratio: str) -> float:
    return min(1.0, sum((run.level(now) * float(getattr(run.load, ratio)) for run in runs), start=0.0))


def _sm_clock(card: Card, now: float) -> int:
    """Idle clock without work; at work the full clock, a few steps lower where the power limit bites."""
    if card.level(now) < _BUSY and not card.live_runs(now):
        return card.model.sm_idle_mhz
    return card.model.sm_mhz - (75 if _throttle_reasons(card, now) & POWER_CAP else 0)


def _throttle_reasons(card: Card, now: float) -> int:
    if card.level(now) < _BUSY:
        return GPU_IDLE
    return POWER_CAP if any(_is_capped(card, run, now) for run in card.live_runs(now)) else 0


def _is_capped(card: Card, run: Run, now: float) -> bool:
    return card.is_near_limit(run) and run.load.is_at_peak(now - run.started_at) and run.level(now) > run.load.high


def _health_checks(card: Card, is_up: bool) -> dict[str, int]:
    """0 ok, 1 warn, 2 fail (telemetry contract 1.9)."""
    memory = 2 if 48 in card.xids or 64 in card.xids else 0
    remap = 2 if 64 in card.xids else 1 if 63 in card.xids else 0
    worst = 2 if card.failed_by else 1 if WARNING & card.xids.keys() else 0  # a program's own fault (13, 31, …) is none of the card's
    return {"xid": worst, "ecc": memory, "remap": remap, "thermal": 0, "power": 0, "nvlink": 0, "pcie": 0, "lost": 0 if is_up else 2}


def _processes(card: Card, now: float) -> tuple[DeviceProcess, ...]:
    return tuple(
        DeviceProcess(
            namespace=hold.namespace,
            pod=hold.pod,
            container=hold.container,
            pod_uid=hold.pod_uid,
            allocate_mode=hold.mode,
            memory_used_mib=hold.used_mib(now),
            memory_limit_mib=hold.limit_mib if hold.mode == "share" else card.model.total_mib,
            sm_percent=round(100 * hold.run.level(now), 1) if hold.run else 0.0,
            processes=1 if hold.run else 0,
        )
        for hold in card.holds
    )
