"""What `dataset accelerate` and `dataset add` share: the flags of a cache, and the operation that
makes it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.cli.data.waiting import add_wait
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, print_findings
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
    from fairlead.model.installed.finding import Finding
    from fairlead.model.jobs.acceleration import Acceleration, AccelerationFacts


def add_cache_flags(parser: argparse.ArgumentParser, quota: str) -> None:
    """`quota`: the default of `--quota`, in words."""
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
        help=f"of each worker, e.g. 20Gi (default: {quota})",
    )
    parser.add_argument(
        "--dry-run", action=BooleanFlag, help="print checks and objects, and write nothing"
    )
    add_wait(parser, "until the data set is Bound")
    add_output(parser)


def read_quota(args: argparse.Namespace) -> int:
    """Bytes; 0 = not named. Raises UserError for bad values of the flags of a cache."""
    from fairlead.wire.kube.quantity import parse_quantity

    if args.workers < 0:
        raise UserError(f"--workers is `{args.workers}`", "a number of at least 1")
    if not args.quota:
        return 0
    try:
        quota = parse_quantity(args.quota)
    except ValueError as error:
        raise UserError(f"--quota is `{args.quota}`", "a size, e.g. `20Gi`") from error
    if quota <= 0:
        raise UserError(f"--quota is `{args.quota}`", "a size above 0, e.g. `20Gi`")
    return quota


def make_cache(
    chosen: Acceleration,
    facts: AccelerationFacts,
    found: Sequence[Finding],
    args: argparse.Namespace,
    context: Context,
) -> int:
    """Carry it out as an operation, or with `--dry-run` print checks and objects.

    `found`: all checks. Raises UserError if one of them fails.
    """
    from fairlead.model.installed.finding import State
    from fairlead.model.operations.operation import OperationKind
    from fairlead.rules.data.acceleration import begun_data_set
    from fairlead.rules.data.plans import acceleration_steps, data_set_subject
    from fairlead.wire.data.fluid import render_acceleration

    manifests = render_acceleration(chosen)
    if args.dry_run:
        status = print_findings(found, args, context)
        if args.output != "json":
            from fairlead.wire.files.manifest_yaml import render_manifests

            context.stdout.write("\n" + render_manifests(manifests, has_blocks=True))
        return status
    operations = operations_of(context)
    subject = data_set_subject(chosen.namespace, chosen.name)
    title = f"data set {chosen.namespace}/{chosen.name}"
    if take_over(operations, subject, OperationKind.ACCELERATE, context):
        context.stdout.write(f"{title}: done\n")
        return 0
    bad = [each for each in found if each.state == State.FAIL]
    if bad:
        what = "; ".join(f"{each.check}: {each.sentence}" for each in bad)
        hint = next((each.mend for each in bad if each.mend), "")
        refused = f"`{chosen.claim}` is not accelerated" if chosen.claim else f"{title} is not made"
        raise UserError(f"{refused}: {what}", hint)
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
