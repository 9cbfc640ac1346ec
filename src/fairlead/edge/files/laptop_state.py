"""The laptops that run on this machine, and their kubeconfigs.

`fairlead up` writes one small file, commands read it.

The file remains after a laptop is killed, so readers check that its process lives before they use
the kubeconfig.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fairlead.edge.files.own_files import state_home

FILE: Final = "laptop.json"
KUBECONFIG: Final = "kubeconfig"


class RunningLaptop(NamedTuple):
    pid: int
    kubeconfig: str
    gpu_exporter: str
    console: str


def laptop_home(env: Mapping[str, str]) -> Path:
    """The default state directory: `${XDG_STATE_HOME:-~/.local/state}/fairlead/laptop`."""
    return state_home(env) / "laptop"


def own_folder(home: Path) -> Path:
    """The directory of this process within the default state directory, for when another laptop,
    or another directory, has the state.
    """
    return home / str(os.getpid())


def running_laptop(env: Mapping[str, str]) -> RunningLaptop | None:
    """The laptop with its files in the default state directory.

    Without one, the newest of those that are only registered there.
    """
    return next(running_laptops(env), None)


def running_laptops(env: Mapping[str, str]) -> Iterator[RunningLaptop]:
    """All laptops of this user: the one in the default state directory first, then the newest."""
    home = laptop_home(env)
    others = sorted(home.glob(f"*/{FILE}"), key=_changed, reverse=True)
    for folder in (home, *(other.parent for other in others)):
        if (laptop := laptop_in(folder)) is not None:
            yield laptop


def forget_killed(home: Path) -> None:
    """Deletes the registrations of killed laptops.

    Other processes may get their process ids later.
    """
    for registered in home.glob(f"*/{FILE}"):
        if laptop_in(registered.parent) is None:
            with contextlib.suppress(OSError):
                registered.unlink()
                registered.parent.rmdir()


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def laptop_in(home: Path) -> RunningLaptop | None:
    """The laptop with its files in `home`, if its process lives."""
    import json

    try:
        state = json.loads((home / FILE).read_text())
        laptop = RunningLaptop(
            int(state["pid"]),
            str(state["kubeconfig"]),
            str(state["gpu_exporter"]),
            str(state["console"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return laptop if _lives(laptop.pid) and Path(laptop.kubeconfig).exists() else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return pid > 0
