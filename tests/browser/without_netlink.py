"""Chromium that does not see addresses of the machine come and go.

Chromium listens to the kernel (netlink) and cancels what it loads, with `ERR_NETWORK_CHANGED`, when
an address changes; the pods of a test node on the same machine do that all the time. A seccomp
filter refuses the netlink socket; Chromium then assumes that the network is there and unchanged.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from pathlib import Path

AF_NETLINK = 16
EAFNOSUPPORT = 97
SOCKET_CALL = {"x86_64": 41, "aarch64": 198}
"""The number of socket(2), from the kernel's tables of system calls."""
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
"""BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K."""
NUMBER_OFFSET, FIRST_ARGUMENT_OFFSET = 0, 16
"""Bytes in `struct seccomp_data`; the lower half of the argument on a little-endian machine."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | EAFNOSUPPORT


def launcher(chromium: str, folder: Path) -> Path:
    """A program that starts `chromium` without netlink, for Playwright's `executable_path`."""
    path = folder / "chromium-without-netlink"
    words = (sys.executable, str(Path(__file__).resolve()), chromium)
    command = " ".join(f"'{word}'" for word in words)
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def refuse_netlink() -> None:
    """For this process and all that it starts. Raises OSError where the kernel refuses."""
    steps = (
        (LOAD, 0, 0, NUMBER_OFFSET),
        (EQUAL, 0, 3, SOCKET_CALL[platform.machine()]),
        (LOAD, 0, 0, FIRST_ARGUMENT_OFFSET),
        (EQUAL, 0, 1, AF_NETLINK),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(program)), 0, 0),
    ):
        if libc.prctl(*words) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"prctl{words[:2]}: {os.strerror(number)}")


if __name__ == "__main__":
    refuse_netlink()
    os.execv(sys.argv[1], sys.argv[1:])
