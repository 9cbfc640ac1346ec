"""The archive of `fairlead doctor --bundle`: a zip of texts and one snapshot of the cluster.

Whatever reads a snapshot file reads the snapshot of a bundle, too.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

import msgspec

from fairlead.errors import UserError
from fairlead.wire.files.snapshot_file import SavedSnapshot, parse_snapshot, render_snapshot
from fairlead.wire.text.log_secrets import document_without_secrets

SNAPSHOT: Final = "cluster.snapshot"
README: Final = "README.txt"
PACKED_SNAPSHOT_MAX: Final = 1 << 30
_MAGIC: Final = b"PK\x03\x04"
_HINT: Final = "write a new one with `fairlead doctor --bundle FILE`, or copy it again"
_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Of each file: equal values give equal bytes, and the snapshot has its own time."""
_README: Final = """\
A bundle of `fairlead doctor`. Secrets are left out or replaced by <redacted>, but names of
namespaces, nodes, pods, images and users are in it: check it before you pass it on.

doctor.json       what the doctor found
cluster.snapshot  the state of the cluster (absent if it could not be read)
versions.json     versions of Fairlead, Python and the cluster
values.yaml       values of the installation
logs/             the last lines of Fairlead's own containers
unread.txt        what could not be read, and why

To look at the cluster on a laptop:

    fairlead up --from-snapshot THIS-FILE
    fairlead console --snapshot THIS-FILE
    arena --snapshot THIS-FILE top node
"""


def render_bundle(files: Mapping[str, bytes]) -> bytes:
    """The bytes of the archive; equal values give equal bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {README: _README.encode(), **files}.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o600 << 16
            is_packed = name == SNAPSHOT
            entry.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return packed.getvalue()


def begins_as_bundle(begin: bytes) -> bool:
    """Whether a file that begins with these bytes is a bundle, also a damaged one.

    >>> begins_as_bundle(render_bundle({}))
    True
    >>> begins_as_bundle(b"PK\\x03\\x04 some other archive")
    False
    """
    return begin.startswith(_MAGIC) and begin[30 : 30 + len(README)] == README.encode()


def parse_bundle(data: bytes, name: str) -> SavedSnapshot:
    """The snapshot of the bundle. `name`: of the file, for messages.

    Raises UserError if the archive is damaged, is no bundle, or has no snapshot.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = set(archive.namelist())
            if "doctor.json" not in found:
                raise UserError(f"`{name}` is no bundle of `fairlead doctor`", _HINT)
            if SNAPSHOT not in found:
                what = f"bundle `{name}` has no snapshot: the cluster could not be read"
                raise UserError(what, "its unread.txt has the reason")
            if archive.getinfo(SNAPSHOT).file_size > PACKED_SNAPSHOT_MAX:
                raise UserError(f"the snapshot of bundle `{name}` is larger than 1 GiB", _HINT)
            packed = archive.read(SNAPSHOT)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UserError(f"bundle `{name}` is damaged: {error}", _HINT) from error
    return parse_snapshot(packed, name)


def bundled_snapshot(saved: SavedSnapshot) -> bytes:
    """The bytes of the snapshot file, with secrets hidden in every message: of conditions, of
    containers that ended, of events.
    """
    return render_snapshot(
        msgspec.convert(
            document_without_secrets(msgspec.to_builtins(saved), "message"), SavedSnapshot
        )
    )
