"""Reads XIDs in the kernel's log since the boot, including those of the time without an exporter.

Each read of `/dev/kmsg` returns one record, the oldest first. Records that the kernel has dropped
are lost; reading continues behind them. The clock of the records is not adjusted, so after weeks it
is seconds off: records since the last look are taken to be of that interval.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fairlead.errors import NotFound, OutsideError
from fairlead.model.devices.xid import KernelXid, XidReport
from fairlead.wire.devices.kernel_xid import parse_kernel_xid

KERNEL_LOG: Final = Path("/dev/kmsg")
_SYSTEM: Final = "kmsg"
_LONGEST_RECORD: Final = 16_384
_STAMPED_SECONDS: Final = 1.0
"""Largest difference in seconds between a record's stamp and its reading.

With a larger one the stamp is not used.
"""
_NO_LOG: Final = (errno.ENOENT, errno.ENODEV, errno.ENXIO)
_MOUNT: Final = (
    "mount the node's `/dev/kmsg`, in a container that is `privileged`, to get XIDs of before the "
    "start"
)
_MAY: Final = (
    "a container must be `privileged` to read it, and elsewhere root; or run with `--kmsg off`"
)
_MOST_RECORDS: Final = 200_000
"""Records read in one turn; the rest is read in the next."""


class KernelLog:
    """`monotonic` returns seconds since the boot, as in the kernel's records."""

    def __init__(
        self,
        path: Path = KERNEL_LOG,
        monotonic: Callable[[], float] = time.monotonic,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self._path = path
        self._monotonic = monotonic
        self._read = read
        self._file: int | None = None
        self._seen: list[XidReport] = []
        self._last = -1
        self._drained_at: float | None = None

    def drain(self) -> list[XidReport]:
        """Records since the last call; at the first call, all that the kernel still has.

        Does not wait. Raises NotFound when there is no log, another OutsideError when it cannot be
        read; the next call opens it again and continues behind what was read.
        """
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._read_all(self._file)
        except OSError as error:
            self.close()
            what = f"`{self._path}` cannot be read: {error.strerror or error}"
            if error.errno in _NO_LOG:
                raise NotFound(_SYSTEM, what, _MOUNT) from error
            raise OutsideError(
                _SYSTEM, what, _MAY if error.errno in (errno.EPERM, errno.EACCES) else ""
            ) from error
        seen, self._seen = self._seen, []
        return seen

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read_all(self, file: int) -> None:
        for _ in range(_MOST_RECORDS):
            try:
                records = self._read(file, _LONGEST_RECORD)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    self._drained_at = self._monotonic()
                    break
                # the oldest records were dropped: continue behind them
                if error.errno == errno.EPIPE:
                    continue
                raise
            if not records:
                break
            seen = parse_kernel_xid(records.decode("utf-8", errors="replace"))
            if seen is not None and seen.sequence > self._last:
                self._last = seen.sequence
                self._seen.append(self._report(seen))

    def _report(self, seen: KernelXid) -> XidReport:
        """The XID with the stamp of its record.

        A stamp too far from the time of reading is not used.
        """
        since, now = self._drained_at, self._monotonic()
        if since is None or since - _STAMPED_SECONDS <= seen.since_boot <= now + _STAMPED_SECONDS:
            return XidReport(seen.bus, seen.xid, min(seen.since_boot, now), None, seen.gpu_instance)
        return XidReport(seen.bus, seen.xid, since, now, seen.gpu_instance)
