"""In which container a process runs, as its mounts tell.

Each container with shared memory has a limits file of its own, whose path on the node names its token.

A process cannot leave that mount without leaving the container's root; the kernel says `//deleted` behind the
path of a file that was replaced since.
"""

from __future__ import annotations

import re
from typing import Final

_LIMITS: Final = re.compile(r"^\S+ \S+ \S+ \S*/containers/([0-9a-f]{16})/limits(?://deleted)? /etc/fairlead/gpu/limits ", re.MULTILINE)


def token_of_mounts(mountinfo: str) -> str:
    """The token of the container whose `/proc/<pid>/mountinfo` this is; "" = it was given no shared memory.

    >>> mounted = "/etc/fairlead/gpu/limits ro - ext4 /dev/sda rw"
    >>> token_of_mounts(f"36 35 8:1 /lib/fairlead/gpu/containers/0123456789abcdef/limits {mounted}")
    '0123456789abcdef'
    """
    match = _LIMITS.search(mountinfo)
    return match[1] if match else ""
