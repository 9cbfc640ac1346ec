"""A training job as a person asked for it, as values, before it is any Kubernetes object.

Every kind's manifest is made from it. Nothing here is checked any more: who makes a `JobSpec` (the flags of
`submit`, a job file) has refused bad values.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class RoleSpec(Struct, frozen=True, kw_only=True):
    """One role of a job. Empty values mean: what the job says.

    `resources` and `limits` are cpu and memory as Kubernetes writes them.
    """

    replicas: int = 0
    gpus: int = 0
    image: str = ""
    resources: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}
    port: int = 0
    selector: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    affinity_policy: str = "none"
    affinity_constraint: str = "preferred"


class JobToleration(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """As Kubernetes spells it."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SecretEnv(Struct, frozen=True):
    name: str
    secret: str
    key: str


class ConfigFile(Struct, frozen=True):
    """A file of the person's machine, by its content, and where a container sees it (absolute)."""

    path: str
    content: bytes


class CodeSync(Struct, frozen=True):
    """`mode` is git or rsync; the code is copied by an init container."""

    mode: str
    source: str
    image: str


class Tensorboard(Struct, frozen=True):
    image: str
    logdir: str


class JobSpec(Struct, frozen=True, kw_only=True):
    """A training job.

    `user` is empty when nobody knows who submits. Times are whole seconds; None leaves a field out.

    `chief` is the role that leads where a kind has one that is sized by itself (a TFJob's chief, a RayJob's
    head); of `launcher` only its selector and annotations are said. `options` are what only the module of one
    kind knows.
    """

    name: str
    namespace: str = "default"
    user: str = ""
    image: str = ""
    shell: str = "sh"
    command: str = ""
    working_dir: str = ""
    worker: RoleSpec = RoleSpec()
    ps: RoleSpec = RoleSpec()
    chief: RoleSpec = RoleSpec()
    evaluator: RoleSpec = RoleSpec()
    launcher: RoleSpec = RoleSpec()
    devices: Mapping[str, int] = {}
    gpu_memory: int = 0
    gpu_core: int = 0
    env: Mapping[str, str] = {}
    secret_env: tuple[SecretEnv, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    claims: tuple[tuple[str, str], ...] = ()
    host_dirs: tuple[tuple[str, str], ...] = ()
    config_files: tuple[ConfigFile, ...] = ()
    selector: Mapping[str, str] = {}
    tolerations: tuple[JobToleration, ...] = ()
    priority: str = ""
    scheduler: str = ""
    service_account: str = ""
    restart: str = ""
    is_queued: bool = False
    is_gang: bool = False
    has_rdma: bool = False
    has_gpu_topology: bool = False
    mounts_on_launcher: bool = False
    host_network: bool = False
    host_ipc: bool = False
    host_pid: bool = False
    pull_policy: str = "Always"
    pull_secrets: tuple[str, ...] = ()
    shared_memory: str = "2Gi"
    clean_policy: str = ""
    retry: int = 0
    running_seconds: int | None = None
    starting_seconds: int | None = None
    ttl_seconds: int | None = None
    nproc_per_node: str = ""
    success_policy: str = ""
    role_sequence: str = ""
    sync: CodeSync | None = None
    tensorboard: Tensorboard | None = None
    model_name: str = ""
    model_source: str = ""
    options: Struct | None = None
