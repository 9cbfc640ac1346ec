"""XIDs that the kernel's log holds since the boot: what nobody heard while no exporter ran.

Each read of `/dev/kmsg` gives one record, the oldest first. Records that the kernel has thrown away before
they were read are lost, and the rest is read.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fairlead.errors import OutsideError
from fairlead.model.devices.xid import XidReport
from fairlead.wire.devices.kernel_xid import parse_kernel_xid

KERNEL_LOG: Final = Path("/dev/kmsg")
_SYSTEM: Final = "kmsg"
_LONGEST_RECORD: Final = 16_384
_MOST_RECORDS: Final = 200_000
"""Of one turn; the rest comes with the next."""


class KernelLog:
    """`now` gives epoch seconds, `monotonic` seconds since the boot, as the kernel stamps its records."""

    def __init__(
        self,
        path: Path = KERNEL_LOG,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self._path = path
        self._now = now
        self._monotonic = monotonic
        self._read = read
        self._file: int | None = None
        self._seen: list[XidReport] = []

    def drain(self) -> list[XidReport]:
        """What was written since the last call; at the first one, all that the kernel still has.

        Does not wait. Raises OutsideError when the log cannot be read; the next call opens it anew, from its
        beginning, and tells what this one had read, too.
        """
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._read_all(self._file)
        except OSError as error:
            self.close()
            hint = "mount `/dev/kmsg` and give the capability SYSLOG, or run with `--kmsg off`"
            raise OutsideError(_SYSTEM, f"`{self._path}` cannot be read: {error.strerror or error}", hint) from error
        seen, self._seen = self._seen, []
        return seen

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read_all(self, file: int) -> None:
        booted_at = self._now() - self._monotonic()
        for _ in range(_MOST_RECORDS):
            try:
                records = self._read(file, _LONGEST_RECORD)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    break
                if error.errno == errno.EPIPE:  # the oldest were thrown away: reading goes on behind them
                    continue
                raise
            if not records:
                break
            seen = parse_kernel_xid(records.decode("utf-8", errors="replace"))
            if seen is not None:
                self._seen.append(XidReport(seen.bus, seen.xid, booted_at + seen.since_boot))
