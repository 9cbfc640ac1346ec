"""Reads the bundle of `make bundle`, and writes its files into a folder.

The tar may come from anywhere. Only regular files with plain relative paths are accepted, nothing
is written outside the folder, and nothing stays there unless every file is as SHA256SUMS lists it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from fairlead.edge.files.own_files import absolute
from fairlead.errors import OutsideError, UserError
from fairlead.wire.files.bundle_file import begins_as_bundle
from fairlead.wire.files.offline_bundle import (
    BUNDLE_HINT,
    SUMS,
    SUMS_BYTES_MAX,
    BundleFault,
    BundleReport,
    faults_of,
    parse_sums,
    split_path,
)

_PIECE_BYTES: Final = 1 << 20
_BLOCK: Final = tarfile.BLOCKSIZE
_END_BYTES: Final = 2 * _BLOCK
"""A tar ends with at least two blocks of zeros."""
_UNREADABLE: Final = (tarfile.TarError, ValueError, OverflowError, EOFError)

_Write = Callable[[str, bytes], None]
"""Appends bytes to the file with this path."""


def check_bundle(name: str) -> BundleReport:
    """Compare every file of the bundle with its SHA256SUMS.

    Raises UserError if it cannot be read, is no bundle, or ends too early.
    """
    with _opened(name) as file:
        try:
            return _read(file, name, lambda path, piece: None)
        except OSError as error:
            raise _unreadable(name, error) from error


def extract_bundle(name: str, folder: str) -> BundleReport:
    """Write the files of the bundle into `folder`: all of them, or none if there is a fault.

    Raises UserError as `check_bundle`, and for a folder that is not empty or cannot be made;
    OutsideError for a disk that is full or fails.
    """
    target = absolute(folder)
    with _opened(name) as file:
        is_new = _make(target)
        unfinished = target / f".unfinished-{secrets.token_hex(4)}"
        is_done = False
        try:
            unfinished.mkdir()
            report = _read(file, name, lambda path, piece: append_piece(unfinished / path, piece))
            if not report.faults:
                _move_up(unfinished)
                is_done = True
        except OSError as error:
            what = f"bundle `{name}` cannot be extracted to `{target}`: {_reason(error)}"
            raise OutsideError("disk", what, "free some space, or name another folder") from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            if is_new and not is_done:
                shutil.rmtree(target, ignore_errors=True)
    return report


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    try:
        # opening a pipe without a writer would wait for one
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _unreadable(name, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        what = f"`{name}` is no bundle: it is no regular file"
        hint = f"give the tar; of an extracted one: `sha256sum -c {SUMS}` in its folder"
        raise UserError(what, hint)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _read(file: BinaryIO, name: str, write: _Write) -> BundleReport:
    """Read the tar once, and give each acceptable file to `write`, piece by piece."""
    if begins_as_bundle(file.read(64)):
        what = f"`{name}` is a bundle of `fairlead doctor`, not one of `make bundle`"
        raise UserError(what, f"`fairlead up --from-snapshot {name}` shows it")
    file.seek(0)
    faults: list[BundleFault] = []
    found: dict[str, str] = {}
    folders: set[str] = set()
    sums: bytes | None = None
    size = end = 0
    try:
        # mode "r:": no compression, so the files are not larger than the tar
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                if member.size < 0:  # the next header would be one before it, for ever
                    raise ValueError(f"the size of {ascii(member.name)[1:-1]} is {member.size}")
                end = member.offset_data + -(-member.size // _BLOCK) * _BLOCK
                place = split_path(member.name)
                refusal = _refusal(member, place, folders, found)
                if refusal or place is None:
                    faults.append(BundleFault(ascii(member.name)[1:-1], refusal))
                    continue
                folders.add(place[0])
                path = place[1]
                found[path] = _copy(file, member, path, write)
                size += member.size
                if path == SUMS:
                    file.seek(member.offset_data)
                    sums = file.read(min(member.size, SUMS_BYTES_MAX))
    except tarfile.ReadError as error:
        if not found and not faults:
            raise UserError(
                f"`{name}` is no bundle: it is no tar ({error})", BUNDLE_HINT
            ) from error
        raise _damaged(name, str(error)) from error
    except _UNREADABLE as error:
        raise _damaged(name, str(error)) from error
    _check_end(file, name, end)
    if sums is None:
        what = f"`{name}` is no bundle of Fairlead: it has no {SUMS}"
        raise UserError(what, BUNDLE_HINT)
    del found[SUMS]
    faults += faults_of(parse_sums(sums, name), found)
    digest = _digest(file, 0, os.fstat(file.fileno()).st_size)
    return BundleReport(min(folders), len(found) + 1, size, digest, tuple(faults))


def _refusal(
    member: tarfile.TarInfo,
    place: tuple[str, str] | None,
    folders: set[str],
    found: dict[str, str],
) -> str:
    """Why the member is not accepted; empty if it is."""
    if place is None:
        return "refused: its path leads out of the bundle's folder, or has characters of no bundle"
    if member.issparse() or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        return "refused: it is no regular file"
    folder, path = place
    if folders and folder not in folders:
        return f"refused: it is not in the folder {min(folders)}"
    if path in found:
        return "refused: the path occurs twice"
    parts = path.split("/")
    above = {"/".join(parts[:number]) for number in range(1, len(parts))}
    if above & found.keys() or any(each.startswith(f"{path}/") for each in found):
        return "refused: the path is both a file and a folder"
    return ""


def _copy(file: BinaryIO, member: tarfile.TarInfo, path: str, write: _Write) -> str:
    """Read a file of the tar; returns its SHA-256. Raises EOFError where it ends early."""
    write(path, b"")
    return _digest(file, member.offset_data, member.size, partial(write, path), path)


def _digest(
    file: BinaryIO,
    start: int,
    size: int,
    write: Callable[[bytes], object] = len,
    path: str = "the file",
) -> str:
    """The SHA-256 of `size` bytes from `start` on, which `write` gets piece by piece."""
    digest = hashlib.sha256()
    file.seek(start)
    left = size
    while left:
        piece = file.read(min(left, _PIECE_BYTES))
        if not piece:
            raise EOFError(f"it ends in the middle of {path}: is the copy complete?")
        digest.update(piece)
        write(piece)
        left -= len(piece)
    return digest.hexdigest()


def _check_end(file: BinaryIO, name: str, end: int) -> None:
    """Raises UserError unless the rest of the file is the end of a tar: zeros."""
    file.seek(end)
    size = 0
    while piece := file.read(_PIECE_BYTES):
        if piece.strip(b"\0"):
            what = f"what stands from byte {end} on is neither a file nor the end of the tar"
            raise _damaged(name, what)
        size += len(piece)
    if size < _END_BYTES:
        raise _damaged(name, "the end of the tar is missing: is the copy complete?")


def _make(target: Path) -> bool:
    """Make the folder; returns False if it exists and is empty. Raises UserError otherwise."""
    try:
        target.mkdir()
    except FileExistsError:
        pass
    except (OSError, ValueError) as error:
        what = f"folder `{target}` cannot be made: {_reason(error)}"
        raise UserError(what, "name a folder in one that exists") from error
    else:
        return True
    try:
        inside = min((each.name for each in target.iterdir()), default="")
    except OSError as error:
        what = f"`{target}` cannot take the bundle: {_reason(error)}"
        raise UserError(what, "name a folder that does not exist yet") from error
    if inside:
        what = f"folder `{target}` is not empty: it has {ascii(inside)[1:-1]}"
        raise UserError(what, "name a folder that does not exist yet, or an empty one")
    return False


def append_piece(path: Path, piece: bytes) -> None:
    """Append to a file, which is made with its folders. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(piece)


def _move_up(unfinished: Path) -> None:
    """SHA256SUMS last: a folder without it is not complete."""
    for each in sorted(unfinished.iterdir(), key=lambda each: (each.name == SUMS, each.name)):
        each.rename(unfinished.parent / each.name)


def _damaged(name: str, why: str) -> UserError:
    return UserError(f"bundle `{name}` is damaged: {why}", BUNDLE_HINT)


def _unreadable(name: str, error: Exception) -> UserError:
    return UserError(f"bundle `{name}` cannot be read: {_reason(error)}", BUNDLE_HINT)


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else "") or str(error)).lower()
