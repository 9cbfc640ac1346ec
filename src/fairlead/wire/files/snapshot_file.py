"""A saved snapshot: a gzip file with one JSON object of a header and the snapshot itself.

The header (`format`, `version`, `savedAt`, `cluster`) is read first, so that a file of a newer
Fairlead gives a clear error instead of a failure in the middle. Secrets and values of environment
variables cannot be in a snapshot: neither the model nor `kept_objects` has a field for them.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from fairlead.errors import UserError
from fairlead.model.moment import Moment
from fairlead.model.snapshot import ClusterSnapshot

FORMAT: Final = "fairlead.io/snapshot"
VERSION: Final = 2
_OLDEST: Final = 1
"""The oldest readable version.

Version 1 has no objects: it can be shown, but not simulated further.
"""
_LAST_GZIP_SECOND: Final = 0xFFFF_FFFF
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BEGIN: Final = b'{"snapshot":{'
_SAVE_HINT: Final = "write a new one with `fairlead snapshot save FILE`"
BYTES_MAX: Final = 4 << 30
"""The largest size of an unpacked file, in bytes.

The largest known cluster needs a tenth of it; a larger file is damaged or malicious.
"""


class SavedSnapshot(Struct, frozen=True, rename="camel"):
    """A snapshot with its header.

    `saved_at`: epoch seconds; `cluster`: where it was read, for people.

    `saved_by` is the version of the program that wrote it. `objects`: from which a simulated
    cluster continues (`kept_objects`); None in a file of version 1.
    """

    snapshot: ClusterSnapshot
    saved_at: Moment = 0.0
    cluster: str = ""
    saved_by: str = ""
    format: str = FORMAT
    version: int = VERSION
    objects: tuple[dict[str, Any], ...] | None = None


class _Header(Struct):
    format: str | None = None
    version: int | None = None
    snapshot: Raw = Raw()


def render_snapshot(saved: SavedSnapshot) -> bytes:
    """The bytes of the file; equal values give equal bytes."""
    return gzip.compress(
        msgspec.json.encode(saved),
        compresslevel=6,
        mtime=min(max(int(saved.saved_at), 0), _LAST_GZIP_SECOND),
    )


def parse_snapshot(data: bytes, name: str) -> SavedSnapshot:
    """The saved value. `name`: of the file, for messages.

    Raises UserError unless `data` is a complete snapshot of a supported version.
    """
    text = _unpacked(data, name)
    try:
        header = msgspec.json.decode(text, type=_Header)
    except msgspec.MsgspecError as error:
        raise UserError(f"`{name}` is not a snapshot: {error}", _SAVE_HINT) from error
    if header.format != FORMAT:
        raise UserError(
            f"`{name}` is not a snapshot: its format is `{header.format}`, not `{FORMAT}`",
            _SAVE_HINT,
        )
    if not _OLDEST <= (header.version or 0) <= VERSION:
        age = "newer" if (header.version or 0) > VERSION else "older"
        hint = "upgrade Fairlead" if age == "newer" else _SAVE_HINT
        raise UserError(
            (
                f"`{name}` has snapshot version {header.version}, which is {age} than this "
                f"program's {VERSION}"
            ),
            hint,
        )
    try:
        return msgspec.json.decode(text, type=SavedSnapshot)
    except msgspec.MsgspecError as error:
        raise UserError(f"snapshot `{name}` is damaged: {error}", _SAVE_HINT) from error


def check_magic(data: bytes, name: str) -> None:
    """Raises UserError when a file that begins with these bytes cannot be a snapshot.

    `data`: the first bytes, four are enough.
    """
    if not data.startswith(_GZIP_MAGIC):
        what = (
            "it is empty"
            if not data
            else f"it begins with `{data[:4].hex(' ')}`, a snapshot is a gzip file"
        )
        raise UserError(f"`{name}` is not a snapshot: {what}", _SAVE_HINT)


def begins_as_snapshot(begin: bytes) -> bool:
    """Whether a file that begins with these bytes was written by `render_snapshot`.

    True also for a damaged file and for another version.

    >>> begins_as_snapshot(render_snapshot(SavedSnapshot(ClusterSnapshot())))
    True
    >>> begins_as_snapshot(gzip.compress(b'{"a":1}'))
    False
    """
    try:
        return zlib.decompressobj(wbits=31).decompress(begin, len(_BEGIN)) == _BEGIN
    except zlib.error:
        return False


def _unpacked(data: bytes, name: str) -> bytes:
    check_magic(data, name)
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(data, BYTES_MAX)
    except zlib.error as error:
        raise UserError(f"snapshot `{name}` is damaged: {error}", _SAVE_HINT) from error
    if unpacker.unconsumed_tail:
        raise UserError(
            f"snapshot `{name}` is damaged: it unpacks to more than {BYTES_MAX} bytes", _SAVE_HINT
        )
    if not unpacker.eof:
        raise UserError(
            f"snapshot `{name}` is cut off after {len(data)} bytes",
            "copy it again, or save a new one",
        )
    return text
