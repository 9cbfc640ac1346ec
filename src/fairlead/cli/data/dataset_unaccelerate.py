"""`fairlead dataset unaccelerate` (docs/spec/datasets.md#end-of-an-acceleration)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.data.waiting import add_wait, data_of
from fairlead.cli.frame.context import Context
from fairlead.cli.operations.carried_out import carry_out, operations_of, take_over
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.cli.operations.carried_out import StepsAndUndo
    from fairlead.model.jobs.datasets import DataSet, FoundData

NAME = "dataset unaccelerate"
HELP = """Remove a data set of Fluid, its runtime and its caches. The claim and its data stay: pods
that mounted the data set must mount the claim again.

It is refused while pods mount it, while data sets of other namespaces refer to it, and while an
operation of Fluid runs on it.

The runtime is removed when the Dataset is gone. With --wait 0 the command deletes the Dataset only;
the console does the rest, or `fairlead operation resume`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the data set, in the chosen namespace")
    add_wait(parser, "until all of it is gone")


def run(args: argparse.Namespace, context: Context) -> int:
    cluster = data_of(context)
    from fairlead.model.operations.operation import READY_SECONDS, OperationKind
    from fairlead.rules.data.acceleration import blockers
    from fairlead.rules.data.plans import data_set_parts, data_set_subject, unacceleration_steps

    namespace = context.world.namespace()
    operations = operations_of(context)
    subject = data_set_subject(namespace, args.name)
    title = f"data set {namespace}/{args.name}"
    is_left = args.wait <= 0
    end = f"{title} deleted\n" if is_left else f"{title}: done\n"
    if take_over(operations, subject, OperationKind.UNACCELERATE, context, leaves_waits=is_left):
        context.stdout.write(end)
        return 0
    found = cluster.read(namespace)
    data_sets = _found(found, namespace, args.name)
    users = cluster.users(namespace)
    reasons = [why for each in data_sets for why in blockers(each, users)]
    if reasons:
        what = f"{title} is in use: {'; '.join(reasons)}"
        raise UserError(what, "wait until they have ended, or delete them")
    more = cluster.leftovers(namespace, args.name)
    parts = data_set_parts(found, namespace, args.name, more)

    def plan(_id: str) -> StepsAndUndo:
        return unacceleration_steps(parts, seconds=READY_SECONDS if is_left else args.wait), ()

    carry_out(operations, OperationKind.UNACCELERATE, subject, plan, context, leaves_waits=is_left)
    context.stdout.write(end)
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
