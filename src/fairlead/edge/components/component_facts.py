"""Reads what a cluster has of the components of the catalogue. Blocking, for the CLI and threads.

What may not be read is reported as `Unread` and does not prevent reading the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from fairlead import __version__
from fairlead.edge.components.plan_facts import PlanReading
from fairlead.edge.helm.helm_blocking import HelmBlocking
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.resource import DEPLOYMENTS, Resource
from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.edge.queries.installed import own_namespace, read_installed
from fairlead.errors import OutsideError, UserError
from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.installed.component_facts import (
    ComponentFacts,
    InstallationFact,
    PlanFacts,
    ProgramWorkload,
    WantedComponent,
)
from fairlead.model.installed.facts import Unread
from fairlead.model.operations.apply_set import component_inventory_ref
from fairlead.model.operations.component import Component, ComponentInventory, ComponentRow
from fairlead.model.operations.operation import HelmRelease, HelmStep
from fairlead.model.resources import GPU_MEMORY
from fairlead.wire.components.inventory import parse_component_inventory
from fairlead.wire.components.links import page_links
from fairlead.wire.components.seen import WORKLOAD_KINDS, workload_form
from fairlead.wire.data.stand_in import FLUID_VERSION, stand_in_objects
from fairlead.wire.installation.inventory import COMPLETE
from fairlead.wire.installation.values import parse_values, read_values

Result = TypeVar("Result")
_STAND_INS: Final = {"fluid": FLUID_VERSION}
_WORKLOADS: Final = (
    DEPLOYMENTS,
    Resource("apps", "v1", "daemonsets", kind="DaemonSet"),
    Resource("apps", "v1", "statefulsets", kind="StatefulSet"),
)


class ComponentQuery:
    """`environment`: in which the program `helm` is looked for."""

    def __init__(self, api: KubeBlocking, environment: Mapping[str, str]) -> None:
        self._api = api
        self._target = KubeInstallationTarget(api)
        self._environment = environment
        self._helm = HelmBlocking(api.connection, environment)

    def facts(self, components: Sequence[Component]) -> ComponentFacts:
        """About these components. Raises UserError if FAIRLEAD_HELM names no program."""
        has_helm = self._helm.is_there
        namespace = self._home
        charts = {each.chart for each in components if each.chart}
        releases: tuple[HelmRelease, ...] | Unread = ()
        if has_helm:
            releases = _asked(lambda: self._helm.releases_of(charts))
        ids = [each.id for each in components if not each.part and not each.is_required]
        calls: list[Callable[[], Any]] = [
            partial(_asked, self._workloads),
            partial(_asked, self._installation),
            partial(_asked, partial(self._inventories, ids, namespace)),
        ]
        workloads, installation, inventories = in_parallel(calls)
        return ComponentFacts(
            program=__version__,
            workloads=_value(workloads),
            installation=_value(installation),
            inventories=_value(inventories),
            releases=releases,
            has_helm=has_helm,
            stand_ins=_STAND_INS if self._target.is_simulated() else {},
        )

    def home(self) -> str:
        """See `cli.context.ClusterComponents`."""
        return self._home

    @cached_property
    def _home(self) -> str:
        return own_namespace(self._target)

    def stand_in(self, id: str) -> tuple[Manifest, ...]:
        """See `cli.context.ClusterComponents`."""
        if id not in _STAND_INS or not self._target.is_simulated():
            return ()
        return tuple(stand_in_objects())

    def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        """See `ports.Helm.render`."""
        return self._plans.render(step)

    def placed(self, manifests: Sequence[Manifest], namespace: str) -> tuple[Manifest, ...]:
        """See `PlanReading.placed`."""
        return self._plans.placed(manifests, namespace)

    def found(self, targets: Sequence[ObjectRef]) -> list[Manifest | None]:
        """See `PlanReading.found`."""
        return self._plans.found(targets)

    def plan_facts(self, wanted: WantedComponent) -> PlanFacts:
        """See `PlanReading.facts`."""
        return self._plans.facts(wanted)

    def links(self, row: ComponentRow, objects: Sequence[ObjectRef]) -> tuple[str, ...] | Unread:
        """See `ports.ComponentQuestions`."""
        names = [each.name for each in objects if each.kind == "Ingress"]
        if not names and not row.release:
            return ()
        kind = ObjectRef("networking.k8s.io/v1", "Ingress", "", row.namespace)
        return _asked(lambda: tuple(page_links(self._target.members(kind, ""), names, row.release)))

    def sharing_pods(self) -> tuple[str, ...] | Unread:
        """See `ports.ComponentQuestions`."""
        return _asked(self._sharing_pods)

    def _sharing_pods(self) -> tuple[str, ...]:
        return tuple(
            object_ref(each).title
            for each in self._target.list_objects(ObjectRef("v1", "Pod", ""))
            if each["spec"].get("nodeName")
            and (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            and any(
                GPU_MEMORY in ((container.get("resources") or {}).get("limits") or {})
                for container in each["spec"].get("containers") or ()
            )
        )

    @cached_property
    def _plans(self) -> PlanReading:
        return PlanReading(self._api, self._environment)

    def _workloads(self) -> tuple[ProgramWorkload, ...]:
        readers = [ItemReader(each, workload_form(each.kind)) for each in _WORKLOADS]
        return tuple(
            row for each in readers for row in self._api.list_all(each, Selection()).rows.values()
        )

    def _installation(self) -> InstallationFact | None:
        found = read_installed(self._target)
        if found is None:
            return None
        try:
            chosen = parse_values(read_values(found.values, "the inventory"))
        except UserError as error:  # an installation of another version
            raise OutsideError("kubernetes", error.what, error.hint) from error
        return InstallationFact(
            found.version,
            chosen.parts,
            found.namespace,
            tuple(each for each in found.objects if each.kind in WORKLOAD_KINDS),
            found.state == COMPLETE,
            found.release,
        )

    def _inventories(self, ids: Sequence[str], namespace: str) -> tuple[ComponentInventory, ...]:
        """One after the other: a connection of its own for each costs more than it saves."""
        found = (self._inventory(each, namespace) for each in ids)
        return tuple(each for each in found if each is not None)

    def _inventory(self, id: str, namespace: str) -> ComponentInventory | None:
        found = self._target.get(component_inventory_ref(id, namespace))
        return None if found is None else parse_component_inventory(found, id, namespace)


def _asked(call: Callable[[], Result]) -> Result | Unread:
    try:
        return call()
    except OutsideError as error:
        return Unread(error.what)


def _value(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer
