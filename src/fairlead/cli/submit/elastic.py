"""The flags that `submit etjob` and `submit deepspeedjob` share: both make TrainingJobs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Machine
from fairlead.cli.frame.flags import Flag, many, text
from fairlead.cli.submit.spec import COMMON, ONE_SIZE, one_size_spec
from fairlead.kinds.parts.elastic_training import ElasticOptions
from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec

ELASTIC: Final = (
    *COMMON,
    *ONE_SIZE,
    text(
        "--job-restart-policy",
        metavar="POLICY",
        help="start a failed job again: Never or OnFailure (Never)",
    ),
    text("--job-backoff-limit", default="6", metavar="N", help="number of restarts with OnFailure"),
    text(
        "--ssh-secret",
        metavar="SECRET",
        help="a secret with ssh keys, instead of a new one for the job",
    ),
    many(
        "--launcher-selector",
        metavar="KEY=VALUE",
        help="only nodes with this label, for the launcher",
    ),
    many("--launcher-annotation", metavar="KEY=VALUE", help="an annotation of the launcher"),
    many("--worker-annotation", metavar="KEY=VALUE", help="an annotation of each worker"),
)


def elastic_spec(
    args: argparse.Namespace, namespace: str, machine: Machine, table: Iterable[Flag]
) -> JobSpec:
    """`--retry N` is a restart policy with the limit N; it overrides the flags of the policy."""
    spec = one_size_spec(args, namespace, machine, table)
    restart = values.word("job-restart-policy", args.job_restart_policy, ("", "Never", "OnFailure"))
    backoff = values.count("job-backoff-limit", args.job_backoff_limit)
    secret = values.object_name("ssh-secret", args.ssh_secret)
    if spec.retry:
        restart, backoff = "OnFailure", spec.retry
    return replace(
        spec,
        retry=backoff if restart == "OnFailure" else 0,
        worker=replace(
            spec.worker, annotations=values.keyed("worker-annotation", args.worker_annotation)
        ),
        launcher=RoleSpec(
            selector=values.labels("launcher-selector", args.launcher_selector),
            annotations=values.keyed("launcher-annotation", args.launcher_annotation),
        ),
        options=ElasticOptions(
            restart=restart,
            backoff=backoff,
            ssh_secret=secret,
            keys=None if secret else machine.ssh_keys(),
        ),
    )
