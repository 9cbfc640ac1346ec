"""Where the processes of this node run (`ports.ProcessHomes`), as /proc tells.

Pids are those of the node: in a pid namespace of its own an agent finds nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from fairlead.model.devices.driver import ProcessHome
from fairlead.wire.kubelet.process_home import pod_of_cgroups, token_of_mounts

PROC = Path("/proc")


class NodeProcesses:
    """`proc`: where the node's /proc is."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc

    def homes(self, pids: Collection[int]) -> Mapping[int, ProcessHome]:
        found: dict[int, ProcessHome] = {}
        for pid in pids:
            try:
                mounts, cgroups, name = (
                    (self._proc / str(pid) / file).read_text(encoding="utf-8", errors="replace") for file in ("mountinfo", "cgroup", "comm")
                )
            except OSError:
                continue  # it has ended
            found[pid] = ProcessHome(pod_of_cgroups(cgroups), token_of_mounts(mounts), name.rstrip("\n"))
        return found


def sees_node(proc: Path = PROC) -> bool:
    """Whether pids here are those of the node: pid 2 is the kernel's; in a container it is any or none."""
    try:
        return (proc / "2" / "comm").read_text(encoding="utf-8", errors="replace").strip() == "kthreadd"
    except OSError:
        return False
