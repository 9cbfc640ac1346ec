"""`fairlead cost JOB` (docs/spec/usage.md#commands)."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.usage.sources import add_source, usage_source
from fairlead.cli.usage.tables import (
    NOTHING,
    amount,
    money,
    percent,
    print_document,
    print_table,
    warn,
)

NAME = "cost"
HELP = """Print what a job cost, and each of its pods, also after the job was deleted."""
_HEADS = (
    *("POD", "STATUS", "NODE", "START", "HOURS", "GPUS", "CORES", "INSTANCE", "MODEL"),
    *("PER-HOUR", "COST", "LIST", "SAVED"),
)
_HOUR = 3600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="name of the job")
    parser.add_argument("--type", metavar="TYPE", default="", help="job type, such as mpijob")
    parser.add_argument("--uid", metavar="UID", default="", help="of an earlier job of this name")
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")
    add_source(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args.output)
    source = usage_source(args, context)
    answer = source.job_cost(context.world.namespace(), args.type, args.job, args.uid)
    warn(context, answer.warnings)
    if args.output in ("json", "yaml"):
        print_document(args, context, answer)
        return 0
    from fairlead.wire.text.terminal_text import first_line

    figures = answer.figures
    lines = (
        ("Job", f"{answer.namespace}/{answer.name} ({answer.type or NOTHING}), uid {answer.uid}"),
        ("User", answer.user or NOTHING),
        ("Leaf", answer.leaf or NOTHING),
        ("Time", f"{answer.start or NOTHING} to {answer.end or 'now'}"),
        ("GPU-hours", amount(figures.gpu_hours)),
        ("Idle", percent(figures.idle_percent)),
        ("Cost", f"{money(figures.cost)} {answer.currency}".rstrip()),
        ("List cost", f"{money(figures.list_cost)} {answer.currency}".rstrip()),
        ("Saved", percent(figures.saved_percent)),
    )
    for name, value in lines:
        context.stdout.write(first_line(f"{name + ':':11}{value}") + "\n")
    context.stdout.write("\n")
    rows = [
        (
            pod.pod,
            pod.status,
            pod.node,
            pod.start,
            amount(pod.seconds / _HOUR),
            amount(pod.gpus),
            amount(pod.cores),
            pod.instance_type or NOTHING,
            pod.model or NOTHING,
            money(pod.per_hour),
            money(pod.cost),
            money(pod.list_cost),
            percent(pod.saved_percent),
        )
        for pod in answer.pods
    ]
    print_table(context, _HEADS, rows)
    return 0
