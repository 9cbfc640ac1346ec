"""Plans of the page Components: what deploying, upgrading or removing one would do.

A plan is kept only if no check fails; `writing/operations` starts it. A secret is in none: values
that look like one fail a check.

Specification: docs/spec/console.md#writing-components.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, structs
from starlette.requests import Request

from fairlead.console.boards.data.component_rows import source_of
from fairlead.console.http.answers import Refused
from fairlead.console.http.data.operation_desk import OperationDesk
from fairlead.console.http.data.read_components import ReadComponents
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written, invalid, not_there
from fairlead.console.http.writing.wanted_component import (
    CheckedComponent,
    ComponentSource,
    check_fits,
    checked_component,
)
from fairlead.console.pages.data.components import (
    ChangedField,
    ChangedObject,
    ComponentCheck,
    ComponentOrder,
    ComponentPlanned,
)
from fairlead.console.pages.data.operation_ids import new_id
from fairlead.console.pages.endpoints import BASE
from fairlead.console.pages.envelope import FieldFault, timestamp
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installed.component_facts import WantedComponent
from fairlead.model.installed.finding import Finding, State
from fairlead.model.operations.component import Component, ComponentRow
from fairlead.model.operations.operation import OperationKind
from fairlead.model.records.audit import AuditTarget
from fairlead.rules.components.catalogue import component_of
from fairlead.rules.components.component_plan import ComponentPlan, ObjectChange, component_plan
from fairlead.rules.components.preflight import part_preflight
from fairlead.rules.components.state import SUBJECT, component_rows, with_operations
from fairlead.rules.components.versions import is_version
from fairlead.rules.operations.progress import PLAN_SECONDS, planned
from fairlead.wire.components.inventory import render_component_inventory
from fairlead.wire.components.manifests import parse_manifests
from fairlead.wire.installation.values import read_values

KIND: Final = "Component"
_KINDS: Final = (OperationKind.DEPLOY, OperationKind.UPGRADE, OperationKind.REMOVE)
_ADDRESSES: Final = ("oci://", "https://")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_Rows = Mapping[str, ComponentRow]


class ComponentPlans(Struct, frozen=True):
    """`components`: what is there; `desk`: where plans are recorded."""

    components: ReadComponents
    desk: OperationDesk

    async def plan(self, request: Request, order: ComponentOrder) -> PlannedWrite:
        """Raises Refused: 404 for an unknown component, 422 for a field that cannot be read."""
        component = _known(order.component)
        do, source, faults = asked_source(order)
        if faults:
            raise invalid(faults)
        facts = await self.components.facts()
        facts = with_operations(facts, await self.desk.records.list())
        rows = {each.id: each for each in component_rows(facts)}
        row = rows[component.id]
        kind = source_of(component, facts)
        blocked = _unfit(row, do, kind)
        if kind in ("", "command"):
            return _of_command(component, do, order, rows, blocked)
        source = structs.replace(source, has_helm=facts.has_helm)
        cluster = self.components.questions()
        try:
            found = await asyncio.to_thread(checked_component, cluster, component, do, rows, source)
        except UserError as error:
            raise _unreadable(order, error) from error
        except OutsideError as error:
            if error.system != "helm":
                raise
            raise _unreadable(order, error) from error
        id = new_id()
        plan = component_plan(found.wanted, found.facts, id, render_component_inventory)
        return self._planned(request, order, found, plan, id, blocked)

    def _planned(
        self,
        request: Request,
        order: ComponentOrder,
        found: CheckedComponent,
        plan: ComponentPlan,
        id: str,
        blocked: Blocked | None,
    ) -> PlannedWrite:
        component, now = found.wanted.component, self.desk.now()
        faults = [_fault(each) for each in found.findings if each.state is State.FAIL]
        subject = subject_of(request)
        operation = planned(
            id,
            found.wanted.do,
            f"{SUBJECT}{component.id}",
            plan.steps,
            undo=plan.undo,
            by=subject.user or subject.name,
            now=now,
            seen=plan.seen,
        )

        def answer(plan_id: str) -> ComponentPlanned:
            reasons = [FieldFault("", "state", blocked.reason)] if blocked else []
            return ComponentPlanned(
                valid=not faults and blocked is None,
                fields=[*reasons, *faults],
                effects=[],
                checks=_checks(found.findings),
                changes=[_changed(each) for each in plan.changes],
                same=plan.same,
                steps=[each.title for each in plan.steps],
                line=component_line(order),
                plan_id=plan_id,
                valid_until=timestamp(now + PLAN_SECONDS) if plan_id else None,
            )

        async def act() -> Written:
            made = await self.desk.record(operation, _seen_targets(found))
            return Written(answer(made.id), 201, f"{BASE}/operations/{made.id}")

        return PlannedWrite(
            target=AuditTarget(KIND, "", component.id),
            act=act,
            summary=f"plan: {found.wanted.do} {component.id}",
            faults=faults,
            blocked=blocked,
            preview=answer(""),
        )


def asked_source(
    order: ComponentOrder,
) -> tuple[OperationKind, ComponentSource, list[FieldFault]]:
    """The order as it is written, and what is wrong with its fields.

    >>> _, _, faults = asked_source(ComponentOrder("fluid", "burn", "/etc", "x", namespace="A b"))
    >>> [each.path for each in faults]
    ['do', 'chart', 'version', 'namespace']
    """
    faults: list[FieldFault] = []

    def fault(path: str, error: str) -> None:
        faults.append(FieldFault(path, path, error))

    do = next((each for each in _KINDS if each == order.do), None)
    if do is None:
        fault("do", f"`{order.do[:60]}` is not done with components: {', '.join(_KINDS)}")
    if order.chart and not order.chart.startswith(_ADDRESSES):
        what = f"the chart is `{order.chart[:100]}`; the console reads charts at oci:// or https://"
        fault("chart", what)
    if order.version and not is_version(order.version):
        fault("version", f"`{order.version[:60]}` is no version; write one like 1.0.8")
    if order.namespace and not _NAMESPACE.fullmatch(order.namespace):
        fault("namespace", f"`{order.namespace[:100]}` is no name of a namespace")
    values: dict[str, Any] = {}
    manifests = None
    try:
        values = read_values(order.values, "values")
    except UserError as error:
        fault("values", error.what)
    try:
        if order.manifests.strip():
            manifests = tuple(parse_manifests(order.manifests, "manifests"))
    except UserError as error:
        fault("manifests", error.what)
    source = ComponentSource(
        chart=order.chart,
        version=order.version,
        place=order.namespace,
        values=values,
        manifests=manifests,
        deletes_definitions=order.delete_definitions,
    )
    return do or OperationKind.DEPLOY, source, faults


def component_line(order: ComponentOrder) -> str:
    """The command that does the same. Values and manifests are files there.

    >>> component_line(ComponentOrder("fluid", chart="oci://h/fluid", values="a: 1"))
    'fairlead component deploy fluid --chart oci://h/fluid --values values.yaml'
    """
    words = ["fairlead", "component", order.do, order.component]
    if order.do == OperationKind.REMOVE:
        return " ".join([*words, *(["--delete-definitions"] if order.delete_definitions else [])])
    flags = {
        "--chart": order.chart,
        "--version": order.version,
        "--manifests": "manifests.yaml" if order.manifests.strip() else "",
        "--in": order.namespace,
        "--values": "values.yaml" if order.values.strip() else "",
    }
    for flag, value in flags.items():
        words += [flag, value] if value else []
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """One word for a shell."""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def _known(id: str) -> Component:
    try:
        return component_of(id)
    except UserError as error:
        raise not_there("component", id, error.hint) from error


def _unreadable(order: ComponentOrder, error: FairleadError) -> Refused:
    """422 for a chart or manifests that cannot be read."""
    path = "chart" if order.chart else "manifests"
    hint = f": {error.hint}" if error.hint else ""
    return invalid([FieldFault(path, path, f"{error.what}{hint}")])


def _unfit(row: ComponentRow, do: OperationKind, kind: str) -> Blocked | None:
    """Why this cannot be done in the component's state."""
    if row.operation:
        return Blocked(f"operation `{row.operation}` is at work on `{row.id}`", "wait for its end")
    if not kind:
        what = f"Fairlead shows `{row.id}` and does not change it"
        return Blocked(what, "use the program's own installation")
    try:
        check_fits(row, do)
    except UserError as error:
        return Blocked(error.what, error.hint)
    return None


def _of_command(
    component: Component,
    do: OperationKind,
    order: ComponentOrder,
    rows: _Rows,
    blocked: Blocked | None,
) -> PlannedWrite:
    """A part of the installation, which the installer writes, with its own inventory: never a
    server that is a part of it.
    """
    line = component_line(order)
    checks: Iterable[Finding] = ()
    if component.part:
        wanted = WantedComponent(component=component, do=do, place="", home="")
        checks = part_preflight(wanted, rows)
        what = f"`{component.id}` is a part of Fairlead's installation, which a command writes"
        blocked = blocked or Blocked(what, f"run `{line}`")
    assert blocked is not None
    return PlannedWrite(
        target=AuditTarget(KIND, "", component.id),
        act=_never,
        blocked=blocked,
        preview=ComponentPlanned(
            valid=False,
            fields=[FieldFault("", "state", blocked.reason)],
            effects=[],
            checks=_checks(checks),
            changes=[],
            same=0,
            steps=[],
            line=line if component.part else "",
        ),
    )


async def _never() -> Written:
    raise NotImplementedError


def _seen_targets(found: CheckedComponent) -> dict[str, ObjectRef]:
    """The objects whose versions the plan has seen, by title."""
    seen = [*(each.manifest for each in found.facts.tried), *found.facts.members]
    return {ref.title: ref for ref in map(object_ref, seen)}


def _checks(findings: Iterable[Finding]) -> list[ComponentCheck]:
    return [ComponentCheck(each.check, each.state, each.sentence, each.mend) for each in findings]


def _changed(change: ObjectChange) -> ChangedObject:
    return ChangedObject(
        do=change.do,
        kind=change.target.kind,
        namespace=change.target.namespace,
        name=change.target.name,
        fields=[ChangedField(each.path, each.old, each.new) for each in change.fields],
    )


def _fault(found: Finding) -> FieldFault:
    mend = f": {found.mend}" if found.mend else ""
    return FieldFault("", found.check, f"{found.sentence}{mend}", found.check)
