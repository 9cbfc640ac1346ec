"""Reads a snapshot from disk, for `--snapshot FILE` and `snapshot show`.

The file is a snapshot, or a bundle of the doctor that contains one.

A path may lead to a silent pipe or an endless device, so the file is read only after it is known to
be a regular file with a possible size and possible first bytes.
"""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, Final

from fairlead.errors import UserError
from fairlead.wire.files.bundle_file import begins_as_bundle, parse_bundle
from fairlead.wire.files.snapshot_file import SavedSnapshot, check_magic, parse_snapshot

PACKED_BYTES_MAX: Final = 1 << 30
_HINT: Final = "give a file that `fairlead snapshot save` or `fairlead doctor --bundle` wrote"
_BEGIN_BYTES: Final = 64
"""Enough to recognize both kinds of files."""


def load_snapshot(name: str) -> SavedSnapshot:
    """The snapshot. Raises UserError when the file cannot be read or is no snapshot."""
    try:
        with open(name, "rb", opener=_open_without_waiting) as file:
            data = _read(file, name)
    except OSError as error:
        raise UserError(f"snapshot `{name}` cannot be read: {error.strerror}", _HINT) from error
    except ValueError as error:  # a NUL in the name
        raise UserError(f"snapshot `{name}` cannot be read: {error}", _HINT) from error
    return parse_bundle(data, name) if begins_as_bundle(data) else parse_snapshot(data, name)


def _open_without_waiting(name: str, flags: int) -> int:
    """Opens without blocking: opening a pipe without a writer would wait for one."""
    return os.open(name, flags | os.O_NONBLOCK)


def _read(file: BinaryIO, name: str) -> bytes:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise UserError(
            f"`{name}` is not a snapshot: it is no regular file",
            f"{_HINT}; what comes from a pipe must be saved first",
        )
    begin = file.read(_BEGIN_BYTES)
    if not begins_as_bundle(begin):
        check_magic(begin[:4], name)
    if found.st_size > PACKED_BYTES_MAX:
        raise UserError(
            f"`{name}` has {found.st_size} bytes, a snapshot has at most {PACKED_BYTES_MAX}",
            _HINT,
        )
    return begin + file.read(PACKED_BYTES_MAX)
