"""The part of a chart that was requested: time range, step and filters, also as PromQL.

Times are aligned to the step, so that a page that asks again gets the same points and not the
neighbours of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from fairlead.console.charts.queries import GPU_FILTERS, HEATMAP, HOLDER, ChartQuery, Spelling
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
_EXAMPLE: Final = "2026-01-05T08:00:00Z"
_RANGE_WORDS: Final = ("from", "to", "step", "top")
_LOWER: Final = frozenset(("node", "namespace", "pod", "type", "job"))
"""Labels whose values are names in Kubernetes, which has no capital letters in them."""
_BEGINNING_SECONDS: Final = 120
RATE_SECONDS: Final = 120
"""A counter's rise is taken over eight scrapes of 15 s, or over a whole step."""


class ChartRequest(Struct, frozen=True):
    """`start`, `end` in epoch seconds, both multiples of `step`. `filters`: our label -> wanted
    values.

    Lists read filters alike: in any case of letters, and a card by its index (`gpu`) or by its UUID
    (`uuid`). `until`: the end as it was asked for, at most a step after `end`, and never in the
    future.
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


def parse_chart_request(
    parameters: Sequence[tuple[str, str]], query: ChartQuery, now: float
) -> ChartRequest:
    """The request; a filter that this query does not have is refused.

    The chart would not be what was asked for. Raises UserError.
    """
    single = {name: text for name, text in parameters if name in _RANGE_WORDS}
    end = _time("to", single.get("to"), now)
    start = _time("from", single.get("from"), max(0.0, end - SECONDS_DEFAULT))
    if start >= end:
        raise UserError("`from` is not before `to`", "give an earlier `from`")
    if end - start > SECONDS_MAX:
        raise UserError(
            f"the range is {(end - start) / 86_400:.0f} days", "ask for 90 days or less"
        )
    step = _step(end - start, parse_whole("step", single.get("step"), 0, 1, SECONDS_MAX))
    return ChartRequest(
        start=math.floor(start / step) * step,
        end=math.floor(end / step) * step,
        step=step,
        top=parse_whole("top", single.get("top"), TOP_DEFAULT, 1, TOP_MAX),
        filters=_filters(parameters, query.name, query.filters, _RANGE_WORDS),
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
            moment = datetime.fromisoformat(text.replace(" ", "+"))
            at = moment.timestamp()
        except (ValueError, OverflowError):
            raise UserError(
                f"`{name}` is `{text[:60]}`",
                f"give epoch milliseconds or RFC 3339, such as {_EXAMPLE}",
            ) from None
        if moment.tzinfo is None:
            raise UserError(
                f"`{name}` is `{text[:60]}`, without a time zone",
                f"give the zone, such as {_EXAMPLE} for UTC",
            )
    if not 0 <= at <= _YEAR_9999:
        raise UserError(
            f"`{name}` is `{text[:60]}`, which is not a date", "give epoch milliseconds"
        )
    return at


def _step(seconds: float, asked: int) -> int:
    """The smallest pleasant step of at least `asked` that keeps within 240 points (both ends
    count).

    >>> _step(1800, 0), _step(3600, 15), _step(3600, 60), _step(90 * 86400, 15)
    (15, 30, 60, 43200)
    """
    least = max(asked, STEP_MIN, seconds / (POINTS_MAX - 2))
    return next((step for step in _STEPS if step >= least), math.ceil(least))


def parse_heatmap_filters(parameters: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The heat map is of now: it has neither range nor step. Raises UserError."""
    return _filters(parameters, HEATMAP, GPU_FILTERS)


def _filters(
    parameters: Sequence[tuple[str, str]],
    query: str,
    known: Mapping[str, str],
    others: Sequence[str] = (),
) -> dict[str, tuple[str, ...]]:
    filters: dict[str, tuple[str, ...]] = {}
    for name, text in parameters:
        if name in others:
            continue
        if name not in known:
            filterable = ", ".join(f"`{each}`" for each in known) or "no filter"
            raise UserError(
                f"the chart `{query}` cannot be filtered by `{name}`", f"it knows {filterable}"
            )
        if text:
            if name == HOLDER and text.count("/") != 1:
                raise UserError(f"`holder={text[:60]}` names no pod", "write `namespace/name`")
            label = "uuid" if name == "GPU" and is_uuid(text) else known[name]
            filters[label] = (*filters.get(label, ()), text)
    return filters


def is_uuid(text: str) -> bool:
    return text.upper().startswith(("GPU-", "MIG-"))


def promql_of(request: ChartRequest, spelling: Spelling) -> str:
    """The expression of one spelling with the request's filters.

    >>> spelling = Spelling("max by (node_name) (fairlead_node_gpus{$m})", {"node_name": "node"})
    >>> promql_of(ChartRequest(0, 60, 15, 8, {"node": ("gpu-1", "gpu.2")}), spelling)
    'max by (node_name) (fairlead_node_gpus{node_name=~"gpu-1|gpu\\\\\\\\.2",})'
    """
    theirs = {own: label for label, own in spelling.labels.items()}
    each = {
        label: _matcher(theirs[label], label, values)
        for label, values in request.filters.items()
        if label in theirs
    }
    # one or the other: two selections
    cards = [each.pop(label) for label in ("gpu", "uuid") if label in each]
    matchers = "".join(each.values())
    pods: dict[str, list[str]] = {}
    for holder in request.filters.get(HOLDER, ()):
        namespace, _, pod = holder.partition("/")
        pods.setdefault(namespace.lower(), []).append(pod)
    matching = [
        _matcher(theirs["namespace"], "namespace", (space,)) + _matcher(theirs["pod"], "pod", names)
        for space, names in sorted(pods.items())
    ]
    window = max(request.step, RATE_SECONDS)
    return " or ".join(
        spelling.promql(matchers + pod + card, window)
        for pod in matching or [""]
        for card in cards or [""]
    )


def _matcher(theirs: str, own: str, values: Sequence[str]) -> str:
    """In any case of letters, as lists compare; by a pattern only where capitals may occur."""
    if own in _LOWER:
        values = [value.lower() for value in values]
    elif any(value.lower() != value.upper() for value in values):
        return f"{theirs}=~{_quoted('(?i)' + '|'.join(map(_regex_escaped, values)))},"
    if len(values) == 1:
        return f"{theirs}={_quoted(values[0])},"
    return f"{theirs}=~{_quoted('|'.join(map(_regex_escaped, values)))},"


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
    return (
        f"avg_over_time(({expression})[{max(request.seconds, request.step)}s:{request.step}s] @ "
        f"{request.end:.0f})"
    )


def beginning_promql(expression: str) -> str:
    """Has a value if the expression has one, or may have one soon.

    A cluster exporter that has just started has not read everything. The wait is limited after its
    start: an exporter that can never read the GPUs does not block other sources.
    """
    reading = (
        "fairlead_exporter_synced == 0 or "
        f'fairlead_exporter_source_up{{source="{GPU_TELEMETRY}"}} == 0'
    )
    young = f"time() - process_start_time_seconds < {_BEGINNING_SECONDS}"
    return f"count({expression}) or count(({reading}) and on (instance) ({young}))"
