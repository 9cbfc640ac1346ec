"""A serving job: a model that answers requests until it is deleted.

One version of it has one workload and its Services. It has no end and no status word: its state is
the number of available pods out of those that it wants.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.pod import Pod
from fairlead.model.resources import NOTHING, Amounts
from fairlead.model.source import Source


class ServicePort(Struct, frozen=True, gc=False):
    """`node_port` is 0 if nodes do not forward a port to it."""

    name: str
    port: int
    node_port: int = 0


class Service(Struct, frozen=True, gc=False):
    """`balancer`: the address of its load balancer, "" = none.

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
    """The owner of a serving job's pods: a Deployment, or an object whose operator creates some.

    `url` is set for the latter only. `limits`: of one pod.
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
    """`type` is the value of arena's label, such as `custom-serving`.

    `workers`: the Deployments, which are `workload` itself or its operator's.
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
    """The objects of serving jobs except their pods. `sources`: how well each kind was read."""

    workloads: tuple[ServingWorkload, ...] = ()
    services: tuple[Service, ...] = ()
    sources: Mapping[str, Source] = {}


class FoundServings(Struct, frozen=True):
    """Serving jobs, as read. `sources`: what could not be read.

    `share_units`: units of `aliyun.com/gpu-mem` of one card, by node. `isolated`: for namespaces
    that show users only their own jobs, the id on this user's jobs there.
    """

    servings: tuple[Serving, ...]
    share_units: Mapping[str, float]
    sources: Mapping[str, Source]
    taken_at: Moment
    isolated: Mapping[str, str] = {}
