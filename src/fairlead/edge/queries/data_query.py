"""Reads claims of volumes and Fluid's data sets for one command. Blocking, for the CLI."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import structs

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import ForbiddenByServer, NotServed
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.object_actions import known_resource
from fairlead.edge.kube.resource import (
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    Resource,
)
from fairlead.edge.queries.job_query import sorted_out
from fairlead.errors import OutsideError
from fairlead.model.actions import ObjectRef
from fairlead.model.jobs.acceleration import AccelerationFacts, DataUser
from fairlead.model.jobs.data_details import DataReasons, DataSetFacts
from fairlead.model.jobs.datasets import ControllerState, FoundData
from fairlead.model.keys import LABEL_QUOTA, QUOTA_ENFORCED
from fairlead.model.pod import Owner, controller_of
from fairlead.model.source import Source
from fairlead.wire.data.claims import WireClaim, is_fluids_volume, parse_claim
from fairlead.wire.data.csi import WireCsiNode, parse_csi_node
from fairlead.wire.data.data_load import (
    DATA_LOAD,
    WireController,
    WireLoad,
    parse_controller,
    parse_data_load,
)
from fairlead.wire.data.fluid import (
    ALLUXIO,
    DATASET,
    FLUID_NAMESPACE,
    RUNTIMES,
    WireDataset,
    WireRuntime,
    parse_dataset,
    parse_runtime,
)
from fairlead.wire.data.users import EXCLUSIVE_WORKERS, WireUser, node_of, parse_users
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.objects import (
    EVENT_FORM,
    NODE_FORM,
    WireNamed,
    parse_labels,
    parse_owners,
)

_ALL: Final = Selection()
_CSI_NODES: Final = Resource(
    "storage.k8s.io", "v1", "csinodes", is_namespaced=False, kind="CSINode"
)
_VOLUMES: Final = Resource(
    "", "v1", "persistentvolumes", is_namespaced=False, kind="PersistentVolume"
)
_LOADS: Final = Resource(*DATA_LOAD[:3], kind=DATA_LOAD[3])
_RELEASES: Final = (CONFIG_MAPS, SECRETS)
"""Where Helm keeps releases: that of Fluid's controllers in the former, any other in the latter."""
_ALLUXIO: Final = Resource(*ALLUXIO[:3], kind=ALLUXIO[3])
DATA_SETS: Final = Resource(*DATASET[:3], kind=DATASET[3])
_RUNTIMES: Final = tuple(Resource(*each[:3], kind=each[3]) for each in RUNTIMES)
_LONGEST_CHAIN: Final = 5


def _names_form() -> JsonForm[str]:
    return JsonForm(WireNamed, lambda wire: wire.metadata.name or "")


class DataQuery:
    """The data of one cluster. `now`: the cluster's time, which a laptop may set."""

    def __init__(self, api: KubeBlocking, now: Callable[[], float] = time.time) -> None:
        self._api = api
        self._now = now

    def read(self, namespace: str) -> FoundData:
        """See `cli.context.ClusterData`. Runtimes are listed only where data sets are served."""
        readers: tuple[ItemReader[Any], ...] = (
            ItemReader(CLAIMS, JsonForm(WireClaim, parse_claim)),
            ItemReader(DATA_SETS, JsonForm(WireDataset, parse_dataset)),
        )
        sources: dict[str, Source] = {}
        claims, data_sets = self._rows(readers, namespace, sources)
        runtimes: list[Any] = []
        if sources[DATA_SETS.label].is_ok:
            more = [
                ItemReader(each, JsonForm(WireRuntime, partial(parse_runtime, each.kind)))
                for each in _RUNTIMES
            ]
            found: dict[str, Source] = {}
            runtimes = [row for rows in self._rows(more, namespace, found) for row in rows]
            # An older or newer Fluid lacks some of the kinds.
            sources |= {name: each for name, each in found.items() if not each.is_missing}
        fluid = sources[DATA_SETS.label]
        return FoundData(
            tuple(claims),
            tuple(data_sets),
            tuple(runtimes),
            self._now(),
            {name: each for name, each in sources.items() if name != DATA_SETS.label}
            if fluid.is_missing
            else sources,
            has_fluid=not fluid.is_missing,
        )

    def facts(self, namespace: str, claim: str, name: str) -> AccelerationFacts:
        """See `cli.context.ClusterData`.

        Raises OutsideError if claims or data sets of the namespace may not be read: whether the
        name is free would not be known.
        """
        *values, users, labels = self._together(
            partial(self.read, namespace),
            partial(self._is_served, ItemReader(_ALLUXIO, _names_form()), namespace),
            self._controllers,
            partial(
                self._list, ItemReader(_CSI_NODES, JsonForm(WireCsiNode, parse_csi_node)), _ALL
            ),
            partial(self._list, ItemReader(NODES, NODE_FORM), _ALL),
            partial(self._has, _VOLUMES, f"{namespace}-{name}", None),
            partial(self._has_release, namespace, name),
            partial(
                self._list,
                ItemReader(PODS, JsonForm(WireUser, node_of)),
                Selection(namespace, labels=EXCLUSIVE_WORKERS),
            ),
            partial(self.users, namespace),
            partial(self._labels, namespace),
        )
        data, alluxio, controllers, csi, nodes, volume, release, exclusive = values
        if data.failures:
            hint = "use a user who may list claims and data sets there"
            raise OutsideError("kubernetes", data.failures, hint)
        return AccelerationFacts(
            claim=next((each for each in data.claims if each.name == claim), None),
            claims=data.claims,
            data_sets=data.data_sets,
            runtimes=data.runtimes,
            nodes=None if nodes is None else tuple(nodes),
            has_kinds=data.has_fluid and alluxio is not False,
            controllers=None if controllers is None else tuple(controllers),
            csi_nodes=None if csi is None else frozenset(filter(None, csi)),
            has_volume=volume,
            has_release=release,
            users=frozenset(each.node for each in users or () if each.claim == claim and each.node),
            is_governed=(labels or {}).get(LABEL_QUOTA) == QUOTA_ENFORCED,
            exclusive=frozenset(filter(None, exclusive or ())),
        )

    def reasons(self, found: FoundData) -> DataReasons:
        """See `cli.context.ClusterData`."""
        stuck = [each for each in found.data_sets if each.is_stuck(found.taken_at)]
        if not stuck:
            return DataReasons()
        places = sorted({each.namespace for each in stuck if each.is_ending})
        controllers, *users = self._together(
            self._controllers, *(partial(self.users, each) for each in places)
        )
        return DataReasons(
            None if controllers is None else tuple(controllers),
            tuple(user for each in users for user in each or ()),
        )

    def details(self, namespace: str, name: str) -> DataSetFacts:
        """See `cli.context.ClusterData`."""
        loads = ItemReader(_LOADS, JsonForm(WireLoad, parse_data_load))
        events = ItemReader(EVENTS, EVENT_FORM)
        about = Selection(namespace, fields=f"involvedObject.name={name},type=Warning")
        found, controllers, users, rows, warnings = self._together(
            partial(self.read, namespace),
            self._controllers,
            partial(self.users, namespace),
            partial(self._list, loads, Selection(namespace)),
            partial(self._list, events, about),
        )
        if warnings is not None:
            warnings = tuple(sorted(warnings, key=lambda each: each.order, reverse=True))
        return DataSetFacts(
            found,
            DataReasons(
                None if controllers is None else tuple(controllers),
                None if users is None else tuple(users),
            ),
            None if rows is None else tuple(rows),
            warnings,
        )

    def leftovers(self, namespace: str, name: str) -> tuple[ObjectRef, ...]:
        """See `cli.context.ClusterData`."""
        chosen = Selection(namespace, labels=f"owner=helm,name={name}")
        pods = Selection(namespace, labels=f"release={name},role")
        volume, cache, *releases = self._together(
            partial(self._fluid_volume, f"{namespace}-{name}"),
            partial(self._list, ItemReader(PODS, _names_form()), pods),
            *(partial(self._list, ItemReader(each, _names_form()), chosen) for each in _RELEASES),
        )
        return (
            *((volume,) if volume else ()),
            *(
                ObjectRef("v1", resource.kind, each, namespace)
                for resource, names in zip(_RELEASES, releases, strict=True)
                for each in sorted(names or ())
            ),
            *(
                ObjectRef("v1", "Pod", each, namespace)
                for each in sorted(cache or ())
                if each.startswith(f"{name}-")
            ),
        )

    def has_secret(self, namespace: str, name: str) -> bool | None:
        """See `cli.context.ClusterData`."""
        try:
            self._api.get_metadata(SECRETS, name, namespace, type=WireNamed)
        except NotServed:
            return False
        except ForbiddenByServer:
            return None
        return True

    def users(self, namespace: str) -> list[DataUser]:
        """Pods of the namespace that mount claims and have not ended."""
        rows = self._list(ItemReader(PODS, JsonForm(WireUser, parse_users)), Selection(namespace))
        return [user for users in rows for user in users]

    def with_owners(self, users: Sequence[DataUser]) -> list[DataUser]:
        """See `cli.context.ClusterData`."""
        topmost: dict[str, Owner] = {}
        discovery = self._api.discovery() if any(each.owner for each in users) else None
        found = []
        for each in users:
            owner = each.owner
            if owner is not None and discovery is not None:
                if owner.uid not in topmost:
                    topmost[owner.uid] = self._topmost(owner, each.namespace, discovery)
                owner = topmost[owner.uid]
            found.append(structs.replace(each, owner=owner))
        return found

    def _topmost(self, owner: Owner, namespace: str, discovery: Discovery) -> Owner:
        """The training job, or what is at the top of the chain, as far as it may be read."""
        from fairlead.kinds.registry import KINDS  # which most commands about data do not need

        jobs = {(each.GROUP, each.KIND) for each in KINDS}
        for _ in range(_LONGEST_CHAIN):
            target = ObjectRef(owner.api_version, owner.kind, owner.name)
            resource = known_resource(target, discovery)
            if resource is None or (resource.group, resource.kind) in jobs:
                break
            try:
                found: WireNamed = self._api.get(resource, owner.name, namespace, type=WireNamed)
            except (ForbiddenByServer, NotServed):
                break
            above = controller_of(parse_owners(found.metadata.owner_references))
            if above is None or found.metadata.uid != owner.uid:
                break
            owner = above
        return owner

    def is_there(self, target: ObjectRef) -> bool:
        """Whether a data set, a runtime or a claim is there."""
        resources = {each.kind: each for each in (DATA_SETS, *_RUNTIMES, CLAIMS)}
        return bool(self._has(resources[target.kind], target.name, target.namespace))

    def _controllers(self) -> list[ControllerState]:
        reader = ItemReader(DEPLOYMENTS, JsonForm(WireController, parse_controller))
        return self._list(reader, Selection(FLUID_NAMESPACE))

    def _fluid_volume(self, name: str) -> ObjectRef | None:
        """The volume, if it exists and Fluid made it."""
        try:
            found: WireNamed = self._api.get(_VOLUMES, name, None, type=WireNamed)
        except NotServed:
            return None
        if not is_fluids_volume(found.metadata):
            return None
        return ObjectRef("v1", "PersistentVolume", name, uid=found.metadata.uid or "")

    def _together(self, *calls: Callable[[], Any]) -> list[Any]:
        """Their values; None for what this user may not read, or what does not exist."""
        values: list[Any] = []
        for result in in_parallel(calls):
            if isinstance(result, ForbiddenByServer | NotServed):
                values.append(None)
            elif isinstance(result, Exception):
                raise result
            else:
                values.append(result)
        return values

    def _is_served(self, reader: ItemReader[Any], namespace: str) -> bool:
        try:
            self._list(reader, Selection(namespace))
        except NotServed:
            return False
        return True

    def _has(self, resource: Resource, name: str, namespace: str | None) -> bool:
        try:
            self._api.get(resource, name, namespace, type=WireNamed)
        except NotServed:
            return False
        return True

    def _has_release(self, namespace: str, name: str) -> bool | None:
        """None if none is found, and not all of them may be read."""
        chosen = Selection(namespace, labels=f"owner=helm,name={name}")
        found = self._together(
            *(partial(self._list, ItemReader(each, _names_form()), chosen) for each in _RELEASES)
        )
        return True if any(found) else None if None in found else False

    def _labels(self, namespace: str) -> Mapping[str, str]:
        found = self._api.get(NAMESPACES, namespace, type=WireNamed)
        return parse_labels(found.metadata.labels)

    def _rows(self, readers: Any, namespace: str, sources: dict[str, Source]) -> list[list[Any]]:
        chosen = Selection(namespace or None)
        results = in_parallel([partial(self._list, reader, chosen) for reader in readers])
        return [
            sorted_out([(reader.resource.label, result)], sources)
            for reader, result in zip(readers, results, strict=True)
        ]

    def _list(self, reader: ItemReader[Any], chosen: Selection) -> list[Any]:
        return list(self._api.list_all(reader, chosen).rows.values())
