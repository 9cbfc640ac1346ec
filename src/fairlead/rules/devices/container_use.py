"""What containers use of a card: each process is assigned to the container it runs in.

Specification: docs/spec/telemetry.md#container-metrics, docs/spec/telemetry.md#processes.

A process outside of all containers with a grant is foreign, whether it runs in a pod or not. Two
containers of one pod on one card, without a token or a known id, cannot be distinguished: the first
of them by name gets the process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from msgspec import structs

from fairlead.model.devices.device import DeviceProcess, NamedProcess
from fairlead.model.devices.driver import ProcessHome
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.readings import GpuProcess

_NO_CONTAINER: Final = DeviceProcess("", "", "", "", GpuMode.NONE, 0, 0, 0.0, processes=0)
_UNSHARED: Final = frozenset({GpuMode.EXCLUSIVE, GpuMode.MIG})

Figure = TypeVar("Figure", int, float)
Homes = Mapping[int, ProcessHome]
"""By pid, without processes that have ended."""


def container_use(
    containers: Sequence[DeviceProcess], seen: Sequence[GpuProcess], homes: Homes
) -> tuple[DeviceProcess, ...]:
    """The containers of one card with their use, and one row without a pod for foreign processes.

    A container without processes uses 0. A value that the driver does not report for one process is
    unknown for its container; a sum without that process would be too small.

    >>> holder = DeviceProcess("ns", "p", "c", "u1", GpuMode.EXCLUSIVE, None, 15360 << 20, None)
    >>> processes = [GpuProcess(7, "C", 300 << 20, 40.0), GpuProcess(8, "C", 100 << 20, None)]
    >>> used = container_use([holder], processes, {7: ProcessHome("u1"), 8: ProcessHome()})
    >>> [(each.pod, each.memory_used_bytes >> 20, each.sm_percent) for each in used]
    [('p', 300, 40.0), ('', 100, None)]
    """
    rows = [
        *(
            structs.replace(each, memory_used_bytes=0, sm_percent=0.0, processes=0, members=())
            for each in containers
        ),
        _NO_CONTAINER,
    ]
    for process in seen:
        home = homes.get(process.pid)
        if home is None:
            continue
        index = _container_of(home, containers)
        rows[index] = _with(rows[index], process, home.name)
    return tuple(rows if rows[-1].processes else rows[:-1])


def percent_of_whole(container: DeviceProcess) -> float | None:
    """How busy it keeps a card, at most 100: processes that run at once add up to more.

    >>> busy = DeviceProcess("", "", "", "", GpuMode.SHARE, 0, 0, 130.0)
    >>> percent_of_whole(busy), percent_of_whole(structs.replace(busy, sm_percent=None))
    (100.0, None)
    """
    return None if container.sm_percent is None else min(100.0, container.sm_percent)


def unknown_use(containers: Sequence[DeviceProcess]) -> tuple[DeviceProcess, ...]:
    """Containers with a grant on a card with unknown processes.

    Their use is unknown, which is not 0.
    """
    return tuple(
        structs.replace(each, memory_used_bytes=None, sm_percent=None, processes=None, members=())
        for each in containers
        if each.pod
    )


def sole_holder_use(
    containers: Sequence[DeviceProcess], used_bytes: float | None, percent: float | None
) -> tuple[DeviceProcess, ...]:
    """The use of a card's only holder when processes cannot be seen: it uses what the card uses.

    Of others nothing is known.

    The same holds for a MIG instance and its only holder.
    """
    if not is_sole_holder(containers):
        return unknown_use(containers)
    return (
        structs.replace(
            containers[0],
            memory_used_bytes=None if used_bytes is None else int(used_bytes),
            sm_percent=percent,
            processes=None,
        ),
    )


def is_sole_holder(containers: Sequence[DeviceProcess]) -> bool:
    """Whether one container has the whole of a card or of an instance."""
    return len(containers) == 1 and containers[0].allocate_mode in _UNSHARED


def filled_use(
    rows: Sequence[DeviceProcess], used_bytes: float | None, percent: float | None
) -> tuple[DeviceProcess, ...]:
    """Complete what `container_use` does not know of a card's only holder, from the card's values.

    Its memory is the card's less that of the foreign processes, if that is known. A driver reports
    no time by process for the processes of a MIG instance, and an older driver for none.

    >>> mode = GpuMode.EXCLUSIVE
    >>> holder = DeviceProcess("ns", "p", "c", "u", mode, None, 15360 << 20, None, processes=1)
    >>> (filled,) = filled_use([holder], 300 << 20, 40.0)
    >>> filled.memory_used_bytes, filled.sm_percent
    (314572800, 40.0)
    """
    holders, strangers = (
        [each for each in rows if each.pod],
        [each for each in rows if not each.pod],
    )
    if not is_sole_holder(holders):
        return tuple(rows)
    holder, taken = holders[0], [each.memory_used_bytes for each in strangers]
    if holder.memory_used_bytes is None and used_bytes is not None and None not in taken:
        holder = structs.replace(
            holder, memory_used_bytes=max(0, int(used_bytes) - sum(used or 0 for used in taken))
        )
    if holder.sm_percent is None:
        holder = structs.replace(holder, sm_percent=percent)
    return (holder, *strangers)


def merged_use(rows: Sequence[DeviceProcess], *, is_one_memory: bool) -> tuple[DeviceProcess, ...]:
    """One row for each container, which may have one row for each part of a card that it has.

    `is_one_memory`: the parts share their memory, so that the limit of one is the limit of all.

    >>> part = DeviceProcess("ns", "p", "c", "u", GpuMode.MIG, 100, 300, None, 1)
    >>> [both] = merged_use([part, part], is_one_memory=True)
    >>> both.memory_used_bytes, both.memory_limit_bytes
    (200, 300)
    >>> [each.memory_limit_bytes for each in merged_use([part, part], is_one_memory=False)]
    [600]
    """
    found: dict[tuple[str, str, str, str, str], DeviceProcess] = {}
    for row in rows:
        who = (row.namespace, row.pod, row.container, row.pod_uid, row.allocate_mode)
        first = found.get(who)
        found[who] = row if first is None else _merged(first, row, is_one_memory=is_one_memory)
    return tuple(found.values()) if len(found) < len(rows) else tuple(rows)


def _merged(one: DeviceProcess, other: DeviceProcess, *, is_one_memory: bool) -> DeviceProcess:
    limit = one.memory_limit_bytes
    return structs.replace(
        one,
        memory_used_bytes=_sum(one.memory_used_bytes, other.memory_used_bytes),
        memory_limit_bytes=limit if is_one_memory else _sum(limit, other.memory_limit_bytes),
        sm_percent=_sum(one.sm_percent, other.sm_percent),
        processes=_sum(one.processes, other.processes),
        members=one.members + other.members,
    )


def _container_of(home: ProcessHome, containers: Sequence[DeviceProcess]) -> int:
    """The index of the process's container; len(containers) = none of them."""
    if not home.pod_uid:
        return len(containers)
    same = [index for index, each in enumerate(containers) if each.pod_uid == home.pod_uid]
    by_token = [index for index in same if home.token and containers[index].token == home.token]
    by_name = [
        index for index in same if home.container and containers[index].container == home.container
    ]
    if by_token or by_name or same:
        return (by_token or by_name or same)[0]
    unnamed = [index for index, each in enumerate(containers) if not each.pod_uid]
    return unnamed[0] if len(containers) == len(unnamed) == 1 else len(containers)


def _with(row: DeviceProcess, process: GpuProcess, name: str) -> DeviceProcess:
    measured = (process.type, process.memory_bytes, process.sm_percent, process.engines)
    return structs.replace(
        row,
        memory_used_bytes=_sum(row.memory_used_bytes, process.memory_bytes),
        sm_percent=_sum(row.sm_percent, process.sm_percent),
        processes=(row.processes or 0) + 1,
        members=(*row.members, NamedProcess(process.pid, name, *measured)),
    )


def _sum(one: Figure | None, other: Figure | None) -> Figure | None:
    return None if one is None or other is None else one + other
