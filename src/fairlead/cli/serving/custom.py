"""`arena serve custom`: any image that answers requests, behind a Service (arena contract §1, §3)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.serving.flags import add_common_flags, add_custom_flags
from fairlead.cli.serving.submit import serve

if TYPE_CHECKING:
    from fairlead.kinds.serving.spec import ServingSpec

NAME = "serve custom"
HELP = """Serve a model with an image of your own: pods that answer requests, behind one address.

The command stands after the flags, in quotes; without one the image runs its own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_custom_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.serving.manifest import objects

    return serve(args, context, _spec, objects)


def _spec(args: argparse.Namespace, namespace: str, machine: Machine, now: float) -> ServingSpec:
    from msgspec.structs import replace

    from fairlead.cli.frame.values import invalid
    from fairlead.cli.serving.probes import probes
    from fairlead.cli.serving.spec import check_ports, check_service_name, common_spec, ports, share
    from fairlead.kinds.serving.kinds import CUSTOM
    from fairlead.kinds.serving.manifest import service_name

    spec = common_spec(args, CUSTOM, namespace, machine, now)
    if not spec.image:
        raise invalid("image must be specified", "`--image IMAGE` names the image that serves")
    check_service_name(service_name(spec))
    found = ports(grpc=("port", args.port), http=("restful-port", args.restful_port), metrics=("metrics-port", args.metrics_port))
    return replace(
        spec,
        ports=check_ports(found),
        probes=probes(args),
        surge=share("max-surge", args.max_surge),
        unavailable=share("max-unavailable", args.max_unavailable),
    )
