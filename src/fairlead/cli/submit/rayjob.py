"""`arena submit rayjob`: its flags, and what they mean; `submit` does the work.

A Ray cluster counts its pods and GPUs by flags of its own (`--worker-replicas`, `--worker-gpu`), so
`--workers` and `--gpus` of the other kinds are not here.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import Flag, read_flags, text, truth
from fairlead.cli.frame.values import invalid
from fairlead.cli.submit.spec import PULL_POLICIES, SHARED, TIMES, add_job_flags, common_spec, sizes
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.errors import UserError
from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec

if TYPE_CHECKING:
    from fairlead.kinds.training.rayjob import RayOptions

NAME = "submit rayjob"
HELP = "Submit a RayJob: a new Ray cluster of a head and workers that runs the command."

_NAME_MAX: Final = 47
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SERVICES: Final = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_MODES: Final = ("Default", "Conservative", "Aggressive")
_SHUTDOWN: Final = "delete the Ray cluster after the end (default true)"
_SUSPEND: Final = "create the job, and its cluster only when it is resumed"
_STOP: Final = "command that each container runs before it stops"
_OPTIONS: Final = (
    truth("--shutdown-after-finished", "is_shut_down", default=True, help=_SHUTDOWN),
    text(
        "--active-deadline-seconds",
        metavar="TIME",
        help="end the job after this time, e.g. `1h30m`",
    ),
    truth("--suspend", "is_suspended", help=_SUSPEND),
    text("--ray-version", "version", metavar="VERSION", help="version of Ray in the images"),
    text("--pre-stop-command", "pre_stop", default="ray stop", metavar="COMMAND", help=_STOP),
    truth("--enable-autoscaling", help="let Ray's autoscaler add and remove workers"),
)
"""Flags with a field become `RayOptions`, as in `_SIZES`."""
_PULL: Final = values.one_of(*PULL_POLICIES)
_PULL_HELP: Final = "Always, IfNotPresent or Never"
_IDLE: Final = "remove a worker after this idle time"
_AUTOSCALER: Final = (
    text(
        "--autoscaler-cpu",
        "cpu",
        values.quantity,
        default="500m",
        metavar="CPU",
        help="cpu of the autoscaler",
    ),
    text(
        "--autoscaler-memory",
        "memory",
        values.quantity,
        default="512Mi",
        metavar="SIZE",
        help="memory of the autoscaler",
    ),
    text(
        "--autoscaler-image",
        "image",
        metavar="IMAGE",
        help="image of the autoscaler (Ray's own by default)",
    ),
    text(
        "--autoscaler-image-pull-policy",
        "pull_policy",
        _PULL,
        default="IfNotPresent",
        metavar="POLICY",
        help=_PULL_HELP,
    ),
    text(
        "--autoscaler-idle-timeout-seconds",
        "idle_seconds",
        values.count,
        default="60",
        metavar="N",
        help=_IDLE,
    ),
    text(
        "--autoscaler-upscaling-mode",
        "mode",
        values.one_of(*_MODES),
        default="Default",
        metavar="MODE",
        help=", ".join(_MODES),
    ),
)


def _of_roles() -> Iterator[Flag]:
    for role in ("head", "worker"):
        yield text(
            f"--{role}-image", metavar="IMAGE", help=f"image of the {role}, instead of --image"
        )
        yield text(f"--{role}-cpu", metavar="CPU", help=f"cpu of the {role}")
        yield text(f"--{role}-memory", metavar="SIZE", help=f"memory of the {role}")
        yield text(f"--{role}-gpu", default="0", metavar="N", help=f"whole GPUs of the {role}")


def _hosts(flag: str, given: str) -> int:
    return values.count(flag, given, 1)


_SERVICE: Final = f"Service of the head: {', '.join(_SERVICES)}"
_MOST: Final = "most workers, for the autoscaler (0: no limit)"
_SIZES: Final = (
    text(
        "--head-service-type",
        "head_service",
        values.one_of(*_SERVICES),
        default="ClusterIP",
        metavar="TYPE",
        help=_SERVICE,
    ),
    text("--worker-replicas", metavar="N", help="how many workers (required)"),
    text(
        "--worker-min-replicas",
        "min_workers",
        values.count,
        default="0",
        metavar="N",
        help="fewest workers, for the autoscaler",
    ),
    text("--worker-max-replicas", default="0", metavar="N", help=_MOST),
    text(
        "--worker-num-of-hosts",
        "hosts",
        _hosts,
        default="1",
        metavar="N",
        help="pods of each worker",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    table = (*SHARED, *TIMES, *_OPTIONS, *_AUTOSCALER, *_of_roles(), *_SIZES)
    add_job_flags(parser, table, "the program that is sent to the Ray cluster, joined by blanks")
    parser.set_defaults(share_memory="", ttl_after_finished="10s")


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import rayjob

    return SubmitVerb(Submission(rayjob), ray_spec)


def ray_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    if not args.worker_replicas:
        raise UserError(
            'required flag(s) "worker-replicas" not set',
            "`--worker-replicas N` sets the number of workers",
        )
    _check(args)
    spec = common_spec(args, namespace, machine, (*SHARED, *TIMES))
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
    if not args.image and not (args.head_image and args.worker_image):
        raise invalid(
            "--image must be set when neither --head-image nor --worker-image is provided",
            "`--image IMAGE` applies to all",
        )
    if len(args.name) > _NAME_MAX or not _NAME.fullmatch(args.name):
        hint = (
            f"names of RayJobs begin with a letter and have at most {_NAME_MAX} characters: the "
            "operator builds names of pods from them"
        )
        raise invalid(f"the name {args.name} is not valid for a RayJob", hint)
    if args.suspend and not args.shutdown_after_finished:
        raise invalid(
            "--suspend needs --shutdown-after-finished",
            "a RayJob that keeps its cluster cannot be suspended",
        )


def _role(args: argparse.Namespace, role: str, replicas: int) -> RoleSpec:
    def of(part: str) -> tuple[str, str]:
        return f"{role}-{part}", str(getattr(args, f"{role}_{part}"))

    return RoleSpec(
        replicas=replicas,
        gpus=values.count(*of("gpu")),
        image=of("image")[1],
        resources=sizes(cpu=of("cpu"), memory=of("memory")),
    )


def _options(args: argparse.Namespace) -> RayOptions:
    from fairlead.kinds.training.rayjob import RayAutoscaler, RayOptions

    replicas = values.count("worker-replicas", args.worker_replicas)
    least = values.count("worker-min-replicas", args.worker_min_replicas)
    most = values.count("worker-max-replicas", args.worker_max_replicas)
    if least > replicas or (most and most < replicas):
        raise invalid(
            f"--worker-replicas is invalid: {replicas} is not between --worker-min-replicas "
            f"{least} and --worker-max-replicas {most}"
        )
    autoscaler = RayAutoscaler(**read_flags(args, _AUTOSCALER)) if args.enable_autoscaling else None
    return RayOptions(
        max_workers=most or None, autoscaler=autoscaler, **read_flags(args, (*_OPTIONS, *_SIZES))
    )
