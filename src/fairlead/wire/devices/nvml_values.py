"""Results of NVML as values of DCGM fields: units, integers, and which results are no value.

The table is docs/spec/telemetry.md#dcgm-fields-from-nvml. Field values come as NVIDIA's structure
of 40 bytes, each with its own error code and type. An impossible value counts as no value: NaN,
infinity, a memory temperature of 255 degrees.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

SUCCESS: Final = 0
NOT_SUPPORTED: Final = 3
ALL_LINKS: Final = 0xFFFFFFFF
LINKS: Final = 18
MIB: Final = 1 << 20

_LAYOUT: Final = struct.Struct("<IIqqIi8s")
_TYPES: Final = tuple(struct.Struct(f"<{code}") for code in "dIQQqiH")
"""Formats by NVML's type number: double, uint, ulong, ulonglong, longlong, int, ushort.

The layout is that of 64-bit Linux.
"""
_UINT: Final = 1
_UNSET_IDS: Final = range(1, 32)
_MEMORY_TEMPERATURE: Final = 82
_HOTTEST_MEMORY: Final = 200
_UNKNOWN_STATE: Final = 32
_NO_VALUE_OF_64_BITS: Final = 2**64 - 1


class NvmlField(Struct, frozen=True, gc=False):
    """One field value of NVML and the DCGM field that it becomes.

    `scope`: number of an NVLink, `ALL_LINKS` = all.

    The DCGM value is NVML's number times `times`, divided by `per`; a field with `per` is a float.
    """

    id: int
    field: str
    scope: int = 0
    times: int = 1
    per: int = 0


class FieldValue(Struct, frozen=True, gc=False):
    """NVML's answer for one field.

    `number` None: `code` has the reason, or the bytes are no number.
    """

    id: int
    scope: int
    code: int
    number: int | float | None


def _rows(*rows: tuple[int, str]) -> tuple[NvmlField, ...]:
    return tuple(NvmlField(number, f"DCGM_FI_DEV_{name}") for number, name in rows)


_LINK_BYTES: Final = (
    NvmlField(138, "DCGM_FI_DEV_NVLINK_TX_BYTES", ALL_LINKS, times=1024),
    NvmlField(139, "DCGM_FI_DEV_NVLINK_RX_BYTES", ALL_LINKS, times=1024),
)
FAST_FIELDS: Final = (
    *_rows(
        (82, "MEMORY_TEMP"),
        (83, "TOTAL_ENERGY_CONSUMPTION"),
        (197, "PCIE_TX_BYTES"),
        (198, "PCIE_RX_BYTES"),
    ),
    NvmlField(186, "DCGM_FI_DEV_POWER_USAGE_INSTANT", per=1000),
    *_LINK_BYTES,
)
SLOW_FIELDS: Final = _rows(
    (1, "ECC_CURRENT"),
    (2, "ECC_PENDING"),
    (3, "ECC_SBE_VOL_TOTAL"),
    (4, "ECC_DBE_VOL_TOTAL"),
    (5, "ECC_SBE_AGG_TOTAL"),
    (6, "ECC_DBE_AGG_TOTAL"),
    (29, "RETIRED_SBE"),
    (30, "RETIRED_DBE"),
    (31, "RETIRED_PENDING"),
    (38, "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
    (45, "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
    (52, "NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
    (59, "NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
    (74, "POWER_VIOLATION"),
    (75, "THERMAL_VIOLATION"),
    (76, "SYNC_BOOST_VIOLATION"),
    (77, "BOARD_LIMIT_VIOLATION"),
    (78, "LOW_UTIL_VIOLATION"),
    (79, "RELIABILITY_VIOLATION"),
    (80, "TOTAL_APP_CLOCKS_VIOLATION"),
    (81, "TOTAL_BASE_CLOCKS_VIOLATION"),
    (94, "PCIE_REPLAY_COUNTER"),
    (142, "CORRECTABLE_REMAPPED_ROWS"),
    (143, "UNCORRECTABLE_REMAPPED_ROWS"),
    (144, "ROW_REMAP_PENDING"),
    (145, "ROW_REMAP_FAILURE"),
    (230, "GPU_RECOVERY_ACTION"),
) + tuple(
    NvmlField(number, f"DCGM_FI_DEV_NVLINK_COUNT_{name}", ALL_LINKS)
    for number, name in {
        201: "TX_PACKETS",
        202: "TX_BYTES",
        203: "RX_PACKETS",
        204: "RX_BYTES",
        206: "RX_MALFORMED_PACKET_ERRORS",
        207: "RX_BUFFER_OVERRUN_ERRORS",
        208: "RX_ERRORS",
        209: "RX_REMOTE_ERRORS",
        210: "RX_GENERAL_ERRORS",
        211: "LOCAL_LINK_INTEGRITY_ERRORS",
        212: "TX_DISCARDS",
        213: "LINK_RECOVERY_SUCCESSFUL_EVENTS",
        214: "LINK_RECOVERY_FAILED_EVENTS",
        215: "LINK_RECOVERY_EVENTS",
        219: "EFFECTIVE_ERRORS",
        220: "EFFECTIVE_BER",
        221: "RX_SYMBOL_ERRORS",
        222: "SYMBOL_BER",
    }.items()
)
"""Fields that are read slowly.

The last fields exist since Blackwell, for all links together; error rates are packed by the driver.
"""


def _ecc_of_places() -> tuple[NvmlField, ...]:
    """ECC error counts by location, ids from 7 on.

    NVML has no count of single-bit errors of the CBU.
    """
    named = [
        f"ECC_{bits}_{scope}_{place}"
        for scope in ("VOL", "AGG")
        for place in ("L1", "L2", "DEV", "REG", "TEX", "CBU")
        for bits in ("SBE", "DBE")
        if (bits, place) != ("SBE", "CBU")
    ]
    return _rows(*enumerate(named, 7))


def _errors_of_links() -> tuple[NvmlField, ...]:
    """Error counts of single NVLinks: NVML has ids for the links 0 to 5, and others for 6 to 11."""
    kinds = ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
    first = [(32 + 7 * at + link, kind, link) for at, kind in enumerate(kinds) for link in range(6)]
    later = [
        (96 + 6 * at + link, kind, 6 + link) for at, kind in enumerate(kinds) for link in range(6)
    ]
    return _rows(
        *((number, f"NVLINK_{kind}_ERROR_COUNT_L{link}") for number, kind, link in (*first, *later))
    )


LINK_COUNT: Final = NvmlField(91, "DCGM_FI_DEV_NVLINK_LINK_COUNT")
LINK_STATES: Final = tuple(
    NvmlField(165, f"DCGM_FI_DEV_NVLINK_STATE_L{link}", link) for link in range(LINKS)
)
"""The number of NVLinks, and the state of each: 0 inactive, 1 active, 2 asleep, 3 without traffic.
"""
WANTED_FIELDS: Final = (
    *_ecc_of_places(),
    *_errors_of_links(),
    *_rows(
        (74, "CLOCKS_EVENT_REASON_SW_POWER_CAP_NS"),
        (76, "CLOCKS_EVENT_REASON_SYNC_BOOST_COUNT_NS"),
        (160, "NVLINK_ECC_DATA_ERROR_COUNT_TOTAL"),
        (170, "C2C_LINK_COUNT"),
        (171, "C2C_LINK_STATUS"),
        (172, "C2C_MAX_BANDWIDTH"),
        (173, "PCIE_COUNT_CORRECTABLE_ERRORS"),
        (231, "C2C_LINK_ERROR_INTR"),
        (232, "C2C_LINK_ERROR_REPLAY"),
        (233, "C2C_LINK_ERROR_REPLAY_B2B"),
        (234, "C2C_LINK_POWER_STATE"),
        (269, "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS"),
        (270, "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"),
        (271, "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS"),
    ),
    *_rows(
        *enumerate(
            (
                f"PWR_SMOOTHING_{name}"
                for name in (
                    "ENABLED",
                    "PRIV_LVL",
                    "IMM_RAMP_DOWN_ENABLED",
                    "APPLIED_TMP_CEIL",
                    "APPLIED_TMP_FLOOR",
                    "MAX_PERCENT_TMP_FLOOR_SETTING",
                    "MIN_PERCENT_TMP_FLOOR_SETTING",
                    "HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING",
                    "MAX_NUM_PRESET_PROFILES",
                    "PROFILE_PERCENT_TMP_FLOOR",
                    "PROFILE_RAMP_UP_RATE",
                    "PROFILE_RAMP_DOWN_RATE",
                    "PROFILE_RAMP_DOWN_HYST_VAL",
                    "ACTIVE_PRESET_PROFILE",
                    "ADMIN_OVERRIDE_PERCENT_TMP_FLOOR",
                    "ADMIN_OVERRIDE_RAMP_UP_RATE",
                    "ADMIN_OVERRIDE_RAMP_DOWN_RATE",
                    "ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL",
                )
            ),
            251,
        )
    ),
)
"""Fields that are read with the slow group, and only when a counters file asks for them."""
RECOVERY_ACTION: Final = next(
    row for row in SLOW_FIELDS if row.field == "DCGM_FI_DEV_GPU_RECOVERY_ACTION"
)


def _bandwidths() -> dict[str, tuple[NvmlField, ...]]:
    found: dict[str, tuple[NvmlField, ...]] = {}
    for link in (ALL_LINKS, *range(LINKS)):
        of = "TOTAL" if link == ALL_LINKS else f"L{link}"
        ways: tuple[NvmlField, ...] = _LINK_BYTES
        if link != ALL_LINKS:
            ways = tuple(
                NvmlField(each.id, f"NVLINK_{of}_{each.field[-8:]}", link, times=1024)
                for each in _LINK_BYTES
            )
        found |= {
            f"DCGM_FI_DEV_NVLINK_BANDWIDTH_{of}": ways,
            f"DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_{of}": ways[:1],
            f"DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_{of}": ways[1:],
        }
    return found


BANDWIDTHS: Final[Mapping[str, tuple[NvmlField, ...]]] = _bandwidths()
"""NVML's byte counters behind each bandwidth field: both directions, or one of them.

Counters of a single link are read only when its bandwidth is asked for.
"""


def parse_field_values(raw: bytes) -> tuple[FieldValue, ...]:
    """NVML's answer, an array of structures.

    Raises ValueError when the length of `raw` does not fit.

    A success without a type means that the driver does not fill this id: not supported. The
    temperature of memory is always read as an unsigned integer, whatever type the driver reports.

    >>> parse_field_values(struct.pack("<IIqqIiQ", 83, 0, 0, 0, 3, 0, 5000))
    (FieldValue(id=83, scope=0, code=0, number=5000),)
    """
    if len(raw) % _LAYOUT.size:
        raise ValueError(
            f"field values are of {_LAYOUT.size} bytes each, here are {len(raw)} bytes"
        )
    return tuple(_field_value(*row) for row in _LAYOUT.iter_unpack(raw))


def _field_value(
    number: int, scope: int, _at: int, _latency: int, kind: int, code: int, value: bytes
) -> FieldValue:
    if code != SUCCESS:
        return FieldValue(number, scope, code, None)
    if number == _MEMORY_TEMPERATURE:
        kind = _UINT
    if kind == 0 and number in _UNSET_IDS:
        return FieldValue(number, scope, NOT_SUPPORTED, None)
    if kind >= len(_TYPES):
        return FieldValue(number, scope, SUCCESS, None)
    read: int | float = _TYPES[kind].unpack_from(value)[0]
    return FieldValue(number, scope, SUCCESS, read if math.isfinite(read) else None)


def field_number(row: NvmlField, answered: FieldValue) -> int | float | None:
    """The value of the DCGM field; None = no value.

    >>> field_number(NvmlField(186, "X", per=1000), FieldValue(186, 0, 0, 71250))
    71.25
    """
    number = answered.number
    if number is None or number < 0 or number == _NO_VALUE_OF_64_BITS:
        return None
    if row.id == _MEMORY_TEMPERATURE and number > _HOTTEST_MEMORY:
        return None
    return number * row.times / row.per if row.per else int(number) * row.times


def bandwidths(
    before: Mapping[str, int | float],
    after: Mapping[str, int | float],
    seconds: float,
    wanted: Collection[str],
) -> dict[str, int]:
    """Bandwidths in DCGM's unit, 1000 KiB a second, from the byte counters of two turns.

    `seconds`: between the turns. A counter that went back, or a span of 0 seconds, gives no
    bandwidth.

    >>> names = "DCGM_FI_DEV_NVLINK_TX_BYTES", "DCGM_FI_DEV_NVLINK_RX_BYTES"
    >>> before, after = (dict.fromkeys(names, count) for count in (0, 10_240_000))
    >>> bandwidths(before, after, 4.0, ["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"])
    {'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL': 5}
    """
    found: dict[str, int] = {}
    for name in wanted if seconds > 0 else ():
        rows = BANDWIDTHS[name]
        if all(
            row.field in before and row.field in after and after[row.field] >= before[row.field]
            for row in rows
        ):
            moved = sum(after[row.field] - before[row.field] for row in rows)
            found[name] = int(moved / 1024 / seconds / 1000)
    return found


def watts(milliwatts: int) -> float:
    """
    >>> watts(71250)
    71.25
    """
    return milliwatts / 1000


def whole_watts(milliwatts: int) -> float:
    """A power limit: DCGM cuts it to whole watts and prints it as a float.

    >>> whole_watts(350999)
    350.0
    """
    return float(milliwatts // 1000)


def memory_fields(total: int, free: int, used: int, reserved: int | None) -> dict[str, int | float]:
    """The driver's bytes as `FB_…_BYTES`, and DCGM's fields in whole MiB.

    `reserved` None: a driver before 510, whose `used` includes what the driver reserves.

    >>> memory_fields(16 * MIB, 7 * MIB, 8 * MIB, MIB)["DCGM_FI_DEV_FB_USED_PERCENT"]
    0.5333333333333333
    """
    answered = {
        "TOTAL": total,
        "FREE": free,
        "USED": used,
        **({} if reserved is None else {"RESERVED": reserved}),
    }
    fields: dict[str, int | float] = {}
    for name, amount in answered.items():
        fields[f"DCGM_FI_DEV_FB_{name}"] = amount // MIB
        fields[f"DCGM_FI_DEV_FB_{name}_BYTES"] = amount
    if reserved is not None and total > reserved:
        fields["DCGM_FI_DEV_FB_USED_PERCENT"] = used / (total - reserved)
    return fields


def performance_state(state: int) -> int | None:
    """
    >>> performance_state(0), performance_state(32)
    (0, None)
    """
    return None if state == _UNKNOWN_STATE else state


def compute_capability(major: int, minor: int) -> int:
    """The major version in the upper, the minor version in the lower 16 bits, as DCGM packs them.

    >>> compute_capability(9, 0), compute_capability(8, 6)
    (589824, 524294)
    """
    return major << 16 | minor


_FABRIC_COMPLETED, _FABRIC_SUCCESS, _FABRIC_FAILURE, _FABRIC_UNRECOGNIZED = 3, 3, 4, 5


def fabric_fields(
    state: int, status: int, clique: int, health_mask: int, health: int
) -> dict[str, int | None]:
    """The state of the card in its NVLink fabric, in DCGM's numbers (`dcgmFabricManagerStatus_t`).

    `state`: NVML's, 0 not supported to 3 completed; `status`: the NVML code of the registration.
    The other values are known only in state 3.

    >>> fabric_fields(3, 10, 7, 0, 1)["FABRIC_MANAGER_STATUS"]
    4
    >>> fabric_fields(2, 0, 7, 0, 0)
    {'FABRIC_MANAGER_STATUS': 2, 'FABRIC_MANAGER_ERROR_CODE': 0}
    """
    found: dict[str, int | None] = {
        "FABRIC_MANAGER_STATUS": state if state <= _FABRIC_COMPLETED else _FABRIC_UNRECOGNIZED
    }
    found["FABRIC_MANAGER_ERROR_CODE"] = status
    if state == _FABRIC_COMPLETED:
        found["FABRIC_MANAGER_STATUS"] = _FABRIC_FAILURE if status != SUCCESS else _FABRIC_SUCCESS
        found |= {
            "FABRIC_CLIQUE_ID": clique,
            "FABRIC_HEALTH_MASK": health_mask,
            "FABRIC_HEALTH_SUMMARY": health,
        }
    return found


_BRANDS: Final = (
    "Unknown",
    "Quadro",
    "Tesla",
    "NVS",
    "GRID",
    "GeForce",
    "Titan",
    "NVIDIA vApps",
    "NVIDIA vPC",
    "NVIDIA vCS",
    "NVIDIA vWS",
    "NVIDIA vGaming",
    "Quadro RTX",
    "NVIDIA RTX",
    "NVIDIA",
    "GeForce RTX",
    "Titan RTX",
)


def brand(number: int) -> str:
    """The name of the product line. The spelling is not verified against DCGM.

    >>> brand(2), brand(14), brand(99)
    ('Tesla', 'NVIDIA', 'Unknown')
    """
    return _BRANDS[number] if 0 <= number < len(_BRANDS) else _BRANDS[0]
