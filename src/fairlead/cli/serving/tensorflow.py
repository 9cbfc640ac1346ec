"""`arena serve tensorflow`: a model by TensorFlow Serving, over gRPC and HTTP.

See docs/spec/arena-cli.md#objects-of-serving-jobs.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import DeprecatedFlag, text_flag
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

NAME = "serve tensorflow"
HELP = (
    "Serve a model with TensorFlow Serving. --model-name and --model-path name it; "
    "--model-config-file names several models."
)

_IMAGE: Final = "tensorflow/serving:latest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser, image=_IMAGE)
    text_flag(parser, "--port", default="8500", metavar="PORT", help="port of gRPC (default 8500)")
    text_flag(
        parser,
        "--restful-port",
        twin="restfulPort",
        default="8501",
        metavar="PORT",
        help="port of HTTP (default 8501)",
    )
    text_flag(
        parser,
        "--model-path",
        twin="modelPath",
        metavar="PATH",
        help="path of the model in the container",
    )
    text_flag(
        parser,
        "--model-config-file",
        twin="modelConfigFile",
        metavar="PATH",
        help="path of a list of models in the container, instead",
    )
    text_flag(
        parser,
        "--monitoring-config-file",
        metavar="PATH",
        help="path of the settings of metrics in the container",
    )
    policy = parser.add_argument(
        "--version-policy", default="", metavar="POLICY", help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--versionPolicy", action=DeprecatedFlag, dest="version_policy", replaced_by=policy
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.version_policy:
        context.messages.warn(
            "--version-policy has no effect: "
            "the file of --model-config-file lists the versions to serve"
        )
    return serve(args, context, what())


def what() -> ServeVerb:
    from fairlead.kinds.serving.kinds import TENSORFLOW
    from fairlead.kinds.serving_submission import SUBMISSIONS

    return ServeVerb(SUBMISSIONS[TENSORFLOW], _spec)


def _spec(args: argparse.Namespace, namespace: str, machine: Machine, now: float) -> ServingSpec:
    from fairlead.kinds.serving.commands import tensorflow_command, tensorflow_probes
    from fairlead.kinds.serving.kinds import TENSORFLOW
    from fairlead.kinds.serving.manifest import service_name

    spec = common_spec(args, TENSORFLOW, namespace, machine, now)
    check_service_name(service_name(spec))
    found = check_ports(ports(grpc=("port", args.port), http=("restful-port", args.restful_port)))
    if not spec.command:
        _check_model(args)
    command = spec.command or tensorflow_command(
        found,
        name=args.model_name,
        path=container_path("model-path", args.model_path, may_be_remote=True),
        config=container_path("model-config-file", args.model_config_file),
        monitoring=container_path("monitoring-config-file", args.monitoring_config_file),
        shares_memory=bool(spec.gpu_memory),
    )
    return replace(spec, ports=found, command=command, probes=tensorflow_probes(found))


def _check_model(args: argparse.Namespace) -> None:
    if args.model_config_file:
        return
    if not args.model_name:
        raise invalid(
            "model name cannot be blank",
            "clients request it by `--model-name NAME`; --model-config-file names several models",
        )
    if not re.fullmatch(r"[a-z0-9A-Z_-]+", args.model_name):
        raise invalid(
            "model name should be numbers, letters, dashes, and underscores ONLY",
            f"--model-name is `{args.model_name}`",
        )
    if not args.model_path:
        raise invalid(
            "modelPath should be specified if no modelConfigFile is specified",
            "`--model-path /MODELS/NAME` with --data CLAIM:/MODELS",
        )
