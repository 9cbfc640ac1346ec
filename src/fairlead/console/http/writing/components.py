"""Plans of the page Components: what deploying, upgrading or removing would do, one or several.

A plan is kept only if no check fails; `writing/operations` starts it. Several are operations that
follow each other; parts of Fairlead's installation are one of them. A secret is in none: values
that look like one fail a check.

Specification: docs/spec/console.md#writing-components.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs
from starlette.requests import Request

from fairlead.console.boards.data.component_rows import source_of
from fairlead.console.http.answers import Refused
from fairlead.console.http.data.operation_desk import OperationDesk
from fairlead.console.http.data.read_components import ReadComponents
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writing.component_orders import (
    asked_source,
    component_line,
    together_line,
)
from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written, invalid, not_there
from fairlead.console.http.writing.wanted_component import (
    CheckedInTurn,
    ComponentSource,
    chained,
    check_fits,
    checked_component,
)
from fairlead.console.pages.data.components import (
    ChangedField,
    ChangedObject,
    ComponentCheck,
    ComponentOrder,
    ComponentPlanned,
    ComponentsOrder,
    ComponentsPlanned,
    PlannedComponent,
)
from fairlead.console.pages.data.operation_ids import new_id
from fairlead.console.pages.endpoints import BASE
from fairlead.console.pages.envelope import FieldFault, timestamp
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installed.component_facts import ComponentFacts, WantedComponent
from fairlead.model.installed.facts import Unread
from fairlead.model.installed.finding import Finding, State
from fairlead.model.operations.component import Component, ComponentRow
from fairlead.model.operations.operation import INSTALLATION, Operation, OperationKind
from fairlead.model.records.audit import AuditTarget
from fairlead.ports import InstallationPlans
from fairlead.rules.components.catalogue import component_of
from fairlead.rules.components.component_plan import ComponentPlan, ObjectChange, component_plan
from fairlead.rules.components.part_plan import part_plan
from fairlead.rules.components.preflight import SHARING, part_preflight
from fairlead.rules.components.secrets import plain_secrets
from fairlead.rules.components.several import in_order_of_needs, with_deployed
from fairlead.rules.components.state import SUBJECT, component_rows, with_operations
from fairlead.rules.components.values import named_value_faults
from fairlead.rules.operations.progress import PLAN_SECONDS, planned
from fairlead.wire.components.inventory import render_component_inventory
from fairlead.wire.helm.failures import BAD_VALUES
from fairlead.wire.installation.values import merged

KIND: Final = "Component"
_Rows = Mapping[str, ComponentRow]


class Asked(Struct, frozen=True):
    """One order as it is read."""

    component: Component
    do: OperationKind
    source: ComponentSource


class PreparedOperation(Struct, frozen=True):
    """What one operation of a plan will do. `seen`: the objects that it was made from, by title."""

    components: Sequence[Component]
    do: OperationKind
    subject: str
    findings: Sequence[Finding]
    id: str = ""
    plan: ComponentPlan = ComponentPlan((), 0, ())
    seen: Mapping[str, ObjectRef] = {}


class ComponentPlans(Struct, frozen=True):
    """`components`: what is there; `desk`: where plans are recorded; `installation`: None = parts
    are written by commands only.
    """

    components: ReadComponents
    desk: OperationDesk
    installation: InstallationPlans | None = None

    async def plan(self, request: Request, order: ComponentOrder) -> PlannedWrite:
        """Raises Refused: 404 for an unknown component, 422 for a field that cannot be read."""
        component = _known(order.component)
        do, source, faults = asked_source(order)
        if faults:
            raise invalid(faults)
        facts, rows = await self._seen()
        kind = self._source_of(component, facts)
        blocked = _unfit(rows[component.id], do, kind)
        if kind in ("", "command"):
            return _of_command(component, do, order, rows, blocked)
        asked = Asked(component, do, structs.replace(source, has_helm=facts.has_helm))
        if kind == "part":
            made = await self._parts([asked], rows)
        else:
            made = await self._one(asked, rows, None)
        made = _undone(made, blocked)

        def answer(plan_id: str) -> ComponentPlanned:
            return ComponentPlanned(
                valid=not _faults(made) and blocked is None,
                fields=[*_reason(blocked), *_faults(made), *_value_faults(asked)],
                effects=[],
                checks=_checks(made.findings),
                changes=[_changed(each) for each in made.plan.changes],
                same=made.plan.same,
                steps=[each.title for each in made.plan.steps],
                line=component_line(order),
                plan_id=plan_id,
                valid_until=timestamp(self.desk.now() + PLAN_SECONDS) if plan_id else None,
            )

        return self._planned(request, [made], blocked, answer, _faults(made))

    async def plan_several(self, request: Request, order: ComponentsOrder) -> PlannedWrite:
        """One deployment of several. Raises Refused: 404 for an unknown component, 422 for a field
        that cannot be read, for none, and for one that is named twice.
        """
        asked, faults = _all_asked(order)
        if faults:
            raise invalid(faults)
        facts, rows = await self._seen()
        blocked = None
        for one in asked:
            kind = self._source_of(one.component, facts)
            blocked = blocked or _unfit(rows[one.component.id], OperationKind.DEPLOY, kind)
            if kind == "command":
                what = f"`{one.component.id}` is a part of an installation that a command writes"
                line = component_line(ComponentOrder(one.component.id))
                blocked = blocked or Blocked(what, f"run `{line}`")
        made = [] if blocked else await self._all(asked, facts, rows)
        named = [
            structs.replace(fault, path=f"{each.components[0].id}.{fault.path}".rstrip("."))
            for each in made
            for fault in _faults(each)
        ]

        def answer(plan_id: str) -> ComponentsPlanned:
            return ComponentsPlanned(
                valid=not named and blocked is None,
                fields=[*_reason(blocked), *named],
                effects=[],
                items=[_item(each) for each in made],
                line=together_line(order.components),
                plan_id=plan_id,
                valid_until=timestamp(self.desk.now() + PLAN_SECONDS) if plan_id else None,
            )

        return self._planned(request, made, blocked, answer, named)

    async def _seen(self) -> tuple[ComponentFacts, dict[str, ComponentRow]]:
        facts = await self.components.facts()
        facts = with_operations(facts, await self.desk.records.list())
        return facts, {each.id: each for each in component_rows(facts)}

    def _source_of(self, component: Component, facts: ComponentFacts) -> str:
        kind = source_of(component, facts)
        return "command" if kind == "part" and self.installation is None else kind

    async def _all(
        self, asked: Sequence[Asked], facts: ComponentFacts, rows: _Rows
    ) -> list[PreparedOperation]:
        """In the order in which they are deployed."""
        by_id = {each.component.id: each for each in asked}
        order = [by_id[each.id] for each in in_order_of_needs([one.component for one in asked])]
        parts = [each for each in order if each.component.part]
        found = []
        if parts:
            found.append(await self._parts(parts, rows))
            for each in parts:
                wanted = WantedComponent(component=each.component, do=each.do, place="", home="")
                rows = with_deployed(rows, wanted)
        turn = CheckedInTurn(rows)
        for each in order:
            if not each.component.part:
                source = structs.replace(each.source, has_helm=facts.has_helm)
                found.append(await self._one(structs.replace(each, source=source), rows, turn))
        return found

    async def _one(
        self, asked: Asked, rows: _Rows, turn: CheckedInTurn | None
    ) -> PreparedOperation:
        """A component that is no part. `turn`: what is deployed before it by the same click."""
        component, do, source = asked.component, asked.do, asked.source
        cluster = self.components.questions()
        try:
            if turn is not None:
                found = await asyncio.to_thread(turn.check, cluster, component, source)
            else:
                found = await asyncio.to_thread(
                    checked_component, cluster, component, do, rows, source
                )
        except UserError as error:
            raise _unreadable(asked, error, is_one=turn is None) from error
        except OutsideError as error:
            if error.system != "helm":
                raise
            raise _unreadable(asked, error, is_one=turn is None) from error
        id = new_id()
        plan = component_plan(found.wanted, found.facts, id, render_component_inventory)
        seen = [*(each.manifest for each in found.facts.tried), *found.facts.members]
        targets = {ref.title: ref for ref in map(object_ref, seen)}
        subject = f"{SUBJECT}{component.id}"
        return PreparedOperation([component], do, subject, found.findings, id, plan, targets)

    async def _parts(self, asked: Sequence[Asked], rows: _Rows) -> PreparedOperation:
        """Parts of the installation, by one upgrade. What the installer refuses is a check."""
        assert self.installation is not None
        components, do = [each.component for each in asked], asked[0].do
        subject = f"{INSTALLATION}{','.join(each.id for each in components)}"
        findings: list[Finding] = []
        values: dict[str, Any] = {}
        for each in asked:
            wanted = WantedComponent(component=each.component, do=do, place="", home="")
            findings += part_preflight(wanted, rows, await self._sharing_pods(each))
            rows = with_deployed(rows, wanted) if do is OperationKind.DEPLOY else rows
            values = merged(values, each.source.values)
        if secrets := plain_secrets(values):
            sentence = f"the values have a secret in plain text: {', '.join(secrets)}"
            mend = "write it into a Secret; `store.url` names none"
            bad = Finding("config-complete", State.FAIL, sentence, mend)
            return PreparedOperation(components, do, subject, [*findings, bad])
        parts = {each.part: do is not OperationKind.REMOVE for each in components}
        try:
            found = await asyncio.to_thread(self.installation.plan, parts, values)
        except UserError as error:
            refusal = Finding("installation", State.FAIL, error.what, error.hint)
            return PreparedOperation(components, do, subject, [*findings, refusal])
        plan = part_plan(found)
        refs = [*(each.manifest for each in found.tried), *found.removed]
        targets = {ref.title: ref for ref in map(object_ref, refs)}
        # As the command: what is not sound now may be what this upgrade mends.
        found_checks = [*findings, *map(_as_warning, found.findings)]
        return PreparedOperation(components, do, subject, found_checks, new_id(), plan, targets)

    async def _sharing_pods(self, asked: Asked) -> tuple[str, ...] | Unread:
        if asked.do is not OperationKind.REMOVE or asked.component.id not in SHARING:
            return ()
        return await asyncio.to_thread(self.components.questions().sharing_pods)

    def _planned(
        self,
        request: Request,
        made: Sequence[PreparedOperation],
        blocked: Blocked | None,
        answer: Any,
        faults: Sequence[FieldFault],
    ) -> PlannedWrite:
        """Records one operation for each; the last one waits for all before it."""
        subject = subject_of(request)
        by = subject.user or subject.name

        async def act() -> Written:
            before: Operation | None = None
            for each in made:
                operation = planned(
                    each.id,
                    each.do,
                    each.subject,
                    chained(each.plan.steps, before),
                    undo=each.plan.undo,
                    by=by,
                    now=self.desk.now(),
                    seen=each.plan.seen,
                )
                before = await self.desk.record(operation, each.seen)
            assert before is not None
            return Written(answer(before.id), 201, f"{BASE}/operations/{before.id}")

        ids = ",".join(one.id for each in made for one in each.components)
        do = made[0].do if made else OperationKind.DEPLOY
        return PlannedWrite(
            target=AuditTarget(KIND, "", ids),
            act=act,
            summary=f"plan: {do} {ids}",
            faults=faults,
            blocked=blocked,
            preview=answer(""),
        )


def _as_warning(found: Finding) -> Finding:
    return structs.replace(found, state=State.WARN) if found.state is State.FAIL else found


def _all_asked(order: ComponentsOrder) -> tuple[list[Asked], list[FieldFault]]:
    """Raises Refused: 404 for an unknown component, 422 for none, or one that is named twice."""
    asked, faults = [], []
    if not order.components:
        fault = FieldFault("components", "components", "no component is named")
        raise invalid([fault])
    for each in order.components:
        component = _known(each.component)
        do, source, wrong = asked_source(each)
        if do is not OperationKind.DEPLOY:
            error = f"`{each.do}`: several components are deployed together, and nothing else"
            wrong = [*wrong, FieldFault("do", "do", error)]
        faults += [structs.replace(fault, path=f"{component.id}.{fault.path}") for fault in wrong]
        asked.append(Asked(component, do, source))
    try:
        in_order_of_needs([each.component for each in asked])
    except UserError as error:
        faults.append(FieldFault("components", "components", f"{error.what}: {error.hint}"))
    return asked, faults


def _known(id: str) -> Component:
    try:
        return component_of(id)
    except UserError as error:
        raise not_there("component", id, error.hint) from error


def _unreadable(asked: Asked, error: FairleadError, *, is_one: bool) -> Refused:
    """422 for a chart or manifests that cannot be read."""
    path = "chart" if asked.source.chart else "manifests"
    if path == "chart" and error.hint == BAD_VALUES:
        path = "values"
    hint = f": {error.hint}" if error.hint else ""
    place = path if is_one else f"{asked.component.id}.{path}"
    return invalid([FieldFault(place, path, f"{error.what}{hint}")])


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
    """A part where there is no installation, or one of Helm: a command writes it."""
    line = component_line(order)
    checks: Iterable[Finding] = ()
    if component.part:
        wanted = WantedComponent(component=component, do=do, place="", home="")
        checks = part_preflight(wanted, rows)
        what = f"`{component.id}` is a part of an installation that a command writes"
        blocked = blocked or Blocked(what, f"run `{line}`")
    assert blocked is not None
    return PlannedWrite(
        target=AuditTarget(KIND, "", component.id),
        act=_never,
        blocked=blocked,
        preview=ComponentPlanned(
            valid=False,
            fields=_reason(blocked),
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


def _reason(blocked: Blocked | None) -> list[FieldFault]:
    return [FieldFault("", "state", blocked.reason)] if blocked else []


def _undone(made: PreparedOperation, blocked: Blocked | None) -> PreparedOperation:
    """What cannot be done has no changes to show."""
    return made if blocked is None else structs.replace(made, plan=ComponentPlan((), 0, ()))


def _value_faults(asked: Asked) -> list[FieldFault]:
    """At their paths; the check `config-complete` has them, too."""
    return [
        FieldFault(f"values.{name}", "values", f"{fault}: {mend}")
        for name, fault, mend in named_value_faults(asked.component, asked.source.values)
    ]


def _item(made: PreparedOperation) -> PlannedComponent:
    return PlannedComponent(
        components=[each.id for each in made.components],
        checks=_checks(made.findings),
        changes=[_changed(each) for each in made.plan.changes],
        same=made.plan.same,
        steps=[each.title for each in made.plan.steps],
    )


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


def _faults(made: PreparedOperation) -> list[FieldFault]:
    return [_fault(each) for each in made.findings if each.state is State.FAIL]


def _fault(found: Finding) -> FieldFault:
    mend = f": {found.mend}" if found.mend else ""
    return FieldFault("", found.check, f"{found.sentence}{mend}", found.check)
