"""The steps of operations on data sets (docs/spec/datasets.md#operations-on-data-sets)."""

from __future__ import annotations

from fairlead.model.actions import ObjectRef
from fairlead.model.jobs.acceleration import Acceleration
from fairlead.model.jobs.datasets import Claim, DataRuntime, DataSet, FoundData
from fairlead.model.operations.operation import CreateStep, GoneStep, ReadyStep, RemoveStep
from fairlead.rules.data.plans import (
    acceleration_steps,
    data_set_parts,
    data_set_subject,
    preheat_steps,
    unacceleration_steps,
)
from fairlead.wire.data.fluid import render_acceleration

ID = "a1b2c3d4e5f6"
MADE = render_acceleration(Acceleration("n", "raw", "raw-acc", quota=1 << 30))
LOAD = {
    "apiVersion": "data.fluid.io/v1alpha1",
    "kind": "DataLoad",
    "metadata": {"name": "raw-acc-load", "namespace": "n"},
    "spec": {"dataset": {"name": "raw-acc", "namespace": "n"}},
}


def test_an_acceleration_creates_both_objects_with_its_id_and_waits_for_the_data_set() -> None:
    steps, undo = acceleration_steps(MADE, ID)
    assert [each.title for each in steps] == [
        "Create Dataset n/raw-acc",
        "Create AlluxioRuntime n/raw-acc",
        "Dataset n/raw-acc is Bound",
    ]
    works = [each.work for each in steps]
    created = [each for each in works if isinstance(each, CreateStep)]
    assert [each.plural for each in created] == ["datasets", "alluxioruntimes"]
    for each in created:
        assert each.manifest["metadata"]["annotations"] == {
            "fairlead.io/accelerates": "raw",
            "fairlead.io/operation": ID,
        }
    assert all("fairlead.io/operation" not in each["metadata"]["annotations"] for each in MADE)
    waited = works[-1]
    assert isinstance(waited, ReadyStep)
    assert [each.title for each in waited.targets] == ["Dataset n/raw-acc"]
    assert waited.targets[0].plural == "datasets"
    (back,) = undo
    assert isinstance(back.work, RemoveStep)
    assert back.work.is_own_only
    assert [each.kind for each in back.work.targets] == ["Dataset", "AlluxioRuntime"]


def test_an_acceleration_goes_on_over_a_data_set_without_a_runtime() -> None:
    steps, undo = acceleration_steps(MADE, ID, is_begun=True)
    assert [each.title for each in steps] == [
        "Create AlluxioRuntime n/raw-acc",
        "Dataset n/raw-acc is Bound",
    ]
    assert undo == acceleration_steps(MADE, ID)[1]


def found(*claims: Claim) -> FoundData:
    return FoundData(
        claims,
        (DataSet("n", "raw-acc", uid="1"), DataSet("other", "raw-acc", uid="9")),
        (
            DataRuntime("AlluxioRuntime", "n", "raw-acc", uid="2"),
            DataRuntime("JindoRuntime", "n", "raw-acc", uid="3"),
            DataRuntime("JindoRuntime", "n", "other", uid="4"),
        ),
        0.0,
    )


MORE = (
    ObjectRef("v1", "PersistentVolume", "n-raw-acc", uid="6"),
    ObjectRef("v1", "ConfigMap", "sh.helm.release.v1.raw-acc.v1", "n", "7"),
    ObjectRef("v1", "Pod", "raw-acc-master-0", "n"),
    ObjectRef("v1", "Pod", "raw-acc-worker-0", "n"),
)


def test_an_end_removes_by_uid_and_waits_for_each_kind() -> None:
    parts = data_set_parts(
        found(Claim("n", "raw-acc", is_fluids=True, uid="5")), "n", "raw-acc", MORE
    )
    steps = unacceleration_steps(parts)
    assert [each.title for each in steps] == [
        "Remove Dataset n/raw-acc",
        "Dataset n/raw-acc is gone",
        "Remove AlluxioRuntime n/raw-acc, JindoRuntime n/raw-acc",
        "AlluxioRuntime n/raw-acc is gone",
        "JindoRuntime n/raw-acc is gone",
        "PersistentVolumeClaim n/raw-acc is gone",
        "PersistentVolume n-raw-acc is gone",
        "ConfigMap n/sh.helm.release.v1.raw-acc.v1 is gone",
        "Pod n/raw-acc-master-0, Pod n/raw-acc-worker-0 are gone",
    ]
    removed = [each.work for each in steps if isinstance(each.work, RemoveStep)]
    assert not any(each.is_own_only for each in removed)
    assert [[target.uid for target in each.targets] for each in removed] == [["1"], ["2", "3"]]
    assert sum(isinstance(each.work, GoneStep) for each in steps) == len(steps) - len(removed)


def test_the_claim_of_another_program_is_no_part_of_the_data_set() -> None:
    steps = unacceleration_steps(data_set_parts(found(Claim("n", "raw-acc")), "n", "raw-acc"))
    assert not any("Claim" in each.title for each in steps)


def test_what_is_left_without_a_data_set_is_removed_or_waited_for() -> None:
    left = FoundData((), (), (DataRuntime("JindoRuntime", "n", "d", uid="3"),), 0.0)
    assert [each.title for each in unacceleration_steps(data_set_parts(left, "n", "d"))] == [
        "Remove JindoRuntime n/d",
        "JindoRuntime n/d is gone",
    ]
    nothing = data_set_parts(FoundData((), (), (), 0.0), "n", "raw-acc", MORE[:1])
    assert [each.title for each in unacceleration_steps(nothing)] == [
        "PersistentVolume n-raw-acc is gone"
    ]


def test_a_preheat_creates_its_load_and_waits_unless_it_has_a_schedule() -> None:
    steps, undo = preheat_steps(LOAD, ID)
    assert [each.title for each in steps] == [
        "Create DataLoad n/raw-acc-load",
        "DataLoad n/raw-acc-load is Complete",
    ]
    created, waited = (each.work for each in steps)
    assert isinstance(created, CreateStep)
    assert created.plural == "dataloads"
    assert created.manifest["metadata"]["annotations"] == {"fairlead.io/operation": ID}
    assert isinstance(waited, ReadyStep)
    assert waited.seconds == 86400
    assert isinstance(undo[0].work, RemoveStep)
    assert undo[0].work.is_own_only
    cron = {**LOAD, "spec": {**LOAD["spec"], "policy": "Cron", "schedule": "0 3 * * *"}}  # type: ignore[dict-item]
    assert [each.title for each in preheat_steps(cron, ID)[0]] == ["Create DataLoad n/raw-acc-load"]


def test_a_subject_names_the_data_set() -> None:
    assert data_set_subject("n", "raw-acc") == "dataset/n/raw-acc"
