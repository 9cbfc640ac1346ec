"""A serving job as values, as the user asked for it: the input of its manifests.

Values are not checked here: the code that makes a `ServingSpec` (the flags of `serve`) has refused
bad values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fairlead.kinds.parts.job_spec import ConfigFile, JobToleration, SecretEnv


class Mount(Struct, frozen=True):
    """A claim or empty directory by its name, its path in the container, and the part of it that
    is mounted (an expression over the container's environment).
    """

    name: str
    path: str
    subpath: str = ""


class ServingPorts(Struct, frozen=True):
    """Port numbers; 0 = not served."""

    grpc: int = 0
    http: int = 0
    metrics: int = 0


class KServeSpec(Struct, frozen=True, kw_only=True):
    """Values for KServe's predictor only; None and "" leave a field out."""

    model_format: str = ""
    model_format_version: str = ""
    runtime: str = ""
    runtime_version: str = ""
    storage_uri: str = ""
    protocol_version: str = ""
    min_replicas: int = 1
    max_replicas: int | None = None
    scale_target: int | None = None
    scale_metric: str = ""
    container_concurrency: int | None = None
    timeout: int | None = None
    canary_percent: int | None = None
    has_prometheus: bool = False
    security_context: Mapping[str, Any] = {}
    affinity_policy: str = "none"
    affinity_constraint: str = "preferred"


class ServingSpec(Struct, frozen=True, kw_only=True):
    """`type` is the value of arena's label.

    `command` is run by `shell`; an empty one leaves the image's. `probes`: with Kubernetes' keys.
    `limits`: cpu and memory; `surge` and `unavailable`: numbers or percentages, "" = Kubernetes'
    default.
    """

    type: str
    name: str
    version: str
    namespace: str = "default"
    user: str = ""
    image: str = ""
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    replicas: int = 1
    gpus: int = 0
    gpu_memory: int = 0
    gpu_core: int = 0
    devices: Mapping[str, int] = {}
    limits: Mapping[str, str] = {}
    shared_memory: str = ""
    env: Mapping[str, str] = {}
    secret_env: tuple[SecretEnv, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    selector: Mapping[str, str] = {}
    tolerations: tuple[JobToleration, ...] = ()
    claims: tuple[Mount, ...] = ()
    empty_dirs: tuple[Mount, ...] = ()
    host_dirs: tuple[tuple[str, str], ...] = ()
    config_files: tuple[ConfigFile, ...] = ()
    shell: str = "sh"
    command: str = ""
    ports: ServingPorts = ServingPorts()
    probes: Mapping[str, Mapping[str, Any]] = {}
    surge: str = ""
    unavailable: str = ""
    has_istio: bool = False
    is_exposed: bool = False
    model_name: str = ""
    model_version: str = ""
    kserve: KServeSpec = KServeSpec()
