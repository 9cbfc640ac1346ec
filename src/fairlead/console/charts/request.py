"""What part of a chart was asked for: time range, step and filters, checked; and the same as PromQL.

Times are aligned to the step, so that a page that asks again gets the same points and not the neighbours of
them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from fairlead.console.charts.queries import HOLDER, ChartQuery, Spelling
from fairlead.console.pages.list_query import parse_whole
from fairlead.errors import UserError
from fairlead.model.snapshot import GPU_TELEMETRY

POINTS_MAX: Final = 240
TOP_DEFAULT: Final = 8
TOP_MAX: Final = 50
SECONDS_DEFAULT: Final = 30 * 60
SECONDS_MAX: Final = 90 * 86_400
STEP_MIN: Final = 15
_STEPS: Final = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200)
_YEAR_9999: Final = 253_402_300_799.0
_BEGINNING_SECONDS: Final = 120
RATE_SECONDS: Final = 120
"""A counter's rise is taken over eight scrapes of 15 s, or over a whole step."""


class ChartRequest(Struct, frozen=True):
    """`start`, `end` in epoch seconds, both multiples of `step`. `filters`: our label -> wanted values.

    `until`: the end as it was asked for, at most a step after `end`, and never in the future.
    """

    start: float
    end: float
    step: int
    top: int
    filters: Mapping[str, tuple[str, ...]] = {}
    until: float = 0.0

    @property
    def seconds(self) -> int:
        return int(self.end - self.start)


def parse_chart_request(parameters: Sequence[tuple[str, str]], query: ChartQuery, now: float) -> ChartRequest:
    """The request; a filter that this query does not have is refused.

    The chart would not be what was asked for. Raises UserError.
    """
    single = {name: text for name, text in parameters if name in ("from", "to", "step", "top")}
    end = _time("to", single.get("to"), now)
    start = _time("from", single.get("from"), max(0.0, end - SECONDS_DEFAULT))
    if start >= end:
        raise UserError("`from` is not before `to`", "give an earlier `from`")
    if end - start > SECONDS_MAX:
        raise UserError(f"the range is {(end - start) / 86_400:.0f} days", "ask for 90 days or less")
    step = _step(end - start, parse_whole("step", single.get("step"), 0, 1, SECONDS_MAX))
    return ChartRequest(
        start=math.floor(start / step) * step,
        end=math.floor(end / step) * step,
        step=step,
        top=parse_whole("top", single.get("top"), TOP_DEFAULT, 1, TOP_MAX),
        filters=_filters(parameters, query),
        until=min(end, now),
    )


def _time(name: str, text: str | None, default: float) -> float:
    """Epoch milliseconds or RFC 3339, as epoch seconds."""
    if not text:
        return default
    if re.fullmatch(r"\d{1,15}", text, re.ASCII):
        at = int(text) / 1000
    else:
        try:
            at = datetime.fromisoformat(text.replace(" ", "+")).timestamp()
        except (ValueError, OverflowError):
            raise UserError(f"`{name}` is `{text[:60]}`", "give epoch milliseconds or RFC 3339, such as 2026-01-05T08:00:00Z") from None
    if not 0 <= at <= _YEAR_9999:
        raise UserError(f"`{name}` is `{text[:60]}`, which is no date", "give epoch milliseconds")
    return at


def _step(seconds: float, asked: int) -> int:
    """The smallest pleasant step of at least `asked` that keeps within 240 points (both ends count).

    >>> _step(1800, 0), _step(3600, 15), _step(3600, 60), _step(90 * 86400, 15)
    (15, 30, 60, 43200)
    """
    least = max(asked, STEP_MIN, seconds / (POINTS_MAX - 2))
    return next((step for step in _STEPS if step >= least), math.ceil(least))


def _filters(parameters: Sequence[tuple[str, str]], query: ChartQuery) -> dict[str, tuple[str, ...]]:
    filters: dict[str, tuple[str, ...]] = {}
    for name, text in parameters:
        if name in ("from", "to", "step", "top"):
            continue
        if name not in query.filters:
            known = ", ".join(f"`{each}`" for each in query.filters) or "no filter"
            raise UserError(f"the chart `{query.name}` cannot be filtered by `{name}`", f"it knows {known}")
        if text:
            if name == HOLDER and text.count("/") != 1:
                raise UserError(f"`holder={text[:60]}` names no pod", "write `namespace/name`")
            label = "uuid" if name == "GPU" and is_uuid(text) else query.filters[name]
            filters[label] = (*filters.get(label, ()), text)
    if "uuid" in filters and "gpu" in filters:
        raise UserError("`GPU` mixes indexes and UUIDs", "give one or the other")
    return filters


def is_uuid(text: str) -> bool:
    return text.startswith(("GPU-", "MIG-"))


def promql_of(request: ChartRequest, spelling: Spelling) -> str:
    """The expression of one spelling with the request's filters.

    >>> spelling = Spelling("max by (node_name) (fairlead_node_gpus{$m})", {"node_name": "node"})
    >>> promql_of(ChartRequest(0, 60, 15, 8, {"node": ("gpu-1", "gpu.2")}), spelling)
    'max by (node_name) (fairlead_node_gpus{node_name=~"gpu-1|gpu\\\\\\\\.2",})'
    """
    theirs = {ours: label for label, ours in spelling.labels.items()}
    matchers = "".join(_matcher(theirs[label], values) for label, values in request.filters.items() if label in theirs)
    pods: dict[str, list[str]] = {}
    for holder in request.filters.get(HOLDER, ()):
        namespace, _, pod = holder.partition("/")
        pods.setdefault(namespace, []).append(pod)
    if not pods:
        return spelling.promql(matchers, max(request.step, RATE_SECONDS))
    of_namespaces = (_matcher(theirs["namespace"], (space,)) + _matcher(theirs["pod"], names) for space, names in sorted(pods.items()))
    return " or ".join(spelling.promql(matchers + whose) for whose in of_namespaces)


def _matcher(label: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"{label}={_quoted(values[0])},"
    return f"{label}=~{_quoted('|'.join(_regex_escaped(value) for value in values))},"


def _regex_escaped(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def top_lines_promql(expression: str, request: ChartRequest, spelling: Spelling) -> str:
    """The expression cut to the lines whose mean over the range is highest."""
    by = ",".join(spelling.labels)
    mean = mean_promql(expression, request)
    return f"({expression}) and on ({by}) topk({request.top}, {mean})"


def mean_promql(expression: str, request: ChartRequest) -> str:
    """The mean of the expression over the request's range, one value per line."""
    return f"avg_over_time(({expression})[{max(request.seconds, request.step)}s:{request.step}s] @ {request.end:.0f})"


def beginning_promql(expression: str) -> str:
    """Has a value if the expression has one, or may soon have one.

    It may, because a cluster exporter that has just begun has not read everything. At most so long after its
    start: one that can never read the GPUs does not keep anybody from another source.
    """
    reading = f'fairlead_exporter_synced == 0 or fairlead_exporter_source_up{{source="{GPU_TELEMETRY}"}} == 0'
    young = f"time() - process_start_time_seconds < {_BEGINNING_SECONDS}"
    return f"count({expression}) or count(({reading}) and on (instance) ({young}))"
