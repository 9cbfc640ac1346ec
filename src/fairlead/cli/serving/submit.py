"""What the verbs of `arena serve TYPE` share: flags in, a Deployment and its Service out.

See docs/spec/arena-cli.md#objects-of-serving-jobs, docs/spec/arena-cli.md#messages-of-the-commands.

The workload owns all other objects, so that deleting it deletes all; it is therefore created first,
and printed last, in the usual order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context, Machine
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.kinds.serving.spec import ServingSpec
    from fairlead.model.actions import Manifest

    SpecReader = Callable[[argparse.Namespace, str, Machine, float], ServingSpec]


def serve(
    args: argparse.Namespace,
    context: Context,
    read_spec: SpecReader,
    objects_of: Callable[[ServingSpec], list[Manifest]],
) -> int:
    """`read_spec` makes the spec of the arguments, a namespace, what the machine has and the time;
    `objects_of` its objects.
    """
    from msgspec.structs import replace

    from fairlead.cli.frame.flags import report_deprecations
    from fairlead.cli.submit.pod_faults import check_mounts, check_shares
    from fairlead.cli.submit.submit import (
        check_text,
        create_all,
        created_line,
        no_cluster,
        print_objects,
    )

    report_deprecations(args, context.messages)
    check_text(args.words)
    spec = read_spec(args, context.world.namespace(), context.machine, context.now())
    cluster = context.world.objects()
    if cluster is None and not args.dry_run:
        raise no_cluster()
    objects = objects_of(replace(spec, user=cluster.submitter() if cluster is not None else ""))
    check_shares(objects)
    check_mounts(objects)
    if args.dry_run or cluster is None:
        return print_objects(context, objects)
    exists = UserError(
        (
            f"the job {spec.name} is already exist, please delete it first. use 'arena serve "
            f"delete {spec.name}'"
        ),
        f"`arena serve delete {spec.name} --version {spec.version} -n {spec.namespace}` removes it",
    )
    made = create_all(cluster, objects, spec.namespace, exists)
    context.stdout.write("".join(created_line(each) for each in reversed(made)))
    context.stdout.flush()
    context.messages.info(f"The Job {spec.name} has been submitted successfully")
    context.messages.info(
        f"You can run `arena serve get {spec.name} --type {spec.type} -n {spec.namespace}` to "
        "check the job status"
    )
    return 0
