"""A serving job as a person asked for it, as values, before it is any Kubernetes object.

Nothing here is checked any more: who makes a `ServingSpec` (the flags of `serve`) has refused bad values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fairlead.kinds.parts.job_spec import ConfigFile, JobToleration, SecretEnv


class Mount(Struct, frozen=True):
    """A claim or an empty folder by its name, where a container sees it, and which part of it (an expression
    over its environment).
    """

    name: str
    path: str
    subpath: str = ""


class ServingPorts(Struct, frozen=True):
    """0: not served."""

    grpc: int = 0
    http: int = 0
    metrics: int = 0


class KServeSpec(Struct, frozen=True, kw_only=True):
    """What only KServe's predictor knows; None and "" leave a field out."""

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

    `command` runs by `shell`; without one the image decides. `probes` as Kubernetes spells them.

    `limits` are cpu and memory; `surge` and `unavailable` numbers or percents, "" for Kubernetes' own.
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
