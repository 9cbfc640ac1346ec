"""Files that our commands write: whole or not at all, and never over one that is not ours.

A person may mistype the name of a file that a command is to write. What stands there already is replaced only
where a command of ours wrote it (each kind of file says how it is known), or where it is empty, as `mktemp`
leaves it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fairlead.errors import OutsideError, UserError

BEGIN_BYTES: Final = 1 << 16
"""So much of a file is read to see whether it is ours."""


class FileKind(NamedTuple):
    """What a command writes: its `name` in sentences, a file name for hints, and whether a file that begins
    so is one.

    `is_own` is asked with the first `BEGIN_BYTES` bytes.
    """

    name: str
    example: str
    is_own: Callable[[bytes], bool]


class OwnFile:
    """One file that a command writes.

    `check` it before there is anything to write: a wrong name should cost no work.
    """

    def __init__(self, path: Path, kind: FileKind, mode: int = 0o600) -> None:
        self.path = path
        self._kind = kind
        self._mode = mode

    def check(self) -> None:
        """Raises UserError where something else stands than a file of this kind.

        What cannot be seen is left to `write`.
        """
        try:
            found = self.path.stat()
        except OSError:
            return
        if stat.S_ISDIR(found.st_mode):
            raise self._refusal("it is a directory", f"name a file in it, for example `{self.path / self._kind.example}`")
        if not stat.S_ISREG(found.st_mode):
            raise self._refusal("it is no regular file", "name a file; it is written in one step")
        if found.st_size and not self._is_own():
            raise self._refusal(f"another file stands there, which is no {self._kind.name}", "name another file, or move this one away")

    def write(self, data: bytes, *, with_folder: bool = False) -> None:
        """Raises UserError for a place that cannot be written or is not ours, OutsideError for a disk that
        does not take it.
        """
        self.check()
        try:
            if with_folder:
                make_private(self.path.parent)
            temporary = _temporary_beside(self.path)
        except OSError as error:
            raise self._refusal(_reason(error), "give a path in a directory you may write to") from error
        try:
            _replace(self.path, temporary, data, self._mode)
        except OSError as error:
            what = f"{self._kind.name} `{self.path}` cannot be written: {_reason(error)}"
            raise OutsideError("disk", what, "free some space, or name a file elsewhere") from error

    def remove(self) -> None:
        """Take it away, unless somebody put another file there.

        One that is gone already, or cannot be removed, is nobody's trouble.
        """
        try:
            if self.path.is_file() and self._is_own():
                self.path.unlink()
        except (OSError, UserError):
            return

    def _is_own(self) -> bool:
        try:
            with self.path.open("rb") as file:
                return self._kind.is_own(file.read(BEGIN_BYTES))
        except OSError as error:
            told = f"another file stands there, and it cannot be read: {_reason(error)}"
            raise self._refusal(told, "name another file, or move this one away") from error

    def _refusal(self, why: str, hint: str) -> UserError:
        return UserError(f"{self._kind.name} `{self.path}` cannot be written: {why}", hint)


def state_home(env: Mapping[str, str]) -> Path:
    """`${XDG_STATE_HOME:-~/.local/state}/fairlead`."""
    root = env.get("XDG_STATE_HOME") or str(Path(env.get("HOME") or "~", ".local", "state"))
    return Path(root).expanduser() / "fairlead"


def absolute(name: str) -> Path:
    """The path that a person means: told to programs, it must not depend on where they run."""
    return Path(name).expanduser().absolute()


def make_private(folder: Path) -> None:
    """Make the folder, and what is missing above it, its owner's alone (0700) under any umask.

    A folder that is there keeps its mode. Raises OSError.
    """
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)  # a file in its place is an error, as in the middle of a path


def replace_whole(path: Path, data: bytes, like: os.stat_result | None = None) -> None:
    """Whoever reads the path sees the old file or the whole new one, after a crash, too. A link stays a link.

    `like`: the file whose mode and owner it gets; without one it is its owner's alone. Raises OSError.
    """
    opened = _temporary_beside(path)
    if like is not None:
        _give(opened, like)
    _replace(path, opened, data, stat.S_IMODE(like.st_mode) if like is not None else 0o600)


def _give(opened: tuple[int, Path], like: os.stat_result) -> None:
    """Root may write anybody's file, which stays theirs; a group that we are not in cannot be kept."""
    descriptor, temporary = opened
    try:
        if os.fstat(descriptor).st_uid != like.st_uid:
            os.chown(temporary, like.st_uid, -1)
        with contextlib.suppress(PermissionError):
            os.chown(temporary, -1, like.st_gid)
    except OSError:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)
        raise


def json_with(*keys: str) -> Callable[[bytes], bool]:
    """Whether bytes are a JSON object with all these keys.

    >>> json_with("a", "b")(b'{"a": 1, "b": 2, "c": 3}'), json_with("a")(b"[]"), json_with("a")(b"a: 1")
    (True, False, False)
    """

    def is_it(data: bytes) -> bool:
        import json

        try:
            found = json.loads(data)
        except ValueError:
            return False
        return isinstance(found, dict) and set(keys) <= found.keys()

    return is_it


def render_json(values: Mapping[str, object]) -> bytes:
    import json

    return json.dumps(values, indent=2).encode() + b"\n"


def remove_folder(path: Path) -> None:
    """Take away a folder that is empty by now; somebody else's file in it keeps it."""
    try:
        path.rmdir()
    except OSError:
        return


def _temporary_beside(path: Path) -> tuple[int, Path]:
    """An open, empty file in the folder of the one to be replaced."""
    import tempfile  # brings `shutil` and the packers of archives along, which commands that only read can do without

    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    return descriptor, Path(name)


def _replace(path: Path, opened: tuple[int, Path], data: bytes, mode: int) -> None:
    descriptor, temporary = opened
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(os.path.realpath(path))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
