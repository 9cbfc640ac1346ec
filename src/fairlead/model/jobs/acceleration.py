"""A cache of a claim: what is chosen for it, and what must be known before it is made."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from fairlead.model.jobs.datasets import (
    Claim,
    ControllerState,
    DataRuntime,
    DataSet,
    SecretOption,
)
from fairlead.model.node import Node
from fairlead.model.pod import Owner

Medium = Literal["MEM", "SSD"]


class CachedSource(Struct, frozen=True):
    """A source that is no claim. `uri`: `s3://…`, `oss://…`, `https://…`, …; `options`: name and
    value, none of which is a secret; `secrets`: options whose values Fluid reads from Secrets.
    """

    uri: str
    options: tuple[tuple[str, str], ...] = ()
    secrets: tuple[SecretOption, ...] = ()

    @property
    def secret_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.secret for each in self.secrets))


class Acceleration(Struct, frozen=True):
    """A data set of Fluid over a claim, or another source, cached by Alluxio.

    `name`: of the data set and of its runtime. `folder`: of the claim, "" = all of it. `workers`:
    caches, one on a node. `quota`: bytes of each cache. `node`: master and workers run there; "" =
    on any node. `source`: instead of a claim, which then is "".
    """

    namespace: str
    claim: str
    name: str
    folder: str = ""
    workers: int = 1
    medium: Medium = "MEM"
    quota: int = 0
    node: str = ""
    source: CachedSource | None = None


class AccelerationFacts(Struct, frozen=True):
    """What a cluster has, for one claim and one name; None = it may not be read.

    `claims`, `data_sets`, `runtimes`: of the claim's namespace. `has_kinds`: the API server serves
    data sets and Alluxio's runtimes. `controllers`: all Deployments of Fluid. `csi_nodes`: nodes
    with Fluid's volume driver. `has_volume`: a volume named `NAMESPACE-NAME` exists. `has_release`:
    a Helm release of that name exists. `users`: nodes of the running pods that mount the claim.
    `is_governed`: pods of the namespace count in quota. `exclusive`: nodes with a worker of a data
    set of the namespace that shares no node.
    """

    claim: Claim | None
    claims: tuple[Claim, ...] = ()
    data_sets: tuple[DataSet, ...] = ()
    runtimes: tuple[DataRuntime, ...] = ()
    nodes: tuple[Node, ...] | None = None
    has_kinds: bool = False
    controllers: tuple[ControllerState, ...] | None = None
    csi_nodes: frozenset[str] | None = None
    has_volume: bool | None = None
    has_release: bool | None = None
    users: frozenset[str] = frozenset()
    is_governed: bool = False
    exclusive: frozenset[str] = frozenset()


class DataUser(Struct, frozen=True):
    """A pod that mounts a claim and has not ended. `node`: "" while it waits. `owner`: its
    controller, or what made that, as far as it was read; None = a person made the pod.
    """

    namespace: str
    name: str
    claim: str
    node: str = ""
    owner: Owner | None = None

    @property
    def key(self) -> str:
        """As `Pod.key`."""
        return f"{self.namespace}/{self.name}"
