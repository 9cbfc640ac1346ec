"""In which pod and container a process runs, as its cgroups and mounts tell.

Each container with shared memory has a limits file of its own, whose path on the node names its token.

A process cannot leave that mount without leaving the container's root; the kernel says `//deleted` behind the
path of a file that was replaced since.
"""

from __future__ import annotations

import re
from typing import Final

_POD: Final = re.compile(r"/(?:kubepods[^/]*-)?pod([0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12})(?:\.slice)?/")
_CONTAINER: Final = re.compile(r"/(?:(?:cri-containerd|crio|docker)-)?([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
_LIMITS: Final = re.compile(r"^\S+ \S+ \S+ \S*/containers/([0-9a-f]{16})/limits(?://deleted)? /etc/fairlead/gpu/limits ", re.MULTILINE)


def token_of_mounts(mountinfo: str) -> str:
    """The token of the container whose `/proc/<pid>/mountinfo` this is; "" = it was given no shared memory.

    >>> mounted = "/etc/fairlead/gpu/limits ro - ext4 /dev/sda rw"
    >>> token_of_mounts(f"36 35 8:1 /lib/fairlead/gpu/containers/0123456789abcdef/limits {mounted}")
    '0123456789abcdef'
    """
    match = _LIMITS.search(mountinfo)
    return match[1] if match else ""


def pod_of_cgroups(text: str) -> str:
    """The uid of the pod whose `/proc/<pid>/cgroup` this is, as the kubelet names it; "" = it is in no pod.

    Both drivers of cgroups are read, systemd's slices and plain folders; a static pod's uid has no hyphens.

    >>> pod_of_cgroups("0::/kubepods/burstable/pod0b4a5f6e-1111-2222-3333-444444444444/0123abcd")
    '0b4a5f6e-1111-2222-3333-444444444444'
    >>> pod_of_cgroups("0::/user.slice/user-0.slice")
    ''
    """
    match = _POD.search(text)
    return match[1].replace("_", "-") if match else ""


def container_of_cgroups(text: str) -> str:
    """The id of the container whose `/proc/<pid>/cgroup` this is; "" = it tells none
    (docs/spec/telemetry.md#processes).

    >>> container_of_cgroups("0::/kubepods/pod0b4a5f6e-1111-2222-3333-444444444444/" + "ab" * 32) == "ab" * 32
    True
    >>> container_of_cgroups("0::/user.slice/user-0.slice")
    ''
    """
    match = _CONTAINER.search(text) if _POD.search(text) else None
    return match[1] if match else ""
