"""A pod: its owners, its requests, its node, and the status of its containers.

A pod holds its resources until it is Succeeded or Failed, or its object is gone; also while it is
terminating (`is_holding`, decision 2). All rules use this property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.gpu import Grant
from fairlead.model.moment import Moment
from fairlead.model.node import Condition
from fairlead.model.node_choice import ANY_NODE, NodeChoice
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
        """The phase for an unknown word of the API server."""
        return cls.UNKNOWN


class ContainerState(StrEnum):
    """`UNREPORTED`: the kubelet has reported no state."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"
    UNREPORTED = ""

    @classmethod
    def _missing_(cls, value: object) -> ContainerState:
        """The state for an unknown word: UNREPORTED."""
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
    """One container of the spec.

    `restartable`: an init container that keeps running (a sidecar).
    """

    name: str
    image: str = ""
    requests: Amounts = NOTHING
    limits: Amounts = NOTHING
    restartable: bool = False


class ContainerStatus(Struct, frozen=True, gc=False):
    """`started_at`, `finished_at`: of the present run, or else the last one."""

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
    """`node` is "" while the pod is not bound.

    `annotations` has only keys that Fairlead reads. `grants` by container name; the key "" is for
    the whole pod (GPU topology names no container). `memory_limits_mib` by container: limits of GPU
    memory below its grant, which the owner set. `node_choice` is set only for pods that have no
    node yet, or request shared GPUs. `whole`: resources for the pod as a whole, which count instead
    of its containers'. `grace_seconds`: how long it may take to stop. `never_preempts`: its
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
    node_choice: NodeChoice = ANY_NODE
    whole: Amounts = NOTHING
    grace_seconds: int | None = None
    never_preempts: bool = False
    claims: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_finished(self) -> bool:
        return self.phase in _FINISHED

    @property
    def has_started(self) -> bool:
        """Whether a container of the pod has run on its node.

        The phase shows it; while init containers run, only the statuses do.
        """
        return self.phase != _PENDING or any(
            each.has_begun for each in (*self.init_statuses, *self.statuses)
        )

    @property
    def is_holding(self) -> bool:
        """Whether it is bound and not finished.

        Then it holds its devices and quota, even while terminating.
        """
        return bool(self.node) and not self.is_finished

    @property
    def held_since(self) -> Moment | None:
        """When it was bound: from then on it holds what it requests. None while it is not bound.

        Without such a condition the start by the kubelet is used.
        """
        if not self.node:
            return None
        bound = (
            each.at
            for each in self.conditions
            if each.type == "PodScheduled" and each.status == "True"
        )
        return next(bound, None) or self.started_at or self.created_at

    @property
    def controller(self) -> Owner | None:
        return controller_of(self.owners)

    @property
    def requests(self) -> Amounts:
        """The amounts that the scheduler reserves.

        `needed_by` over requests, or `whole`, plus overhead.
        """
        if self.whole:
            parts = needed_by(
                self.containers, self.init_containers, lambda container: container.requests
            )
            return sum_of(({**parts, **self.whole}, self.overhead))
        return needed_by(
            self.containers,
            self.init_containers,
            lambda container: container.requests,
            self.overhead,
        )

    @property
    def limits(self) -> Amounts:
        """The amounts that the pod may use at most.

        For extended resources such as GPUs the request is always equal to the limit.
        """
        if len(self.containers) == 1 and not self.init_containers:  # nearly every pod
            return self.containers[0].limits
        return needed_by(self.containers, self.init_containers, lambda container: container.limits)


def controller_of(owners: Sequence[Owner]) -> Owner | None:
    """The owner that controls the object, else the first; None without owners."""
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
    """The highest amounts that a pod needs at one time.

    This is the larger of all app containers plus sidecars, and each init container plus the
    sidecars before it.

    >>> app, init = Container("a", requests={"cpu": 500}), Container("i", requests={"cpu": 800})
    >>> needed_by([app, app], [init], lambda c: c.requests)
    {'cpu': 1000}
    """
    if not init_containers and not overhead:
        return (
            amounts(containers[0])
            if len(containers) == 1
            else sum_of(amounts(container) for container in containers)
        )
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
    """The pod without the container statuses of its kubelet, which are most of its memory.

    Returns the same pod if it has none.
    """
    if not (
        pod.statuses or pod.init_statuses or pod.host_ip or pod.pod_ip or pod.reason or pod.message
    ):
        return pod
    return structs.replace(
        pod, statuses=(), init_statuses=(), host_ip="", pod_ip="", reason="", message=""
    )
