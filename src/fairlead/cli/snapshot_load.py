"""Reads a snapshot file from disk: for `--snapshot FILE` and `snapshot show`."""

from __future__ import annotations

from pathlib import Path

from fairlead.errors import UserError
from fairlead.wire.snapshot_file import SavedSnapshot, parse_snapshot


def load_snapshot(name: str) -> SavedSnapshot:
    """Raises UserError when the file cannot be read or is no snapshot."""
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"snapshot `{name}` cannot be read: {error.strerror}", "give a file that `fairlead snapshot save` wrote") from error
    return parse_snapshot(data, name)
