"""The keys that sign the cookies of the console: files of a Secret, or one of this machine.

A client that has a key still needs an id that the store knows; so a key alone signs in nowhere. It
could sign in at an OpenID Connect provider in the place of another browser.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fairlead.edge.files.own_files import make_private, state_home
from fairlead.errors import OutsideError, UserError

FILE: Final = "sign-in.key"
_SHORTEST_BYTES: Final = 32
_LONGEST_BYTES: Final = 4096
_HINT: Final = "write a new one: `head -c 32 /dev/urandom | base64 > FILE`"


def read_keys(names: Iterable[str]) -> tuple[bytes, ...]:
    """The keys of these files, in this order. Raises UserError for one that cannot be used."""
    return tuple(_read(Path(each)) for each in names)


def own_key(env: Mapping[str, str]) -> bytes:
    """The key of this machine's user, made at the first use, with mode 0600.

    Raises UserError if other users may read it, OutsideError if it cannot be made.
    """
    path = state_home(env) / FILE
    try:
        make_private(path.parent)
        with contextlib.suppress(FileExistsError):
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.write(secrets.token_hex(_SHORTEST_BYTES).encode() + b"\n")
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise OutsideError(
            "disk",
            f"`{path}` cannot be made: {(error.strerror or str(error)).lower()}",
            "name a key with --sign-in-key-file",
        ) from error
    if mode & 0o077:
        raise UserError(
            f"other users may read the key `{path}` (mode {mode:04o})",
            f"remove it; the next start makes a new one, and all users sign in again: `rm {path}`",
        )
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST_BYTES + 1).strip()
    except OSError as error:
        raise UserError(
            f"the key `{path}` cannot be read: {(error.strerror or str(error)).lower()}",
            "check --sign-in-key-file",
        ) from error
    return key_of(data, str(path))


def key_of(data: bytes, source: str) -> bytes:
    """Raises UserError for bytes that are too few or too many. `source`: for the message."""
    if not _SHORTEST_BYTES <= len(data) <= _LONGEST_BYTES:
        raise UserError(
            f"the key `{source}` has {len(data)} bytes; a key has {_SHORTEST_BYTES} to "
            f"{_LONGEST_BYTES}",
            _HINT,
        )
    return hashlib.sha256(data).digest()
