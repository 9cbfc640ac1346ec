"""What can be asked of one kind of job only? The part of a job spec that means nothing to the other kinds.

What a newcomer gets wrong: as in `job_spec`, nothing here is checked any more; numbers are sensible and words are known.
"""

from __future__ import annotations

from msgspec import Struct


class RayAutoscaler(Struct, frozen=True, kw_only=True):
    """The container beside the head that adds and removes workers. An empty `image` is Ray's own."""

    cpu: str = "500m"
    memory: str = "512Mi"
    image: str = ""
    pull_policy: str = "IfNotPresent"
    idle_seconds: int = 60
    mode: str = "Default"


class RayOptions(Struct, frozen=True, kw_only=True):
    """A Ray cluster for one program. `hosts`: pods of each worker; None leaves a bound of the autoscaler to the operator.

    `is_shut_down`: whether the cluster goes when the program has ended, `JobSpec.ttl_seconds` later.
    """

    version: str = ""
    head_service: str = "ClusterIP"
    min_workers: int = 0
    max_workers: int | None = None
    hosts: int = 1
    autoscaler: RayAutoscaler | None = None
    pre_stop: str = "ray stop"
    is_shut_down: bool = True
    is_suspended: bool = False


class VolcanoOptions(Struct, frozen=True, kw_only=True):
    """One task for each of `images`, all of the same size: replicas, GPUs and resources of the spec's worker."""

    images: tuple[str, ...] = ()
    task_name: str = "task"
    port: int = 2222
    min_available: int = 1
    queue: str = "default"


class SparkOptions(Struct, frozen=True, kw_only=True):
    """`jar` is what is run, by its `main_class`; memory as Spark writes sizes (`500m` are 500 MiB)."""

    main_class: str = ""
    jar: str = ""
    version: str = "3.5.0"
    arguments: tuple[str, ...] = ()
    executors: int = 1
    driver_cores: int = 1
    driver_memory: str = "500m"
    executor_cores: int = 1
    executor_memory: str = "500m"


class SshKeys(Struct, frozen=True):
    """A pair of the job's own, as OpenSSH writes keys."""

    private: str
    public: str


class ElasticOptions(Struct, frozen=True, kw_only=True):
    """A launcher that reaches its workers by ssh. Bounds of None: as many workers as there are at the start, always.

    `restart`, `worker_restart`: the operator's policies, "" for its own; `backoff`: how often it starts the job again where it does.
    `keys`: None where a Secret that is there already (`ssh_secret`) has them.
    """

    min_workers: int | None = None
    max_workers: int | None = None
    restart: str = ""
    backoff: int = 6
    worker_restart: str = ""
    ssh_secret: str = ""
    keys: SshKeys | None = None


class CronOptions(Struct, frozen=True, kw_only=True):
    """When the job is made, and until when (`deadline`, epoch seconds). `concurrency` is Allow, Forbid or Replace."""

    schedule: str = ""
    concurrency: str = "Allow"
    is_suspended: bool = False
    deadline: float | None = None
    history_limit: int = 10


KindOptions = RayOptions | VolcanoOptions | SparkOptions | ElasticOptions | CronOptions
