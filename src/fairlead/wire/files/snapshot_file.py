"""A saved snapshot: gzip of one JSON object, which is a header and the snapshot itself.

The header (`format`, `version`, `savedAt`, `cluster`) is read before the rest, so that a file of a newer
Fairlead says so instead of failing in the middle. Secrets and values of environment variables cannot be in
it: neither the model nor `kept_objects` has a place for them.
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
"""A file of version 1 has no objects: what it shows can be read, but no cluster can go on from it."""
_LAST_GZIP_SECOND: Final = 0xFFFF_FFFF
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BEGIN: Final = b'{"snapshot":{'
_SAVE_HINT: Final = "write a new one with `fairlead snapshot save FILE`"
BYTES_MAX: Final = 4 << 30
"""The most that a file may unpack to.

The largest cluster we know of has a tenth of it; what asks for more is damage or malice.
"""


class SavedSnapshot(Struct, frozen=True, rename="camel"):
    """`saved_at` in epoch seconds; `cluster` says for a person where it was read.

    `saved_by` is the writer's version. `objects` are what a simulated cluster goes on from (`kept_objects`);
    None in a file of version 1.
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
    """The bytes of the file; the same value gives the same bytes."""
    return gzip.compress(msgspec.json.encode(saved), compresslevel=6, mtime=min(max(int(saved.saved_at), 0), _LAST_GZIP_SECOND))


def parse_snapshot(data: bytes, name: str) -> SavedSnapshot:
    """The saved value. `name` is the file's, for messages.

    Raises UserError for anything that is not a whole snapshot of our version.
    """
    text = _unpacked(data, name)
    try:
        header = msgspec.json.decode(text, type=_Header)
    except msgspec.MsgspecError as error:
        raise UserError(f"`{name}` is not a snapshot: {error}", _SAVE_HINT) from error
    if header.format != FORMAT:
        raise UserError(f"`{name}` is not a snapshot: its format is `{header.format}`, not `{FORMAT}`", _SAVE_HINT)
    if not _OLDEST <= (header.version or 0) <= VERSION:
        age = "newer" if (header.version or 0) > VERSION else "older"
        hint = "upgrade Fairlead" if age == "newer" else _SAVE_HINT
        raise UserError(f"`{name}` has snapshot version {header.version}, which is {age} than this program's {VERSION}", hint)
    try:
        return msgspec.json.decode(text, type=SavedSnapshot)
    except msgspec.MsgspecError as error:
        raise UserError(f"snapshot `{name}` is damaged: {error}", _SAVE_HINT) from error


def check_magic(data: bytes, name: str) -> None:
    """Raises UserError when a file with these first bytes is no snapshot, whatever follows.

    Four bytes are enough.
    """
    if not data.startswith(_GZIP_MAGIC):
        what = "it is empty" if not data else f"it begins with `{data[:4].hex(' ')}`, a snapshot is a gzip file"
        raise UserError(f"`{name}` is not a snapshot: {what}", _SAVE_HINT)


def begins_as_snapshot(begin: bytes) -> bool:
    """Whether the first bytes of a file are those of one that `render_snapshot` made.

    A damaged one, or one of another version, counts too.

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
        raise UserError(f"snapshot `{name}` is damaged: it unpacks to more than {BYTES_MAX} bytes", _SAVE_HINT)
    if not unpacker.eof:
        raise UserError(f"snapshot `{name}` is cut off after {len(data)} bytes", "copy it again, or save a new one")
    return text
