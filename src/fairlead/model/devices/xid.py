"""XID errors: texts of NVIDIA's catalog, and the severity of each.

Specification: docs/spec/telemetry.md#xid-errors.

DCGM's gauge keeps the last value for ever, so alerts use Fairlead's counter and timestamp, never
this text.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

CRITICAL: Final = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})
WARNING: Final = frozenset({63, 92, 94, 154})
APPLICATION: Final = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs caused by the program on the GPU; they never make the GPU unhealthy."""
COUNTED_FROM_START: Final = (48, 62, 63, 64, 74, 79, 94, 95, 119, 120, 140)
"""XIDs whose counters exist at 0 from the start: `increase()` misses a counter that begins at 1."""

_TEXTS: Final = {
    0: "No Error",
    1: "Invalid or corrupted push buffer stream",
    2: "Invalid or corrupted push buffer stream",
    3: "Invalid or corrupted push buffer stream",
    4: "Invalid or corrupted push buffer stream",
    5: "Unused",
    6: "Invalid or corrupted push buffer stream",
    7: "Invalid or corrupted push buffer address",
    8: "GPU stopped processing",
    9: "Driver error programming GPU",
    10: "Unused",
    11: "Invalid or corrupted push buffer stream",
    12: "Driver error handling GPU exception",
    13: "Graphics Engine Exception",
    14: "Unused",
    15: "Unused",
    16: "Display engine hung",
    17: "Unused",
    18: "Bus mastering disabled in PCI Config Space",
    19: "Display Engine error",
    20: "Invalid or corrupted Mpeg push buffer",
    21: "Invalid or corrupted Motion Estimation push buffer",
    22: "Invalid or corrupted Video Processor push buffer",
    23: "Unused",
    24: "GPU semaphore timeout",
    25: "Invalid or illegal push buffer stream",
    26: "Framebuffer timeout",
    27: "Video processor exception",
    28: "Video processor exception",
    29: "Video processor exception",
    30: "GPU semaphore access error",
    31: "GPU memory page fault",
    32: "Invalid or corrupted push buffer stream",
    33: "Internal micro-controller error",
    34: "Video processor exception",
    35: "Video processor exception",
    36: "Video processor exception",
    37: "Driver firmware error",
    38: "Driver firmware error",
    39: "Unused",
    40: "Unused",
    41: "Unused",
    42: "Video processor exception",
    43: "GPU stopped processing",
    44: "Graphics Engine fault during context switch",
    45: "Preemptive cleanup, due to previous errors",
    46: "GPU stopped processing",
    47: "Video processor exception",
    48: "Double Bit ECC Error",
    49: "Unused",
    50: "Unused",
    51: "Unused",
    52: "Unused",
    53: "Unused",
    54: "Auxiliary power is not connected to the GPU board",
    55: "Unused",
    56: "Display Engine error",
    57: "Error programming video memory interface",
    58: "Unstable video memory interface detected",
    59: "Internal micro-controller error",
    60: "Video processor exception",
    61: "Internal micro-controller breakpoint/warning",
    62: "Internal micro-controller halt",
    63: "ECC page retirement or row remapping recording event",
    64: "ECC page retirement or row remapper recording failure",
    65: "Video processor exception",
    66: "Illegal access by driver",
    67: "Illegal access by driver",
    68: "NVDEC0 Exception",
    69: "Graphics Engine class error",
    70: "CE3: Unknown Error",
    71: "CE4: Unknown Error",
    72: "CE5: Unknown Error",
    73: "NVENC2 Error",
    74: "NVLINK Error",
    75: "CE6: Unknown Error",
    76: "CE7: Unknown Error",
    77: "CE8: Unknown Error",
    78: "vGPU Start Error",
    79: "GPU has fallen off the bus",
    80: "Corrupted data sent to GPU",
    81: "VGA Subsystem Error",
    82: "NVJPG0 Error",
    83: "NVDEC1 Error",
    84: "NVDEC2 Error",
    85: "CE9: Unknown Error",
    86: "OFA Exception",
    87: "Reserved",
    88: "NVDEC3 Error",
    89: "NVDEC4 Error",
    90: "Reserved",
    91: "Reserved",
    92: "High single-bit ECC error rate",
    93: "Non-fatal violation of provisioned InfoROM wear limit",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    96: "NVDEC5 Error",
    97: "NVDEC6 Error",
    98: "NVDEC7 Error",
    99: "NVJPG1 Error",
    100: "NVJPG2 Error",
    101: "NVJPG3 Error",
    102: "NVJPG4 Error",
    103: "NVJPG5 Error",
    104: "NVJPG6 Error",
    105: "NVJPG7 Error",
    106: "SMBPBI Test Message",
    107: "SMBPBI Test Message Silent",
    108: "Reserved",
    109: "Context Switch Timeout Error",
    110: "Security Fault Error",
    111: "Display Bundle Error Event",
    112: "Display Supervisor Error",
    113: "DP Link Training Error",
    114: "Display Pipeline Underflow Error",
    115: "Display Core Channel Error",
    116: "Display Window Channel Error",
    117: "Display Cursor Channel Error",
    118: "Display Pixel Pipeline Error",
    119: "GSP RPC timeout",
    120: "GSP error",
    121: "C2C Link Error",
    122: "SPI PMU RPC Read Failure",
    123: "SPI PMU RPC Write Failure",
    124: "SPI PMU RPC Erase Failure",
    125: "Inforom FS Failure",
    126: "CE10: Unknown Error",
    127: "CE11: Unknown Error",
    128: "CE12: Unknown Error",
    129: "CE13: Unknown Error",
    130: "CE14: Unknown Error",
    131: "CE15: Unknown Error",
    132: "CE16: Unknown Error",
    133: "CE17: Unknown Error",
    134: "CE18: Unknown Error",
    135: "CE19: Unknown Error",
    136: "NVLINK: training failed",
    137: "NVLINK: access without privilege",
    138: "Unused",
    139: "OFA1 Error",
    140: "Unrecovered ECC Error",
    141: "CUDA fast path error",
    142: "NVENC3 Error",
    143: "GPU Initialization Failure",
    144: "NVLINK: SAW Error",
    145: "NVLINK: RLW Error",
    146: "NVLINK: TLW Error",
    147: "NVLINK: TREX Error",
    148: "NVLINK: NVLPW_CTRL Error",
    149: "NVLINK: NETIR Error",
    150: "NVLINK: MSE Error",
    151: "Key rotation Error",
    152: "DLA SMMU Error",
    153: "DLA timeout Error",
    154: "GPU recovery action changed",
    155: "NVLINK: SW Defined Error",
    156: "Resource Retirement Event",
    157: "Resource Retirement Failure",
    158: "GPU Fatal Timeout",
    159: "CHI Non-Data Error",
    160: "Channel Retirement Event",
    161: "Channel Retirement Failure",
    162: "Power Smoothing HW Circuitry capability reengaged",
    163: "Power Smoothing HW Circuitry capability disengaged",
    164: "Power Smoothing HW Circuitry low lifetime reached",
    165: "Power Smoothing HW Circuitry lifetime exhausted",
    166: "NVLINK: traffic before encryption was set up",
    167: "PCIe Fatal Timeout",
    168: "Errors in the write-protected region, memory reduced",
    169: "Internal micro-controller halt",
    170: "Interrupt seen in CC mode",
    171: "Additional to Xid 48: DRAM",
    172: "Additional to Xid 48: SRAM",
}


def xid_text(xid: int) -> str:
    """NVIDIA's words for the code.

    >>> xid_text(79), xid_text(999)
    ('GPU has fallen off the bus', 'Unknown Error')
    """
    return _TEXTS.get(xid, "Unknown Error")


class XidReport(Struct, frozen=True, gc=False):
    """A reported XID. `bus`: the card's PCI address as `0000:3b:00`, "" = of no card.

    `at`: seconds of the steady clock; `until`: the latest possible time if the time is not exact,
    None = it is. `gpu_instance`: of a card divided by MIG, None = the whole card, or unknown.
    `source`: `kernel` (its log) or `nvml` (its events).
    """

    bus: str
    xid: int
    at: float
    until: float | None = None
    gpu_instance: int | None = None
    source: str = "kernel"


class JoinedXids(Struct, frozen=True, gc=False):
    """Reports of two sources, joined.

    `fresh`: those that count, by time; `alone`: those without a pair.
    """

    fresh: tuple[XidReport, ...]
    alone: tuple[XidReport, ...]


class KernelXid(Struct, frozen=True, gc=False):
    """An XID in the kernel's log, in seconds since the boot. `sequence`: number of the log record.

    `gpu_instance` as in `XidReport`.
    """

    bus: str
    xid: int
    since_boot: float
    sequence: int = 0
    gpu_instance: int | None = None
