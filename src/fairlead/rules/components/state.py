"""How each component of the catalogue is, from what was read of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.model.installed.component_facts import (
    ComponentFacts,
    ProgramWorkload,
    RunningOperation,
)
from fairlead.model.installed.facts import Unread
from fairlead.model.operations.component import (
    Component,
    ComponentRow,
    ComponentState,
)
from fairlead.model.operations.operation import (
    INSTALLATION,
    HelmRelease,
    Operation,
    OperationState,
)
from fairlead.rules.components.catalogue import CATALOGUE
from fairlead.rules.components.versions import is_newer
from fairlead.rules.installation.finding_lists import some

SUBJECT: Final = "component/"
"""Of operations on a component; its id follows."""
_PARTS: Final = tuple(each.id for each in CATALOGUE if each.part)
_RUNNING: Final = {
    "deploy": ComponentState.INSTALLING,
    "upgrade": ComponentState.UPGRADING,
    "remove": ComponentState.REMOVING,
}
_OF_HELM: Final = {
    "pending-install": ComponentState.INSTALLING,
    "pending-upgrade": ComponentState.UPGRADING,
    "pending-rollback": ComponentState.UPGRADING,
    "uninstalling": ComponentState.REMOVING,
    "failed": ComponentState.FAILED,
}
_OF_INVENTORY: Final = {
    "writing": ComponentState.INSTALLING,
    "removing": ComponentState.REMOVING,
}
_WORKLOADS: Final = ("Deployment", "DaemonSet", "StatefulSet")
_NO_HELM: Final = "there is no program `helm` here to read releases"
_Place = tuple[str, str, str]
_Found = tuple[ComponentState | None, dict[str, str]]
_ABSENT: Final[_Found] = (ComponentState.NOT_INSTALLED, {})


def component_rows(
    facts: ComponentFacts, catalogue: Sequence[Component] = CATALOGUE
) -> tuple[ComponentRow, ...]:
    """A row for each component, in the order of the catalogue."""
    return tuple(component_row(each, facts) for each in catalogue)


def component_row(component: Component, facts: ComponentFacts) -> ComponentRow:
    """How one component is."""
    state, found = _found(component, facts)
    running = facts.running.get(component.id)
    if running is not None:
        state = _RUNNING.get(running.kind, state)
    available = _available(component, facts)
    version = found.get("version", "")
    is_foreign = state in (ComponentState.FOREIGN, None)
    is_left = bool(component.part) and state is ComponentState.INSTALLING and running is None
    return ComponentRow(
        id=component.id,
        group=component.group,
        title=component.title,
        title_zh=component.title_zh,
        state=state,
        available=available,
        can_upgrade=not is_foreign and (is_left or is_newer(available, version)),
        is_required=component.is_required,
        operation=running.id if running else "",
        **found,
    )


def with_operations(facts: ComponentFacts, operations: Iterable[Operation]) -> ComponentFacts:
    """The facts with the operations on components that have begun and not ended. One on a part of
    the installation is at work on all parts.
    """
    running: dict[str, RunningOperation] = {}
    for each in operations:
        if each.state is not OperationState.RUNNING:
            continue
        if each.subject.startswith(INSTALLATION):
            running |= {id: RunningOperation(each.id, "") for id in _PARTS}
        for id in component_ids(each.subject):
            running[id] = RunningOperation(each.id, each.kind.value)
    return replace(facts, running=running)


def component_ids(subject: str) -> tuple[str, ...]:
    """The components that an operation is about.

    >>> component_ids("component/fluid"), component_ids("installation/quota,people")
    (('fluid',), ('quota', 'people'))
    """
    if subject.startswith(INSTALLATION):
        return tuple(subject.removeprefix(INSTALLATION).split(","))
    return (subject.removeprefix(SUBJECT),) if subject.startswith(SUBJECT) else ()


def is_installed(row: ComponentRow) -> bool:
    """Whether the component is there, also if another program deployed it."""
    return row.state not in (None, ComponentState.NOT_INSTALLED)


def _found(component: Component, facts: ComponentFacts) -> _Found:
    if component.is_required:
        return ComponentState.READY, {"version": facts.program, "managed_by": "native"}
    if component.part:
        return _part(component, facts)
    for look in (_inventory, _release, _foreign):
        state, found = look(component, facts)
        if state != ComponentState.NOT_INSTALLED:
            return state, found
    if component.chart and not facts.has_helm:
        return ComponentState.NOT_INSTALLED, {"message": _NO_HELM}
    return _ABSENT


def _available(component: Component, facts: ComponentFacts) -> str:
    if component.part or component.is_required:
        return facts.program
    return facts.stand_ins.get(component.id) or component.version


def _part(component: Component, facts: ComponentFacts) -> _Found:
    """A part of the installation."""
    installed = facts.installation
    if isinstance(installed, Unread):
        return None, {"message": installed.why}
    if installed is None or not getattr(installed.parts, component.part):
        return _ABSENT
    names = {(each.kind, each.name) for each in component.workloads}
    wanted = [
        (each.kind, each.namespace, each.name)
        for each in installed.workloads
        if (each.kind, each.name) in names
    ]
    found = {
        "version": installed.version,
        "managed_by": "helm" if installed.release else "native",
        "namespace": wanted[0][1] if wanted else installed.namespace,
        "release": installed.release,
    }
    if not installed.is_complete:
        message = "a run of `fairlead install` or `upgrade` goes on, or was interrupted"
        return ComponentState.INSTALLING, {**found, "message": message}
    return _ready(facts, found, wanted)


def _inventory(component: Component, facts: ComponentFacts) -> _Found:
    """What Fairlead wrote natively."""
    if isinstance(facts.inventories, Unread):
        return None, {"message": facts.inventories.why}
    written = next((each for each in facts.inventories if each.id == component.id), None)
    if written is None:
        return _ABSENT
    found = {"version": written.version, "managed_by": "native", "namespace": written.place}
    if written.state in _OF_INVENTORY:
        message = "an operation goes on, or was interrupted: `fairlead operation list`"
        return _OF_INVENTORY[written.state], {**found, "message": message}
    wanted = [
        (each.kind, each.namespace, each.name)
        for each in written.objects
        if each.kind in _WORKLOADS
    ]
    return _ready(facts, found, wanted)


def _release(component: Component, facts: ComponentFacts) -> _Found:
    """A release of Helm, of any program."""
    if not component.chart or not facts.has_helm:
        return _ABSENT
    if isinstance(facts.releases, Unread):
        return None, {"message": facts.releases.why}
    releases = [each for each in facts.releases if each.chart == component.chart]
    own = [each for each in releases if each.is_own]
    if not releases:
        return _ABSENT
    release = (own or releases)[0]
    found = _of_release(release)
    if not own:
        message = f"the Helm release `{release.namespace}/{release.name}` of another program"
        return ComponentState.FOREIGN, {**found, "message": message}
    if release.status in _OF_HELM:
        message = f"the Helm release `{release.namespace}/{release.name}` is `{release.status}`"
        return _OF_HELM[release.status], {**found, "message": message}
    wanted = [(each.kind, release.namespace, each.name) for each in component.workloads]
    return _ready(facts, found, wanted)


def _of_release(release: HelmRelease) -> dict[str, str]:
    return {
        "version": release.chart_version,
        "managed_by": "helm",
        "namespace": release.namespace,
        "release": release.name,
    }


def _foreign(component: Component, facts: ComponentFacts) -> _Found:
    """Workloads that another program deployed."""
    if isinstance(facts.workloads, Unread):
        return None, {"message": facts.workloads.why}
    seen = [each for each in facts.workloads if is_copy(component, each)]
    if not seen:
        return _ABSENT
    first = seen[0]
    if first.release and not facts.has_helm:
        message = f"the Helm release `{first.namespace}/{first.release}`; {_NO_HELM}"
        return None, {
            "version": first.version,
            "managed_by": "helm",
            "namespace": first.namespace,
            "release": first.release,
            "message": message,
        }
    return ComponentState.FOREIGN, {
        "version": first.version,
        "managed_by": "helm" if first.release else "other",
        "namespace": first.namespace,
        "release": first.release,
        "message": f"{first.title} of another program",
    }


def is_copy(component: Component, seen: ProgramWorkload) -> bool:
    """Whether a workload is of this component, by its name or an image."""
    if (seen.kind, seen.name) in {(each.kind, each.name) for each in component.workloads}:
        return True
    repositories = [repository(each) for each in seen.images]
    return any(
        each == image or each.endswith(f"/{image}")
        for each in repositories
        for image in component.images
    )


def repository(image: str) -> str:
    """The image without tag and digest.

    >>> repository("host:5000/fluid/dataset-controller:v1@sha256:0a"), repository("kueue")
    ('host:5000/fluid/dataset-controller', 'kueue')
    """
    path, slash, name = image.partition("@")[0].rpartition("/")
    return f"{path}{slash}{name.partition(':')[0]}"


def _ready(facts: ComponentFacts, found: dict[str, str], wanted: Sequence[_Place]) -> _Found:
    """Ready or Degraded, by the workloads that the component has."""
    if isinstance(facts.workloads, Unread):
        return None, {**found, "message": facts.workloads.why}
    seen = {(each.kind, each.namespace, each.name): each for each in facts.workloads}
    missing = [
        f"{kind} {namespace}/{name} does not exist"
        for kind, namespace, name in wanted
        if (kind, namespace, name) not in seen
    ]
    waiting = [
        f"{each.title}: {each.ready} of {each.wanted} ready"
        for place in wanted
        if (each := seen.get(place)) is not None and not each.is_ready
    ]
    if missing or waiting:
        return ComponentState.DEGRADED, {**found, "message": some([*missing, *waiting], "; ")}
    return ComponentState.READY, found
