"""Files that a node's agent keeps (`ports.AgentFiles`), and files of the kubelet that it reads.

Every file is written under another name and moved into place, so that readers and mounts see the
old or the new file. Nothing is flushed to disk: after a power failure all containers start anew,
and their files are written before that. A region has all its bytes from the start: the kernel ends
a process that writes to a page for which a full disk has no room. A container's files are under the
token of its device ids: `<state>/containers/<token>/` has its limits, `<run>/<token>/` its region,
which should be in memory. The memory guard's library and the file that preloads it are in
`<state>/guard/`, one for all containers.
"""

from __future__ import annotations

import fcntl
import logging
import os
import platform
import shutil
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import structs

import fairlead
from fairlead.edge.kubelet.pod_resources import PodResources
from fairlead.errors import OutsideError
from fairlead.model.devices.driver import CardFault
from fairlead.model.devices.kubelet import (
    ContainerEdits,
    ContainerLimits,
    GivenShare,
    HeldDevices,
    Region,
)
from fairlead.model.refusal import Refusal
from fairlead.model.repeat_filter import RepeatFilter
from fairlead.wire.kubelet.cdi import cdi_file_name, render_cdi, token_of_file
from fairlead.wire.kubelet.checkpoint import parse_checkpoint
from fairlead.wire.kubelet.faults_file import parse_faults, render_faults
from fairlead.wire.kubelet.grants_file import parse_given, render_given
from fairlead.wire.kubelet.limits_file import parse_limits, render_limits
from fairlead.wire.kubelet.region_file import render_region

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
CHECKPOINT: Final = "kubelet_internal_checkpoint"
GUARDS: Final = Path(fairlead.__file__).parent / "guard_dist"
"""The guard's libraries, by machine; `tools/shipped_guard.py` puts them there."""
GUARD_LIBRARY: Final = "libfairlead-guard.so"
_PUBLIC: Final = 0o644
_READ_ONLY: Final = 0o444
_SHARED: Final = 0o666
"""Mode of a region: the user of the container, which may be any, writes it."""
_log: Final = logging.getLogger(__name__)

Parsed = TypeVar("Parsed")


class NodeFolders(msgspec.Struct, frozen=True):
    """Directories on a node.

    `plugins`: the kubelet's directory of device plugins. `cdi`: the runtime's directory of CDI
    files.
    """

    plugins: Path
    cdi: Path
    state: Path
    run: Path


class NodeAgentFiles:
    """`guards`: the directory with the guard's library for each machine (`uname -m`)."""

    def __init__(self, folders: NodeFolders, guards: Path = GUARDS) -> None:
        self._folders = folders
        self._library = guards / platform.machine() / GUARD_LIBRARY
        self._lock: int | None = None

    def lock(self) -> bool:
        if self._lock is not None:
            return True
        path = self._folders.state / "lock"
        with _on_disk("be locked", path):
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
        self._lock = descriptor
        return True

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def read_given(self) -> tuple[GivenShare, ...] | Refusal:
        return _parsed(self._folders.state / "grants.json", parse_given, ())

    def write_given(self, shares: Iterable[GivenShare]) -> None:
        _write(self._folders.state / "grants.json", render_given(shares), _PUBLIC)

    def read_faults(self) -> tuple[CardFault, ...] | Refusal:
        return _parsed(
            self._folders.state / "faults.json", lambda text: parse_faults(text, _boot()), ()
        )

    def write_faults(self, faults: Iterable[CardFault]) -> None:
        _write(self._folders.state / "faults.json", render_faults(_boot(), faults), _PUBLIC)

    def read_runtime(self, versions: str) -> bool | None:
        nothing: dict[str, bool] = {}
        found = _parsed(self._folders.state / "runtime.json", _runtime, nothing)
        return None if isinstance(found, Refusal) else found.get(versions)

    def write_runtime(self, versions: str, does_cdi: bool) -> None:
        _write(
            self._folders.state / "runtime.json", msgspec.json.encode({versions: does_cdi}), _PUBLIC
        )

    def guard_path(self) -> str:
        return str(self._folders.state / "guard" / GUARD_LIBRARY)

    def preload_path(self) -> str:
        return str(self._folders.state / "guard" / "ld.so.preload")

    def install_guard(self, preload: str) -> Refusal | None:
        library, folder = Path(self.guard_path()), self._folders.state / "guard"
        try:
            content = self._library.read_bytes()
        except FileNotFoundError:
            return Refusal(f"this installation has no memory guard for {platform.machine()}")
        except OSError as error:
            return Refusal(f"`{self._library}` cannot be read: {(error.strerror or '').lower()}")
        try:
            _write_changed(library, content)
            _write_changed(Path(self.preload_path()), preload.encode())
            if os.statvfs(folder).f_flag & os.ST_NOEXEC:
                return Refusal(f"`{folder}` is mounted noexec, so no program can load a library")
        except OutsideError as failed:
            return Refusal(failed.what)
        return None

    def limits_path(self, token: str) -> str:
        return str(self._folders.state / "containers" / token / "limits")

    def region_path(self, token: str) -> str:
        return str(self._folders.run / token / "region")

    def read_answer(self, token: str) -> ContainerLimits | None:
        """The answer; one that cannot be read counts as one that allows nothing."""
        found = _parsed(self._answer(token), parse_limits, None)
        return ContainerLimits((), "/") if isinstance(found, Refusal) else found

    def write_answer(self, token: str, limits: ContainerLimits | None) -> None:
        if limits is None:
            with _on_disk("be removed", self._answer(token)):
                self._answer(token).unlink(missing_ok=True)
            return
        nothing = structs.replace(
            limits, cards=tuple(structs.replace(card, memory_mib=0) for card in limits.cards)
        )
        self.write_container(token, nothing, None)
        _write(self._answer(token), render_limits(limits), _PUBLIC)

    def write_container(
        self,
        token: str,
        limits: ContainerLimits,
        edits: ContainerEdits | None,
        region: Region | None = None,
    ) -> None:
        data = b"" if region is None else render_region(region)
        _write(Path(self.region_path(token)), data, _SHARED)
        _write(Path(self.limits_path(token)), render_limits(limits), _READ_ONLY)
        if edits is not None:
            self.write_cdi(token, edits)

    def read_limits(self, token: str) -> ContainerLimits | Refusal | None:
        return _parsed(Path(self.limits_path(token)), parse_limits, None)

    def write_cdi(self, token: str, edits: ContainerEdits) -> None:
        _write(self._folders.cdi / cdi_file_name(token), render_cdi(token, edits), _PUBLIC)

    def tokens(self) -> frozenset[str]:
        found: set[str] = set()
        for folder in (self._folders.state / "containers", self._folders.run):
            found.update(each for each in _names(folder) if _is_token(each))
        found.update(token for name in _names(self._folders.cdi) if (token := token_of_file(name)))
        return frozenset(found)

    def remove(self, token: str) -> None:
        cdi = self._folders.cdi / cdi_file_name(token)
        with _on_disk("be removed", cdi):
            cdi.unlink(missing_ok=True)
        for folder in (Path(self.limits_path(token)).parent, Path(self.region_path(token)).parent):
            shutil.rmtree(folder, ignore_errors=True)

    def plugin_sockets(self) -> tuple[str, ...]:
        folder = self._folders.plugins
        return tuple(name for name in _names(folder) if _is_served(folder / name))

    def _answer(self, token: str) -> Path:
        return Path(self.limits_path(token)).with_name("answered")


class GrantsFile:
    """`ports.GivenFile`: the agent's grants file, for other programs."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read_given(self) -> tuple[GivenShare, ...] | Refusal:
        return _parsed(self._path, parse_given, ())


class KubeletLists:
    """`ports.KubeletHolders`: the pod resources API, and the checkpoint for what that API omits.

    `needs_names`: the checkpoint alone, which has no names, is not enough.
    """

    def __init__(
        self, resources: PodResources, plugins: Path, *, needs_names: bool = False
    ) -> None:
        self._needs_names = needs_names
        self._resources = resources
        self._checkpoint = plugins / CHECKPOINT
        self._trouble = RepeatFilter()

    async def list_held(self) -> tuple[HeldDevices, ...]:
        listed: tuple[HeldDevices, ...] | None = None
        try:
            listed = await self._resources.list_held()
        except OutsideError as failed:
            if self._needs_names:
                raise
            failure = failed
        none: tuple[HeldDevices, ...] = ()
        noted = _parsed(self._checkpoint, parse_checkpoint, none)
        if isinstance(noted, Refusal):
            self._report(noted.reason)
            noted = ()
            if listed is None:
                raise failure
        else:
            self._report("")
        return (*(listed or ()), *noted)

    def _report(self, trouble: str) -> None:
        if self._trouble.is_news(trouble):
            _log.warning("%s", trouble)


def _runtime(text: bytes) -> dict[str, bool] | Refusal:
    try:
        return msgspec.json.decode(text, type=dict[str, bool])
    except (msgspec.MsgspecError, UnicodeError) as error:
        return Refusal(f"what was found out of the container runtime cannot be read: {error}")


def _parsed(
    path: Path, parse: Callable[[bytes], Parsed | Refusal], absent: Parsed
) -> Parsed | Refusal:
    try:
        return parse(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return absent
    except OSError as error:
        return Refusal(f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}")


def _write_changed(path: Path, data: bytes) -> None:
    """Write a file that containers read if its content differs.

    An empty directory, which a container runtime makes of a file that it does not find, gives way.
    """
    with _on_disk("be written", path):
        if path.is_dir():
            path.rmdir()
        if path.exists() and path.read_bytes() == data:
            return
    _write(path, data, _READ_ONLY)


def _write(path: Path, data: bytes, mode: int) -> None:
    with _on_disk("be written", path):
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.new")
        scratch.unlink(missing_ok=True)
        scratch.write_bytes(data)
        scratch.chmod(mode)
        scratch.replace(path)


@contextmanager
def _on_disk(what: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise OutsideError(
            "disk",
            f"`{path}` cannot {what}: {why}",
            "look whether the node's disk is full or mounted read-only",
        ) from error


def _names(folder: Path) -> list[str]:
    """Names in the directory; none if it does not exist yet, or may not be read."""
    try:
        return sorted(each.name for each in folder.iterdir())
    except OSError:
        return []


def _is_token(name: str) -> bool:
    return len(name) == 16 and set(name) <= set("0123456789abcdef")


def _is_served(path: Path) -> bool:
    """Whether it is a socket that a process listens on, not one left behind by a dead process."""
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            return False
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as asking:
            # a path short enough for a socket address
            asking.connect(f"/proc/self/fd/{folder}/{path.name}")
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # it is busy, or may not be connected to
    finally:
        os.close(folder)
    return True


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
