"""The files a laptop leaves for people and programs: kubeconfig, state file, ready file. Each appears whole or not at all.

What a newcomer gets wrong: none of them is needed for the laptop to run. A directory that cannot be written is a warning, unless the
person named that very file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fairlead.errors import OutsideError


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write in one step, making the directory if need be. Raises OutsideError with the path and the reason."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutsideError(
            "disk", f"`{path}` cannot be written: {(error.strerror or str(error)).lower()}", "give a directory you may write to"
        ) from error


def write_json(path: Path, values: Mapping[str, object]) -> None:
    import json

    write_whole(path, json.dumps(values, indent=2).encode() + b"\n", 0o644)


def remove(path: Path) -> None:
    """Take a file away at the end; one that is gone already, or cannot be removed, is nobody's trouble any more."""
    try:
        path.unlink()
    except OSError:
        return


def remove_folder(path: Path) -> None:
    """Take away a folder that is empty by now; somebody else's file in it keeps it."""
    try:
        path.rmdir()
    except OSError:
        return
