"""The flags of `serve TYPE`, the common ones and each type's (arena contract §1); `spec` reads them."""

from __future__ import annotations

import argparse

from fairlead.cli.frame.arena_flags import Twin, many_flag, text_flag, truth_flag

PROBES = ("liveness", "readiness", "startup")


def add_common_flags(parser: argparse.ArgumentParser, *, image: str = "") -> None:
    """What every type takes. `image`: the one it runs by default."""
    parser.set_defaults(parser=parser)
    parser.add_argument("words_of_command", nargs="*", metavar="COMMAND", help="what to run, joined by blanks, by --shell")
    text_flag(parser, "--name", twin="servingName", help="name of the serving job (required)")
    text_flag(parser, "--version", twin="servingVersion", help="its version (default: now, as 202601051030)")
    text_flag(parser, "--image", default=image, help=f"image of the model server{f' (default {image})' if image else ''}")
    text_flag(
        parser,
        "--image-pull-policy",
        twin="imagePullPolicy",
        default="IfNotPresent",
        metavar="POLICY",
        help="Always, IfNotPresent or Never",
    )
    many_flag(parser, "--image-pull-secret", metavar="SECRET", help="a secret to pull images with")
    text_flag(parser, "--command", metavar="COMMAND", help="what to run instead of the server's own command")
    text_flag(parser, "--shell", default="sh", help="what runs the command")
    text_flag(parser, "--replicas", default="1", metavar="N", help="how many pods")
    _add_resources(parser)
    _add_mounts(parser)
    many_flag(parser, "--env", "-e", metavar="NAME=VALUE", help="an environment variable")
    many_flag(parser, "--env-from-secret", metavar="NAME=SECRET[:KEY]", help="an environment variable out of a secret")
    many_flag(parser, "--annotation", "-a", metavar="KEY=VALUE", help="an annotation of the job and its pods")
    many_flag(parser, "--label", "-l", metavar="KEY=VALUE", help="a label of the job and its pods")
    many_flag(parser, "--selector", metavar="KEY=VALUE", help="only nodes with this label")
    many_flag(parser, "--toleration", metavar="TAINT", help="KEY=VALUE:EFFECT,OPERATOR or KEY:EFFECT or KEY, or `all`")
    truth_flag(parser, "--enable-istio", twin="enableIstio", help="let Istio put its proxy into the pods")
    truth_flag(parser, "--expose-service", twin="exposeService", help="serve on a port of every node, too")
    text_flag(parser, "--model-name", twin="modelName", metavar="NAME", help="name of the model")
    text_flag(parser, "--model-version", metavar="VERSION", help="version of the model")
    truth_flag(parser, "--dry-run", help="print the objects as YAML and create nothing")


def _add_resources(parser: argparse.ArgumentParser) -> None:
    text_flag(parser, "--gpus", default="0", metavar="N", help="whole GPUs of each pod")
    text_flag(parser, "--gpumemory", default="0", metavar="N", help="units of shared GPU memory (`aliyun.com/gpu-mem`) of each pod")
    text_flag(parser, "--gpucore", default="0", metavar="PERCENT", help="percent of a GPU's cores of each pod")
    many_flag(parser, "--device", metavar="RESOURCE=N", help="another chip, e.g. `amd.com/gpu=1`")
    text_flag(parser, "--cpu", metavar="CPU", help="cpu of each pod")
    text_flag(parser, "--memory", metavar="SIZE", help="memory of each pod")
    text_flag(parser, "--share-memory", metavar="SIZE", help="size of /dev/shm")


def _add_mounts(parser: argparse.ArgumentParser) -> None:
    many_flag(parser, "--data", "-d", metavar="CLAIM:PATH", help="mount a persistent volume claim")
    many_flag(
        parser, "--data-subpath-expr", metavar="CLAIM:EXPR", help="of this claim only the folder that EXPR says, e.g. `$(ARENA_POD_NAME)`"
    )
    many_flag(parser, "--data-dir", metavar="HOST[:PATH]", help="mount a folder of the node")
    many_flag(parser, "--temp-dir", metavar="NAME:PATH", help="mount an empty folder that ends with its pod")
    many_flag(parser, "--temp-dir-subpath-expr", metavar="NAME:EXPR", help="of this empty folder only the one that EXPR says")
    many_flag(parser, "--config-file", metavar="FILE[:PATH]", help="mount a file of this machine")


def add_custom_flags(parser: argparse.ArgumentParser) -> None:
    text_flag(parser, "--port", default="0", metavar="PORT", help="port of gRPC (0: none)")
    text_flag(parser, "--restful-port", twin="restfulPort", default="0", metavar="PORT", help="port of HTTP (0: none)")
    text_flag(parser, "--metrics-port", default="0", metavar="PORT", help="port of metrics (0: none)")
    text_flag(parser, "--max-surge", metavar="N", help="how many pods more than --replicas an update may start: a number or a percentage")
    text_flag(parser, "--max-unavailable", metavar="N", help="how many pods may be missing during an update: a number or a percentage")
    for probe in PROBES:
        text_flag(parser, f"--{probe}-probe-action", metavar="ACTION", help="how it is asked: httpGet, exec, grpc or tcpSocket")
        many_flag(
            parser, f"--{probe}-probe-action-option", metavar="OPTION", help="e.g. `path: /healthz`, `port: 8080`, `command=cat /ready`"
        )
        many_flag(parser, f"--{probe}-probe-option", metavar="OPTION", help="e.g. `initialDelaySeconds: 3`")


def add_tensorflow_flags(parser: argparse.ArgumentParser) -> None:
    text_flag(parser, "--port", default="8500", metavar="PORT", help="port of gRPC (default 8500)")
    text_flag(parser, "--restful-port", twin="restfulPort", default="8501", metavar="PORT", help="port of HTTP (default 8501)")
    text_flag(parser, "--model-path", twin="modelPath", metavar="PATH", help="where the container finds the model")
    text_flag(
        parser, "--model-config-file", twin="modelConfigFile", metavar="PATH", help="where the container finds a list of models, instead"
    )
    text_flag(parser, "--monitoring-config-file", metavar="PATH", help="where the container finds the settings of its metrics")
    policy = parser.add_argument("--version-policy", default="", metavar="POLICY", help=argparse.SUPPRESS)
    parser.add_argument("--versionPolicy", action=Twin, dest="version_policy", replaced_by=policy)


def add_triton_flags(parser: argparse.ArgumentParser) -> None:
    text_flag(parser, "--model-repository", metavar="PATH", help="where the container finds its models")
    text_flag(parser, "--http-port", default="8000", metavar="PORT", help="port of HTTP (default 8000)")
    text_flag(parser, "--grpc-port", default="8001", metavar="PORT", help="port of gRPC (default 8001)")
    text_flag(parser, "--metrics-port", default="8002", metavar="PORT", help="port of metrics (default 8002)")
    truth_flag(parser, "--allow-metrics", help="serve metrics")
    many_flag(parser, "--load-model", metavar="MODEL", help="load only this model of the repository")
    text_flag(parser, "--extend-command", metavar="WORDS", help="more arguments for tritonserver")
    text_flag(parser, "--backend", metavar="NAME", help="taken, and without effect: a model's own configuration names its backend")


def add_kserve_flags(parser: argparse.ArgumentParser) -> None:
    text_flag(
        parser,
        "--model-format",
        metavar="FORMAT[:VERSION]",
        help="format of the model, e.g. `sklearn`, `pytorch:2`: KServe finds the server",
    )
    text_flag(parser, "--runtime", metavar="NAME", help="this serving runtime")
    text_flag(parser, "--runtime-version", metavar="VERSION", help="version of the runtime")
    text_flag(parser, "--storage-uri", metavar="URI", help="where the model lies")
    text_flag(parser, "--protocol-version", metavar="VERSION", help="protocol of the model server: v1, v2, grpc-v1, grpc-v2")
    text_flag(parser, "--port", default="0", metavar="PORT", help="port of the container")
    text_flag(parser, "--metrics-port", default="8080", metavar="PORT", help="port of metrics (taken; KServe knows it)")
    text_flag(parser, "--min-replicas", default="1", metavar="N", help="the fewest pods (0: none while nobody asks)")
    text_flag(parser, "--max-replicas", metavar="N", help="the most pods")
    text_flag(parser, "--scale-target", metavar="N", help="what the autoscaler aims at")
    text_flag(parser, "--scale-metric", metavar="METRIC", help="what it looks at: cpu, memory, concurrency, rps")
    text_flag(parser, "--container-concurrency", metavar="N", help="how many requests a container takes at once")
    text_flag(parser, "--timeout", metavar="SECONDS", help="how long a request may take")
    text_flag(
        parser, "--canary-traffic-percent", default="-1", metavar="N", help="percent of the traffic for the newest revision (-1: all)"
    )
    truth_flag(parser, "--enable-prometheus", help="let Prometheus read the pods' metrics")
    many_flag(parser, "--security-context", metavar="KEY=VALUE", help="a field of the pods' security context, e.g. `runAsUser=1000`")
    text_flag(parser, "--affinity-policy", default="none", metavar="POLICY", help="none, spread or binpack")
    text_flag(parser, "--affinity-constraint", default="preferred", metavar="HOW", help="preferred or required")
