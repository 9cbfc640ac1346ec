"""XIDs as NVIDIA's kernel module writes them into the kernel's log, read from `/dev/kmsg`.

A record reads `4,1234,5678901,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=77, …`; the third number is
microseconds since the boot. For a card that is divided by MIG, ` GPU-I:05` after the address names
the GPU instance. Any program that may write to the log could write such a line, so only records of
the kernel itself are accepted.
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.model.devices.xid import KernelXid

_PLACE: Final = r"(?:PCI:)?([0-9A-Fa-f:.]+)(?: GPU-I:(\d{1,3}))?(?: GPU-CI:\d{1,3})?"
_RECORD: Final = re.compile(
    rf"(\d{{1,9}}),(\d{{1,20}}),(\d{{1,18}}),[^;\n]*;NVRM: Xid "
    rf"\({_PLACE}\): (\d{{1,9}})(?:,|$|\n)"
)
_BUS: Final = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-9a-f])?")
_KERNEL: Final = 0
"""The facility of the kernel; the facility is in the bits above the three bits of the severity."""


def parse_kernel_xid(record: str) -> KernelXid | None:
    """The XID of a record; None when the record reports no XID.

    >>> text = "NVRM: Xid (PCI:0000:3B:00): 79, pid=77, GPU has fallen off the bus."
    >>> parse_kernel_xid(f"4,12,5000000,-;{text}")
    KernelXid(bus='0000:3b:00', xid=79, since_boot=5.0, sequence=12, gpu_instance=None)
    >>> parse_kernel_xid("12,12,5000000,-;NVRM: Xid (PCI:0000:3b:00): 79, written by a program")
    """
    found = _RECORD.match(record)
    if found is None or int(found[1]) >> 3 != _KERNEL:
        return None
    bus = pci_bus(found[4])
    part = None if found[5] is None else int(found[5])
    return KernelXid(bus, int(found[6]), int(found[3]) / 1e6, int(found[2]), part) if bus else None


def pci_bus(text: str) -> str:
    """A card's PCI address in one spelling without its function; "" = the text is no address.

    >>> pci_bus("00000000:3B:00.0"), pci_bus("0000:3b:00")
    ('0000:3b:00', '0000:3b:00')
    >>> pci_bus("3b:00.0"), pci_bus("beside the bus")
    ('0000:3b:00', '')
    """
    found = _BUS.fullmatch(text.strip().lower())
    return (
        f"{int(found[1] or '0', 16):04x}:{int(found[2], 16):02x}:{int(found[3], 16):02x}"
        if found
        else ""
    )
