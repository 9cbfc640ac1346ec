"""`arena submit tfjob`: its flags, role by role, and what they mean; `submit` does the work."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import Flag, many, text, truth
from fairlead.cli.frame.values import invalid
from fairlead.cli.submit.spec import COMMON, TIMES, add_job_flags, common_spec, sizes
from fairlead.cli.submit.submit import SubmitVerb, submit
from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec

NAME = "submit tfjob"
HELP = "Submit a TFJob: workers, parameter servers, a chief, an evaluator."


def _of_roles() -> Iterator[Flag]:
    for role, old in (
        ("worker", "worker"),
        ("ps", "ps"),
        ("chief", "Chief"),
        ("evaluator", "evaluator"),
    ):
        for part, title in (("cpu", "Cpu"), ("memory", "Memory")):
            yield text(
                f"--{role}-{part}",
                twin=f"{old}{title}",
                metavar=part.upper(),
                help=f"{part} of each {role}",
            )
            limit = f"limit of {part} of each {role} (default: the request)"
            yield text(f"--{role}-{part}-limit", metavar=part.upper(), help=limit)
        yield many(
            f"--{role}-selector",
            metavar="KEY=VALUE",
            help=f"only nodes with this label, for the {role}",
        )
    for role in ("worker", "ps"):
        yield text(
            f"--{role}-image",
            twin=f"{role}Image",
            metavar="IMAGE",
            help=f"image of the {role}, instead of --image",
        )
        yield text(
            f"--{role}-affinity-policy",
            default="none",
            metavar="POLICY",
            help="none, spread or binpack",
        )
        yield text(
            f"--{role}-affinity-constraint",
            default="preferred",
            metavar="HOW",
            help="preferred or required",
        )
    for role in ("worker", "ps", "chief"):
        yield text(
            f"--{role}-port",
            twin=f"{role}Port",
            default="0",
            metavar="PORT",
            help=f"port of the {role} (2222)",
        )


FLAGS: Final = (
    *COMMON,
    *TIMES,
    *_of_roles(),
    text("--ps", default="0", metavar="N", help="how many parameter servers"),
    text("--ps-gpus", default="0", metavar="N", help="whole GPUs of each parameter server"),
    truth("--chief", help="add a chief"),
    truth("--evaluator", help="add an evaluator"),
    text(
        "--success-policy",
        "success_policy",
        values.one_of("", "ChiefWorker", "AllWorkers"),
        metavar="POLICY",
        help="ChiefWorker or AllWorkers",
    ),
    text("--role-sequence", metavar="ROLES", help="order in which roles start, e.g. `w,p,c,e`"),
    text(
        "--starting-timeout",
        "starting_seconds",
        values.seconds,
        metavar="TIME",
        help="give up if it has not started after this time",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(parser, FLAGS)


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what())


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import tfjob

    return SubmitVerb(Submission(tfjob), tf_spec)


def tf_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    _check_image(args)
    spec = common_spec(args, namespace, machine, FLAGS)
    gpus, config = values.count("gpus", args.gpus), machine.config()
    return replace(
        spec,
        image=args.image or args.worker_image or args.ps_image,
        # It may have parameter servers and a chief only.
        worker=_role(
            args, "worker", values.count("workers", args.workers), gpus, args.worker_image
        ),
        ps=_role(
            args,
            "ps",
            values.count("ps", args.ps),
            values.count("ps-gpus", args.ps_gpus),
            args.ps_image,
        ),
        chief=_role(args, "chief", int(args.chief), gpus, args.worker_image),
        evaluator=_role(args, "evaluator", int(args.evaluator), gpus, args.worker_image),
        role_sequence=_role_sequence(args.role_sequence or config.get("tfjob_role_sequence", "")),
    )


def _check_image(args: argparse.Namespace) -> None:
    has_ps = values.count("ps", args.ps) > 0
    if args.image or (args.worker_image and (args.ps_image or not has_ps)):
        return
    if args.worker_image:
        raise invalid(
            "--image or --psImage must be set", "`--image IMAGE` names the image of every role"
        )
    raise invalid(
        "--image or --workerImage must be set", "`--image IMAGE` names the image of every role"
    )


def _role(args: argparse.Namespace, role: str, replicas: int, gpus: int, image: str) -> RoleSpec:
    def of(part: str, default: str = "") -> str:
        return str(getattr(args, f"{role}_{part}", default))

    return RoleSpec(
        replicas=replicas,
        gpus=gpus,
        image=image,
        resources=sizes(cpu=(f"{role}-cpu", of("cpu")), memory=(f"{role}-memory", of("memory"))),
        limits=sizes(
            cpu=(f"{role}-cpu-limit", of("cpu_limit")),
            memory=(f"{role}-memory-limit", of("memory_limit")),
        ),
        port=values.port(f"{role}-port", of("port", "0")),
        selector=values.labels(f"{role}-selector", getattr(args, f"{role}_selector")),
        affinity_policy=values.word(
            f"{role}-affinity-policy", of("affinity_policy", "none"), ("none", "spread", "binpack")
        ),
        affinity_constraint=values.word(
            f"{role}-affinity-constraint",
            of("affinity_constraint", "preferred"),
            ("preferred", "required"),
        ),
    )


def _role_sequence(given: str) -> str:
    """
    >>> _role_sequence("w,p,c,e"), _role_sequence("Worker,PS")
    ('Worker,PS,Chief,Evaluator', 'Worker,PS')
    """
    roles = {"w": "Worker", "p": "PS", "c": "Chief", "e": "Evaluator"}
    roles |= {title.lower(): title for title in roles.values()}
    words = [each.strip().lower() for each in given.split(",")] if given else []
    if any(each not in roles for each in words):
        raise invalid(
            f"--role-sequence is invalid: `{given}`",
            "write it as `w,p,c,e` (Worker, PS, Chief, Evaluator)",
        )
    return ",".join(roles[each] for each in words)
