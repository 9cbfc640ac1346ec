"""Where a real node lives on this machine: in namespaces of its own, so that nothing of it remains.

Processes and mounts of the node are in a pid and a mount namespace. Their first process dies with
the test process (`Component`), however that ends; the kernel then ends every container and undoes
every mount. Three things are outside, under fixed names, so that they can also be removed after a
run that was killed: an address on `lo`, a bridge and the cgroup `kubepods`.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

from tests.kube.component import Component, ComponentError
from tests.kube.machine_turn import only_run
from tests.programs import run_program
from tests.waiting import wait_until

NODE_ADDRESS = "10.99.0.2"
BRIDGE = "fairlead0"
NEEDED = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
"""Programs and the Debian packages that contain them."""
CNI_PROGRAMS = Path("/usr/lib/cni")
NODE_LOCK = Path("/tmp/fairlead-test-node.lock")
"""A process takes this lock to change the machine's network addresses, or to be sure that no other
process does.
"""
_END_SECONDS = 60.0
_CGROUPS = Path("/sys/fs/cgroup")


@contextmanager
def node_room() -> Iterator[None]:
    """Reserve the machine for one node during the block; ComponentError when the machine lacks what
    a node needs.
    """
    check_machine()
    with only_run("test node runs", NODE_LOCK):
        _sweep()
        try:
            ip("address", "add", f"{NODE_ADDRESS}/32", "dev", "lo")
            yield
        finally:
            _sweep()


def first_process(disk: Path, *, has_own_network: bool = False) -> list[str]:
    """The command line of the first process of new namespaces; `disk`, an empty folder, is /var/lib
    there. `has_own_network`: with a network namespace, too.

    It adopts orphaned processes, as the first process of a machine does: containers outlive their
    runtime.
    """
    # No tmpfs there: the kubelet measures how full the disk is, and cannot measure a tmpfs.
    mounts = (
        'mount --bind "$0" /var/lib && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log'
    )
    flags = [
        "--fork",
        "--kill-child",
        "--pid",
        "--mount",
        "--mount-proc",
        "--propagation",
        "private",
        *(["--net"] if has_own_network else []),
    ]
    return [
        "unshare",
        *flags,
        "--",
        "sh",
        "-c",
        f"{mounts} && while :; do sleep 1000000 & wait; done",
        str(disk),
    ]


def has_begun(room: Component) -> bool:
    """Whether the namespaces exist."""
    return bool(_children(room))


def beside(room: Component, *argv: str | Path) -> list[str]:
    """The command line that runs `argv` in the namespaces whose first process is `room`."""
    words = ["--target", str(first_pid(room)), "--pid", "--mount", "--net", "--"]
    return ["nsenter", *words, *map(str, argv)]


def first_pid(room: Component) -> int:
    """The pid of the first process of the namespaces, as this machine counts."""
    (first,) = _children(room)
    return int(first)


def end_one(component: Component) -> None:
    """Ask a program that runs `beside` a room to end, and wait for it; it can be started again."""
    for program in _children(component):
        os.kill(int(program), signal.SIGTERM)
    wait_until(f"{component.name} has ended", lambda: not component.is_running, _END_SECONDS)


def end_all(room: Component) -> None:
    """Kill the first process; the room itself ends only after every process of its namespaces."""
    if room.is_running:
        for first in _children(room):
            os.kill(int(first), signal.SIGKILL)
        wait_until("every process of the node has ended", lambda: not room.is_running, _END_SECONDS)


def _children(room: Component) -> list[str]:
    return (
        Path("/proc", str(room.pid), "task", str(room.pid), "children")
        .read_text(encoding="ascii")
        .split()
    )


def check_machine(more: Mapping[str, str] = MappingProxyType({})) -> None:
    """ComponentError when the machine lacks what a node needs. `more`: as NEEDED."""
    if os.geteuid() != 0:
        raise ComponentError("a kubelet runs containers only for root; run these tests as root")
    needed = {**NEEDED, **more}
    missing = sorted(
        {package for program, package in needed.items() if shutil.which(program) is None}
    )
    if not (CNI_PROGRAMS / "bridge").exists():
        missing.append("containernetworking-plugins")
    if missing:
        packages = " ".join(missing)
        raise ComponentError(
            "a kubelet needs programs that are not on this machine\nhint: `apt-get install "
            f"{packages}`"
        )


def _sweep() -> None:
    """Remove what is outside the namespaces; ComponentError when another program's kubelet works
    here.
    """
    remove_cgroups("kubepods")
    ip("link", "delete", BRIDGE, may_fail=True)
    ip("address", "delete", f"{NODE_ADDRESS}/32", "dev", "lo", may_fail=True)


def remove_cgroups(name: str) -> None:
    """Remove this cgroup of every hierarchy of cgroup v1, and the one of v2; TimeoutError while a
    process is in one.
    """
    found = [path for path in (*_CGROUPS.glob(f"*/{name}"), _CGROUPS / name) if path.is_dir()]
    for folder in found:
        wait_until(
            f"no process is left in {folder}; is there a kubelet of this machine's own?",
            partial(_is_empty, folder),
            30,
        )
        for each in sorted(folder.rglob("*/"), key=lambda path: len(path.parts), reverse=True):
            each.rmdir()
        folder.rmdir()


def make_cgroups(name: str) -> None:
    """Make a cgroup of this name in every hierarchy, for the pods of one node of several."""
    for hierarchy in _hierarchies():
        folder = hierarchy / name
        folder.mkdir()
        for setting in ("cpuset.cpus", "cpuset.mems"):  # empty in a new cgroup of v1
            if (hierarchy / setting).exists():
                (folder / setting).write_text((hierarchy / setting).read_text())


def _hierarchies() -> Sequence[Path]:
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [path for path in _CGROUPS.iterdir() if path.is_dir() and path.name != "unified"]


def _is_empty(cgroup: Path) -> bool:
    return not any(path.read_text(encoding="ascii") for path in cgroup.rglob("cgroup.procs"))


def ip(*arguments: str, may_fail: bool = False) -> None:
    """`ip ARGUMENTS`; ComponentError when it fails."""
    answer = run_program(["ip", *arguments])
    if answer.returncode and not may_fail:
        raise ComponentError(f"`ip {' '.join(arguments)}` failed: {answer.stderr.strip()}")
