"""The pods and containers of this node's processes (`ports.ProcessHomes`), from /proc.

Pids are those of the node: an agent in its own pid namespace finds none. A process stays in its
container while it lives, so each is read once; a reused pid has another start time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from fairlead.model.devices.driver import ProcessHome
from fairlead.wire.kubelet.process_home import (
    cgroup_v2_of,
    container_of_cgroups,
    pod_of_cgroups,
    token_of_mounts,
)

PROC = Path("/proc")
MOST_KNOWN: Final = 4096
_START: Final = 19
"""Index of the start time among the fields of `stat` after the program's name."""


class NodeProcesses:
    """`proc`: the path of the node's /proc."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._known: dict[tuple[int, str], ProcessHome] = {}

    def homes(self, pids: Collection[int]) -> Mapping[int, ProcessHome]:
        found: dict[int, ProcessHome] = {}
        for pid in pids:
            try:
                found[pid] = self._home(pid)
            except OSError:
                continue  # it has ended
        return found

    def _home(self, pid: int) -> ProcessHome:
        began = (pid, _start(self._text(pid, "stat")))
        known = self._known.get(began)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            mounts, cgroups, name = (
                self._text(pid, file) for file in ("mountinfo", "cgroup", "comm")
            )
            pod, container = pod_of_cgroups(cgroups), container_of_cgroups(cgroups)
            known = self._known[began] = ProcessHome(
                pod,
                token_of_mounts(mounts),
                name.rstrip("\n"),
                container,
                cgroup=cgroup_v2_of(cgroups),
            )
        return known

    def _text(self, pid: int, file: str) -> str:
        return (self._proc / str(pid) / file).read_text(encoding="utf-8", errors="replace")


def _start(stat: str) -> str:
    """When the process started, in ticks since the boot.

    A program's name may have blanks and brackets.
    """
    fields = stat.rpartition(")")[2].split()
    return fields[_START] if len(fields) > _START else ""


def sees_node(proc: Path = PROC) -> bool:
    """Whether pids are those of the node.

    There pid 2 is a kernel thread; in a container it is another process or none.
    """
    try:
        return (proc / "2" / "comm").read_text(
            encoding="utf-8", errors="replace"
        ).strip() == "kthreadd"
    except OSError:
        return False
