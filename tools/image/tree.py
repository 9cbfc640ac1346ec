"""The files of a layer as a value, and the one tar that they make.

Paths are relative to the root of the image and have no leading slash: `usr/bin/python3.11`.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

FILE_TIME = 315_532_800
"""1980-01-01T00:00:00Z: the time of every file, the earliest that a zip file can have."""


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    is_program: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that must exist although it is empty, or has other rights than 0755."""

    mode: int = 0o755


Tree = Mapping[str, File | Link | Folder]


def tar_bytes(tree: Tree) -> bytes:
    """An uncompressed tar in the order of the paths, each folder before what it contains.

    Owner is 0:0, the time is FILE_TIME, modes are 0755 and 0644, whatever the builder's umask is.
    """
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, entry in sorted(_with_folders(tree).items()):
            header = tarfile.TarInfo(path)
            header.mtime = FILE_TIME
            match entry:
                case Folder(mode):
                    header.type, header.mode = tarfile.DIRTYPE, mode
                case Link(target):
                    header.type, header.mode, header.linkname = tarfile.SYMTYPE, 0o777, target
                case File(content, is_program):
                    header.mode, header.size = (0o755 if is_program else 0o644), len(content)
                    tar.addfile(header, io.BytesIO(content))
                    continue
            tar.addfile(header)
    return whole.getvalue()


def _with_folders(tree: Tree) -> dict[str, File | Link | Folder]:
    """The tree, and the folders that lead to its entries."""
    whole: dict[str, File | Link | Folder] = {
        str(parent): Folder() for path in tree for parent in PurePosixPath(path).parents
    }
    whole.pop(".", None)
    return whole | dict(tree)


def write_tree(tree: Tree, folder: Path) -> None:
    """The files of the tree below `folder`, links as links."""
    for path, entry in sorted(_with_folders(tree).items()):
        place = folder / path
        match entry:
            case Folder():
                place.mkdir(parents=True, exist_ok=True)
            case Link(target):
                place.symlink_to(target)
            case File(content, is_program):
                place.write_bytes(content)
                place.chmod(0o755 if is_program else 0o644)
