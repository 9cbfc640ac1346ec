"""Reads the whole of a regular file: reading a pipe could wait for ever."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fairlead.errors import UserError


def read_regular_file(path: Path, bytes_max: int, what: str, hint: str) -> bytes:
    """The bytes. `what` the file is, `hint`: what the user can do.

    Raises UserError if it cannot be read, is no regular file, or is larger than `bytes_max`.
    """
    try:
        with open(
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        ) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(f"{what} `{path}` is no regular file", hint)
            data = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:  # ValueError: an impossible path, such as one with NUL
        raise UserError(
            (
                f"{what} `{path}` cannot be read: "
                f"{(getattr(error, 'strerror', None) or str(error)).lower()}"
            ),
            hint,
        ) from error
    if len(data) > bytes_max:
        raise UserError(f"{what} `{path}` is larger than {_size(bytes_max)}", hint)
    return data


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
