"""Files that commands write: completely or not at all, and never over a file of another program.

A user may mistype the name of a file that a command writes. An existing file is replaced only if a
Fairlead command wrote it (each kind of file has a test for that), or if it is empty, as after
`mktemp`.
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
"""The number of bytes that are read to decide whether Fairlead wrote a file."""


class FileKind(NamedTuple):
    """A kind of file that a command writes.

    `name`: for messages. `example`: a file name for hints.

    `is_own`: whether a file with these first `BEGIN_BYTES` bytes is of this kind.
    """

    name: str
    example: str
    is_own: Callable[[bytes], bool]


class OwnFile:
    """One file that a command writes.

    Call `check` before the work: a wrong name should not cost any.
    """

    def __init__(self, path: Path, kind: FileKind, mode: int = 0o600) -> None:
        self.path = path
        self._kind = kind
        self._mode = mode

    def check(self) -> None:
        """Raises UserError if the path has something other than a file of this kind.

        What cannot be read is left to `write`.
        """
        try:
            found = self.path.stat()
        except OSError:
            return
        if stat.S_ISDIR(found.st_mode):
            raise self._refusal(
                "it is a directory",
                f"name a file in it, for example `{self.path / self._kind.example}`",
            )
        if not stat.S_ISREG(found.st_mode):
            raise self._refusal("it is no regular file", "name a file; it is written in one step")
        if found.st_size and not self._is_own():
            raise self._refusal(
                f"another file stands there, which is no {self._kind.name}",
                "name another file, or move this one away",
            )

    def write(self, data: bytes, *, with_folder: bool = False) -> None:
        """Raises UserError for a path that cannot be written or has another program's file,
        OutsideError for a disk that is full or fails.
        """
        self.check()
        try:
            if with_folder:
                make_private(self.path.parent)
            temporary = _temporary_beside(self.path)
        except OSError as error:
            raise self._refusal(
                _reason(error), "give a path in a directory you may write to"
            ) from error
        try:
            _replace(self.path, temporary, data, self._mode)
        except OSError as error:
            what = f"{self._kind.name} `{self.path}` cannot be written: {_reason(error)}"
            raise OutsideError("disk", what, "free some space, or name a file elsewhere") from error

    def remove(self) -> None:
        """Removes the file, unless another program has put its file there.

        Does nothing if the file is gone or cannot be removed.
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
            why = f"another file stands there, and it cannot be read: {_reason(error)}"
            raise self._refusal(why, "name another file, or move this one away") from error

    def _refusal(self, why: str, hint: str) -> UserError:
        return UserError(f"{self._kind.name} `{self.path}` cannot be written: {why}", hint)


def state_home(env: Mapping[str, str]) -> Path:
    """`${XDG_STATE_HOME:-~/.local/state}/fairlead`."""
    root = env.get("XDG_STATE_HOME") or str(Path(env.get("HOME") or "~", ".local", "state"))
    return Path(root).expanduser() / "fairlead"


def absolute(name: str) -> Path:
    """The absolute path for a user's file name: other programs may run in other directories."""
    return Path(name).expanduser().absolute()


def make_private(folder: Path) -> None:
    """Creates the directory, and missing ones above it, with mode 0700 under any umask.

    An existing directory keeps its mode. Raises OSError.
    """
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)  # a file in its place is an error, also in the middle of a path


def replace_whole(path: Path, data: bytes, model: os.stat_result | None = None) -> None:
    """Replaces a file at once: readers see the old or the new file, also after a crash.

    A link stays a link.

    `model`: the file whose mode and owner the new one gets; None = mode 0600. Raises OSError.
    """
    opened = _temporary_beside(path)
    if model is not None:
        _give(opened, model)
    _replace(path, opened, data, stat.S_IMODE(model.st_mode) if model is not None else 0o600)


def _give(opened: tuple[int, Path], model: os.stat_result) -> None:
    """Gives the file the model's owner; root may write a user's file.

    A group that the process is not in is lost.
    """
    descriptor, temporary = opened
    try:
        if os.fstat(descriptor).st_uid != model.st_uid:
            os.chown(temporary, model.st_uid, -1)
        with contextlib.suppress(PermissionError):
            os.chown(temporary, -1, model.st_gid)
    except OSError:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)
        raise


def json_with(*keys: str) -> Callable[[bytes], bool]:
    """Whether bytes are a JSON object with all these keys.

    >>> json_with("a", "b")(b'{"a": 1, "b": 2, "c": 3}')
    True
    >>> json_with("a")(b"[]")
    False
    >>> json_with("a")(b"a: 1")
    False
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
    """Removes a directory if it is empty; other programs' files in it keep it."""
    try:
        path.rmdir()
    except OSError:
        return


def _temporary_beside(path: Path) -> tuple[int, Path]:
    """An open, empty file in the directory of the file to replace."""
    # brings `shutil` and the packers of archives along, which commands that only read can do
    # without
    import tempfile

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
