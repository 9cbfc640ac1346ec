"""What containers use of a card: its processes, each put to the container that it runs in (telemetry contract
1.10, 1.11).

A process of no container with a grant is foreign, whether it runs in a pod or not. What cannot be told apart
(two containers of one pod on one card without a token or a known id) goes to the first of them by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import structs

from fairlead.model.devices.device import DeviceProcess, NamedProcess
from fairlead.model.devices.driver import ProcessHome
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.readings import SeenProcess

_NOBODY: Final = DeviceProcess("", "", "", "", GpuMode.NONE, 0, 0, 0.0, processes=0)

Homes = Mapping[int, ProcessHome]
"""By pid; a process that has ended is not in it."""


def container_use(containers: Sequence[DeviceProcess], seen: Sequence[SeenProcess], homes: Homes) -> tuple[DeviceProcess, ...]:
    """The containers of one card with what they use of it, and one row without a pod for all foreign ones.

    A process whose memory or time the driver does not say counts as a process and adds nothing.

    >>> holder = DeviceProcess("ns", "p", "c", "u1", GpuMode.EXCLUSIVE, 0, 15360 << 20, 0.0, processes=0)
    >>> processes = [SeenProcess(7, "C", 300 << 20, 40.0), SeenProcess(8, "C", 100 << 20, None)]
    >>> used = container_use([holder], processes, {7: ProcessHome("u1"), 8: ProcessHome()})
    >>> [(each.pod, each.memory_used_bytes >> 20) for each in used]
    [('p', 300), ('', 100)]
    """
    rows = [*containers, _NOBODY]
    for process in seen:
        home = homes.get(process.pid)
        if home is None:
            continue
        index = _container_of(home, containers)
        rows[index] = _with(rows[index], process, home.name)
    return tuple(rows if rows[-1].processes else rows[:-1])


def unknown_use(containers: Sequence[DeviceProcess]) -> tuple[DeviceProcess, ...]:
    """Who has a grant on a card whose processes nobody knows: what they use is unknown, which is not 0."""
    return tuple(
        structs.replace(each, memory_used_bytes=None, sm_percent=None, processes=None, members=()) for each in containers if each.pod
    )


def sole_holder_use(containers: Sequence[DeviceProcess], used_bytes: float | None, percent: float | None) -> tuple[DeviceProcess, ...]:
    """Where processes cannot be seen, a card's only holder uses what the card does; of others none knows."""
    if len(containers) != 1 or containers[0].allocate_mode != GpuMode.EXCLUSIVE:
        return unknown_use(containers)
    return (
        structs.replace(
            containers[0], memory_used_bytes=None if used_bytes is None else int(used_bytes), sm_percent=percent, processes=None
        ),
    )


def _container_of(home: ProcessHome, containers: Sequence[DeviceProcess]) -> int:
    """Its place, len(containers) = none of them."""
    if not home.pod_uid:
        return len(containers)
    same = [index for index, each in enumerate(containers) if each.pod_uid == home.pod_uid]
    by_token = [index for index in same if home.token and containers[index].token == home.token]
    by_name = [index for index in same if home.container and containers[index].container == home.container]
    if by_token or by_name or same:
        return (by_token or by_name or same)[0]
    unnamed = [index for index, each in enumerate(containers) if not each.pod_uid]
    return unnamed[0] if len(containers) == len(unnamed) == 1 else len(containers)


def _with(row: DeviceProcess, process: SeenProcess, name: str) -> DeviceProcess:
    told = (process.type, process.memory_bytes, process.sm_percent, process.engines)
    return structs.replace(
        row,
        memory_used_bytes=(row.memory_used_bytes or 0) + (process.memory_bytes or 0),
        sm_percent=(row.sm_percent or 0.0) + (process.sm_percent or 0.0),
        processes=(row.processes or 0) + 1,
        members=(*row.members, NamedProcess(process.pid, name, *told)),
    )
