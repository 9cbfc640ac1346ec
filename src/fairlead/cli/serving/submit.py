"""What the verbs of `arena serve TYPE` share: flags in, a Deployment and its Service out.

See docs/spec/arena-cli.md#objects-of-serving-jobs, docs/spec/arena-cli.md#messages-of-the-commands.

The workload owns all other objects, so that deleting it deletes all; it is therefore created first,
and printed last, in the usual order.
"""

from __future__ import annotations

import argparse

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.submit import (
    ServeVerb,
    check_text,
    create_all,
    created_line,
    no_cluster,
    print_objects,
    written_objects,
)
from fairlead.errors import UserError


def serve(args: argparse.Namespace, context: Context, verb: ServeVerb) -> int:
    from fairlead.cli.frame.flags import report_deprecations
    from fairlead.kinds.submission import Served

    report_deprecations(args, context.messages)
    check_text(args.words)
    spec = verb.read_spec(args, context.world.namespace(), context.machine, context.now())
    cluster = context.world.objects()
    if cluster is None and not args.dry_run:
        raise no_cluster()
    user = cluster.submitter() if cluster is not None else ""
    objects = written_objects(spec, verb.submission, Served(user=user))
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
