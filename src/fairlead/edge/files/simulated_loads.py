"""The directory with the loads of simulated cards: one file per load generator, replaced whole.

The file of a killed generator stays valid until its `until`, a few seconds, or until its process is
known to have ended.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from fairlead.edge.files.own_files import replace_whole, state_home
from fairlead.errors import OutsideError
from fairlead.model.devices.gpu_load import SimulatedLoad
from fairlead.model.refusal import Refusal
from fairlead.wire.gpus.simulated_load import parse_simulated_load, render_simulated_load

VARIABLE: Final = "FAIRLEAD_GPU_LOAD_DIR"
_SUFFIX: Final = ".load"
_LARGEST_BYTES: Final = 16_384
_MOST_FILES: Final = 256


def load_folder(env: Mapping[str, str]) -> Path:
    """`$FAIRLEAD_GPU_LOAD_DIR`, else `gpu-load` in the directory of a laptop's files."""
    return Path(env.get(VARIABLE) or state_home(env) / "gpu-load").expanduser()


def own_pid_namespace() -> str:
    """The pid namespace of this process, in which process ids can be compared; "" = unknown."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


class OwnLoadFile:
    """The file of this process."""

    def __init__(self, folder: Path) -> None:
        self._namespace = own_pid_namespace()
        number = self._namespace.removeprefix("pid:[").removesuffix("]") or "0"
        self._path = folder / f"{os.uname().nodename}-{number}-{os.getpid()}{_SUFFIX}"

    def write(self, load: SimulatedLoad) -> None:
        """Replaces the file. Raises OutsideError when it cannot be written."""
        whole = replace(load, pid=os.getpid(), pid_namespace=self._namespace)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(self._path, render_simulated_load(whole))
            self._path.chmod(0o644)  # the exporter of the node may be another user
        except OSError as error:
            what = (
                f"the load of simulated cards cannot be written to `{self._path}`: {error.strerror}"
            )
            raise OutsideError(
                "disk",
                what,
                f"name a folder that can be written in {VARIABLE}, the exporter's too",
            ) from error

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()


def read_simulated_loads(folder: Path, now: float) -> tuple[list[SimulatedLoad], list[str]]:
    """The loads that are valid now, and a message for each file that cannot be read (an expired
    load is no fault).
    """
    loads: list[SimulatedLoad] = []
    faults: list[str] = []
    namespace = own_pid_namespace()
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)[:_MOST_FILES]
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"`{folder}`: {error.strerror}"]
    for path in paths:
        load = _read(path)
        if isinstance(load, Refusal):
            faults.append(f"`{path}`: {load.reason}")
        elif (
            load is not None
            and now < load.until
            and not (load.pid_namespace == namespace and _is_gone(load.pid))
        ):
            loads.append(load)
    return loads, faults


def simulated_loads(
    folder: Path, complain: Callable[[str], None]
) -> Callable[[], Sequence[SimulatedLoad]]:
    """A function that reads the directory.

    It reports each fault once, until the fault has ended.
    """
    known: set[str] = set()

    def read() -> Sequence[SimulatedLoad]:
        loads, faults = read_simulated_loads(folder, time.time())
        for fault in faults:
            if fault not in known:
                complain(fault)
        known.intersection_update(faults)
        known.update(faults)
        return loads

    return read


def _read(path: Path) -> SimulatedLoad | Refusal | None:
    try:
        if not path.is_file():
            return Refusal("it is no regular file")
        with path.open("rb") as file:
            text = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Refusal(error.strerror or "it cannot be read")
    return (
        Refusal(f"it is larger than {_LARGEST_BYTES} bytes")
        if len(text) > _LARGEST_BYTES
        else parse_simulated_load(text)
    )


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
