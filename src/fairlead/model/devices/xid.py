"""XID errors: what NVIDIA's driver calls the number, and how bad it is (telemetry contract 1.7).

The DCGM gauge keeps the last value for ever, so alerts use our own counter and timestamp, never this text.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

CRITICAL: Final = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})
WARNING: Final = frozenset({63, 92, 94, 154})
APPLICATION: Final = frozenset({13, 31, 43, 45, 68, 109})
"""A fault of the program on the GPU: never makes the GPU unhealthy."""
COUNTED_FROM_START: Final = (48, 62, 63, 64, 74, 79, 94, 95, 119, 120, 140)
"""Counters that exist at 0 before anything happened: `increase()` cannot see a counter that is born at 1."""

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
    11: "Invalid or corrupted push buffer stream",
    12: "Driver error handling GPU exception",
    13: "Graphics Engine Exception",
    16: "Display engine hung",
    18: "Bus mastering disabled in PCI Config Space",
    19: "Display Engine error",
    24: "GPU semaphore timeout",
    25: "Invalid or illegal push buffer stream",
    26: "Framebuffer timeout",
    31: "GPU memory page fault",
    32: "Invalid or corrupted push buffer stream",
    37: "Driver firmware error",
    38: "Driver firmware error",
    42: "Video processor exception",
    43: "GPU stopped processing",
    44: "Graphics Engine fault during context switch",
    45: "Preemptive cleanup, due to previous errors",
    46: "GPU stopped processing",
    47: "Video processor exception",
    48: "Double Bit ECC Error",
    54: "Auxiliary power is not connected to the GPU board",
    56: "Display Engine error",
    57: "Error programming video memory interface",
    58: "Unstable video memory interface detected",
    61: "Internal micro-controller breakpoint/warning",
    62: "Internal micro-controller halt",
    63: "ECC page retirement or row remapping recording event",
    64: "ECC page retirement or row remapper recording failure",
    65: "Video processor exception",
    68: "NVDEC0 Exception",
    69: "Graphics Engine class error",
    74: "NVLINK Error",
    78: "vGPU Start Error",
    79: "GPU has fallen off the bus",
    80: "Corrupted data sent to GPU",
    81: "VGA Subsystem Error",
    92: "High single-bit ECC error rate",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    109: "Context Switch Timeout Error",
    119: "GSP RPC timeout",
    120: "GSP error",
    140: "Unrecovered ECC Error",
    154: "GPU recovery action changed",
}


def xid_text(xid: int) -> str:
    """NVIDIA's words for the code.

    >>> xid_text(79), xid_text(999)
    ('GPU has fallen off the bus', 'Unknown Error')
    """
    return _TEXTS.get(xid, "Unknown Error")


def xid_severity(xid: int) -> str:
    """critical, warning, application or info.

    >>> xid_severity(79), xid_severity(31)
    ('critical', 'application')
    """
    for word, codes in (("critical", CRITICAL), ("warning", WARNING), ("application", APPLICATION)):
        if xid in codes:
            return word
    return "info"


class XidReport(Struct, frozen=True, gc=False):
    """An XID that was told. `bus`: the card's place as `0000:3b:00`, "" = of no card; `at`: epoch seconds."""

    bus: str
    xid: int
    at: float


class KernelXid(Struct, frozen=True, gc=False):
    """One of the kernel's log, in seconds since the boot."""

    bus: str
    xid: int
    since_boot: float
