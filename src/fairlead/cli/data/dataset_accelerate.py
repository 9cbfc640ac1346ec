"""`fairlead dataset accelerate` (docs/spec/datasets.md#acceleration)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.data.waiting import add_wait, data_of
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, check_output, print_findings
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.operations.carried_out import (
    carry_out,
    operations_of,
    take_over,
    without_waits,
)
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.cli.operations.carried_out import StepsAndUndo
    from fairlead.model.jobs.acceleration import Acceleration

NAME = "dataset accelerate"
HELP = """Cache a volume claim: make a data set of Fluid over it, and an Alluxio runtime for it.

All checks are made before anything is written; --dry-run prints them and the objects. The claim and
its data stay as they are. Mount the claim that Fluid makes, which has the data set's name, in pods
that shall read the cache."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("claim", metavar="CLAIM", help="the claim, in the chosen namespace")
    parser.add_argument(
        "--name", metavar="NAME", default="", help="of the data set (default CLAIM-acc)"
    )
    parser.add_argument(
        "--sub-path", metavar="DIR", default="", help="only this folder of the claim"
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=0,
        help="caches, one on a node (default: as many as there are nodes, 4 at most)",
    )
    parser.add_argument(
        "--medium", choices=["MEM", "SSD"], default="MEM", help="where a worker keeps files"
    )
    parser.add_argument(
        "--quota",
        metavar="SIZE",
        default="",
        help="of each worker, e.g. 20Gi (default: the claim's size shared among the workers, 64Gi "
        "at most; 150Gi with SSD)",
    )
    parser.add_argument(
        "--dry-run", action=BooleanFlag, help="print checks and objects, and write nothing"
    )
    add_wait(parser, "until the data set is Bound")
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    check_output(args)
    cluster = data_of(context)
    from fairlead.model.installed.finding import State
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.data.acceleration import (
        begun_data_set,
        check_acceleration,
        chosen_acceleration,
    )
    from fairlead.rules.data.plans import acceleration_steps, data_set_subject
    from fairlead.wire.data.fluid import render_acceleration

    asked = _asked(args, context)
    facts = cluster.facts(asked.namespace, asked.claim, asked.name)
    chosen = chosen_acceleration(
        facts, asked, has_workers=bool(args.workers), has_quota=bool(args.quota)
    )
    found = check_acceleration(facts, chosen)
    manifests = render_acceleration(chosen)
    if args.dry_run:
        status = print_findings(found, args, context)
        if args.output != "json":
            from fairlead.wire.files.manifest_yaml import render_manifests

            context.stdout.write("\n" + render_manifests(manifests, has_blocks=True))
        return status
    operations = operations_of(context)
    subject = data_set_subject(asked.namespace, asked.name)
    title = f"data set {asked.namespace}/{asked.name}"
    if take_over(operations, subject, OperationKind.ACCELERATE, context):
        context.stdout.write(f"{title}: done\n")
        return 0
    bad = [each for each in found if each.state == State.FAIL]
    if bad:
        what = "; ".join(f"{each.check}: {each.sentence}" for each in bad)
        hint = next((each.mend for each in bad if each.mend), "")
        raise UserError(f"`{asked.claim}` is not accelerated: {what}", hint)
    for each in found:
        if each.state != State.OK:
            context.messages.warn(f"{each.check}: {each.sentence}")
    is_begun = begun_data_set(facts, chosen) is not None

    def plan(id: str) -> StepsAndUndo:
        steps, undo = acceleration_steps(manifests, id, is_begun=is_begun, seconds=args.wait)
        return without_waits(steps) if args.wait <= 0 else steps, undo

    carry_out(operations, OperationKind.ACCELERATE, subject, plan, context)
    context.stdout.write(f"{title}: done\n" if args.wait > 0 else f"{title} created\n")
    return 0


def _asked(args: argparse.Namespace, context: Context) -> Acceleration:
    from fairlead.model.jobs.acceleration import Acceleration
    from fairlead.rules.data.acceleration import default_name
    from fairlead.wire.kube.quantity import parse_quantity

    if args.workers < 0:
        raise UserError(f"--workers is `{args.workers}`", "a number of at least 1")
    folder = args.sub_path.strip("/")
    if any(part in ("", ".", "..") for part in folder.split("/")) and folder:
        raise UserError(f"--sub-path is `{args.sub_path}`", "a folder of the claim, e.g. `images`")
    quota = 0
    if args.quota:
        try:
            quota = parse_quantity(args.quota)
        except ValueError as error:
            raise UserError(f"--quota is `{args.quota}`", "a size, e.g. `20Gi`") from error
        if quota <= 0:
            raise UserError(f"--quota is `{args.quota}`", "a size above 0, e.g. `20Gi`")
    name = args.name or default_name(args.claim)
    return Acceleration(
        context.world.namespace(), args.claim, name, folder, args.workers, args.medium, quota
    )
