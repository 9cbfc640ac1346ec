"""`fairlead dataset list` (docs/spec/datasets.md#data-list)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairlead.cli.data.waiting import data_of
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.frame.flags import add_all_namespaces
from fairlead.cli.frame.object_names import warn_if_absent

if TYPE_CHECKING:
    from fairlead.rules.data.listing import DataRow

NAME = "dataset list"
HELP = """List data: the data sets of Fluid, and the volume claims that jobs can mount.

A claim that a data set caches is accelerated. Sizes and cached parts are as Fluid reports them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_all_namespaces(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    cluster = data_of(context)
    namespace = "" if args.all_namespaces else context.world.namespace()
    found = cluster.read(namespace)
    from fairlead.rules.data.listing import data_rows

    if found.failures:
        context.messages.warn(found.failures)
    if not found.has_fluid:
        context.messages.info("Fluid is not installed: there are volume claims only")
    rows = data_rows(found, cluster.reasons(found))
    if not rows:
        warn_if_absent(context, namespace)
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import printed_document

        context.stdout.write(printed_document(args.output, [row_document(each) for each in rows]))
    else:
        is_wide = args.output == "wide"
        context.stdout.write(
            rows_table(rows, found.taken_at, has_namespace=args.all_namespaces, is_wide=is_wide)
        )
        for row in rows:
            if row.is_faulty:
                context.messages.warn(f"data set {row.namespace}/{row.name}: {row.message}")
    return 0


def rows_table(
    rows: Sequence[DataRow], now: float, *, has_namespace: bool, is_wide: bool = False
) -> str:
    from fairlead.cli.frame.text import short_duration
    from fairlead.wire.text.tabwriter import render_rows
    from fairlead.wire.text.terminal_text import first_line

    heads = ("NAME", "SOURCE", "ACCELERATED", "STATUS", "CACHED", "SIZE", "FILES", "AGE")
    table = [(*("NAMESPACE",) * has_namespace, *heads, *("RUNTIME", "MESSAGE") * is_wide)]
    for row in rows:
        cells = (
            *(row.namespace,) * has_namespace,
            row.name,
            ",".join(row.source),
            ",".join(row.by) or ("Yes" if row.is_data_set else "No"),
            row.status if row.status == "Ready" else f"{row.status} ({row.phase})",
            "" if row.cached_percent is None else f"{row.cached_percent:g}%",
            "" if row.size is None else size_text(row.size),
            "" if row.files is None else str(row.files),
            "<unknown>" if row.created_at is None else short_duration(now - row.created_at),
            *(row.runtime, row.message) * is_wide,
        )
        table.append(tuple(first_line(cell) for cell in cells))
    return render_rows(table)


def size_text(size: int) -> str:
    """Bytes, rounded to tenths of the largest unit that fits.

    >>> size_text(5 << 30), size_text(1610612736), size_text(12)
    ('5GiB', '1.5GiB', '12B')
    """
    value, units = float(size), ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    place = 0
    while value >= 1024 and place < len(units) - 1:
        value, place = value / 1024, place + 1
    return f"{round(value, 1):g}{units[place]}"


def row_document(row: DataRow) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "name": row.name,
        "type": "Dataset" if row.is_data_set else "PersistentVolumeClaim",
        "source": list(row.source),
        "accelerated": row.is_accelerated,
        "acceleratedBy": list(row.by),
        "status": row.status,
        "phase": row.phase,
        "message": row.message,
        "cachedPercent": row.cached_percent,
        "sizeBytes": row.size,
        "files": row.files,
        "runtime": row.runtime,
        "createdAt": row.created_at,
    }
