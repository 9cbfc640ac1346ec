"""What a node's agent reads from the driver: XIDs, memory by process, means of isolation."""

from __future__ import annotations

from msgspec import Struct


class DriverXid(Struct, frozen=True, gc=False):
    """One XID. `uuid` None: the driver did not name the card."""

    xid: int
    uuid: str | None = None


class ProcessMemory(Struct, frozen=True, gc=False):
    """The memory of one process on one card. `pid`: on the node, not inside a container."""

    pid: int
    uuid: str
    used_mib: float


class IsolationMeans(Struct, frozen=True, gc=False):
    """Requirements of isolation providers that a node meets.

    `driver`: major version, 0 = unknown; `cuda`: the driver's.

    `has_mig`: every card is divided into MIG instances; a single undivided card would leave its
    users without isolation. `has_mps`: an MPS daemon runs for each GPU. `has_guard`: the guard's
    library is on the node.
    """

    driver: int = 0
    cuda: tuple[int, int] = (0, 0)
    has_cgroup_v2: bool = False
    has_mig: bool = False
    has_mps: bool = False
    has_guard: bool = False


class CgroupLimit(Struct, frozen=True, gc=False):
    """The memory of a card that the driver allows one cgroup, in bytes; None = no limit is set.

    `fault`: why it is not known, "" = it is.
    """

    hard_bytes: int | None = None
    fault: str = ""


class MpsLimit(Struct, frozen=True, gc=False):
    """What the MPS daemon of one card allows each of its clients.

    `memory_mib` 0: no limit is set.
    """

    uuid: str
    memory_mib: int = 0


class CardAnswer(Struct, frozen=True, gc=False):
    """A card's answer to a health probe. `fault`: why it does not answer, "" = it does.

    `is_down`: it is lost, or waits for a reset. `energy_mj`: the energy that it has used, a counter
    that a reset sets to 0; `recovery_action`: what the driver asks for, 0 = nothing. None: unknown.
    """

    fault: str = ""
    is_down: bool = False
    energy_mj: int | None = None
    recovery_action: int | None = None


def is_reset(energy_before: float | None, energy: float | None, *, was_away: bool) -> bool:
    """Whether a card that answers was reset since its last answer: its energy counter went back.

    If a counter is unknown (None): whether it `was_away`, because only a reset ends that. Both have
    one unit.

    >>> is_reset(900, 5, was_away=False)
    True
    >>> is_reset(900, 901, was_away=True)
    False
    >>> is_reset(None, 5, was_away=True)
    True
    """
    return was_away if energy_before is None or energy is None else energy < energy_before


class CardFault(Struct, frozen=True, gc=False):
    """What is wrong with one card; with no fault the card is healthy.

    `xid`: the fatal XID, None = none. `quiet_seconds`: time with good probes since the last fatal
    XID, as of `at`. `probe`: why the last probe failed. `energy_mj`: the last value of its counter.
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
        """The reason in the inventory, such as `XID 48`; "" = healthy."""
        if self.xid is not None:
            return f"XID {self.xid}"
        return "the driver does not show this GPU" if self.is_lost else self.probe


class ProcessHome(Struct, frozen=True, gc=False):
    """Where a process of the node runs. `pod_uid`: the kubelet's, "" = in no pod.

    `token`: of the shared memory that its container has, "" = none. `name`: of its program, the
    first 15 bytes, as in the kernel. `container_id`: the runtime's, 64 hex digits, "" = unknown;
    `container`: the container's name, "" = unknown. `cgroup`: its path in the node's hierarchy of
    cgroup v2, with a leading slash, "" = unknown.
    """

    pod_uid: str = ""
    token: str = ""
    name: str = ""
    container_id: str = ""
    container: str = ""
    cgroup: str = ""
