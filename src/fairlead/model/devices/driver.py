"""What a driver tells a node's agent of its GPUs: XIDs, who uses memory, what keeps programs apart."""

from __future__ import annotations

from msgspec import Struct


class SeenXid(Struct, frozen=True, gc=False):
    """One XID. `uuid` None: the driver did not say of which card."""

    xid: int
    uuid: str | None = None


class ProcessMemory(Struct, frozen=True, gc=False):
    """What one process uses of one card. `pid`: on the node, not inside a container."""

    pid: int
    uuid: str
    used_mib: float


class IsolationMeans(Struct, frozen=True, gc=False):
    """What a node has that providers need. `driver`: major number, 0 = unknown; `cuda`: of the driver.

    `has_mps`: an MPS daemon per GPU runs. `has_guard`: the guard's library lies on the node.
    """

    driver: int = 0
    cuda: tuple[int, int] = (0, 0)
    has_cgroup_v2: bool = False
    has_mig: bool = False
    has_mps: bool = False
    has_guard: bool = False
