"""XIDs read from `/dev/kmsg`: a record for each read, and errors as the kernel's documentation
describes them.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fairlead.edge.nvml.kernel_log import KernelLog
from fairlead.errors import NotFound, OutsideError
from fairlead.model.devices.xid import XidReport


class Records:
    """Plays the device: bytes are a record, a number is an
    error, nothing left = try again later.
    """

    def __init__(self, *reported: bytes | int) -> None:
        self.reported = list(reported)
        self.now = 5_000.0

    def read(self, _file: int, size: int) -> bytes:
        record = self.reported.pop(0) if self.reported else errno.EAGAIN
        if isinstance(record, int):
            raise OSError(record, os.strerror(record))
        assert len(record) <= size
        return record


def _log(path: Path, records: Records) -> KernelLog:
    path.touch()
    return KernelLog(path, lambda: records.now, records.read)


def _xid(xid: int, microseconds: int, sequence: int = 0) -> bytes:
    head = (sequence or microseconds // 1000 + xid, microseconds, xid)
    return b"4,%d,%d,-;NVRM: Xid (PCI:0000:3b:00): %d, pid=1, name=a\n SUBSYSTEM=pci\n" % head


def test_all_since_the_boot_then_what_is_new(tmp_path: Path) -> None:
    records = Records(
        b"6,1,0,-;Linux version 6\n",
        _xid(79, 4_000_500_000),
        b"6,3,4000600000,-;usb 1-1\xff\n",
        _xid(48, 4_999_000_000),
    )
    log = _log(tmp_path / "kmsg", records)
    assert log.drain() == [
        XidReport("0000:3b:00", 79, 4_000.5),
        XidReport("0000:3b:00", 48, 4_999.0),
    ]
    assert log.drain() == []
    records.reported.append(_xid(31, 5_000_000_000))
    assert log.drain() == [XidReport("0000:3b:00", 31, 5_000.0)]
    log.close()


def test_records_that_were_thrown_away(tmp_path: Path) -> None:
    log = _log(tmp_path / "kmsg", Records(errno.EPIPE, _xid(79, 0, 7), errno.EPIPE, _xid(48, 0, 9)))
    assert [report.xid for report in log.drain()] == [79, 48]
    log.close()


def test_a_log_that_breaks_is_opened_anew_and_read_on(tmp_path: Path) -> None:
    """The log begins with the oldest record again; a record that was reported once is not reported
    again.
    """
    first, second, third = _xid(79, 0, 10), _xid(48, 0, 11), _xid(79, 5_000_000_000, 12)
    records = Records(first, errno.EIO, first, second)
    log = _log(tmp_path / "kmsg", records)
    with pytest.raises(OutsideError) as caught:
        log.drain()
    assert caught.value.what == f"`{tmp_path}/kmsg` cannot be read: Input/output error"
    assert [report.xid for report in log.drain()] == [79, 48]
    records.reported = [errno.EIO, first, second, third]
    with pytest.raises(OutsideError):
        log.drain()
    assert [(report.xid, report.at) for report in log.drain()] == [(79, 5_000.0)]
    log.close()


@pytest.mark.parametrize("stamp", [10.0, 4_990.0, 5_100.0])
def test_a_record_whose_stamp_has_drifted_is_of_the_time_since_the_last_look(
    tmp_path: Path, stamp: float
) -> None:
    """The kernel's clock is not corrected: after weeks it is far from the steady clock."""
    records = Records()
    log = _log(tmp_path / "kmsg", records)
    assert log.drain() == []
    records.now = 5_005.0
    records.reported = [_xid(79, int(stamp * 1e6), 1), _xid(48, 5_003_000_000, 2)]
    assert log.drain() == [
        XidReport("0000:3b:00", 79, 5_000.0, 5_005.0),
        XidReport("0000:3b:00", 48, 5_003.0),
    ]
    log.close()


def test_a_log_that_is_absent_and_one_that_may_not_be_read(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "kmsg")
    for _ in range(2):
        with pytest.raises(NotFound) as caught:
            log.drain()
        assert caught.value.what == f"`{tmp_path}/kmsg` cannot be read: No such file or directory"
    log.close()
    closed = _log(tmp_path / "closed", Records(errno.EPERM))
    with pytest.raises(OutsideError) as failed:
        closed.drain()
    assert failed.value.what == f"`{tmp_path}/closed` cannot be read: Operation not permitted"
    assert not isinstance(failed.value, NotFound) and "`privileged`" in failed.value.hint


def test_a_log_that_is_not_written_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kmsg")
    log = KernelLog(tmp_path / "kmsg")
    assert log.drain() == []
    log.close()
