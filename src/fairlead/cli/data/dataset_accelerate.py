"""`fairlead dataset accelerate` (docs/spec/datasets.md#acceleration)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.data.waiting import add_wait, data_of, wait_for
from fairlead.cli.frame.context import ClusterData, ClusterObjects, Context
from fairlead.cli.frame.findings import add_output, check_output, print_findings
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.actions import Manifest
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
    cluster, objects = data_of(context), context.world.objects()
    if objects is None:
        raise UserError("there is no API server to write to", NO_API_SERVER_HINT)
    from fairlead.model.installed.finding import State
    from fairlead.rules.data.acceleration import check_acceleration, chosen_acceleration
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
    bad = [each for each in found if each.state == State.FAIL]
    if bad:
        what = "; ".join(f"{each.check}: {each.sentence}" for each in bad)
        hint = next((each.mend for each in bad if each.mend), "")
        raise UserError(f"`{asked.claim}` is not accelerated: {what}", hint)
    for each in found:
        if each.state != State.OK:
            context.messages.warn(f"{each.check}: {each.sentence}")
    _create(objects, manifests)
    context.stdout.write(f"data set {chosen.namespace}/{chosen.name} created\n")
    if args.wait > 0:
        _wait_bound(cluster, chosen, args.wait, context)
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


def _create(objects: ClusterObjects, manifests: list[Manifest]) -> None:
    """The data set may be there, made by an interrupted run: a check has compared it. If the
    runtime cannot be made, the data set, which could not be used, goes again.
    """
    from fairlead.model.actions import CreateObject, DeleteObject, Result, object_ref
    from fairlead.wire.data.fluid import plural_of

    data_set, runtime = (
        CreateObject(each, plural=plural_of(each["kind"]), is_strict=True) for each in manifests
    )
    objects.apply(data_set).expect(Result.THERE)
    outcome = objects.apply(runtime)
    if outcome.result is Result.REFUSED:
        objects.apply(DeleteObject(object_ref(data_set.manifest, plural=data_set.plural)))
    outcome.expect()


def _wait_bound(
    cluster: ClusterData, chosen: Acceleration, seconds: float, context: Context
) -> None:
    from fairlead.rules.data.listing import data_rows

    def missing() -> str:
        found = cluster.read(chosen.namespace)
        if found.failures:
            return found.failures
        for row in data_rows(found):
            if row.is_data_set and row.name == chosen.name:
                return "" if row.status == "Ready" else f"{row.phase}: {row.message}".rstrip(": ")
        return "it is gone"

    wait_for(f"data set {chosen.namespace}/{chosen.name}", missing, seconds, context)
