"""The form of a month report (docs/spec/usage.md#month-report)."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, Timestamp
from fairlead.console.pages.usage.tables import (
    GpuMoney,
    UnpricedClass,
    UnrecordedTime,
    UsageFigures,
    UsageRow,
)


class ModelGpuMoney(GpuMoney, frozen=True):
    """Of all nodes with GPUs of one model."""

    model: str


class NodeMoney(Json, frozen=True):
    """All nodes: their price times their time is `cost`, of which pods cost `pods_cost`. `rest`:
    what no pod held. Null: no price.
    """

    node_hours: float
    unpriced_node_hours: float
    cost: str | None
    pods_cost: str | None
    rest: str | None


class ReportPrice(Json, frozen=True):
    """A price that counted in the month."""

    id: int
    matcher: dict[str, str]
    node_hour: str
    list_node_hour: str | None
    gpu_share_percent: float | None
    valid_from: Timestamp
    entered_at: Timestamp


class MonthReport(Json, frozen=True):
    """From `start` to `until`: the end of the month or of its last folded day. `is_whole`: all days
    of the month are contained. `as_of`: prices entered later do not count; null = all count.

    `nodes`, `model_totals`: null, and `models` empty, where only some namespaces are reported.
    """

    month: str
    zone: str
    start: Timestamp
    end: Timestamp
    until: Timestamp
    is_whole: bool
    as_of: Timestamp | None
    currency: str
    totals: UsageFigures
    nodes: NodeMoney | None
    leaves: list[UsageRow]
    users: list[UsageRow]
    namespaces: list[UsageRow]
    models: list[ModelGpuMoney]
    model_totals: GpuMoney | None
    unpriced: list[UnpricedClass]
    gaps: list[UnrecordedTime]
    prices: list[ReportPrice]
