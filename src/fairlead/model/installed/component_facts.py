"""What was read of a cluster about components. What the API server refuses to show is `Unread`."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.actions import ObjectRef
from fairlead.model.installation import Parts
from fairlead.model.installed.facts import Unread
from fairlead.model.operations.component import ComponentInventory
from fairlead.model.operations.operation import HelmRelease


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
    """`kind`: `deploy`, `upgrade` or `remove`."""

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
