"""`arena serve triton`: a repository of models by NVIDIA's Triton, gRPC and HTTP.

See docs/spec/arena-cli.md#objects-of-serving-jobs.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import many_flag, text_flag, truth_flag
from fairlead.cli.frame.values import invalid
from fairlead.cli.serving.spec import (
    add_common_flags,
    check_ports,
    check_service_name,
    common_spec,
    container_path,
    ports,
)
from fairlead.cli.serving.submit import serve
from fairlead.cli.submit.submit import ServeVerb

if TYPE_CHECKING:
    from fairlead.kinds.serving.spec import ServingSpec

NAME = "serve triton"
HELP = "Serve a repository of models with NVIDIA's Triton inference server."

_IMAGE: Final = "nvcr.io/nvidia/tritonserver:24.12-py3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser, image=_IMAGE)
    text_flag(
        parser, "--model-repository", metavar="PATH", help="path of the models in the container"
    )
    text_flag(
        parser, "--http-port", default="8000", metavar="PORT", help="port of HTTP (default 8000)"
    )
    text_flag(
        parser, "--grpc-port", default="8001", metavar="PORT", help="port of gRPC (default 8001)"
    )
    text_flag(
        parser,
        "--metrics-port",
        default="8002",
        metavar="PORT",
        help="port of metrics (default 8002)",
    )
    truth_flag(parser, "--allow-metrics", help="serve metrics")
    many_flag(
        parser, "--load-model", metavar="MODEL", help="load only this model of the repository"
    )
    text_flag(parser, "--extend-command", metavar="WORDS", help="more arguments for tritonserver")
    text_flag(
        parser,
        "--backend",
        metavar="NAME",
        help="accepted without effect: the model's configuration names its backend",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.backend:
        context.messages.warn(
            "--backend has no effect: the model's configuration names its backend"
        )
    return serve(args, context, what())


def what() -> ServeVerb:
    from fairlead.kinds.serving.kinds import TRITON
    from fairlead.kinds.serving_submission import SUBMISSIONS

    return ServeVerb(SUBMISSIONS[TRITON], _spec)


def _spec(args: argparse.Namespace, namespace: str, machine: Machine, now: float) -> ServingSpec:
    from fairlead.kinds.serving.commands import triton_command, triton_probes
    from fairlead.kinds.serving.kinds import TRITON
    from fairlead.kinds.serving.manifest import service_name

    spec = common_spec(args, TRITON, namespace, machine, now)
    check_service_name(service_name(spec))
    found = ports(
        grpc=("grpc-port", args.grpc_port),
        http=("http-port", args.http_port),
        metrics=("metrics-port", args.metrics_port),
    )
    if not found.http:
        raise invalid(
            "--http-port is invalid",
            "the readiness probe of Triton uses HTTP, so the port cannot be 0",
        )
    found = check_ports(found if args.allow_metrics else replace(found, metrics=0))
    if not spec.command and not args.model_repository:
        raise invalid(
            "--model-repository must be set",
            "`--model-repository /MODELS` with --data CLAIM:/MODELS",
        )
    command = spec.command or triton_command(
        found,
        repository=container_path("model-repository", args.model_repository, may_be_remote=True),
        models=args.load_model,
        extension=args.extend_command,
    )
    return replace(spec, ports=found, command=command, probes=triton_probes(found))
