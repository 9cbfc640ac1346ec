"""The parts of a scenario, as values.

A scenario contains what a company has and wants (machines, teams, quotas, services, jobs that keep
coming), never what happens: that follows from it and the seed. Field names here are the keys of the
TOML file; `docs/how-to/scenarios.md` explains them by example.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

JobKind = Literal["mpijob", "tfjob", "pytorchjob", "job"]
LoadName = Literal["training", "input-bound", "inference", "notebook", "idle"]


class Duration:
    """A length of time, written `90s`, `20m`, `1h30m` or `2d`."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"Duration({self.seconds:g})"


Span = tuple[Duration, Duration]
"""Shortest and longest; the seed draws between them."""


class PoolTaint(Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class NodePool(Struct, frozen=True, forbid_unknown_fields=True):
    """`count` equal nodes, named `<name>-1` …, or those of `names`.

    Each has `gpus` cards of `gpu_model` (`gpus/cards.py`), and with `mig` each card is divided into
    instances of the profiles.

    A machine's address is that of `addresses`, else the one that its name ends in
    (`cn-beijing.192.168.1.151`), else follows from its number.
    """

    name: str = ""
    count: int = 1
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    kubelet_version: str = "v1.36.3"
    role: str = ""
    cpu: int = 16
    memory: str = "64Gi"
    pods: int = 110
    gpu_model: str = ""
    gpus: int = 0
    shared: bool = False
    mig: tuple[str, ...] = ()
    instance_type: str = ""
    zone: str = ""
    labels: Mapping[str, str] = {}
    taints: tuple[PoolTaint, ...] = ()
    ready: bool = True
    cordoned: bool = False


class Xid(Struct, frozen=True, forbid_unknown_fields=True):
    """A driver error on a card.

    `node` and `gpu` (index) name it, `at` counts from the beginning of the history.
    """

    node: str
    gpu: int
    code: int
    at: Duration


class Hang(Struct, frozen=True, forbid_unknown_fields=True):
    """A card whose driver calls hang from `at` (of the history) on and, with `until`, return: it
    has no new values meanwhile.
    """

    node: str
    gpu: int
    at: Duration
    until: Duration | None = None


class ForeignProcess(Struct, frozen=True, forbid_unknown_fields=True):
    """A program on a card without a grant: a user logged in on the machine.

    `memory` as a quantity.
    """

    node: str
    gpu: int
    memory: str
    at: Duration
    until: Duration | None = None
    load: LoadName = "training"


class Outage(Struct, frozen=True, forbid_unknown_fields=True):
    """A node whose kubelet stops reporting `at` and, with `until`, comes back.

    Times count from the beginning of the history.
    """

    node: str
    at: Duration
    until: Duration | None = None


class Team(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    namespaces: tuple[str, ...]
    users: tuple[str, ...] = ()
    count: int = 1


class Quota(Struct, frozen=True, forbid_unknown_fields=True):
    """One node of the quota tree.

    `path` is dotted and unique (`root.vision`); a key absent from `max` is unlimited.
    """

    path: str
    min: Mapping[str, str | int] = {}
    max: Mapping[str, str | int] = {}
    namespaces: tuple[str, ...] = ()
    attributes: Mapping[str, str] = {}
    count: int = 1


class PriorityClass(Struct, frozen=True, forbid_unknown_fields=True):
    """`global_default`: for pods that name no class."""

    name: str
    value: int
    global_default: bool = False
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"


class ContainerRequests(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one container requests (= its limits).

    `gpu_memory` is in units of aliyun.com/gpu-mem, `mig` the profile of one MIG instance.

    `oversized`: more than any machine has, on purpose: it waits for ever.
    """

    cpu: str = "1"
    memory: str = "2Gi"
    gpus: int = 0
    gpu_memory: int = 0
    mig: str = ""
    oversized: bool = False


class ScenarioService(ContainerRequests, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Deployment that exists from the beginning.

    `load` is how its containers use the GPUs they hold.
    """

    name: str
    namespace: str
    image: str
    replicas: int = 1
    load: LoadName | None = None
    labels: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    priority_class: str = ""
    count: int = 1


class StandingPod(Struct, frozen=True, forbid_unknown_fields=True):
    """A pod without an owner that is there from the beginning, under exactly this name."""

    name: str
    namespace: str
    image: str = "registry.example.com/system/pause:3.10"
    containers: int = 1
    host_network: bool = False


class NetworkService(Struct, frozen=True, forbid_unknown_fields=True):
    """A Service that exists from the beginning.

    `ports` as kubectl prints them: `443/TCP`, `9090:30090/TCP`.
    """

    name: str
    namespace: str
    ports: tuple[str, ...]
    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    cluster_ip: str = ""


class Stream(ContainerRequests, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Jobs of one sort that keep coming, on average one per `every`, while fewer than `max_waiting`
    of them wait and `max_active` exist.

    `gpus` and the other asks are per worker. `standing` of them are there when the history begins.
    """

    name: str
    namespace: str
    kind: JobKind
    every: Duration
    runs: Span
    user: str = ""
    image: str = "train"
    workers: tuple[int, ...] = (1,)
    parameter_servers: int = 0
    load: LoadName = "training"
    failing: float = 0.0
    crashing: float = 0.0
    backoff_limit: int = 2
    ttl: Duration = Duration(3600)
    max_waiting: int = 2
    max_active: int = 20
    standing: int = 0
    priority_class: str = ""
    node_selector: Mapping[str, str] = {}
    count: int = 1


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """`history` is how long the world has already run when a person first sees it; if `settled`,
    services run from its first instant.

    `load_balancers`: whether a cloud gives Services of that type an address outside; without one
    they wait for ever.
    """

    title: str
    node_pools: tuple[NodePool, ...]
    description: str = ""
    history: Duration = Duration(0)
    settled: bool = False
    teams: tuple[Team, ...] = ()
    quota: tuple[Quota, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    services: tuple[ScenarioService, ...] = ()
    pods: tuple[StandingPod, ...] = ()
    network_services: tuple[NetworkService, ...] = ()
    load_balancers: bool = False
    streams: tuple[Stream, ...] = ()
    xids: tuple[Xid, ...] = ()
    hangs: tuple[Hang, ...] = ()
    foreign_processes: tuple[ForeignProcess, ...] = ()
    outages: tuple[Outage, ...] = ()

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(namespace for team in self.teams for namespace in team.namespaces)

    @property
    def is_copy(self) -> bool:
        """Whether its machines are copied from another cluster: no pool of its own lists them."""
        return not self.node_pools


COUNTED = ("teams", "quota", "services", "streams")
"""Sections whose entries may stand for many equal ones."""


def expanded(scenario: Scenario) -> Scenario:
    """The scenario in which an entry with `count` n stands n times: `-1` … `-n` is added to its
    name or path, and to its namespaces.
    """
    return replace(
        scenario,
        **{
            section: tuple(one for item in getattr(scenario, section) for one in _copies(item))
            for section in COUNTED
        },
    )


def _copies(item: Any) -> list[Any]:
    if item.count == 1:
        return [item]
    own = [key for key in ("name", "path", "namespace", "namespaces") if hasattr(item, key)]
    return [
        replace(item, count=1, **{key: _numbered(getattr(item, key), number) for key in own})
        for number in range(1, item.count + 1)
    ]


def _numbered(value: str | tuple[str, ...], number: int) -> str | tuple[str, ...]:
    return (
        f"{value}-{number}"
        if isinstance(value, str)
        else tuple(f"{part}-{number}" for part in value)
    )


def pool_nodes(pool: NodePool) -> list[str]:
    """The names of a pool's machines."""
    return list(pool.names) or [f"{pool.name}-{number}" for number in range(1, pool.count + 1)]


def node_address(pool: NodePool, name: str, number: int) -> str:
    """The address of the `number`-th machine of the cluster (from 1)."""
    if pool.addresses:
        return pool.addresses[pool.names.index(name)]
    high, low = divmod(number, 250)
    found = re.search(r"(?:^|\.|-)(\d+\.\d+\.\d+\.\d+)$", name)
    return found[1] if found else f"192.168.{high}.{low + 10}"
