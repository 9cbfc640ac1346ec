"""A serving job: a model that answers requests until it is deleted.

One version of it is one workload and the Services before it. It has no end and no status: how it fares is how
many of the pods it desires are available.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.pod import Pod
from fairlead.model.resources import NOTHING, Amounts
from fairlead.model.source import Source


class ServicePort(Struct, frozen=True, gc=False):
    """`node_port` is 0 when nodes do not answer for it."""

    name: str
    port: int
    node_port: int = 0


class Service(Struct, frozen=True, gc=False):
    """`balancer` is the address of its load balancer, "" without one.

    `cluster_ip` is "" or `None` when it has no address of its own.
    """

    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    cluster_ip: str = ""
    balancer: str = ""
    ports: tuple[ServicePort, ...] = ()


class ServingWorkload(Struct, frozen=True, gc=False):
    """What keeps the pods of a serving job: a Deployment, or an object whose operator makes Deployments.

    `url` only of the latter. `limits` are those of one pod.
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    replicas: int = 1
    available: int = 0
    limits: Amounts = NOTHING
    url: str = ""
    created_at: Moment | None = None


class Serving(Struct, frozen=True, gc=False):
    """`type` is the value of arena's label, e.g. `custom-serving`.

    `workers` are the Deployments: `workload` itself, or its operator's.
    """

    type: str
    name: str
    version: str
    workload: ServingWorkload
    workers: tuple[ServingWorkload, ...]
    services: tuple[Service, ...]
    pods: tuple[Pod, ...]

    @property
    def namespace(self) -> str:
        return self.workload.namespace


class ServingObjects(Struct, frozen=True):
    """What makes serving jobs, beside their pods. `sources` says how each kind of object was read."""

    workloads: tuple[ServingWorkload, ...] = ()
    services: tuple[Service, ...] = ()
    sources: Mapping[str, Source] = {}


class Claim(Struct, frozen=True, gc=False):
    """A persistent volume claim as people of arena see it: data."""

    namespace: str
    name: str
    access_modes: tuple[str, ...] = ()
    description: str = ""
    owner: str = ""
    created_at: Moment | None = None
    is_ready: bool = False


class FoundServings(Struct, frozen=True):
    """Serving jobs as they were found. `sources` says what could not be read.

    `share_units`: by node, how many units of `aliyun.com/gpu-mem` one of its cards has. `isolated`: by
    namespace that shows people their own jobs only, the id that ours have there.
    """

    servings: tuple[Serving, ...]
    share_units: Mapping[str, float]
    sources: Mapping[str, Source]
    taken_at: Moment
    isolated: Mapping[str, str] = {}


class FoundClaims(Struct, frozen=True):
    """Data volumes as they were found."""

    claims: tuple[Claim, ...]
    taken_at: Moment
