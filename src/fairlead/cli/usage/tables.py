"""How verbs about usage print: a table, or with `-o` CSV or a document."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output, number, printed_document

if TYPE_CHECKING:
    from fairlead.console.pages.envelope import Warning
    from fairlead.console.pages.usage.tables import UsageFigures, UsagePeriod

NOTHING: Final = "-"


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", "-o", metavar="FORMAT", default="", help="wide, json, yaml or csv"
    )


def add_period(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--period", metavar="TIME", default="", help="24h (default), 7d, 30d, or another length")
    add("--month", metavar="MONTH", default="", help="a month, such as 2026-11")
    add("--from", dest="start", metavar="TIME", default="", help="from this time on, RFC 3339")
    add("--to", dest="end", metavar="TIME", default="", help="before this time (default: now)")


def period_words(args: argparse.Namespace) -> dict[str, str]:
    return {"period": args.period, "month": args.month, "from": args.start, "to": args.end}


def is_table(args: argparse.Namespace) -> bool:
    """Raises UserError for another format than wide, json, yaml and csv."""
    check_output(args.output, "csv")
    return args.output in ("", "wide")


def print_list(args: argparse.Namespace, context: Context, answer: Any, row_type: Any) -> None:
    """`-o json`, `yaml` or `csv` of a list."""
    if args.output == "csv":
        from msgspec.structs import asdict

        from fairlead.console.pages.csv_table import render_csv

        rows = [row_type(**_whole(asdict(each))) for each in answer.items]
        shown = render_csv(rows, row_type).replace(b"\x1b", b"^[")
        context.stdout.write_bytes(shown)
        return
    print_document(args, context, answer)


def print_document(args: argparse.Namespace, context: Context, answer: Any) -> None:
    import msgspec

    context.stdout.write(printed_document(args.output, _whole(msgspec.to_builtins(answer))))


def _whole(value: Any) -> Any:
    """Whole numbers as integers, also those that came as JSON.

    >>> _whole({"a": [2.0, 1.5]})
    {'a': [2, 1.5]}
    """
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def print_table(
    context: Context, heads: Sequence[str], rows: Iterable[Sequence[str]], wide: int = 0
) -> None:
    """`wide`: how many of the last columns are left out."""
    from fairlead.wire.text.tabwriter import render_rows
    from fairlead.wire.text.terminal_text import first_line

    width = len(heads) - wide
    cells = [[first_line(cell) for cell in row[:width]] for row in rows]
    context.stdout.write(render_rows([heads[:width], *cells]))


def print_period(context: Context, period: UsagePeriod, currency: str) -> None:
    from fairlead.wire.text.terminal_text import first_line

    money = f", costs in {currency}" if currency else ""
    line = f"From {period.start} to {period.until}, days in {period.zone}{money}"
    context.stdout.write(f"{first_line(line)}\n")
    for gap in period.gaps:
        context.stdout.write(f"Not recorded: {gap.start} to {gap.end}\n")
    context.stdout.write("\n")


def warn(context: Context, warnings: Iterable[Warning]) -> None:
    for each in warnings:
        context.messages.warn(f"{each.message}; {each.hint}")


def amount(value: float | None) -> str:
    """
    >>> amount(None), amount(2.0), amount(1.234), amount(0.001)
    ('-', '2', '1.23', '0')
    """
    return NOTHING if value is None else str(number(round(value, 2)))


def percent(value: float | None) -> str:
    """
    >>> percent(12.5), percent(None)
    ('12.5%', '-')
    """
    return NOTHING if value is None else f"{number(value)}%"


def money(value: str | None) -> str:
    """Two places, rounded half up; `-o json` has all six.

    >>> money("12.345000"), money("0.994999"), money(None)
    ('12.35', '0.99', '-')
    """
    if value is None:
        return NOTHING
    from decimal import ROUND_HALF_UP, Decimal

    return str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))


FIGURE_HEADS: Final = (
    *("GPU-HOURS", "GPU-MEM(GiBh)", "CORE-HOURS", "MEM(GiBh)", "IDLE", "UNKNOWN"),
    *("COST", "LIST", "SAVED"),
)


def figure_cells(of: UsageFigures) -> tuple[str, ...]:
    """Under `FIGURE_HEADS`."""
    return (
        amount(of.gpu_hours),
        amount(of.gpu_memory_gib_hours),
        amount(of.core_hours),
        amount(of.memory_gib_hours),
        percent(of.idle_percent),
        percent(of.unknown_percent),
        money(of.cost),
        money(of.list_cost),
        percent(of.saved_percent),
    )
