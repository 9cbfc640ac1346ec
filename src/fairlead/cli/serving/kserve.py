"""`arena serve kserve`: an InferenceService of KServe (arena contract §1, §3)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.serving.flags import add_common_flags, add_kserve_flags
from fairlead.cli.serving.submit import serve

if TYPE_CHECKING:
    from fairlead.kinds.serving.spec import KServeSpec, ServingSpec

NAME = "serve kserve"
HELP = """Serve a model with KServe, which must run in the cluster.

--model-format and --storage-uri let KServe choose the server; --image runs your own."""

_PROTOCOLS: Final = ("", "v1", "v2", "grpc-v1", "grpc-v2")
_NO_CANARY: Final = "-1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_kserve_flags(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.serving.kserve import objects

    return serve(args, context, _spec, objects)


def _spec(args: argparse.Namespace, namespace: str, machine: Machine, now: float) -> ServingSpec:
    from msgspec.structs import replace

    from fairlead.cli.frame.values import invalid
    from fairlead.cli.serving.spec import check_service_name, common_spec, ports
    from fairlead.kinds.serving.kinds import KSERVE

    spec = common_spec(args, KSERVE, namespace, machine, now)
    check_service_name(spec.name)
    if not spec.image and not args.model_format:
        raise invalid("--model-format or --image must be set", "`--model-format sklearn --storage-uri URI`, or `--image IMAGE`")
    if args.storage_uri and not args.model_format:
        raise invalid("--storage-uri is invalid without --model-format", "`--model-format FORMAT` says how the model is read")
    return replace(spec, ports=ports(http=("port", args.port)), kserve=_kserve(args))


def _kserve(args: argparse.Namespace) -> KServeSpec:
    from fairlead.cli.frame import values
    from fairlead.kinds.serving.spec import KServeSpec

    format_, _, version = args.model_format.partition(":")
    least, most = values.count("min-replicas", args.min_replicas), _number("max-replicas", args.max_replicas, least=1)
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
        scale_metric=values.word("scale-metric", args.scale_metric, ("", "cpu", "memory", "concurrency", "rps")),
        container_concurrency=_number("container-concurrency", args.container_concurrency),
        timeout=_number("timeout", args.timeout),
        canary_percent=_percent(args.canary_traffic_percent),
        has_prometheus=args.enable_prometheus,
        security_context=_security(values.pairs("security-context", args.security_context)),
        affinity_policy=values.word("affinity-policy", args.affinity_policy, ("none", "spread", "binpack")),
        affinity_constraint=values.word("affinity-constraint", args.affinity_constraint, ("preferred", "required")),
    )


def _number(flag: str, text: str, least: int = 0) -> int | None:
    from fairlead.cli.frame.values import count

    return count(flag, text, least) if text else None


def _percent(text: str) -> int | None:
    from fairlead.cli.frame.values import count, invalid

    if text == _NO_CANARY:
        return None
    percent = count("canary-traffic-percent", text)
    if percent > 100:
        raise invalid(f"--canary-traffic-percent is invalid: {percent} is more than everything")
    return percent


def _security(pairs: Mapping[str, str]) -> dict[str, Any]:
    """Numbers and truths as such, anything else as text: `runAsUser=1000`, `runAsNonRoot=true`."""
    truths: dict[str, Any] = {"true": True, "false": False}
    return {key: int(value) if value.isdigit() and len(value) < 10 else truths.get(value, value) for key, value in pairs.items()}
