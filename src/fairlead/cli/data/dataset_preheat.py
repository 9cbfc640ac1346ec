"""`fairlead dataset preheat` (docs/spec/datasets.md#preheat)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.data.named import named_data_set
from fairlead.cli.data.waiting import data_of
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, check_output, print_findings
from fairlead.cli.frame.flags import BooleanFlag, wait_seconds
from fairlead.cli.operations.carried_out import (
    carry_out,
    operations_of,
    take_over,
    without_waits,
)
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.cli.operations.carried_out import StepsAndUndo
    from fairlead.model.jobs.data_details import Preheat

NAME = "dataset preheat"
HELP = """Read files of a data set into its cache before jobs need them: makes a DataLoad of Fluid.

All checks are made before anything is written. The command shows how much is cached while it waits.
Ctrl-C ends the waiting only: Fluid goes on, and `fairlead operation resume` waits again."""

_WAIT_SECONDS = 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the data set, in the chosen namespace")
    parser.add_argument(
        "--path",
        metavar="PATH",
        action="append",
        default=[],
        help="files below this path of the data set; may be repeated (default /, all files)",
    )
    parser.add_argument(
        "--replicas",
        metavar="N",
        type=int,
        default=1,
        help="how many workers keep a copy of each file (default 1)",
    )
    parser.add_argument(
        "--schedule",
        metavar="CRON",
        default="",
        help="again and again, e.g. `0 3 * * *`; the command then does not wait",
    )
    parser.add_argument(
        "--dry-run", action=BooleanFlag, help="print checks and the object, and write nothing"
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=wait_seconds,
        default=_WAIT_SECONDS,
        help="how long to wait until it is Complete; 0: do not wait (default 86400)",
    )
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args)
    asked = _asked(args, context)
    from fairlead.model.installed.finding import State
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.data.plans import data_set_subject, preheat_steps
    from fairlead.rules.data.preheat import check_preheat, load_name
    from fairlead.wire.data.data_load import render_preheat

    facts = data_of(context).details(asked.namespace, args.name)
    data_set = named_data_set(facts.found, asked.namespace, args.name)
    runtimes = [each for each in facts.found.runtimes if each.name == args.name]
    found = check_preheat(data_set, runtimes, facts.loads, asked)
    if args.dry_run:
        status = print_findings(found, args, context)
        if args.output != "json":
            from fairlead.wire.files.manifest_yaml import render_manifests

            made = render_preheat(asked, data_set, load_name(args.name, "OPERATION"))
            context.stdout.write("\n" + render_manifests([made], has_blocks=True))
        return status
    operations = operations_of(context)
    subject = data_set_subject(asked.namespace, args.name)
    title = f"data set {asked.namespace}/{args.name}"
    if take_over(operations, subject, OperationKind.PREHEAT, context):
        context.stdout.write(f"{title}: preheated\n")
        return 0
    bad = [each for each in found if each.state == State.FAIL]
    if bad:
        what = "; ".join(f"{each.check}: {each.sentence}" for each in bad)
        raise UserError(f"`{args.name}` is not preheated: {what}", bad[0].mend)

    def plan(id: str) -> StepsAndUndo:
        manifest = render_preheat(asked, data_set, load_name(args.name, id))
        steps, undo = preheat_steps(manifest, id, seconds=args.wait)
        return without_waits(steps) if args.wait <= 0 else steps, undo

    carry_out(operations, OperationKind.PREHEAT, subject, plan, context)
    is_waited = args.wait > 0 and not asked.schedule
    context.stdout.write(f"{title}: {'preheated' if is_waited else 'preheat created'}\n")
    return 0


def _asked(args: argparse.Namespace, context: Context) -> Preheat:
    from fairlead.model.jobs.data_details import Preheat
    from fairlead.wire.text.cron_schedule import parse_schedule

    if args.replicas < 1:
        raise UserError(f"--replicas is `{args.replicas}`", "a number of at least 1")
    if args.schedule:
        hint = "five fields, e.g. `0 3 * * *`, in the time zone of the cluster's controllers"
        if "TZ=" in args.schedule:  # the API server refuses it in a CronJob
            raise UserError(f"--schedule is `{args.schedule}`: it names a time zone", hint)
        try:
            parse_schedule(args.schedule)
        except ValueError as error:
            raise UserError(f"--schedule is `{args.schedule}`: {error}", hint) from error
    paths = tuple(each if each.startswith("/") else f"/{each}" for each in args.path) or ("/",)
    return Preheat(context.world.namespace(), args.name, paths, args.replicas, args.schedule)
