"""What the flags of `submit etjob` and `submit deepspeedjob` have in common, and what they mean: both make TrainingJobs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from fairlead.cli.frame.ssh_keys import new_ssh_keys
from fairlead.cli.submit import values
from fairlead.cli.submit.flags import add_common_flags, add_one_size_flags, many_flag, text_flag
from fairlead.cli.submit.spec import one_size_spec
from fairlead.kinds.parts.elastic_training import ElasticOptions
from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec


def add_elastic_flags(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_one_size_flags(parser)
    text_flag(parser, "--job-restart-policy", metavar="POLICY", help="start a failed job again: Never or OnFailure (Never)")
    text_flag(parser, "--job-backoff-limit", default="6", metavar="N", help="how often, where it is OnFailure")
    text_flag(parser, "--ssh-secret", metavar="SECRET", help="a secret with ssh keys, instead of a new one of the job's own")
    many_flag(parser, "--launcher-selector", metavar="KEY=VALUE", help="only nodes with this label, for the launcher")
    many_flag(parser, "--launcher-annotation", metavar="KEY=VALUE", help="an annotation of the launcher")
    many_flag(parser, "--worker-annotation", metavar="KEY=VALUE", help="an annotation of each worker")


def elastic_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    """`--retry N` means the same as a restart policy with N as its limit; where both are said, `--retry`."""
    from msgspec.structs import replace

    spec = one_size_spec(args, namespace, config)
    restart = values.word("job-restart-policy", args.job_restart_policy, ("", "Never", "OnFailure"))
    backoff = values.count("job-backoff-limit", args.job_backoff_limit)
    secret = values.object_name("ssh-secret", args.ssh_secret)
    if spec.retry:
        restart, backoff = "OnFailure", spec.retry
    return replace(
        spec,
        retry=backoff if restart == "OnFailure" else 0,
        worker=replace(spec.worker, annotations=values.keyed("worker-annotation", args.worker_annotation)),
        launcher=RoleSpec(
            selector=values.labels("launcher-selector", args.launcher_selector),
            annotations=values.keyed("launcher-annotation", args.launcher_annotation),
        ),
        options=ElasticOptions(restart=restart, backoff=backoff, ssh_secret=secret, keys=None if secret else new_ssh_keys()),
    )
