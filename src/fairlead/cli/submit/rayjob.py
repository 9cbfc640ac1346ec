"""`arena submit rayjob`: its flags and what they mean; `submit` does the work.

What a newcomer gets wrong: a Ray cluster counts its pods and GPUs by flags of its own (`--worker-replicas`, `--worker-gpu`), so
`--workers` and `--gpus` of the other kinds are not here.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.flags import add_shared_flags, add_time_flags, text_flag, truth_flag
from fairlead.cli.submit.submit import submit
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec
    from fairlead.kinds.training.rayjob import RayAutoscaler, RayOptions

NAME = "submit rayjob"
HELP = "Submit a RayJob: a Ray cluster of its own, a head and workers, to which the command is sent."

_NAME_MAX: Final = 47
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SERVICES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_MODES: Final = ("Default", "Conservative", "Aggressive")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_flags(parser, "the program that is sent to the Ray cluster, joined by blanks")
    add_time_flags(parser)
    parser.set_defaults(share_memory="", ttl_after_finished="10s")
    truth_flag(parser, "--shutdown-after-finished", default=True, help="take the cluster down after the end (default true)")
    text_flag(parser, "--active-deadline-seconds", metavar="TIME", help="end the job after so long, e.g. `1h30m`")
    truth_flag(parser, "--suspend", help="make the job, and its cluster only when it is resumed")
    text_flag(parser, "--ray-version", metavar="VERSION", help="version of Ray in the images")
    text_flag(parser, "--pre-stop-command", default="ray stop", metavar="COMMAND", help="what each container runs before it is stopped")
    truth_flag(parser, "--enable-autoscaling", help="let Ray's autoscaler add and remove workers")
    text_flag(parser, "--autoscaler-cpu", default="500m", metavar="CPU", help="cpu of the autoscaler")
    text_flag(parser, "--autoscaler-memory", default="512Mi", metavar="SIZE", help="memory of the autoscaler")
    text_flag(parser, "--autoscaler-image", metavar="IMAGE", help="image of the autoscaler (Ray's own by default)")
    text_flag(parser, "--autoscaler-image-pull-policy", default="IfNotPresent", metavar="POLICY", help="Always, IfNotPresent or Never")
    text_flag(parser, "--autoscaler-idle-timeout-seconds", default="60", metavar="N", help="remove a worker that is idle so long")
    text_flag(parser, "--autoscaler-upscaling-mode", default="Default", metavar="MODE", help=", ".join(_MODES))
    for role in ("head", "worker"):
        text_flag(parser, f"--{role}-image", metavar="IMAGE", help=f"image of the {role}, instead of --image")
        text_flag(parser, f"--{role}-cpu", metavar="CPU", help=f"cpu of the {role}")
        text_flag(parser, f"--{role}-memory", metavar="SIZE", help=f"memory of the {role}")
        text_flag(parser, f"--{role}-gpu", default="0", metavar="N", help=f"whole GPUs of the {role}")
    text_flag(parser, "--head-service-type", default="ClusterIP", metavar="TYPE", help=f"Service of the head: {', '.join(_SERVICES)}")
    text_flag(parser, "--worker-replicas", metavar="N", help="how many workers (required)")
    text_flag(parser, "--worker-min-replicas", default="0", metavar="N", help="fewest workers, for the autoscaler")
    text_flag(parser, "--worker-max-replicas", default="0", metavar="N", help="most workers, for the autoscaler (0: no limit)")
    text_flag(parser, "--worker-num-of-hosts", default="1", metavar="N", help="pods of each worker")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import rayjob

    return submit(args, context, Submission(rayjob), ray_spec)


def ray_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    from msgspec.structs import replace

    from fairlead.cli.submit import values
    from fairlead.cli.submit.spec import common_spec

    if not args.worker_replicas:
        raise UserError('required flag(s) "worker-replicas" not set', "`--worker-replicas N` says how many workers")
    _check(args)
    spec = common_spec(args, namespace, config)
    deadline = values.seconds("active-deadline-seconds", args.active_deadline_seconds)
    return replace(
        spec,
        image=args.image or args.head_image,
        chief=_role(args, "head", 1),
        worker=_role(args, "worker", values.count("worker-replicas", args.worker_replicas)),
        running_seconds=spec.running_seconds if deadline is None else deadline,
        options=_options(args),
    )


def _check(args: argparse.Namespace) -> None:
    from fairlead.cli.submit.values import invalid

    if not args.image and not (args.head_image and args.worker_image):
        raise invalid("--image must be set when neither --head-image nor --worker-image is provided", "`--image IMAGE` is that of all")
    if len(args.name) > _NAME_MAX or not _NAME.fullmatch(args.name):
        hint = f"names of RayJobs begin with a letter and have at most {_NAME_MAX} characters: the operator makes names of pods of them"
        raise invalid(f"the name {args.name} is none of a RayJob", hint)
    if args.suspend and not args.shutdown_after_finished:
        raise invalid("--suspend needs --shutdown-after-finished", "a RayJob that keeps its cluster cannot be suspended")


def _role(args: argparse.Namespace, role: str, replicas: int) -> RoleSpec:
    from fairlead.cli.submit import values
    from fairlead.cli.submit.spec import sizes
    from fairlead.kinds.parts.job_spec import RoleSpec

    def of(part: str) -> tuple[str, str]:
        return f"{role}-{part}", str(getattr(args, f"{role}_{part}"))

    return RoleSpec(
        replicas=replicas, gpus=values.count(*of("gpu")), image=of("image")[1], resources=sizes(cpu=of("cpu"), memory=of("memory"))
    )


def _options(args: argparse.Namespace) -> RayOptions:
    from fairlead.cli.submit import values
    from fairlead.kinds.training.rayjob import RayOptions

    replicas = values.count("worker-replicas", args.worker_replicas)
    least = values.count("worker-min-replicas", args.worker_min_replicas)
    most = values.count("worker-max-replicas", args.worker_max_replicas)
    if least > replicas or (most and most < replicas):
        raise values.invalid(
            f"--worker-replicas is invalid: {replicas} is not between --worker-min-replicas {least} and --worker-max-replicas {most}"
        )
    return RayOptions(
        version=args.ray_version,
        head_service=values.word("head-service-type", args.head_service_type, _SERVICES),
        min_workers=least,
        max_workers=most or None,
        hosts=values.count("worker-num-of-hosts", args.worker_num_of_hosts, 1),
        autoscaler=_autoscaler(args) if args.enable_autoscaling else None,
        pre_stop=args.pre_stop_command,
        is_shut_down=args.shutdown_after_finished,
        is_suspended=args.suspend,
    )


def _autoscaler(args: argparse.Namespace) -> RayAutoscaler:
    from fairlead.cli.submit import values
    from fairlead.cli.submit.spec import PULL_POLICIES
    from fairlead.kinds.training.rayjob import RayAutoscaler

    return RayAutoscaler(
        cpu=values.quantity("autoscaler-cpu", args.autoscaler_cpu),
        memory=values.quantity("autoscaler-memory", args.autoscaler_memory),
        image=args.autoscaler_image,
        pull_policy=values.word("autoscaler-image-pull-policy", args.autoscaler_image_pull_policy, PULL_POLICIES),
        idle_seconds=values.count("autoscaler-idle-timeout-seconds", args.autoscaler_idle_timeout_seconds),
        mode=values.word("autoscaler-upscaling-mode", args.autoscaler_upscaling_mode, _MODES),
    )
