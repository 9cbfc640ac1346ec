"""`arena serve kserve`: an InferenceService of KServe.

See docs/spec/arena-cli.md#objects-of-serving-jobs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import many_flag, text_flag, truth_flag
from fairlead.cli.frame.values import count, invalid
from fairlead.cli.serving.spec import add_common_flags, check_service_name, common_spec, ports
from fairlead.cli.serving.submit import serve
from fairlead.cli.submit.submit import ServeVerb

if TYPE_CHECKING:
    from fairlead.kinds.serving.spec import KServeSpec, ServingSpec

NAME = "serve kserve"
HELP = """Serve a model with KServe, which must run in the cluster.

--model-format and --storage-uri let KServe choose the server; --image runs your own."""

_PROTOCOLS: Final = ("", "v1", "v2", "grpc-v1", "grpc-v2")
_NO_CANARY: Final = "-1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    text_flag(
        parser,
        "--model-format",
        metavar="FORMAT[:VERSION]",
        help="format of the model, e.g. `sklearn`, `pytorch:2`: KServe finds the server",
    )
    text_flag(parser, "--runtime", metavar="NAME", help="name of the serving runtime")
    text_flag(parser, "--runtime-version", metavar="VERSION", help="version of the runtime")
    text_flag(parser, "--storage-uri", metavar="URI", help="location of the model")
    text_flag(
        parser,
        "--protocol-version",
        metavar="VERSION",
        help="protocol of the model server: v1, v2, grpc-v1, grpc-v2",
    )
    text_flag(parser, "--port", default="0", metavar="PORT", help="port of the container")
    text_flag(
        parser,
        "--metrics-port",
        default="8080",
        metavar="PORT",
        help="port of metrics (accepted; KServe determines it)",
    )
    text_flag(
        parser,
        "--min-replicas",
        default="1",
        metavar="N",
        help="least number of pods (0: none without requests)",
    )
    text_flag(parser, "--max-replicas", metavar="N", help="greatest number of pods")
    text_flag(parser, "--scale-target", metavar="N", help="target value of the autoscaler")
    text_flag(
        parser,
        "--scale-metric",
        metavar="METRIC",
        help="metric of the autoscaler: cpu, memory, concurrency, rps",
    )
    text_flag(
        parser,
        "--container-concurrency",
        metavar="N",
        help="number of requests that a container serves at once",
    )
    text_flag(parser, "--timeout", metavar="SECONDS", help="how long a request may take")
    text_flag(
        parser,
        "--canary-traffic-percent",
        default="-1",
        metavar="N",
        help="percent of the traffic for the newest revision (-1: all)",
    )
    truth_flag(parser, "--enable-prometheus", help="let Prometheus read the pods' metrics")
    many_flag(
        parser,
        "--security-context",
        metavar="KEY=VALUE",
        help="a field of the pods' security context, e.g. `runAsUser=1000`",
    )
    text_flag(
        parser,
        "--affinity-policy",
        default="none",
        metavar="POLICY",
        help="none, spread or binpack",
    )
    text_flag(
        parser,
        "--affinity-constraint",
        default="preferred",
        metavar="HOW",
        help="preferred or required",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    return serve(args, context, what())


def what() -> ServeVerb:
    from fairlead.kinds.serving.kinds import KSERVE
    from fairlead.kinds.serving_submission import SUBMISSIONS

    return ServeVerb(SUBMISSIONS[KSERVE], _spec)


def _spec(args: argparse.Namespace, namespace: str, machine: Machine, now: float) -> ServingSpec:
    from fairlead.kinds.serving.kinds import KSERVE

    spec = common_spec(args, KSERVE, namespace, machine, now)
    check_service_name(spec.name)
    if not spec.image and not args.model_format:
        raise invalid(
            "--model-format or --image must be set",
            "`--model-format sklearn --storage-uri URI`, or `--image IMAGE`",
        )
    if args.storage_uri and not args.model_format:
        raise invalid(
            "--storage-uri is invalid without --model-format",
            "`--model-format FORMAT` names the format of the model",
        )
    return replace(spec, ports=ports(http=("port", args.port)), kserve=_kserve(args))


def _kserve(args: argparse.Namespace) -> KServeSpec:
    from fairlead.kinds.serving.spec import KServeSpec

    format_, _, version = args.model_format.partition(":")
    least, most = (
        values.count("min-replicas", args.min_replicas),
        _number("max-replicas", args.max_replicas, least=1),
    )
    if most is not None and most < least:
        raise values.invalid(f"--max-replicas is invalid: it is {most}, and --min-replicas {least}")
    return KServeSpec(
        model_format=format_,
        model_format_version=version,
        runtime=values.object_name("runtime", args.runtime),
        runtime_version=args.runtime_version,
        storage_uri=args.storage_uri,
        protocol_version=values.word("protocol-version", args.protocol_version, _PROTOCOLS),
        min_replicas=least,
        max_replicas=most,
        scale_target=_number("scale-target", args.scale_target),
        scale_metric=values.word(
            "scale-metric", args.scale_metric, ("", "cpu", "memory", "concurrency", "rps")
        ),
        container_concurrency=_number("container-concurrency", args.container_concurrency),
        timeout=_number("timeout", args.timeout),
        canary_percent=_percent(args.canary_traffic_percent),
        has_prometheus=args.enable_prometheus,
        security_context=_security(values.pairs("security-context", args.security_context)),
        affinity_policy=values.word(
            "affinity-policy", args.affinity_policy, ("none", "spread", "binpack")
        ),
        affinity_constraint=values.word(
            "affinity-constraint", args.affinity_constraint, ("preferred", "required")
        ),
    )


def _number(flag: str, text: str, least: int = 0) -> int | None:
    return count(flag, text, least) if text else None


def _percent(text: str) -> int | None:
    if text == _NO_CANARY:
        return None
    percent = count("canary-traffic-percent", text)
    if percent > 100:
        raise invalid(f"--canary-traffic-percent is invalid: {percent} is more than everything")
    return percent


def _security(pairs: Mapping[str, str]) -> dict[str, Any]:
    """Numbers and truths as such, anything else as text: `runAsUser=1000`, `runAsNonRoot=true`."""
    truths: dict[str, Any] = {"true": True, "false": False}
    return {
        key: int(value) if value.isdigit() and len(value) < 10 else truths.get(value, value)
        for key, value in pairs.items()
    }
