"""The form of the list of GPUs: one row per GPU, for scripts, spreadsheets and tables.

`state` is the word of the GPU map (free, allocated, shared, unhealthy, draining, unknown); `health`
is what the device reports.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, ListAnswer


class ListedGpu(Json, frozen=True):
    """`holders`: pods as `namespace/name`.

    `units`, `units_allocated`: of a shared card, in its node's unit; 0 of others.
    `memory_allocated_mib` is null if unknown. `idle_seconds`: how long below 1 %, null when busy or
    unknown.
    """

    node: str
    index: int
    uuid: str
    model: str
    mode: str
    state: str
    health: str
    holders: list[str]
    units: int
    units_allocated: int
    util_percent: float | None
    memory_used_mib: float | None
    memory_allocated_mib: float | None
    memory_total_mib: float | None
    temperature_c: float | None
    power_w: float | None
    idle_seconds: int | None


class GpuList(ListAnswer, frozen=True):
    items: list[ListedGpu]
