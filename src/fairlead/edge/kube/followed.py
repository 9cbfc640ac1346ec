"""One followed resource of the real cluster: its rows, its reflector, and how well it can be read."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Generic, TypeVar

from msgspec import Struct

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import EVERYTHING, Selection
from fairlead.edge.kube.reflector import Mirror, Reflector
from fairlead.edge.kube.resource import CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS, QUOTA_TREES, Resource
from fairlead.errors import FairleadError, Forbidden, NotFound
from fairlead.kinds.parts.kind import JobKind, source_of
from fairlead.kinds.workloads import WorkloadKind
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.model.source import Source, SourceState
from fairlead.wire import names
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.budgets import WireBudget, WireNamespace, parse_budget, parse_namespace
from fairlead.wire.kube.objects import WireEvent, WireNode, WirePod, parse_event, parse_node, parse_pod
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

Row = TypeVar("Row")

by_name = attrgetter("name")
by_node = attrgetter("node")
by_namespace_and_name = attrgetter("namespace", "name")


class FollowedKind(Struct, Generic[Row], frozen=True):
    """What to follow: under which source name, where, and how objects become rows in which order.

    `versions`: acceptable versions, best first; None for the core resources, which every server has.
    `parse`: takes the object, and the version served where there are `versions`. `keep`: what is kept of a
    row. `is_optional`: nothing is incomplete without it.
    """

    name: str
    resource: Resource
    wire: type[Any]
    parse: Callable[..., Row]
    order: Callable[[Row], Any]
    versions: tuple[str, ...] | None = None
    selection: Selection = EVERYTHING
    is_optional: bool = False
    keep: Callable[[Row], Row] | None = None

    def reader(self, resource: Resource) -> ItemReader[Row]:
        parse = self.parse if self.versions is None else lambda wire: self.parse(wire, resource.version)
        return ItemReader(resource, self.wire, parse, keep=self.keep)


def job_subject(kind: JobKind) -> FollowedKind[Job]:
    resource = Resource(kind.GROUP, kind.VERSIONS[0], kind.PLURAL, kind=kind.KIND)
    return FollowedKind(source_of(kind), resource, kind.WIRE, kind.parse, attrgetter("key"), kind.VERSIONS)


def workload_subject(kind: WorkloadKind) -> FollowedKind[Workload]:
    resource = Resource(kind.group, kind.versions[0], kind.plural, kind=kind.kind)
    return FollowedKind(kind.name, resource, kind.wire, kind.parse, by_namespace_and_name, kind.versions, is_optional=True)


NODE_SUBJECT: FollowedKind[Node] = FollowedKind("nodes", NODES, WireNode, parse_node, by_name)
POD_SUBJECT: FollowedKind[Pod] = FollowedKind("pods", PODS, WirePod, parse_pod, by_namespace_and_name)
QUOTA_SUBJECT: FollowedKind[QuotaTree] = FollowedKind(
    names.QUOTA_PLURAL,
    QUOTA_TREES,
    WireQuotaTree,
    lambda wire, _: parse_quota_tree(wire),
    by_namespace_and_name,
    (names.QUOTA_VERSION,),
    Selection(namespace=names.QUOTA_TREE_NAMESPACE),
)
NAMESPACE_SUBJECT: FollowedKind[Namespace] = FollowedKind(
    "namespaces", NAMESPACES, WireNamespace, parse_namespace, by_name, is_optional=True
)
BUDGET_SUBJECT: FollowedKind[Budget] = FollowedKind(
    "poddisruptionbudgets",
    Resource("policy", "v1", "poddisruptionbudgets", kind="PodDisruptionBudget"),
    WireBudget,
    parse_budget,
    by_namespace_and_name,
    is_optional=True,
)
EVENT_SUBJECT: FollowedKind[Event] = FollowedKind(
    "events", EVENTS, WireEvent, parse_event, by_namespace_and_name, selection=Selection(fields="type=Warning")
)
WITHHELD_SUBJECT: FollowedKind[Withheld] = FollowedKind(
    GPU_WITHHELD,
    CONFIG_MAPS,
    WireConfigMap,
    parse_withheld_map,
    by_node,
    selection=Selection(namespace=names.UNHEALTHY_GPUS_NAMESPACE),
)


class Followed(Generic[Row]):
    """A subject with its mirror and, while the server serves it, its reflector."""

    def __init__(self, subject: FollowedKind[Row]) -> None:
        self.subject = subject
        self.mirror: Mirror[Row] = Mirror(subject.order)
        self.resource: Resource | None = subject.resource if subject.versions is None else None
        self.reflector: Reflector[Row] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to be waited for at the start: read once, or known not to be readable."""
        reflector = self.reflector
        return reflector is not None and (reflector.is_synced or isinstance(reflector.last_error, Forbidden | NotFound))

    def source(self, trouble: FairleadError | None) -> Source:
        """`trouble` is why discovery failed, for a resource that was never followed."""
        name, reflector = self.subject.name, self.reflector
        if reflector is None:
            return Source(name, SourceState.FAILING, trouble.what, trouble.hint) if trouble else Source(name, SourceState.SYNCING)
        error = reflector.last_error
        if error is not None:
            return Source(name, _state_of(error), error.what, error.hint, reflector.good_at)
        if not reflector.is_synced:
            return Source(name, SourceState.SYNCING)
        return Source(
            name,
            SourceState.OK,
            _left_out(reflector),
            "look into this server's log for all of them" if reflector.unreadable else "",
            reflector.good_at,
        )

    def missing_source(self) -> Source:
        label = self.subject.resource.label
        return Source(
            self.subject.name, SourceState.MISSING, f"this cluster does not serve `{label}`", f"install its CRD if `{label}` are wanted"
        )


def _state_of(error: FairleadError) -> SourceState:
    if isinstance(error, Forbidden):
        return SourceState.FORBIDDEN
    return SourceState.MISSING if isinstance(error, NotFound) else SourceState.FAILING


def _left_out(reflector: Reflector[Any]) -> str:
    if not reflector.unreadable:
        return ""
    first = next(iter(reflector.unreadable.values()))
    return f"{len(reflector.unreadable)} left out that cannot be read, such as {first}"
