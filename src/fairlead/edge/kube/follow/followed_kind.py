"""Kinds of objects that a process follows: where they are listed, and how objects become rows."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import EVERYTHING, Selection
from fairlead.edge.kube.resource import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    QUOTA_TREES,
    Resource,
)
from fairlead.kinds.parts.kind import JobKind, source_of
from fairlead.kinds.workloads import WorkloadKind
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
)
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.model.node import Node
from fairlead.model.people.rows import KIND_GROUPS, UserGroup
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire import names
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.budgets import WireBudget, WireNamespace, parse_budget, parse_namespace
from fairlead.wire.kube.forms import JsonForm, VersionedForm
from fairlead.wire.kube.objects import EVENT_FORM, NODE_FORM, POD_FORM, JsonAndProtobufForm
from fairlead.wire.people.people_objects import WirePerson, parse_group
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

Row = TypeVar("Row")

by_name = attrgetter("name")
by_node = attrgetter("node")
by_namespace_and_name = attrgetter("namespace", "name")


class FollowedKind(Struct, Generic[Row], frozen=True):
    """What to follow: under which source name, where, and how objects become rows in which order.

    `versions`: acceptable versions, best first; None for a resource that is asked for without
    discovery. `keep`: what is kept of a row. `is_optional`: where it is not served or may not be
    read, it counts as empty. `mark`, `is_known`, `with_object`: see `ItemReader`. `retry_seconds`:
    the longest wait between two tries after a failure, None for the back-off's own.
    """

    name: str
    resource: Resource
    form: JsonForm[Row] | VersionedForm[Row] | JsonAndProtobufForm[Row]
    order: Callable[[Row], Any]
    versions: tuple[str, ...] | None = None
    selection: Selection = EVERYTHING
    is_optional: bool = False
    keep: Callable[[Row], Row] | None = None
    mark: bytes = b""
    is_known: Callable[[str], bool] = lambda _: True
    retry_seconds: float | None = None
    with_object: Callable[[Any, bytes], Row] | None = None

    def served(self, found: Discovery) -> Resource | None:
        """The resource in the best version that the API server serves.

        None if it serves none of them.
        """
        return found.find(self.resource.group, self.resource.plural, self.versions)

    def reader(self, resource: Resource) -> ItemReader[Row]:
        """Of the resource as it is served here."""
        form = self.form.at(resource.version) if isinstance(self.form, VersionedForm) else self.form
        return ItemReader(
            resource,
            form,
            self.mark,
            self.is_known,
            keep=self.keep,
            with_object=self.with_object,
        )


def job_subject(kind: JobKind) -> FollowedKind[Job]:
    resource = Resource(kind.GROUP, kind.VERSIONS[0], kind.PLURAL, kind=kind.KIND)
    return FollowedKind(
        source_of(kind),
        resource,
        VersionedForm(kind.WIRE, kind.parse),
        attrgetter("key"),
        kind.VERSIONS,
    )


def workload_subject(kind: WorkloadKind) -> FollowedKind[Workload]:
    resource = Resource(kind.group, kind.versions[0], kind.plural, kind=kind.kind)
    return FollowedKind(
        kind.name,
        resource,
        VersionedForm(kind.wire, kind.parse),
        by_namespace_and_name,
        kind.versions,
        is_optional=True,
    )


NODE_SUBJECT: FollowedKind[Node] = FollowedKind(KIND_NODES, NODES, NODE_FORM, by_name)
POD_SUBJECT: FollowedKind[Pod] = FollowedKind(KIND_PODS, PODS, POD_FORM, by_namespace_and_name)
QUOTA_SUBJECT: FollowedKind[QuotaTree] = FollowedKind(
    KIND_QUOTA_TREES,
    QUOTA_TREES,
    JsonForm(WireQuotaTree, parse_quota_tree),
    by_namespace_and_name,
    (names.QUOTA_VERSION,),
    Selection(namespace=names.QUOTA_TREE_NAMESPACE),
)
NAMESPACE_SUBJECT: FollowedKind[Namespace] = FollowedKind(
    KIND_NAMESPACES, NAMESPACES, JsonForm(WireNamespace, parse_namespace), by_name, is_optional=True
)
BUDGET_SUBJECT: FollowedKind[Budget] = FollowedKind(
    KIND_BUDGETS,
    Resource("policy", "v1", "poddisruptionbudgets", kind="PodDisruptionBudget"),
    JsonForm(WireBudget, parse_budget),
    by_namespace_and_name,
    is_optional=True,
)
PEOPLE_RETRY_SECONDS: Final = 5.0
"""The longest wait between two tries to read users, whose definition may be installed later."""
GROUP_RESOURCE: Final = Resource(
    names.PEOPLE_GROUP, names.PEOPLE_VERSION, names.USER_GROUPS, kind="UserGroup"
)
GROUP_SUBJECT: FollowedKind[UserGroup] = FollowedKind(
    KIND_GROUPS,
    GROUP_RESOURCE,
    JsonForm(WirePerson, parse_group),
    by_name,
    selection=Selection(namespace=USERS_NAMESPACE),
    retry_seconds=PEOPLE_RETRY_SECONDS,
)
EVENT_SUBJECT: FollowedKind[Event] = FollowedKind(
    "events", EVENTS, EVENT_FORM, by_namespace_and_name, selection=Selection(fields="type=Warning")
)
WITHHELD_SUBJECT: FollowedKind[Withheld] = FollowedKind(
    GPU_WITHHELD,
    CONFIG_MAPS,
    JsonForm(WireConfigMap, parse_withheld_map),
    by_node,
    selection=Selection(namespace=names.UNHEALTHY_GPUS_NAMESPACE),
)
