"""The command lines and probes of TensorFlow Serving and Triton.

With shared GPU memory, TensorFlow needs its memory fraction in the command line, or it takes the
whole card. The device plugin sets the two amounts as environment variables, so the shell of the
container computes the fraction.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

from fairlead.kinds.serving.spec import ServingPorts

_MEMORY_PART: Final = (
    "--per_process_gpu_memory_fraction="
    """$(awk -v mine="$ALIYUN_COM_GPU_MEM_CONTAINER" -v card="$ALIYUN_COM_GPU_MEM_DEV" """
    """'BEGIN {printf "%.2f", mine / card}')"""
)


def tensorflow_command(
    ports: ServingPorts, *, name: str, path: str, config: str, monitoring: str, shares_memory: bool
) -> str:
    words = ["/usr/bin/tensorflow_model_server"]
    words += [f"--port={ports.grpc}"] * bool(ports.grpc)
    words += [f"--rest_api_port={ports.http}"] * bool(ports.http)
    words += (
        [_flag("model_config_file", config)]
        if config
        else [_flag("model_name", name), _flag("model_base_path", path)]
    )
    words += [_flag("monitoring_config_file", monitoring)] * bool(monitoring)
    return " ".join([*words, *[_MEMORY_PART] * shares_memory])


def triton_command(
    ports: ServingPorts, *, repository: str, models: Sequence[str], extension: str
) -> str:
    """`models`: the models to load; empty = all models of the repository."""
    has_metrics = "true" if ports.metrics else "false"
    words = ["tritonserver", f"--http-port={ports.http}", f"--grpc-port={ports.grpc}"]
    words += [f"--metrics-port={ports.metrics}"] * bool(ports.metrics) + [
        f"--allow-metrics={has_metrics}"
    ]
    words += [_flag("model-repository", repository)] * bool(repository)
    words += ["--model-control-mode=explicit"] * bool(models) + [
        _flag("load-model", model) for model in models
    ]
    return " ".join([*words, *[extension] * bool(extension)])


def tensorflow_probes(ports: ServingPorts) -> dict[str, Any]:
    return {
        "readiness": {
            "tcpSocket": {"port": ports.grpc or ports.http},
            "initialDelaySeconds": 15,
            "timeoutSeconds": 1,
        }
    }


def triton_probes(ports: ServingPorts) -> dict[str, Any]:
    """Loading models takes minutes: until the server is up once, only its liveness is probed."""
    return {
        "startup": {
            "httpGet": {"path": "/v2/health/live", "port": ports.http},
            "periodSeconds": 10,
            "failureThreshold": 180,
        },
        "liveness": {
            "httpGet": {"path": "/v2/health/live", "port": ports.http},
            "periodSeconds": 5,
            "failureThreshold": 30,
        },
        "readiness": {
            "httpGet": {"path": "/v2/health/ready", "port": ports.http},
            "periodSeconds": 5,
            "failureThreshold": 30,
        },
    }


def _flag(name: str, value: str) -> str:
    return f"--{name}={shlex.quote(value)}"
