"""What an operation on a component changes, and its steps (docs/spec/components.md#plan)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.components.plans import (
    HOME,
    SET,
    definition,
    deployment,
    facts,
    inventory,
    new,
    obj,
    there,
    wanted,
    written,
)

from fairlead.edge.operations.objects import FIELD_MANAGER
from fairlead.model.actions import object_ref
from fairlead.model.operations.apply_set import APPLY_MANAGER
from fairlead.model.operations.operation import (
    ApplyStep,
    GoneStep,
    HelmRelease,
    HelmStep,
    OperationKind,
    ReadyStep,
    RemoveStep,
)
from fairlead.rules.components.component_plan import (
    ComponentPlan,
    component_plan,
    native_objects,
    prunable,
)
from fairlead.rules.installation.comparable import content_version
from fairlead.wire.components.inventory import render_component_inventory

DEPLOY, UPGRADE, REMOVE = OperationKind.DEPLOY, OperationKind.UPGRADE, OperationKind.REMOVE


def plan(asked: Any, found: Any) -> ComponentPlan:
    return component_plan(asked, found, "abc", render_component_inventory)


def lines(made: ComponentPlan) -> list[str]:
    return [f"{each.do} {each.target.title}" for each in made.changes]


def test_the_field_manager_is_that_of_the_steps() -> None:
    assert APPLY_MANAGER == FIELD_MANAGER


def test_native_objects_are_applied_in_order_between_two_inventories() -> None:
    objects = [definition(), obj("ConfigMap", "settings"), deployment()]
    made = plan(wanted(DEPLOY, *objects), facts(*map(new, objects)))
    works = [each.work for each in made.steps]
    assert [type(each) for each in works] == [
        *(ApplyStep, ApplyStep, ReadyStep, ApplyStep, ApplyStep, ReadyStep, ApplyStep)
    ]
    first: Any = works[0]
    last: Any = works[-1]
    assert (first.manifest["data"]["state"], last.manifest["data"]["state"]) == (
        *("writing", "complete"),
    )
    assert first.manifest["metadata"]["namespace"] == HOME
    assert first.manifest["data"]["operation"] == "abc"
    awaited: Any = works[2]
    assert [each.kind for each in awaited.targets] == ["CustomResourceDefinition"]
    assert not any(each.is_forced for each in works if isinstance(each, ApplyStep))
    assert lines(made) == [
        "create CustomResourceDefinition mpijobs.kubeflow.org",
        "create ConfigMap mpi/settings",
        "create Deployment mpi/mpi-operator",
    ]
    assert made.seen["Deployment mpi/mpi-operator"] == ""


def test_a_change_has_each_field_with_both_values() -> None:
    asked = deployment("mpi:2")
    before = written(deployment("mpi:1"))
    made = plan(
        wanted(UPGRADE, asked),
        facts(there(asked, written(asked), before), before=inventory(before), members=(before,)),
    )
    (change,) = made.changes
    (field,) = change.fields
    assert (change.do, field.path, field.old, field.new) == (
        *("change", "spec.template.spec.containers[0].image"),
        *('"mpi:1"', '"mpi:2"'),
    )
    assert made.seen["Deployment mpi/mpi-operator"] == content_version(before)


def test_an_object_that_does_not_change_is_only_counted() -> None:
    asked = deployment()
    made = plan(wanted(UPGRADE, asked), facts(there(asked), before=inventory(asked)))
    assert (made.changes, made.same) == ((), 1)
    applied = [
        each.work.manifest["kind"] for each in made.steps if isinstance(each.work, ApplyStep)
    ]
    assert applied == ["ConfigMap", "ConfigMap"], "the inventory alone"


def test_values_of_a_secret_are_in_no_plan() -> None:
    old = written(obj("Secret", "s", data={"password": "b2xk"}))
    asked = obj("Secret", "s", data={"password": "bmV3"})
    made = plan(wanted(UPGRADE, asked), facts(there(asked, written(asked), old)))
    assert "b2xk" not in str(made.changes)
    assert "bmV3" not in str(made.changes)
    assert [each.path for each in made.changes[0].fields] == ["data.password"]


GONE = obj("ConfigMap", "old")


def test_what_an_earlier_version_had_is_removed_by_its_uid() -> None:
    asked, found = deployment(), written(GONE, uid="u9")
    made = plan(
        wanted(UPGRADE, asked),
        facts(there(asked), before=inventory(asked, GONE), members=(written(asked), found)),
    )
    removed = [each.work for each in made.steps if isinstance(each.work, RemoveStep)]
    assert [(each.name, each.uid) for step in removed for each in step.targets] == [("old", "u9")]
    assert lines(made) == ["delete ConfigMap mpi/old"]
    # until it is removed, the inventory lists it, so that an interrupted run can go on
    first: Any = made.steps[0].work
    last: Any = made.steps[-1].work
    assert '"old"' in first.manifest["data"]["objects"]
    assert '"old"' not in last.manifest["data"]["objects"]


@pytest.mark.parametrize(
    ("member", "listed"),
    [
        (written(GONE, manager="kubectl"), True),
        (written(GONE, set_id="applyset-forged-v1"), True),
        ({**GONE, "metadata": {**GONE["metadata"], "uid": "u"}}, True),
        (written(GONE), False),
    ],
    ids=["not applied by Fairlead", "not in the set", "no mark at all", "not in the inventory"],
)
def test_one_mark_alone_removes_nothing(member: Any, listed: bool) -> None:
    before = inventory(*([GONE] if listed else []))
    assert prunable(before, [member], []) == []
    assert [each.name for each in prunable(inventory(GONE), [written(GONE)], [])] == ["old"]


def test_definitions_are_never_pruned() -> None:
    found = written(definition())
    assert prunable(inventory(found), [found], []) == []


def test_a_namespace_of_another_program_does_not_become_a_member() -> None:
    space = obj("Namespace", "mpi", "")
    asked = wanted(DEPLOY, deployment(), space)
    assert [each["kind"] for each in native_objects(asked, ["mpi"])] == ["Deployment"]
    made = native_objects(asked, [])
    assert [each["kind"] for each in made] == ["Namespace", "Deployment"]
    assert all(each["metadata"]["labels"]["applyset.kubernetes.io/part-of"] == SET for each in made)


def test_what_the_cluster_writes_is_not_applied() -> None:
    role = obj("ClusterRole", "admin", "", aggregationRule={}, rules=[])
    (made,) = native_objects(wanted(DEPLOY, {**role, "status": {}}), [])
    assert "rules" not in made
    assert "status" not in made


def test_a_removal_removes_members_and_keeps_definitions_and_what_others_took() -> None:
    taken = written(obj("ConfigMap", "taken"), manager="kubectl")
    members = (written(deployment(), uid="u2"), taken, written(definition()))
    made = plan(
        wanted(REMOVE),
        facts(
            there(definition()),
            before=inventory(deployment(), taken, definition()),
            members=members,
        ),
    )
    assert lines(made) == [
        "delete Deployment mpi/mpi-operator",
        "keep ConfigMap mpi/taken",
        "keep CustomResourceDefinition mpijobs.kubeflow.org",
    ]
    works = [each.work for each in made.steps]
    assert [type(each) for each in works] == [ApplyStep, RemoveStep, GoneStep, RemoveStep]
    first: Any = works[0]
    assert first.manifest["data"]["state"] == "removing"
    last: Any = works[-1]
    assert last.targets[0].name == "fairlead-component-mpi-operator"


def test_a_removal_deletes_definitions_only_when_asked_and_by_uid() -> None:
    asked = wanted(REMOVE, deletes_definitions=True)
    made = plan(asked, facts(there(definition()), before=inventory()))
    removed = [each.work for each in made.steps if isinstance(each.work, RemoveStep)]
    assert [(each.name, each.uid) for each in removed[0].targets] == [
        ("mpijobs.kubeflow.org", "u1")
    ]


RELEASE = HelmRelease(
    *("fluid", "fluid-system", "deployed", 3, "fluid", "1.0.7"), deployed=3, is_own=True
)


def fluid(do: OperationKind, *objects: Any) -> Any:
    return wanted(
        do,
        *objects,
        id="fluid",
        place="fluid-system",
        release="fluid",
        chart="/charts/fluid",
        version="1.0.8",
        values={"crdUpgrade": {"enabled": False}},
    )


def test_helm_gets_the_chart_after_its_definitions() -> None:
    objects = [definition("datasets.data.fluid.io"), deployment(name="dataset-controller")]
    made = plan(fluid(DEPLOY, *objects), facts(*map(new, objects)))
    works = [each.work for each in made.steps]
    assert [type(each) for each in works] == [ApplyStep, ReadyStep, HelmStep, ReadyStep]
    step: Any = works[2]
    assert (step.verb, step.release, step.version) == ("install", "fluid", "1.0.8")
    assert step.values == {"crdUpgrade": {"enabled": False}}
    assert made.undo == ()


def test_a_failed_upgrade_goes_back_to_the_deployed_revision() -> None:
    objects = [deployment(name="dataset-controller")]
    made = plan(fluid(UPGRADE, *objects), facts(*map(new, objects), release=RELEASE))
    (undo,) = made.undo
    assert isinstance(undo.work, HelmStep)
    assert (undo.work.verb, undo.work.revision) == ("rollback", 3)
    never = replace(RELEASE, status="failed", deployed=0)
    assert plan(fluid(UPGRADE, *objects), facts(*map(new, objects), release=never)).undo == ()


def test_what_the_new_chart_lacks_is_shown_as_deleted() -> None:
    objects = [deployment(name="dataset-controller")]
    made = plan(
        fluid(UPGRADE, *objects), facts(*map(new, objects), release=RELEASE, members=(GONE,))
    )
    assert "delete ConfigMap mpi/old" in lines(made)
    assert not any(isinstance(each.work, RemoveStep) for each in made.steps)  # Helm does it


def test_a_release_is_removed_by_helm_and_its_definitions_stay() -> None:
    asked = wanted(REMOVE, id="fluid", place="fluid-system", release="fluid")
    members = (written(deployment(name="dataset-controller")),)
    kept = there(definition("datasets.data.fluid.io"))
    made = plan(asked, facts(kept, release=RELEASE, members=members))
    works = [each.work for each in made.steps]
    assert [type(each) for each in works] == [HelmStep, GoneStep]
    assert lines(made) == [
        "delete Deployment mpi/dataset-controller",
        "keep CustomResourceDefinition datasets.data.fluid.io",
    ]


def test_members_that_were_read_are_among_the_versions_that_the_plan_saw() -> None:
    found = written(GONE)
    made = plan(wanted(REMOVE), facts(before=inventory(GONE), members=(found,)))
    assert made.seen[object_ref(found).title] == content_version(found)
