"""A pod: who owns it, what it asks for, where it is, how its containers fare.

A pod whose object still exists holds what it holds, also while it is terminating; only Succeeded and Failed
let go (`is_holding`, decision 2). Every reader asks that one property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.gpu import Grant
from fairlead.model.moment import Moment
from fairlead.model.node import Condition
from fairlead.model.node_choice import ANYWHERE, NodeChoice
from fairlead.model.resources import NOTHING, Amounts, largest_of, sum_of

GrantsByContainer = Mapping[str, tuple[Grant, ...]]


class PodPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, value: object) -> PodPhase:
        """A word that nobody knows, as the API server's pods take it."""
        return cls.UNKNOWN


class ContainerState(StrEnum):
    """`UNREPORTED`: nothing is reported."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"
    UNREPORTED = ""

    @classmethod
    def _missing_(cls, value: object) -> ContainerState:
        """A word that nobody knows tells nothing."""
        return cls.UNREPORTED


_FINISHED: Final = (PodPhase.SUCCEEDED, PodPhase.FAILED)
_HAS_RUN: Final = (ContainerState.RUNNING, ContainerState.TERMINATED)
_PENDING: Final = PodPhase.PENDING


class Owner(Struct, frozen=True, gc=False):
    kind: str
    name: str
    uid: str
    controller: bool = False
    api_version: str = ""


class Container(Struct, frozen=True, gc=False):
    """One container of the spec. `restartable` marks an init container that keeps running (a sidecar)."""

    name: str
    image: str = ""
    requests: Amounts = NOTHING
    limits: Amounts = NOTHING
    restartable: bool = False


class ContainerStatus(Struct, frozen=True, gc=False):
    """`started_at`, `finished_at` of the present or last run."""

    name: str
    ready: bool = False
    restarts: int = 0
    state: ContainerState = ContainerState.UNREPORTED
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started: bool = False
    started_at: Moment | None = None
    finished_at: Moment | None = None
    last_finished_at: Moment | None = None

    @property
    def has_begun(self) -> bool:
        return self.state in _HAS_RUN


class Pod(Struct, frozen=True, gc=False):
    """`node` is "" while unbound.

    `annotations` holds only keys that Fairlead reads. `grants` by container name. The key "" of `grants`
    speaks of the whole pod (GPU topology names no container). `memory_limits_mib` by container: limits of GPU
    memory below its grant, as its owner wished. `node_choice` is told only of pods that have no node yet, or
    name a resource of shared GPUs. `whole`: what is asked for the pod as a whole, which counts in the place
    of what its containers ask. `grace_seconds`: how long it may take to stop. `never_preempts`: its
    `preemptionPolicy` is `Never`.
    """

    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owners: tuple[Owner, ...] = ()
    node: str = ""
    phase: PodPhase = PodPhase.PENDING
    reason: str = ""
    message: str = ""
    pod_ip: str = ""
    host_ip: str = ""
    priority: int = 0
    priority_class: str = ""
    scheduler: str = ""
    gates: tuple[str, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Amounts = NOTHING
    statuses: tuple[ContainerStatus, ...] = ()
    init_statuses: tuple[ContainerStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    created_at: Moment | None = None
    started_at: Moment | None = None
    deleted_at: Moment | None = None
    nominated_node: str = ""
    grants: GrantsByContainer = {}
    memory_limits_mib: Mapping[str, int] = {}
    node_choice: NodeChoice = ANYWHERE
    whole: Amounts = NOTHING
    grace_seconds: int | None = None
    never_preempts: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_finished(self) -> bool:
        return self.phase in _FINISHED

    @property
    def has_started(self) -> bool:
        """Whether a container of it has run on its node.

        The phase says so; before it, while init containers run, the statuses do.
        """
        return self.phase != _PENDING or any(each.has_begun for each in (*self.init_statuses, *self.statuses))

    @property
    def is_holding(self) -> bool:
        """Bound to a node and not finished: it holds its devices and its quota, terminating or not."""
        return bool(self.node) and not self.is_finished

    @property
    def held_since(self) -> Moment | None:
        """When it was bound: from then on it holds what it asks for. None while it is not.

        Where no condition says so, the kubelet's start of it is the nearest word.
        """
        if not self.node:
            return None
        bound = (each.at for each in self.conditions if each.type == "PodScheduled" and each.status == "True")
        return next(bound, None) or self.started_at or self.created_at

    @property
    def controller(self) -> Owner | None:
        return controller_of(self.owners)

    @property
    def requests(self) -> Amounts:
        """What the scheduler books for the pod (`needed_by` over requests, or `whole`, plus overhead)."""
        if self.whole:
            parts = needed_by(self.containers, self.init_containers, lambda container: container.requests)
            return sum_of(({**parts, **self.whole}, self.overhead))
        return needed_by(self.containers, self.init_containers, lambda container: container.requests, self.overhead)

    @property
    def limits(self) -> Amounts:
        """What the pod may use at most.

        Extended resources such as GPUs are always requested as their limit.
        """
        return needed_by(self.containers, self.init_containers, lambda container: container.limits)


def controller_of(owners: Sequence[Owner]) -> Owner | None:
    """The one that controls the object, else the first."""
    for owner in owners:
        if owner.controller:
            return owner
    return owners[0] if owners else None


def needed_by(
    containers: Sequence[Container],
    init_containers: Sequence[Container],
    amounts: Callable[[Container], Amounts],
    overhead: Amounts = NOTHING,
) -> Amounts:
    """What a pod needs at its peak.

    The larger of all app containers plus sidecars, and each init step plus the sidecars before it.

    >>> app, init = Container("a", requests={"cpu": 500}), Container("i", requests={"cpu": 800})
    >>> needed_by([app, app], [init], lambda c: c.requests)
    {'cpu': 1000}
    """
    if not init_containers and not overhead:
        return amounts(containers[0]) if len(containers) == 1 else sum_of(amounts(container) for container in containers)
    sidecars: Amounts = NOTHING
    peaks: list[Amounts] = []
    for container in init_containers:
        if container.restartable:
            sidecars = sum_of((sidecars, amounts(container)))
            peaks.append(sidecars)
        else:
            peaks.append(sum_of((sidecars, amounts(container))))
    running = sum_of((sidecars, *(amounts(container) for container in containers)))
    return sum_of((largest_of((running, *peaks)), overhead))


def without_report(pod: Pod) -> Pod:
    """A pod without what its kubelet reports beside phase and conditions: most of its memory.

    The same pod where there is none of that.
    """
    if not (pod.statuses or pod.init_statuses or pod.host_ip or pod.pod_ip or pod.reason or pod.message):
        return pod
    return structs.replace(pod, statuses=(), init_statuses=(), host_ip="", pod_ip="", reason="", message="")
