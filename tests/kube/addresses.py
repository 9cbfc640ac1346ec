"""Ports and addresses of this machine that a test cluster may use.

Ports come from below the kernel's range for outgoing connections: a component that is down for
twenty seconds must find its port free again. A port that was handed out stays claimed until this
process ends. So no other test process takes it before the program listens, or while the program is
down.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.waiting import HANG_SECONDS

FIRST_PORT, LAST_PORT = 20_000, 32_000


def free_port() -> int:
    """A loopback port that no process listens on now and that no running test process has handed
    out.
    """
    for _ in range(1000):
        port = random.randint(FIRST_PORT, LAST_PORT)
        if claim(f"port-{port}") and _is_free(port):
            return port
    raise OSError(f"no free port between {FIRST_PORT} and {LAST_PORT}")


_claims: list[socket.socket] = []


def claim(what: str) -> bool:
    """Whether the claim succeeded. A claim is a socket's name; the kernel drops it with the
    process.
    """
    claimed = socket.socket(socket.AF_UNIX)
    try:
        # an abstract name: it belongs to the network namespace, as ports and addresses do, and is
        # no file
        claimed.bind(f"\0fairlead-test-{what}")
    except OSError:
        claimed.close()
        return False
    _claims.append(claimed)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def is_listening(port: int) -> bool:
    """Whether something accepts connections on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def address_beyond_loopback() -> Iterator[str]:
    """An IPv4 address of this machine outside 127.0.0.0/8, for kube-apiserver's
    --advertise-address.

    No process listens on it. A machine that has none gets one on `lo` while the block runs; that
    needs root. Each process adds its own address, so that no process removes another's.
    """
    found = _first_address()
    if found is not None:
        yield found
        return
    added = f"10.99.{16 + os.getpid() % 200}.{1 + os.getpid() // 200 % 250}"
    subprocess.run(
        ["ip", "addr", "add", f"{added}/32", "dev", "lo"],
        check=True,
        capture_output=True,
        timeout=HANG_SECONDS,
    )
    try:
        yield added
    finally:
        subprocess.run(
            ["ip", "addr", "del", f"{added}/32", "dev", "lo"],
            check=False,
            capture_output=True,
            timeout=HANG_SECONDS,
        )


def _first_address() -> str | None:
    """The source address of outgoing packets. Connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") or address == "0.0.0.0" else address
