"""`fairlead dataset unaccelerate` (docs/spec/datasets.md#end-of-an-acceleration)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.data.waiting import add_wait, data_of, wait_for
from fairlead.cli.frame.context import Context
from fairlead.cli.frame.object_names import NO_API_SERVER_HINT
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.datasets import DataSet, FoundData

NAME = "dataset unaccelerate"
HELP = """Remove a data set of Fluid, its runtime and its caches. The claim and its data stay: pods
that mounted the data set must mount the claim again.

It is refused while pods mount it, while data sets of other namespaces refer to it, and while an
operation of Fluid runs on it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the data set, in the chosen namespace")
    add_wait(parser, "until all of it is gone")


def run(args: argparse.Namespace, context: Context) -> int:
    cluster, objects = data_of(context), context.world.objects()
    if objects is None:
        raise UserError("there is no API server to write to", NO_API_SERVER_HINT)
    from fairlead.model.actions import DeleteObject, ObjectRef, Result
    from fairlead.rules.data.acceleration import blockers
    from fairlead.wire.data.fluid import DATASET, VERSION, plural_of
    from fairlead.wire.names import FLUID_GROUP

    namespace = context.world.namespace()
    found = cluster.read(namespace)
    data_sets = _found(found, namespace, args.name)
    users = cluster.users(namespace)
    reasons = [why for each in data_sets for why in blockers(each, users)]
    if reasons:
        what = f"data set `{namespace}/{args.name}` is in use: {'; '.join(reasons)}"
        raise UserError(what, "wait until they have ended, or delete them")
    version = f"{FLUID_GROUP}/{VERSION}"
    targets = [
        ObjectRef(version, kind, args.name, namespace, plural=plural_of(kind))
        for kind in (*(DATASET[3] for _ in data_sets), *_runtimes(found, args.name))
    ]
    for target in targets:
        objects.apply(DeleteObject(target)).expect(Result.GONE)
    context.stdout.write(f"data set {namespace}/{args.name} deleted\n")
    if args.wait > 0:
        claim = ObjectRef("v1", "PersistentVolumeClaim", args.name, namespace)
        fluids = {each.name for each in found.claims if each.is_fluids}
        watched = [*targets, *([claim] if args.name in fluids else [])]

        def missing() -> str:
            left = [each.title for each in watched if cluster.is_there(each)]
            return f"not gone: {', '.join(left)}" if left else ""

        wait_for(f"data set {namespace}/{args.name}", missing, args.wait, context)
    return 0


def _found(found: FoundData, namespace: str, name: str) -> list[DataSet]:
    """The data set of that name; none if an interrupted run has left only its runtime."""
    if found.failures:
        raise UserError(found.failures, "use a user who may list claims and data sets there")
    data_sets = [each for each in found.data_sets if each.name == name]
    if data_sets or _runtimes(found, name):
        return data_sets
    if not found.has_fluid:
        raise UserError("Fluid is not installed, so there are no data sets")
    caching = next((each for each in found.claims if each.name == name), None)
    hint = "`fairlead dataset list` shows the data sets"
    if caching is not None:
        hint = f"`{name}` is a claim; name the data set that mounts it: {hint}"
    raise UserError(f"there is no data set `{namespace}/{name}`", hint)


def _runtimes(found: FoundData, name: str) -> list[str]:
    """Kinds of the runtimes of that name. Fluid ends those that it has adopted, too."""
    return [each.kind for each in found.runtimes if each.name == name]
