"""The steps of an operation on parts of Fairlead's installation: what `fairlead upgrade` writes, in
the same order and by the same field manager, so that a command can go on with it.

Specification: docs/spec/components.md#plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.installed.component_facts import TriedObject
from fairlead.model.installed.planned_installation import PlannedInstallation
from fairlead.model.operations.operation import (
    ApplyStep,
    OperationStep,
    ReadyStep,
    RemoveStep,
)
from fairlead.rules.components.component_plan import (
    ComponentPlan,
    ObjectChange,
    changed_objects,
    object_changes,
    title_of,
)
from fairlead.rules.installation.comparable import content_version
from fairlead.rules.installation.order import (
    DATA_KINDS,
    NAMESPACE,
    WORKLOADS,
    is_ready,
    is_webhooks,
    without_refusals,
)

_SERVER: Final = "fairlead-admission-webhook"
"""The Deployment that answers the webhooks."""
_DEFINITION_SECONDS: Final = 60.0


def part_plan(planned: PlannedInstallation) -> ComponentPlan:
    """What changes, and the steps. Objects that do not change are not written."""
    changes, same = object_changes(planned.tried)
    removed = tuple(object_ref(each) for each in planned.removed)
    changes += [ObjectChange("delete", each) for each in removed]
    steps = [*_steps(planned, removed)]
    seen = {object_ref(each.manifest).title: content_version(each.found) for each in planned.tried}
    seen |= {object_ref(each).title: content_version(each) for each in planned.removed}
    return ComponentPlan(tuple(changes), same, tuple(steps), seen=seen)


def _steps(planned: PlannedInstallation, removed: Sequence[ObjectRef]) -> Iterator[OperationStep]:
    manager = planned.manager
    changed = changed_objects(planned.tried)
    spaces = [each for each in changed if each["kind"] == NAMESPACE]
    for each in spaces:
        yield _apply(each, manager)
    yield _record("record the objects", planned.writing, manager)
    held = _held_back(planned)
    names = {object_ref(each).identity for each in held}
    definitions = [object_ref(each) for each in changed if each["kind"] in DATA_KINDS]
    others = [each for each in changed if each["kind"] not in (NAMESPACE, *DATA_KINDS)]
    for each in changed:
        if each["kind"] in DATA_KINDS:
            yield _apply(each, manager)
    if definitions:
        title = f"wait for {title_of(definitions)}"
        yield OperationStep(title, ReadyStep(tuple(definitions), _DEFINITION_SECONDS))
    for each in others:
        is_held = object_ref(each).identity in names
        yield _apply(without_refusals(each) if is_held else each, manager)
    workloads = [
        object_ref(each.manifest) for each in planned.tried if each.manifest["kind"] in WORKLOADS
    ]
    if held:
        server = [each for each in workloads if each.name == _SERVER]
        awaited = (*server, *map(object_ref, held))
        yield OperationStep(f"wait for {title_of(awaited)}", ReadyStep(awaited))
        for each in held:
            yield _apply(each, manager)
    if planned.first is not None:
        yield _apply(planned.first, manager)
    if removed:
        yield OperationStep(f"remove {title_of(removed)}", RemoveStep(tuple(removed)))
    yield _record("record the end", planned.complete, manager)
    if workloads:
        yield OperationStep(f"wait for {title_of(workloads)}", ReadyStep(tuple(workloads)))


def _held_back(planned: PlannedInstallation) -> list[Manifest]:
    """Webhooks that refuse nothing until their server answers: pods of the installation itself
    could not be made.
    """
    if planned.is_simulated:
        return []
    return [
        each.manifest
        for each in planned.tried
        if is_webhooks(each.manifest) and not _is_answered(each)
    ]


def _is_answered(tried: TriedObject) -> bool:
    return isinstance(tried.found, dict) and is_ready(tried.found)


def _apply(manifest: Manifest, manager: str) -> OperationStep:
    return OperationStep(
        f"apply {object_ref(manifest).title}", ApplyStep(manifest, manager=manager)
    )


def _record(title: str, manifest: Manifest, manager: str) -> OperationStep:
    work = ApplyStep(manifest, "configmaps", is_forced=True, manager=manager, is_alone=True)
    return OperationStep(title, work)
