"""A month report as Markdown, CSV or JSON: the same bytes for the same report."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.console.boards.usage.report import FORMATS
from fairlead.console.pages.csv_table import BOM, guarded
from fairlead.console.pages.usage.report import MonthReport
from fairlead.console.pages.usage.tables import GpuMoney, UsageFigures
from fairlead.errors import UserError
from fairlead.rules.usage.prices import matcher_text
from fairlead.wire.text.terminal_text import escape_terminal

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "markdown": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json; charset=utf-8",
}
NONE: Final = "–"
"""What is empty or unknown."""
_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]<>#|~]")
_FIGURES: Final = (
    ("GPU-hours", "gpu_hours"),
    ("GPU memory GiB-hours", "gpu_memory_gib_hours"),
    ("Core-hours", "core_hours"),
    ("Memory GiB-hours", "memory_gib_hours"),
    ("Idle %", "idle_percent"),
    ("Unknown %", "unknown_percent"),
    ("Cost", "cost"),
    ("List cost", "list_cost"),
    ("Saved %", "saved_percent"),
    ("Unpriced GPU-hours", "unpriced_gpu_hours"),
)
_PARTS: Final = ("used", "idle", "unknown", "free", "stranded", "broken")


def render_report(report: MonthReport, form: str) -> bytes:
    """`form`: markdown, csv or json. Raises UserError for another.

    Each ends with a line feed.
    """
    if form == "markdown":
        return ("\n".join(_markdown(report)) + "\n").encode()
    if form == "csv":
        return _csv(report)
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
    raise UserError(f"the report has no format `{form[:40]}`", f"give one of {', '.join(FORMATS)}")


def _markdown(report: MonthReport) -> Iterator[str]:
    yield f"# Usage and cost {report.month}"
    yield ""
    yield from _head(report)
    for title, rows in (
        ("Leaves", report.leaves),
        ("Users", report.users),
        ("Namespaces", report.namespaces),
    ):
        lines = [(row.name or NONE, row) for row in rows] + [("Total", report.totals)]
        yield from _section(title, ["Name", *(head for head, _ in _FIGURES)])
        yield from (_line([name, *_figures(row)]) for name, row in lines)
    if report.model_totals is not None:
        yield from _models(report)
    yield from _appendix(report)


def _head(report: MonthReport) -> Iterator[str]:
    yield f"- Time: {report.start} to {report.until}, billing days in {report.zone}"
    if report.until != report.end:
        yield f"- Not the whole month, which ends at {report.end}"
    elif not report.is_whole:
        yield "- Not the whole month: the first record is later than its beginning"
    yield f"- Prices: {f'as of {report.as_of}' if report.as_of else 'all that were entered'}"
    if report.currency:
        yield f"- Currency: {report.currency}"
    if report.nodes is not None:
        yield f"- Node-hours: {report.nodes.node_hours}"
        if report.nodes.cost is not None:
            nodes = report.nodes
            yield f"- Cost of the nodes: {nodes.cost}; of pods {nodes.pods_cost}, rest {nodes.rest}"


def _models(report: MonthReport) -> Iterator[str]:
    """Hours and money of each part, a line for each model."""
    heads = [
        "Model",
        "GPU-hours",
        *(f"{part.capitalize()} GPU-hours" for part in _PARTS),
        "GPU cost",
        *(f"{part.capitalize()} cost" for part in _PARTS),
    ]
    yield from _section("GPU money by model", heads)
    rows: list[tuple[str, Any]] = [(row.model or NONE, row) for row in report.models]
    for name, row in (*rows, ("Total", report.model_totals)):
        yield _line([name, *_gpu_cells(row)])


def _appendix(report: MonthReport) -> Iterator[str]:
    if report.unpriced:
        yield from _section("Nodes without a price", ["Labels", "Node-hours"])
        for each in report.unpriced:
            yield _line([_labels(each.labels), each.node_hours])
    yield from _section("Prices", ["Id", "Nodes", "Per hour", "List", "GPU %", "From", "Entered"])
    for price in report.prices:
        cells = [price.id, _labels(price.matcher), price.node_hour, price.list_node_hour]
        yield _line([*cells, price.gpu_share_percent, price.valid_from, price.entered_at])
    yield from _section("Times that are not recorded", ["From", "To"])
    for gap in report.gaps:
        yield _line([gap.start, gap.end])


def _labels(labels: Mapping[str, str]) -> str:
    return matcher_text(sorted(labels.items()))


def _figures(row: UsageFigures) -> list[Any]:
    return [getattr(row, name) for _, name in _FIGURES]


def _gpu_cells(row: GpuMoney) -> list[Any]:
    hours = [row.gpu_hours, *(getattr(row, f"{part}_gpu_hours") for part in _PARTS)]
    return [*hours, row.cost, *(getattr(row, f"{part}_cost") for part in _PARTS)]


def _section(title: str, heads: Sequence[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield _line(heads)
    yield f"|{'---|' * len(heads)}"


def _line(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(value: Any) -> str:
    r"""Text that Markdown shows as it is: names come from users.

    >>> _cell("a|b\n<i>"), _cell(None), _cell(1.5)
    ('a\\|b \\<i\\>', '–', '1.5')
    """
    if value is None or value == "":
        return NONE
    if not isinstance(value, str):
        return str(value)
    plain = escape_terminal(" ".join(value.split()))
    return _SPECIAL.sub(lambda found: "\\" + found[0], plain)


def _csv(report: MonthReport) -> bytes:
    """One table: `table` is leaf, user, namespace, model, or total."""
    figures = [field.encode_name for field in msgspec.structs.fields(UsageFigures)]
    gpus = [each.encode_name for each in msgspec.structs.fields(GpuMoney)]
    columns = list(dict.fromkeys((*figures, *gpus)))
    text = io.StringIO()
    text.write(BOM)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["table", "name", *columns])
    for table, name, row in _csv_rows(report):
        values = msgspec.to_builtins(row)
        writer.writerow(
            [
                table,
                escape_terminal(guarded(name)),
                *(_csv_cell(values.get(key)) for key in columns),
            ]
        )
    return text.getvalue().encode()


def _csv_rows(report: MonthReport) -> Iterator[tuple[str, str, UsageFigures | GpuMoney]]:
    for table, rows in (
        ("leaf", report.leaves),
        ("user", report.users),
        ("namespace", report.namespaces),
    ):
        yield from ((table, row.name, row) for row in rows)
    yield "total", "", report.totals
    yield from (("model", row.model, row) for row in report.models)
    if report.model_totals is not None:
        yield "all models", "", report.model_totals


def _csv_cell(value: Any) -> Any:
    return "" if value is None else value
