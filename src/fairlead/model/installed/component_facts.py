"""What was read of a cluster about components. What the API server refuses to show is `Unread`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installation import Parts
from fairlead.model.installed.facts import Mismatch, ServerFact, Unread
from fairlead.model.operations.component import Component, ComponentInventory
from fairlead.model.operations.operation import READY_SECONDS, HelmRelease, OperationKind


class ProgramWorkload(Struct, frozen=True):
    """A Deployment, DaemonSet or StatefulSet of any namespace.

    `wanted`: replicas, or nodes that it selects; `ready`: of these with the newest spec, available.
    `release`: the Helm release that it names, "" = none. `version`: its label
    `app.kubernetes.io/version`, "" = none.
    """

    kind: str
    namespace: str
    name: str
    images: tuple[str, ...] = ()
    wanted: int = 1
    ready: int = 0
    release: str = ""
    version: str = ""

    @property
    def is_ready(self) -> bool:
        return self.ready >= self.wanted

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class InstallationFact(Struct, frozen=True):
    """The installation of Fairlead. `release`: of Helm, "" = `fairlead install` wrote it.

    `workloads`: of all parts.
    """

    version: str
    parts: Parts
    namespace: str
    workloads: tuple[ObjectRef, ...] = ()
    is_complete: bool = True
    release: str = ""


class RunningOperation(Struct, frozen=True):
    """`kind`: `deploy`, `upgrade` or `remove`; "" = another part of the installation changes."""

    id: str
    kind: str


class ComponentFacts(Struct, frozen=True, kw_only=True):
    """`program`: the version of the program that reads. `has_helm`: there is a program `helm`; only
    then are `releases` known. `installation` None = there is none. `running`: operations by the id
    of the component. `stand_ins`: versions of components that a simulated cluster can deploy
    natively, by id.
    """

    program: str
    workloads: tuple[ProgramWorkload, ...] | Unread = ()
    installation: InstallationFact | Unread | None = None
    inventories: tuple[ComponentInventory, ...] | Unread = ()
    releases: tuple[HelmRelease, ...] | Unread = ()
    has_helm: bool = False
    running: Mapping[str, RunningOperation] = {}
    stand_ins: Mapping[str, str] = {}


class WantedComponent(Struct, frozen=True, kw_only=True):
    """What a person asks for. `do`: `DEPLOY`, `UPGRADE` or `REMOVE`.

    `place`: the namespace of the component, `home`: of its inventory and of records. `release`: of
    Helm. `objects`: what the manifests or the chart make, without hooks; () for a removal.
    `has_source`: there are manifests, or a chart. `deletes_definitions`: a removal also deletes the
    component's CustomResourceDefinitions, and so all objects of their kinds. `seconds`: how long to
    wait until all is ready, or gone.
    """

    component: Component
    do: OperationKind
    place: str
    home: str
    version: str = ""
    release: str = ""
    chart: str = ""
    values: Mapping[str, Any] = {}
    objects: tuple[Manifest, ...] = ()
    has_source: bool = True
    deletes_definitions: bool = False
    seconds: float = READY_SECONDS


class TriedObject(Struct, frozen=True):
    """A wanted object.

    `found`: as it is; None = it does not exist. `result`: what applying it would make of it; None =
    that cannot be tried, because its namespace or kind comes with it.
    """

    manifest: Manifest
    found: Manifest | Unread | None
    result: Manifest | Mismatch | Unread | None = None


class LiveObject(Struct, frozen=True):
    """An object of a kind that the component defines. `definition`: the name of its definition."""

    definition: str
    title: str
    finalizers: tuple[str, ...] = ()


class PlanFacts(Struct, frozen=True, kw_only=True):
    """What a plan is made from, beside `ComponentFacts`.

    `before`: the inventory; `release`: Helm's. `members`: the existing objects of the inventory, or
    of the release. `denied`: objects that this user may not write, or delete. `namespace`: the one
    of the component. `storage_classes`: by name, whether it is the default. `hosts`, `node_ports`:
    who has them already, in other namespaces or under other names. `host_ports`: pods of others
    that have a port of their node, by number and protocol. `has_helm`: there is a `helm`.
    `helm_denied`: why admission lets it write no release, "" = it does.
    """

    server: ServerFact
    before: ComponentInventory | None = None
    release: HelmRelease | None = None
    tried: tuple[TriedObject, ...] = ()
    members: tuple[Manifest, ...] = ()
    denied: tuple[str, ...] | Unread = ()
    namespace: Manifest | Unread | None = None
    storage_classes: Mapping[str, bool] | Unread = {}
    hosts: Mapping[str, str] | Unread = {}
    node_ports: Mapping[int, str] | Unread = {}
    host_ports: Mapping[tuple[int, str], str] | Unread = {}
    live: tuple[LiveObject, ...] | Unread = ()
    unserved: tuple[str, ...] = ()
    has_helm: bool = False
    helm_denied: str = ""
