"""A training job as values, as the user asked for it: the input of every kind's manifest.

Values are not checked here: the code that makes a `JobSpec` (the flags of `submit`, a job file) has
refused bad values.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class RoleSpec(Struct, frozen=True, kw_only=True):
    """One role of a job. An empty value means that the job's own value applies.

    `resources` and `limits`: cpu and memory as Kubernetes quantities.
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
    """A toleration with the keys of Kubernetes."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class SecretEnv(Struct, frozen=True):
    name: str
    secret: str
    key: str


class ConfigFile(Struct, frozen=True):
    """A file of the user's machine with its content; `path`: absolute path in the container."""

    path: str
    content: bytes


class CodeSync(Struct, frozen=True):
    """`mode` is git or rsync; an init container copies the code."""

    mode: str
    source: str
    image: str


class Tensorboard(Struct, frozen=True):
    image: str
    logdir: str


class JobSpec(Struct, frozen=True, kw_only=True):
    """A training job.

    `user` is empty when the submitter is unknown. Times are whole seconds; None leaves a field out.
    `chief`: the leading role in kinds that size it separately (a TFJob's chief, a RayJob's head);
    of `launcher` only selector and annotations are used. `options`: values for the module of one
    kind only.
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
