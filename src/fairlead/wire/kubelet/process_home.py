"""Finds the pod and container of a process from its cgroups and mounts.

Each container with shared GPU memory mounts its own limits file, whose path on the node contains
its token. A process cannot leave that mount without leaving the container's root. The kernel
appends `//deleted` to the path of a file that has been replaced.
"""

from __future__ import annotations

import re
from typing import Final

_POD: Final = re.compile(
    r"/(?:kubepods[^/]*-)?pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})(?:\.slice)?/"
)
_CONTAINER: Final = re.compile(
    r"/(?:(?:cri-containerd|crio|docker)-)?([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE
)
_UNIFIED: Final = re.compile(r"^0::(/.+)$", re.MULTILINE)
_LIMITS: Final = re.compile(
    (
        r"^\S+ \S+ \S+ "
        r"\S*/containers/([0-9a-f]{16})/limits(?://deleted)? /etc/fairlead/gpu/limits "
    ),
    re.MULTILINE,
)


def token_of_mounts(mountinfo: str) -> str:
    """The token of the process's container from `/proc/<pid>/mountinfo`.

    "" = it has no shared GPU memory.

    >>> mounted = "/etc/fairlead/gpu/limits ro - ext4 /dev/sda rw"
    >>> token_of_mounts(f"36 35 8:1 /lib/fairlead/gpu/containers/0123456789abcdef/limits {mounted}")
    '0123456789abcdef'
    """
    match = _LIMITS.search(mountinfo)
    return match[1] if match else ""


def pod_of_cgroups(text: str) -> str:
    """The uid of the process's pod from `/proc/<pid>/cgroup`, in the kubelet's form; "" = no pod.

    Reads the names of both cgroup drivers, systemd and cgroupfs; a static pod's uid has no hyphens.

    >>> pod_of_cgroups("0::/kubepods/burstable/pod0b4a5f6e-1111-2222-3333-444444444444/0123abcd")
    '0b4a5f6e-1111-2222-3333-444444444444'
    >>> pod_of_cgroups("0::/user.slice/user-0.slice")
    ''
    """
    match = _POD.search(text)
    return match[1].replace("_", "-") if match else ""


def container_of_cgroups(text: str) -> str:
    """The id of the process's container from `/proc/<pid>/cgroup`; "" = none.

    Specification: docs/spec/telemetry.md#processes.

    >>> pod = "pod0b4a5f6e-1111-2222-3333-444444444444"
    >>> container_of_cgroups(f"0::/kubepods/{pod}/" + "ab" * 32) == "ab" * 32
    True
    >>> container_of_cgroups("0::/user.slice/user-0.slice")
    ''
    """
    match = _CONTAINER.search(text) if _POD.search(text) else None
    return match[1] if match else ""


def cgroup_v2_of(text: str) -> str:
    """The cgroup of the process's container from `/proc/<pid>/cgroup`, as its path below the root
    of cgroup v2; of a process in no container, its own.

    "": it is in the root, in none, or outside of the reader's cgroup namespace, where it begins
    with `/..`.

    >>> cgroup_v2_of("1:cpu:/a\\n0::/kubepods.slice/a.scope\\n")
    '/kubepods.slice/a.scope'
    >>> container = "/kubepods.slice/cri-containerd-" + "0a" * 32 + ".scope"
    >>> cgroup_v2_of(f"0::{container}/made/by/itself") == container
    True
    >>> cgroup_v2_of("0::/../kubepods.slice"), cgroup_v2_of("0::/"), cgroup_v2_of("1:cpu:/a")
    ('', '', '')
    """
    match = _UNIFIED.search(text)
    path = match[1] if match and not match[1].startswith("/..") else ""
    inside = _CONTAINER.search(path)
    return path[: inside.end()].rstrip("/") if inside else path
