"""What a driver tells a node's agent of its GPUs: XIDs, who uses memory, what keeps programs apart."""

from __future__ import annotations

from msgspec import Struct


class DriverXid(Struct, frozen=True, gc=False):
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

    `has_mig`: every card is divided into MIG instances; with one that is not, nothing would keep that one's
    users apart. `has_mps`: an MPS daemon per GPU runs. `has_guard`: the guard's library lies on the node.
    """

    driver: int = 0
    cuda: tuple[int, int] = (0, 0)
    has_cgroup_v2: bool = False
    has_mig: bool = False
    has_mps: bool = False
    has_guard: bool = False


class CardAnswer(Struct, frozen=True, gc=False):
    """What a card says that was asked how it is. `fault`: why it does not answer, "" = it does.

    `is_down`: it is lost, or waits for a reset. `energy_mj`: what it has used, a counter that a reset begins
    anew; `recovery_action`: what the driver asks for, 0 = nothing. None: that is not told.
    """

    fault: str = ""
    is_down: bool = False
    energy_mj: int | None = None
    recovery_action: int | None = None


def is_reset(energy_before: float | None, energy: float | None, *, was_away: bool) -> bool:
    """Whether a card that answers was reset since it did before: its energy counter began anew.

    Where none is told: whether it `was_away`, as only a reset ends it. Both in one unit, None = not told.

    >>> is_reset(900, 5, was_away=False), is_reset(900, 901, was_away=True), is_reset(None, 5, was_away=True)
    (True, False, True)
    """
    return was_away if energy_before is None or energy is None else energy < energy_before


class CardFault(Struct, frozen=True, gc=False):
    """What is wrong with one card; nothing of it = healthy.

    `xid`: the fatal one that is told, None = none. `quiet_seconds`: since the last fatal one, over good
    probes, as of `at`. `probe`: why the last probe failed. `energy_mj`: of its counter, as it was told last.
    `is_away`: it was lost, or waited for a reset, and has not answered since.
    """

    uuid: str
    xid: int | None = None
    is_sticky: bool = False
    quiet_seconds: float = 0.0
    at: float = 0.0
    probe: str = ""
    is_lost: bool = False
    energy_mj: int | None = None
    is_away: bool = False

    @property
    def reason(self) -> str:
        """In the inventory: `XID 48`; "" = healthy."""
        if self.xid is not None:
            return f"XID {self.xid}"
        return "the driver does not show this GPU" if self.is_lost else self.probe


class ProcessHome(Struct, frozen=True, gc=False):
    """Where a process of the node runs. `pod_uid`: the kubelet's, "" = in no pod.

    `token`: of the shared memory that its container was given, "" = none. `name`: its program's, at most 15
    bytes of it, as the kernel keeps it. `container_id`: the runtime's, 64 hex digits, "" = not told;
    `container`: the name that belongs to it, where somebody knows it.
    """

    pod_uid: str = ""
    token: str = ""
    name: str = ""
    container_id: str = ""
    container: str = ""
