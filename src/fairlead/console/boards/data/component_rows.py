"""The rows of the page Components, and what its panel shows of one component."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.console.boards.data.operation_rows import operation_row
from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.data.components import (
    ComponentDetail,
    ComponentField,
    ComponentListRow,
    ComponentObject,
)
from fairlead.console.pages.envelope import Sentence, Warning, counted
from fairlead.model.actions import ObjectRef
from fairlead.model.installed.component_facts import ComponentFacts, InstallationFact
from fairlead.model.installed.facts import Unread
from fairlead.model.operations.component import (
    Backend,
    Component,
    ComponentRow,
    ComponentState,
)
from fairlead.model.operations.operation import HelmStep, Operation, OperationState
from fairlead.rules.components.catalogue import component_of
from fairlead.rules.components.state import component_ids, component_rows, is_installed
from fairlead.wire.files.manifest_yaml import render_manifests

UNKNOWN = "unknown"


def component_row_set(facts: ComponentFacts, charts: str = "") -> RowSet[ComponentListRow]:
    """In the order of the catalogue. `charts`: folder of charts in a registry, "" = none."""
    rows = [component_list_row(each, facts, charts) for each in component_rows(facts)]
    facets = {
        "group": list(dict.fromkeys(row.group for row in rows)),
        "state": choices(row.state or UNKNOWN for row in rows),
    }
    return RowSet(ComponentListRow, [_entry(row) for row in rows], facets, ties="")


def component_list_row(
    row: ComponentRow, facts: ComponentFacts, charts: str = ""
) -> ComponentListRow:
    component = component_of(row.id)
    source = source_of(component, facts)
    return ComponentListRow(
        id=row.id,
        group=row.group.value,
        title=row.title,
        title_zh=row.title_zh,
        state=row.state.value if row.state else None,
        version=row.version,
        available=row.available,
        can_upgrade=row.can_upgrade,
        managed_by=row.managed_by,
        namespace=row.namespace,
        release=row.release,
        message=row.message,
        source=source,
        chart=f"{charts}/{component.chart}" if charts and source == "chart" else "",
        is_required=row.is_required,
        operation=row.operation,
        fields=[
            ComponentField(each.name, each.type, each.title, each.title_zh)
            for each in component.values
        ],
    )


def source_of(component: Component, facts: ComponentFacts) -> str:
    """See `ComponentListRow`.

    >>> source_of(component_of("fluid"), ComponentFacts(program="0.1.0"))
    'chart'
    """
    if component.is_required or component.backend is Backend.OTHER:
        return ""
    if component.part:
        installed = facts.installation
        is_own = isinstance(installed, InstallationFact) and not installed.release
        return "part" if is_own else "command"
    if component.id in facts.stand_ins:
        return "none"
    return "chart" if component.backend is Backend.HELM else "manifests"


def components_sentence(rows: Sequence[ComponentListRow]) -> Sentence:
    """
    >>> components_sentence([]).text
    '0 of 0 components deployed; 0 not ready.'
    """
    absent = (None, ComponentState.NOT_INSTALLED)
    there = [row for row in rows if row.state not in absent]
    good = (ComponentState.READY, ComponentState.FOREIGN)
    bad = sum(row.state not in good for row in there)
    values = {"all": len(rows), "there": len(there), "bad": bad}
    text = f"{len(there)} of {counted(len(rows), 'component')} deployed; {bad} not ready."
    return Sentence("components", dict(values), text)


def component_detail(
    row: ComponentRow,
    facts: ComponentFacts,
    operations: Iterable[Operation],
    envelope: tuple[str, bool, str, list[Warning]],
    links: Sequence[str] = (),
    charts: str = "",
) -> ComponentDetail:
    """`operations`: all that the reader may see, the newest first. `links`: of its pages.
    `charts`: as in `component_row_set`.
    """
    own = [each for each in operations if row.id in component_ids(each.subject)]
    return ComponentDetail(
        *envelope,
        row=component_list_row(row, facts, charts),
        values=_values(row, facts, own) if is_installed(row) else "",
        objects=[
            ComponentObject(each.kind, each.namespace, each.name)
            for each in component_objects(row, facts)
        ],
        history=[operation_row(each) for each in own],
        links=list(links),
    )


def component_objects(row: ComponentRow, facts: ComponentFacts) -> list[ObjectRef]:
    """What the inventory lists, or the workloads of a part or of a Helm release."""
    component = component_of(row.id)
    if not isinstance(facts.inventories, Unread):
        for each in facts.inventories:
            if each.id == row.id:
                return list(each.objects)
    if not is_installed(row):
        return []
    installed = facts.installation
    names = {(each.kind, each.name) for each in component.workloads}
    if component.part and not isinstance(installed, Unread) and installed is not None:
        return [each for each in installed.workloads if (each.kind, each.name) in names]
    if isinstance(facts.workloads, Unread):
        return []
    return [
        ObjectRef("apps/v1", each.kind, each.name, each.namespace)
        for each in facts.workloads
        if each.namespace == row.namespace
        and ((each.kind, each.name) in names or (row.release and each.release == row.release))
    ]


def _values(row: ComponentRow, facts: ComponentFacts, own: Iterable[Operation]) -> str:
    """Of the inventory, or of the last Helm step that ended."""
    if not isinstance(facts.inventories, Unread):
        for each in facts.inventories:
            if each.id == row.id:
                return each.values
    for operation in own:
        if operation.state is not OperationState.SUCCEEDED:
            continue
        for step in operation.steps:
            if isinstance(step.work, HelmStep) and step.work.verb in ("install", "upgrade"):
                return render_manifests([dict(step.work.values)]) if step.work.values else ""
    return ""


def _entry(row: ComponentListRow) -> Entry[ComponentListRow]:
    words = [row.id, row.group, row.title, row.title_zh, row.state or UNKNOWN, row.message]
    answers = {"group": lowered(row.group), "state": lowered(row.state or UNKNOWN)}
    return Entry(row, "\n".join(words).lower(), answers)
