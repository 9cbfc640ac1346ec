"""What is asked for a component, with what the cluster has of it and all checks: the same for the
command line and the page. Blocking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from fairlead.errors import NoHelm, UserError
from fairlead.model.actions import Manifest, object_ref
from fairlead.model.installed.component_facts import PlanFacts, WantedComponent
from fairlead.model.installed.finding import Finding
from fairlead.model.operations.apply_set import apply_set_id, is_member
from fairlead.model.operations.component import (
    Backend,
    Component,
    ComponentRow,
    ComponentState,
)
from fairlead.model.operations.operation import (
    READY_SECONDS,
    HelmStep,
    Operation,
    OperationKind,
    OperationStep,
)
from fairlead.rules.components.component_plan import native_objects
from fairlead.rules.components.preflight import preflight
from fairlead.rules.components.secrets import plain_secrets
from fairlead.rules.components.several import (
    after,
    facts_after,
    shared_objects,
    with_deployed,
)

if TYPE_CHECKING:
    from fairlead.ports import ComponentQuestions

Rows = Mapping[str, ComponentRow]


class ComponentSource(Struct, frozen=True, kw_only=True):
    """Where the objects come from. `place`: "" = the component's usual namespace. `manifests`:
    None = none are named. `values`: of the chart, without those that are always so. `has_helm`:
    without it no chart is read, and the check `helm` names the command.
    """

    chart: str = ""
    version: str = ""
    place: str = ""
    values: Mapping[str, Any] = {}
    manifests: tuple[Manifest, ...] | None = None
    deletes_definitions: bool = False
    has_helm: bool = True
    seconds: float = READY_SECONDS


class CheckedComponent(Struct, frozen=True):
    """A wanted component with what was read and found about it."""

    wanted: WantedComponent
    facts: PlanFacts
    findings: Sequence[Finding]


def checked_component(
    cluster: ComponentQuestions,
    component: Component,
    do: OperationKind,
    rows: Rows,
    source: ComponentSource,
    earlier: Sequence[WantedComponent] = (),
) -> CheckedComponent:
    """Reads what the plan needs, and makes all checks. Raises FairleadError for a chart that cannot
    be read. `earlier`: what is deployed before it by the same click; `rows` have it already.
    """
    row = rows[component.id]
    if do is OperationKind.REMOVE:
        wanted = removed_component(cluster, component, row, source)
    else:
        wanted = wanted_component(cluster, component, do, row, source)
    facts = cluster.plan_facts(wanted)
    if earlier:
        facts = facts_after(facts, wanted.place, earlier)
    found = [*preflight(wanted, facts, rows), *shared_objects(wanted, earlier)]
    return CheckedComponent(wanted, facts, found)


class CheckedInTurn:
    """The checks of several deployments by one click, one after the other, in the order in which
    they are deployed. `rows`: how all components are before the first one.
    """

    def __init__(self, rows: Rows) -> None:
        self.found: list[CheckedComponent] = []
        self._rows = rows

    def check(
        self, cluster: ComponentQuestions, component: Component, source: ComponentSource
    ) -> CheckedComponent:
        """Raises as `checked_component`."""
        earlier = [each.wanted for each in self.found]
        do = OperationKind.DEPLOY
        one = checked_component(cluster, component, do, self._rows, source, earlier)
        self._rows = with_deployed(self._rows, one.wanted)
        self.found.append(one)
        return one


def chained(steps: Sequence[OperationStep], before: Operation | None) -> list[OperationStep]:
    """The steps, after the operation `before`."""
    return [*([after(before.id, before.subject)] if before is not None else []), *steps]


def wanted_component(
    cluster: ComponentQuestions,
    component: Component,
    do: OperationKind,
    row: ComponentRow,
    source: ComponentSource,
) -> WantedComponent:
    stand_in = () if source.chart else cluster.stand_in(component.id)
    is_helm = component.backend is Backend.HELM and not stand_in
    place = source.place or row.namespace or component.namespace
    given = source.manifests if source.manifests is not None else stand_in or None
    wanted = WantedComponent(
        component=component,
        do=do,
        place=place,
        home=cluster.home(),
        version=source.version or ("" if is_helm else row.available),
        release=(row.release or component.id) if is_helm else "",
        chart=source.chart,
        values=with_fixed(source.values, component.fixed) if is_helm else {},
        has_source=bool(source.chart) if is_helm else given is not None,
        seconds=source.seconds,
    )
    if source.chart:
        if plain_secrets(wanted.values) or not source.has_helm:
            return wanted  # the check names them; the chart does not get them
        try:
            rendered = cluster.render(helm_step(wanted))
        except NoHelm:
            return wanted  # the check `helm` has the command to run elsewhere
        return replace(wanted, objects=cluster.placed(rendered, place))
    if is_helm or given is None:
        return wanted
    return _as_members(cluster, replace(wanted, objects=cluster.placed(given, place)))


def removed_component(
    cluster: ComponentQuestions, component: Component, row: ComponentRow, source: ComponentSource
) -> WantedComponent:
    is_helm = component.backend is Backend.HELM and row.managed_by != "native"
    return WantedComponent(
        component=component,
        do=OperationKind.REMOVE,
        place=row.namespace or component.namespace,
        home=cluster.home(),
        release=(row.release or component.id) if is_helm else "",
        deletes_definitions=source.deletes_definitions,
        seconds=source.seconds,
    )


def helm_step(wanted: WantedComponent) -> HelmStep:
    """The step that makes the wanted release."""
    return HelmStep(
        "upgrade" if wanted.do is OperationKind.UPGRADE else "install",
        wanted.release,
        wanted.place,
        wanted.chart,
        wanted.version,
        wanted.values,
    )


def with_fixed(values: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The values with those of a component that are always so.

    >>> with_fixed({"crdUpgrade": {"enabled": True, "image": "x"}}, {"crdUpgrade": {"enabled": 0}})
    {'crdUpgrade': {'enabled': 0, 'image': 'x'}}
    """
    found = dict(values)
    for key, value in fixed.items():
        inner = found.get(key)
        if isinstance(value, dict):
            found[key] = with_fixed(inner if isinstance(inner, dict) else {}, value)
        else:
            found[key] = value
    return found


def check_fits(row: ComponentRow, do: OperationKind) -> None:
    """Raises UserError for an operation that does not fit the component's state."""
    if row.state is ComponentState.FOREIGN:
        raise UserError(
            f"`{row.id}` is not changed: {row.message}", "use the program that deployed it"
        )
    is_absent = row.state is ComponentState.NOT_INSTALLED
    if do is OperationKind.DEPLOY and not is_absent and row.state is not None:
        hint = f"`fairlead component upgrade {row.id}` changes it"
        raise UserError(f"`{row.id}` is there already: {row.state.value}", hint)
    if do is not OperationKind.DEPLOY and is_absent:
        hint = f"`fairlead component deploy {row.id}` deploys it"
        reason = f": {row.message}" if row.message else ""
        raise UserError(f"`{row.id}` is not installed{reason}", hint)


def _as_members(cluster: ComponentQuestions, wanted: WantedComponent) -> WantedComponent:
    set_id = apply_set_id(wanted.component.id, wanted.home)
    spaces = [object_ref(each) for each in wanted.objects if each["kind"] == "Namespace"]
    existing = [
        ref.name
        for ref, found in zip(spaces, cluster.found(spaces), strict=True)
        if found is not None and not is_member(found, set_id)
    ]
    return replace(wanted, objects=tuple(native_objects(wanted, existing)))
