"""The watchdog over shared memory: which containers use more of a card than their grant.

Specification: docs/spec/gpu-sharing.md#watchdog.

It reads the driver's count per process from outside the pods, so it also finds programs that bypass
a provider, and containers without a grant. Only consecutive periods count: a container that could
not be counted in one period starts again.

Where the driver limits containers by their cgroups, it also finds those that the driver does not
limit (docs/spec/gpu-sharing.md#containers-limited-by-cgroup): the hook of NVIDIA's container
toolkit that sets limits is missing or too old, or a limit was taken away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.model.devices.driver import CgroupLimit, ProcessHome, ProcessMemory
from fairlead.model.devices.kubelet import GivenShare
from fairlead.model.pod import Pod
from fairlead.rules.devices.owner import kubelet_uid

OVER_GRANT: Final = "GPUMemoryOverGrant"
"""Reason of the Event on the pod."""
UNLIMITED: Final = "GPULimitMissing"
"""Reason of the Event on a pod that the driver does not limit."""
EVICT_AFTER: Final = 3
ALLOWANCE_MIB: Final = 640.0
"""Memory that the context of one process may take beside its container's grant.

A context takes about 500 MiB on an H200 (docs/spec/gpu-sharing.md#limits-file-and-region; a
published figure); on an H100 a program with an array library took 518 MiB beside what it held.
"""
Holders = Mapping[str, Collection[str]]
"""By UUID of a card, uids of the pods that have it for themselves."""
_NOWHERE: Final = ProcessHome()
_MIB: Final = 1 << 20


class OverGrantPolicy(StrEnum):
    REPORT = "report"
    EVICT = "evict"
    OFF = "off"


class MemoryUse(Struct, frozen=True, gc=False):
    """What the processes of one container use together on one card, and its grant there.

    `granted_mib`: 0 for a container without a grant of this card, the whole card for a container
    that has it for itself. `pod_uid`: the kubelet's. `processes`: how many these are.
    """

    namespace: str
    pod: str
    pod_uid: str
    container: str
    uuid: str
    used_mib: float
    granted_mib: float
    processes: int = 1

    @property
    def allowed_mib(self) -> float:
        """With the contexts of its processes."""
        return self.granted_mib + ALLOWANCE_MIB * self.processes


class OverGrant(Struct, frozen=True, gc=False):
    """A container over its grant.

    `is_new`: not over in the previous period, so an Event is due. `is_to_evict`: as the policy
    demands.
    """

    use: MemoryUse
    periods: int
    is_new: bool
    is_to_evict: bool

    @property
    def over_bytes(self) -> int:
        """What it uses above its grant, contexts included: the metric `over_grant_bytes`."""
        return round((self.use.used_mib - self.use.granted_mib) * (1 << 20))

    @property
    def sentence(self) -> str:
        use = self.use
        who = (
            f"container {use.container}"
            if use.container
            else "a container that was granted nothing of it"
        )
        return (
            f"{who} uses {use.used_mib:.0f} MiB of GPU {use.uuid}, its grant is "
            f"{use.granted_mib:.0f} MiB"
        )


def memory_uses(
    processes: Iterable[ProcessMemory],
    homes: Mapping[int, ProcessHome],
    given: Iterable[GivenShare],
    pods: Iterable[Pod],
    whole: Holders,
) -> list[MemoryUse]:
    """What each container uses of each card, with its grant.

    `homes`: by pid; a process that runs in no pod, or has ended, belongs to no container. `whole`:
    by card, pods that have it for themselves and cannot use too much of it. If a process's pod is
    known, its token counts only if it is that pod's: a program can imitate the path with the token.
    A process of a pod without a grant of the card counts with a grant of 0.
    """
    rows: dict[str, list[GivenShare]] = {}
    for share in given:
        rows.setdefault(share.token, []).append(share)
    known = {kubelet_uid(pod): pod for pod in pods}
    used: dict[tuple[str, str, str, str, str], float] = {}
    pids: dict[tuple[str, str, str, str, str], set[int]] = {}
    granted: dict[tuple[str, str, str, str, str], float] = {}
    for process in processes:
        home = homes.get(process.pid, _NOWHERE)
        shares = [
            share for share in rows.get(home.token, ()) if home.pod_uid in ("", share.pod_uid)
        ]
        pod = known.get(home.pod_uid)
        if shares:
            first = shares[0]
            seat = (first.namespace, first.pod, first.pod_uid, first.container, process.uuid)
            granted[seat] = sum(
                each.grant.memory_mib or 0 for each in shares if _is_of(each, first, process.uuid)
            )
        elif pod is not None and pod.uid not in whole.get(process.uuid, ()):
            seat = (pod.namespace, pod.name, home.pod_uid, "", process.uuid)
            granted[seat] = 0.0
        else:
            continue
        used[seat] = used.get(seat, 0.0) + process.used_mib
        pids.setdefault(seat, set()).add(process.pid)
    return [MemoryUse(*seat, used[seat], granted[seat], len(pids[seat])) for seat in sorted(used)]


def _is_of(share: GivenShare, first: GivenShare, uuid: str) -> bool:
    return share.grant.uuid == uuid and (share.pod_uid, share.container) == (
        first.pod_uid,
        first.container,
    )


Seat = tuple[str, str, str]
"""Pod uid, container, UUID of the card."""


class MemoryWatchdog:
    """For how many consecutive periods each container has used more than its grant."""

    def __init__(self) -> None:
        self._periods: Mapping[Seat, int] = {}

    def look(self, uses: Iterable[MemoryUse], policy: OverGrantPolicy) -> list[OverGrant]:
        """Containers over their grant in this period.

        Call it once a period, with all that could be counted.

        >>> use = MemoryUse("ns", "p", "u", "c", "GPU-a", used_mib=4960.0, granted_mib=4308.0)
        >>> [each.sentence for each in MemoryWatchdog().look([use], OverGrantPolicy.REPORT)]
        ['container c uses 4960 MiB of GPU GPU-a, its grant is 4308 MiB']
        """
        if policy == OverGrantPolicy.OFF:
            self._periods = {}
            return []
        periods: dict[Seat, int] = {}
        found: list[OverGrant] = []
        for use in uses:
            if not use.used_mib > use.allowed_mib:
                continue
            seat = (use.pod_uid, use.container, use.uuid)
            count = periods[seat] = self._periods.get(seat, 0) + 1
            found.append(
                OverGrant(
                    use, count, count == 1, policy == OverGrantPolicy.EVICT and count >= EVICT_AFTER
                )
            )
        self._periods = periods
        return found


class LimitedCgroup(Struct, frozen=True, gc=False):
    """The cgroup of a container's programs on a card, and the row of its grant."""

    share: GivenShare
    cgroup: str


def limited_cgroups(
    processes: Iterable[ProcessMemory],
    homes: Mapping[int, ProcessHome],
    given: Iterable[GivenShare],
) -> tuple[LimitedCgroup, ...]:
    """The cgroups that have programs on shared cards now, each once for a card.

    `homes`: by pid. A container without a program on a card is not found: it uses nothing there.

    >>> from fairlead.model.devices.gpu import Grant
    >>> row = GivenShare("ns", "p", "u", "c", Grant("GPU-a", 0, 4, 4301), "t")
    >>> home = ProcessHome("u", "t", cgroup="/pod/c")
    >>> found = limited_cgroups([ProcessMemory(7, "GPU-a", 1.0)], {7: home}, [row])
    >>> [(each.share.container, each.cgroup) for each in found]
    [('c', '/pod/c')]
    """
    rows = {(share.token, share.grant.uuid): share for share in given}
    found: dict[tuple[str, str, str], LimitedCgroup] = {}
    for process in processes:
        home = homes.get(process.pid)
        share = rows.get((home.token, process.uuid)) if home else None
        if home is not None and share is not None and home.cgroup:
            key = (share.token, process.uuid, home.cgroup)
            found[key] = LimitedCgroup(share, home.cgroup)
    return tuple(found[key] for key in sorted(found))


def limit_fault(share: GivenShare, limit: CgroupLimit) -> str:
    """What is wrong with the limit of the container with this grant; "" = nothing.

    >>> from fairlead.model.devices.gpu import Grant
    >>> row = GivenShare("ns", "p", "u", "c", Grant("GPU-a", 0, 4, 4301), "t")
    >>> limit_fault(row, CgroupLimit(4301 << 20))
    ''
    >>> limit_fault(row, CgroupLimit(5000 << 20))
    'the driver allows container c 5000 MiB of GPU GPU-a, its grant is 4301 MiB'
    """
    who, uuid, mib = share.container, share.grant.uuid, share.grant.memory_mib or 0
    if limit.fault:
        return f"the limit of container {who} on GPU {uuid} is not known: {limit.fault}"
    if limit.hard_bytes is None:
        return (
            f"the driver does not limit container {who} on GPU {uuid}, its grant is {mib} MiB: "
            "NVIDIA's container toolkit 1.20.1 or later sets the limit when a container starts"
        )
    if limit.hard_bytes > mib * _MIB:
        return (
            f"the driver allows container {who} {limit.hard_bytes / _MIB:.0f} MiB of GPU {uuid}, "
            f"its grant is {mib} MiB"
        )
    return ""
