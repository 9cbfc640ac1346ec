"""What an operation on a component will change, and its steps.

Native objects are applied in the order of an installation, and what an earlier version had is
removed only if the inventory lists it, it has the label of the set and Fairlead has applied it.
Helm writes the objects of a chart, but for definitions, which Fairlead applies and keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.installed.component_facts import PlanFacts, TriedObject, WantedComponent
from fairlead.model.operations.apply_set import (
    apply_set_id,
    as_member,
    component_inventory_ref,
    is_member,
)
from fairlead.model.operations.component import ComponentInventory
from fairlead.model.operations.operation import (
    ApplyStep,
    GoneStep,
    HelmStep,
    OperationKind,
    OperationStep,
    ReadyStep,
    RemoveStep,
    StepWork,
)
from fairlead.rules.installation.comparable import changed_fields, content_version
from fairlead.rules.installation.order import in_any_order, in_any_removal_order

DEFINITION: Final = "CustomResourceDefinition"
_API: Final = "apiextensions.k8s.io/v1"
_NAMESPACE: Final = "Namespace"
_READY_KINDS: Final = ("Deployment", "DaemonSet", "StatefulSet")
_HIDDEN: Final = "<hidden>"
_LONGEST: Final = 200
RenderInventory = Callable[[ComponentInventory], Manifest]


class FieldChange(Struct, frozen=True):
    """`old`, `new`: JSON; "" = the field is absent. Of a Secret both are `<hidden>`."""

    path: str
    old: str
    new: str


class ObjectChange(Struct, frozen=True):
    """`do`: `create`, `change` (with its fields), `delete`, or `keep`: what stays at a removal."""

    do: str
    target: ObjectRef
    fields: tuple[FieldChange, ...] = ()


class ComponentPlan(Struct, frozen=True):
    """`same`: how many objects do not change. `undo`: steps after a failed write. `seen`: versions
    of the objects that the plan was made from, by title; "" = absent.
    """

    changes: tuple[ObjectChange, ...]
    same: int
    steps: tuple[OperationStep, ...]
    undo: tuple[OperationStep, ...] = ()
    seen: dict[str, str] = {}


def component_plan(
    wanted: WantedComponent, facts: PlanFacts, operation: str, render: RenderInventory
) -> ComponentPlan:
    """`operation`: the id. `render`: an inventory as its ConfigMap."""
    if wanted.do is OperationKind.REMOVE:
        return _removal(wanted, facts, operation, render)
    if wanted.chart:
        return _helm_plan(wanted, facts)
    return _native_plan(wanted, facts, operation, render)


def native_objects(wanted: WantedComponent, existing: Iterable[str]) -> list[Manifest]:
    """What is applied: the manifests as members of the set, in order, in the namespace that they
    name or else in that of the component. A namespace in `existing` that the set does not have is
    left as it is: with the label it would be removed with the component.
    """
    set_id = apply_set_id(wanted.component.id, wanted.home)
    kept = set(existing)
    return [
        as_member(_own_fields(each), set_id)
        for each in in_any_order(wanted.objects)
        if not (each["kind"] == _NAMESPACE and each["metadata"]["name"] in kept)
    ]


def _own_fields(manifest: Manifest) -> Manifest:
    """Without what the cluster writes: status, and the rules of an aggregated ClusterRole."""
    left_out = {"status"}
    if manifest["kind"] == "ClusterRole" and manifest.get("aggregationRule") is not None:
        left_out.add("rules")
    return {name: each for name, each in manifest.items() if name not in left_out}


def object_changes(tried: Iterable[TriedObject]) -> tuple[list[ObjectChange], int]:
    """What applying changes, and how many objects it does not change."""
    changes: list[ObjectChange] = []
    same = 0
    for each in tried:
        target = object_ref(each.manifest)
        if not isinstance(each.found, dict):
            changes.append(ObjectChange("create", target))
            continue
        if not isinstance(each.result, dict):  # the preflight names it
            continue
        fields = _field_changes(each.found, each.result)
        if fields:
            changes.append(ObjectChange("change", target, fields))
        else:
            same += 1
    return changes, same


def prunable(
    before: ComponentInventory | None, members: Iterable[Manifest], kept: Iterable[Manifest]
) -> list[ObjectRef]:
    """What an earlier version had and the next has not, with its uid, in the order of removal.

    An object has to be in the inventory, have the label of the set, and have been applied by
    Fairlead: any user may set a label, and an inventory may name an object that was made anew.
    Definitions stay, because all objects of their kind would go.
    """
    if before is None:
        return []
    set_id = apply_set_id(before.id, before.namespace)
    listed = {each.identity for each in before.objects}
    still = {object_ref(each).identity for each in kept}
    return in_any_removal_order(
        object_ref(each)
        for each in members
        if (identity := object_ref(each).identity) in listed
        and identity not in still
        and each["kind"] != DEFINITION
        and is_member(each, set_id)
    )


def taken_over(wanted: WantedComponent, facts: PlanFacts) -> list[ObjectRef]:
    """Objects of the inventory that are no members any more, so that a removal keeps them."""
    if facts.before is None:
        return []
    set_id = apply_set_id(wanted.component.id, facts.before.namespace)
    return [
        object_ref(each)
        for each in facts.members
        if each["kind"] != DEFINITION and not is_member(each, set_id)
    ]


def _native_plan(
    wanted: WantedComponent, facts: PlanFacts, operation: str, render: RenderInventory
) -> ComponentPlan:
    objects = [each.manifest for each in facts.tried]
    pruned = prunable(facts.before, facts.members, objects)
    changes, same = object_changes(facts.tried)
    refs = tuple(object_ref(each) for each in objects)
    complete = ComponentInventory(
        id=wanted.component.id,
        version=wanted.version,
        state="complete",
        namespace=wanted.home,
        place=wanted.place,
        objects=refs,
        operation=operation,
    )
    earlier = facts.before.objects if facts.before else ()
    known = {each.identity for each in refs}
    union = (*refs, *(each for each in earlier if each.identity not in known))
    writing = msgspec.structs.replace(complete, state="writing", objects=union)
    steps = [_step("record the objects", _inventory(render(writing)))]
    steps += _apply_steps(changed_objects(facts.tried))
    workloads = _workloads(objects)
    if workloads:
        steps.append(_step(f"wait for {title_of(workloads)}", ReadyStep(workloads, wanted.seconds)))
    if pruned:
        targets = tuple(pruned)
        steps.append(_step(f"remove {title_of(targets)}", RemoveStep(targets)))
    steps.append(_step("record the end", _inventory(render(complete))))
    changes += [ObjectChange("delete", each) for each in pruned]
    return ComponentPlan(tuple(changes), same, tuple(steps), seen=_seen(facts))


def changed_objects(tried: Iterable[TriedObject]) -> list[Manifest]:
    """What is to be written: without the objects that are as they are wanted."""
    return [
        each.manifest
        for each in tried
        if not isinstance(each.found, dict)
        or not isinstance(each.result, dict)
        or changed_fields(each.found, each.result)
    ]


def _apply_steps(objects: Sequence[Manifest]) -> list[OperationStep]:
    """A step for each object; definitions are awaited before what follows them."""
    definitions = [each for each in objects if each["kind"] == DEFINITION]
    steps: list[OperationStep] = []
    is_awaited = False
    for each in objects:
        if definitions and not is_awaited and each["kind"] not in (DEFINITION, _NAMESPACE):
            steps.append(_definitions_ready(definitions))
            is_awaited = True
        steps.append(_step(f"apply {object_ref(each).title}", ApplyStep(each)))
    if definitions and not is_awaited:
        steps.append(_definitions_ready(definitions))
    return steps


def _definitions_ready(definitions: Sequence[Manifest]) -> OperationStep:
    targets = tuple(object_ref(each) for each in definitions)
    return _step(f"wait for {title_of(targets)}", ReadyStep(targets, 60.0))


def _helm_plan(wanted: WantedComponent, facts: PlanFacts) -> ComponentPlan:
    is_upgrade = wanted.do is OperationKind.UPGRADE
    changes, same = object_changes(facts.tried)
    rendered = [each.manifest for each in facts.tried]
    definitions = [each for each in changed_objects(facts.tried) if each["kind"] == DEFINITION]
    kept = {object_ref(each).identity for each in rendered}
    gone = in_any_removal_order(
        ref for each in facts.members if (ref := object_ref(each)).identity not in kept
    )
    changes += [ObjectChange("delete", each) for each in gone if each.kind != DEFINITION]
    step = HelmStep(
        verb="upgrade" if is_upgrade else "install",
        release=wanted.release,
        namespace=wanted.place,
        chart=wanted.chart,
        version=wanted.version,
        values=wanted.values,
        seconds=wanted.seconds,
    )
    place = f"release {wanted.place}/{wanted.release}"
    steps = [*_apply_steps(definitions), _step(f"{step.verb} {place}", step)]
    workloads = _workloads(rendered)
    if workloads:
        steps.append(_step(f"wait for {title_of(workloads)}", ReadyStep(workloads, wanted.seconds)))
    undo: tuple[OperationStep, ...] = ()
    if is_upgrade and facts.release is not None and facts.release.deployed:
        revision = facts.release.deployed
        back = HelmStep("rollback", wanted.release, wanted.place, revision=revision)
        undo = (_step(f"roll {place} back to revision {revision}", back),)
    return ComponentPlan(tuple(changes), same, tuple(steps), undo, _seen(facts))


def _removal(
    wanted: WantedComponent, facts: PlanFacts, operation: str, render: RenderInventory
) -> ComponentPlan:
    steps: list[OperationStep] = []
    if facts.release is not None:
        targets = in_any_removal_order(
            object_ref(each) for each in facts.members if each["kind"] != DEFINITION
        )
        end = HelmStep(
            "uninstall", facts.release.name, facts.release.namespace, seconds=wanted.seconds
        )
        place = f"release {facts.release.namespace}/{facts.release.name}"
        steps.append(_step(f"uninstall {place}", end))
        gone = [each for each in targets if each.kind in _READY_KINDS]
    else:
        targets = prunable(facts.before, facts.members, ())
        gone = targets
        if facts.before is not None:
            removing = msgspec.structs.replace(facts.before, state="removing", operation=operation)
            steps.append(_step("record the removal", _inventory(render(removing))))
        steps += [_step(f"remove {each.title}", RemoveStep((each,))) for each in targets]
    if gone:
        step = GoneStep(tuple(gone), wanted.seconds)
        steps.append(_step(f"wait until {title_of(gone)} is gone", step))
    changes = [ObjectChange("delete", each) for each in targets]
    definitions = tuple(ObjectRef(_API, DEFINITION, each) for each in wanted.component.definitions)
    existing = _existing_definitions(definitions, facts)
    if wanted.deletes_definitions and existing:
        steps.append(_step(f"remove {title_of(existing)}", RemoveStep(existing)))
        steps.append(_step(f"wait until {title_of(existing)} is gone", GoneStep(existing)))
    changes += [ObjectChange("keep", each) for each in taken_over(wanted, facts)]
    do = "delete" if wanted.deletes_definitions else "keep"
    changes += [ObjectChange(do, each) for each in existing]
    if facts.before is not None:
        record = component_inventory_ref(facts.before.id, facts.before.namespace)
        steps.append(_step("remove the inventory", RemoveStep((record,))))
    return ComponentPlan(tuple(changes), 0, tuple(steps), seen=_seen(facts))


def _existing_definitions(
    definitions: Iterable[ObjectRef], facts: PlanFacts
) -> tuple[ObjectRef, ...]:
    """Those that exist, each with its uid, so that a later one of the name is not removed."""
    uids = {
        object_ref(each.found).name: object_ref(each.found).uid
        for each in facts.tried
        if isinstance(each.found, dict) and each.found["kind"] == DEFINITION
    }
    return tuple(
        msgspec.structs.replace(each, uid=uids[each.name])
        for each in definitions
        if each.name in uids
    )


def _workloads(objects: Iterable[Manifest]) -> tuple[ObjectRef, ...]:
    return tuple(object_ref(each) for each in objects if each["kind"] in _READY_KINDS)


def _seen(facts: PlanFacts) -> dict[str, str]:
    found = {object_ref(each.manifest).title: content_version(each.found) for each in facts.tried}
    return {**found, **{object_ref(each).title: content_version(each) for each in facts.members}}


def _inventory(manifest: Manifest) -> ApplyStep:
    """Before the first object or after the last one, never beside another ConfigMap."""
    return ApplyStep(manifest, "configmaps", is_alone=True)


def _step(title: str, work: StepWork) -> OperationStep:
    return OperationStep(title, work)


def title_of(targets: Sequence[ObjectRef]) -> str:
    """The first object, and how many more there are.

    >>> title_of([ObjectRef("v1", "Pod", name, "a") for name in ("b", "c", "d")])
    'Pod a/b and 2 more'
    """
    more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
    return f"{targets[0].title}{more}"


def _field_changes(found: Manifest, result: Manifest) -> tuple[FieldChange, ...]:
    is_hidden = found["kind"] == "Secret"
    return tuple(
        FieldChange(path, _HIDDEN, _HIDDEN)
        if is_hidden and path.partition(".")[0] in ("data", "stringData")
        else FieldChange(path, _text(old), _text(new))
        for path, old, new in changed_fields(found, result)
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
