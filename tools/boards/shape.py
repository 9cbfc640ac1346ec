"""The parts of a board, without Grafana's spelling: variables, rows of panels, queries, thresholds.

Units are Grafana's ids (`bytes`, `percentunit` = a ratio from 0 to 1, `watt`, `celsius`, `hertz`,
`s`). Widths are of 24 columns, heights in Grafana's rows of 30 pixels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

NO_CLUSTER_EXPORTER = (
    "No series. Is fairlead-cluster-exporter scraped, and does the choice above match? "
    "docs/how-to/boards.md"
)
NO_GPU_EXPORTER = (
    "No series. Is fairlead-gpu-exporter scraped, and does the choice above match? "
    "docs/how-to/boards.md"
)
"""Hint of an empty panel."""
EVERYTHING = ".*"


class Kind(StrEnum):
    """Grafana's panel types that we use."""

    CHART = "timeseries"
    NUMBER = "stat"
    GAUGE = "gauge"
    BARS = "bargauge"
    TABLE = "table"


@dataclass(frozen=True)
class Query:
    """One PromQL expression.

    `legend`: of its series; in a table, the heading of its values, "" = they are not shown. `unit`:
    of that column, "" = the panel's.
    """

    expression: str
    legend: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Threshold:
    """The colour of values from `value` on."""

    value: float
    colour: str


@dataclass(frozen=True)
class Link:
    """Where a cell of a table leads: a board, with the variable set to the cell's text."""

    board: str
    variable: str


@dataclass(frozen=True)
class Panel:
    """A drawing of some queries, and the text that is shown if they have no answer (`empty`).

    For tables: `labels` are columns before the values, each with its heading, unless `order` (of
    headings) has another order; `links` lead on from cells of a column; `words` are shown for
    values of the column `words_of`, `no_limit` for an endless one. `most`: what a gauge is full at;
    the axis of a chart reaches it, and beyond where a line does: use above the limit is what
    readers look for. `draws_over`: legends of series that are lines over a stack.
    """

    title: str
    queries: tuple[Query, ...]
    kind: Kind = Kind.CHART
    unit: str = "short"
    empty: str = NO_CLUSTER_EXPORTER
    description: str = ""
    width: int = 8
    height: int = 8
    least: float | None = None
    most: float | None = None
    decimals: int | None = None
    thresholds: tuple[Threshold, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    links: tuple[tuple[str, Link], ...] = ()
    words: tuple[tuple[int, str], ...] = ()
    words_of: str = ""
    no_limit: str = ""
    is_stacked: bool = False
    draws_over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """Panels under a heading, laid out from left to right in lines of 24 columns."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice above the board: the values of `label` on the series of `metric` (a selector).

    "All" of it stands for any value (`EVERYTHING`), and not for the list of those that are there
    now.
    """

    name: str
    metric: str
    label: str

    @property
    def query(self) -> str:
        return f"label_values({of_cluster(self.metric)}, {self.label})"


CLUSTER = "cluster"
"""The label that distinguishes clusters in one Prometheus, as in kubernetes-mixin.

Without one it is "" everywhere, which the empty choice matches.
"""
_SELECTED = re.compile(r'"[^"]*"|\b(?:fairlead[_:][\w:]*|DCGM_\w+|ALERTS)\b(?:\{\}?)?')


def of_cluster(expression: str) -> str:
    """The same of the chosen cluster: a matcher in each selector.

    >>> of_cluster('sum(fairlead_gpu_up{gpu="0"}) / fairlead_cluster_gpus')
    'sum(fairlead_gpu_up{cluster="$cluster", gpu="0"}) / fairlead_cluster_gpus{cluster="$cluster"}'
    """

    def chosen(found: re.Match[str]) -> str:
        text = found[0]
        if text.startswith('"'):
            return text
        end = ", " if text.endswith("{") else "}"
        return f'{text.rstrip("{}")}{{{CLUSTER}="${CLUSTER}"{end}'

    return _SELECTED.sub(chosen, expression)


@dataclass(frozen=True)
class Board:
    """`uid` is for ever: links of people and alerts hold it."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = field(default=())

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for row in self.rows for panel in row.panels)


CARD_KEY = "node_name, gpu, uuid"
INSTANCE_KEY = f"{CARD_KEY}, mig_gi_id, mig_profile"
CONTAINER_KEY = f"{INSTANCE_KEY}, namespace_name, pod_name, container_name"
"""Labels that identify a container on a card, or on a part of it.

For every pod of the exporter and every job.
"""


def once(selector: str, key: str = INSTANCE_KEY) -> str:
    """One series per thing, however many exporters report it."""
    return f"max by ({key}) ({selector})"


GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"
FULL = (Threshold(0.8, YELLOW), Threshold(0.95, RED))
"""Memory: from these values on, a user may reach a limit."""
ANY_IS_BAD = (Threshold(1, RED),)
"""Counts of which one is too many."""
