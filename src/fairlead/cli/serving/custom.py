"""`arena serve custom`: any image that answers requests, behind a Service.

See docs/spec/arena-cli.md#objects-of-serving-jobs.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import many_flag, text_flag
from fairlead.cli.frame.values import invalid
from fairlead.cli.serving.probes import PROBES, probes
from fairlead.cli.serving.spec import (
    add_common_flags,
    check_ports,
    check_service_name,
    common_spec,
    ports,
    share,
)
from fairlead.cli.serving.submit import serve
from fairlead.cli.submit.submit import ServeVerb

if TYPE_CHECKING:
    from fairlead.kinds.serving.spec import ServingSpec

NAME = "serve custom"
HELP = """Serve a model with an image of your own: pods that answer requests, behind one address.

The command stands after the flags, in quotes; without one the image runs its own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    text_flag(parser, "--port", default="0", metavar="PORT", help="port of gRPC (0: none)")
    text_flag(
        parser,
        "--restful-port",
        twin="restfulPort",
        default="0",
        metavar="PORT",
        help="port of HTTP (0: none)",
    )
    text_flag(
        parser, "--metrics-port", default="0", metavar="PORT", help="port of metrics (0: none)"
    )
    text_flag(
        parser,
        "--max-surge",
        metavar="N",
        help="how many pods more than --replicas an update may start: a number or a percentage",
    )
    text_flag(
        parser,
        "--max-unavailable",
        metavar="N",
        help="how many pods may be missing during an update: a number or a percentage",
    )
    for probe in PROBES:
        text_flag(
            parser,
            f"--{probe}-probe-action",
            metavar="ACTION",
            help="kind of probe: httpGet, exec, grpc or tcpSocket",
        )
        many_flag(
            parser,
            f"--{probe}-probe-action-option",
            metavar="OPTION",
            help="e.g. `path: /healthz`, `port: 8080`, `command=cat /ready`",
        )
        many_flag(
            parser,
            f"--{probe}-probe-option",
            metavar="OPTION",
            help="e.g. `initialDelaySeconds: 3`",
        )


def run(args: argparse.Namespace, context: Context) -> int:
    return serve(args, context, what())


def what() -> ServeVerb:
    from fairlead.kinds.serving.kinds import CUSTOM
    from fairlead.kinds.serving_submission import SUBMISSIONS

    return ServeVerb(SUBMISSIONS[CUSTOM], _spec)


def _spec(args: argparse.Namespace, namespace: str, machine: Machine, now: float) -> ServingSpec:
    from fairlead.kinds.serving.kinds import CUSTOM
    from fairlead.kinds.serving.manifest import service_name

    spec = common_spec(args, CUSTOM, namespace, machine, now)
    if not spec.image:
        raise invalid("image must be specified", "`--image IMAGE` names the image that serves")
    check_service_name(service_name(spec))
    found = ports(
        grpc=("port", args.port),
        http=("restful-port", args.restful_port),
        metrics=("metrics-port", args.metrics_port),
    )
    return replace(
        spec,
        ports=check_ports(found),
        probes=probes(args),
        surge=share("max-surge", args.max_surge),
        unavailable=share("max-unavailable", args.max_unavailable),
    )
