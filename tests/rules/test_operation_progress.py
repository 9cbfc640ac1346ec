"""How an operation goes on (docs/spec/operations.md)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from fairlead.model.actions import ObjectRef
from fairlead.model.operations.operation import (
    AfterStep,
    ApplyStep,
    CreateStep,
    GoneStep,
    HelmStep,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    ReadyStep,
    RemoveStep,
    StepState,
)
from fairlead.rules.operations.progress import (
    Turn,
    begun,
    cancelled,
    ended,
    next_turn,
    next_turns,
    onward,
    planned,
    records_to_remove,
    refuse_again,
    refuse_start,
    resumed,
    step_begun,
    step_ended,
    step_in_hand,
    step_noted,
    superseded,
)

DATA_SET = ObjectRef("data.fluid.io/v1alpha1", "Dataset", "a", "team")
MANIFEST = {
    "apiVersion": DATA_SET.api_version,
    "kind": "Dataset",
    "metadata": {"name": "a", "namespace": "team"},
}
CREATE = OperationStep("Create it", CreateStep(MANIFEST))
READY = OperationStep("It is Bound", ReadyStep((DATA_SET,)))
GONE = OperationStep("It is gone", GoneStep((DATA_SET,)))
UNDO = OperationStep("Remove it", RemoveStep((DATA_SET,)))


def plan(*steps: OperationStep, **more: Any) -> Operation:
    undo = more.pop("undo", ())
    kind, subject = OperationKind.ACCELERATE, "dataset/team/a"
    return structs.replace(
        planned("abc", kind, subject, steps, undo=undo, by="ann", now=100.0), **more
    )


def played(operation: Operation, *failures: str) -> tuple[Operation, list[Turn]]:
    """Each step ends with the next failure ("" = it is done); then the operation ends."""
    turns, left = [], list(failures)
    operation = begun(operation, "me", 200.0)
    while (turn := next_turn(operation)) is not None:
        turns.append(turn)
        operation = step_ended(
            step_begun(operation, turn, 201.0), turn, 202.0, left.pop(0) if left else ""
        )
    return ended(operation, 203.0), turns


def states(operation: Operation) -> list[str]:
    return [each.state.value for each in (*operation.progress, *operation.undo_progress)]


def test_steps_are_done_in_order_and_the_undo_is_not() -> None:
    done, turns = played(plan(CREATE, READY, undo=(UNDO,)))
    assert turns == [Turn(0), Turn(1)]
    assert (done.state, done.message, done.holder) == (OperationState.SUCCEEDED, "", "")
    assert states(done) == ["Done", "Done", "Waiting"]


def test_a_failed_write_is_undone_and_later_steps_are_skipped() -> None:
    done, turns = played(plan(CREATE, CREATE, READY, undo=(UNDO,)), "", "is refused")
    assert turns == [Turn(0), Turn(1), Turn(0, is_undo=True)]
    assert done.state is OperationState.FAILED
    assert done.message == "Create it: is refused"
    assert states(done) == ["Done", "Failed", "Skipped", "Done"]


def test_a_failed_wait_undoes_nothing() -> None:
    done, turns = played(plan(CREATE, READY, GONE, undo=(UNDO,)), "", "still Pending")
    assert turns == [Turn(0), Turn(1)]
    assert states(done) == ["Done", "Failed", "Skipped", "Waiting"]


def test_a_failed_undo_is_reported_and_the_next_one_is_tried() -> None:
    done, turns = played(plan(CREATE, undo=(UNDO, UNDO)), "refused", "refused, too")
    assert turns[1:] == [Turn(0, is_undo=True), Turn(1, is_undo=True)]
    assert done.message == "Create it: refused; Remove it: refused, too"
    assert states(done) == ["Failed", "Failed", "Done"]


def test_a_cancelled_operation_undoes_what_it_did() -> None:
    operation = begun(plan(CREATE, READY, undo=(UNDO,)), "me", 200.0)
    operation = step_ended(step_begun(operation, Turn(0), 201.0), Turn(0), 202.0)
    operation = step_begun(operation, Turn(1), 203.0)
    operation = cancelled(operation, 204.0)
    assert operation.state is OperationState.RUNNING
    assert next_turn(operation) == Turn(0, is_undo=True)
    done, _ = played(operation)
    assert done.state is OperationState.CANCELLED
    assert states(done) == ["Done", "Skipped", "Done"]


def test_cancelling_after_the_last_step_changes_nothing() -> None:
    operation = begun(plan(CREATE, undo=(UNDO,)), "me", 200.0)
    operation = step_ended(step_begun(operation, Turn(0), 201.0), Turn(0), 202.0)
    operation = cancelled(operation, 204.0)
    assert next_turn(operation) is None
    assert ended(operation, 205.0).state is OperationState.SUCCEEDED


def test_a_cancelled_plan_has_ended() -> None:
    assert cancelled(plan(CREATE), 101.0).state is OperationState.CANCELLED


def test_a_failed_wait_is_tried_again_from_there() -> None:
    done, _ = played(plan(CREATE, READY, undo=(UNDO,)), "", "still Pending")
    again = resumed(done, 300.0)
    assert (again.state, again.message) == (OperationState.RUNNING, "")
    assert states(again) == ["Done", "Waiting", "Waiting"]
    assert played(again)[1] == [Turn(1)]


def test_an_undone_operation_is_tried_again_from_the_start() -> None:
    done, _ = played(plan(CREATE, CREATE, undo=(UNDO,)), "", "refused")
    again = resumed(done, 300.0)
    assert states(again) == ["Waiting", "Waiting", "Waiting"]
    assert played(again)[0].state is OperationState.SUCCEEDED


def test_a_cancelled_operation_is_not_cancelled_any_more_when_it_is_resumed() -> None:
    operation = cancelled(begun(plan(CREATE, undo=(UNDO,)), "me", 200.0), 201.0)
    done, _ = played(operation)
    assert done.state is OperationState.CANCELLED
    assert played(resumed(done, 300.0))[0].state is OperationState.SUCCEEDED


def test_an_operation_that_other_work_replaced_does_not_begin_again() -> None:
    replaced = superseded(begun(plan(CREATE), "me", 200.0), 201.0, "fairlead upgrade")
    assert (replaced.state, replaced.updated_at) == (OperationState.CANCELLED, 201.0)
    refusal = refuse_again(replaced)
    assert refusal is not None
    assert refusal.reason == (
        "operation `abc` cannot begin again: `fairlead upgrade` went on in its place"
    )
    by_a_person, _ = played(cancelled(begun(plan(CREATE, undo=(UNDO,)), "me", 200.0), 201.0))
    failed, _ = played(plan(CREATE), "refused")
    assert [refuse_again(each) for each in (by_a_person, failed)] == [None, None]
    later = superseded(failed, 300.0, "fairlead upgrade")
    assert (later.state, later.updated_at) == (OperationState.FAILED, failed.updated_at)
    assert refuse_again(later) is not None


HELM = HelmStep("upgrade", "fluid", "fluid-system", "oci://x/fluid")
RELEASE = OperationStep("Upgrade Fluid", HELM)
OTHER_RELEASE = OperationStep("Upgrade it elsewhere", structs.replace(HELM, namespace="other"))


def other(*steps: OperationStep, at: float = 300.0, failures: tuple[str, ...] = ()) -> Operation:
    """An operation `xyz` that ended at this time."""
    done, _ = played(plan(*steps), *failures)
    return structs.replace(done, id="xyz", updated_at=at)


@pytest.mark.parametrize(
    ("later", "changed"),
    [
        (other(UNDO), "Dataset team/a"),
        (other(CREATE), "Dataset team/a"),
        (other(CREATE, failures=("refused",)), "Dataset team/a"),
        (other(OperationStep("", ApplyStep(MANIFEST))), "Dataset team/a"),
        (other(RELEASE), "release fluid-system/fluid"),
        (other(OTHER_RELEASE), ""),
        (other(READY, GONE), ""),
        (other(CREATE, at=203.0), ""),
        (structs.replace(plan(CREATE), id="xyz", updated_at=300.0), ""),
    ],
)
def test_an_operation_whose_objects_were_changed_since_does_not_begin_again(
    later: Operation, changed: str
) -> None:
    failed, _ = played(plan(CREATE, RELEASE, READY), "", "", "still Pending")
    refusal = refuse_again(failed, [failed, later])
    assert (refusal is None) is not bool(changed)
    if refusal is not None:
        assert refusal.reason == (
            f"operation `abc` cannot begin again: operation `xyz` has changed {changed} since"
        )


def test_those_that_an_operation_follows_may_have_changed_its_objects() -> None:
    """Each of several components waits for the one before it; the last one carries out all."""
    first = structs.replace(other(CREATE), id="one")
    after_first = OperationStep("", AfterStep("one", "component/one"))
    second = structs.replace(other(after_first, CREATE), id="two")
    after_second = OperationStep("", AfterStep("two", "component/two"))
    failed, _ = played(plan(after_second, CREATE), "operation `two` failed")
    assert refuse_again(failed, [failed, second, first]) is None
    alone, _ = played(plan(CREATE), "refused")
    assert refuse_again(alone, [alone, second, first]) is not None


def test_a_running_operation_stays_as_it_is_when_it_is_resumed() -> None:
    operation = begun(plan(CREATE), "other", 200.0)
    assert resumed(operation, 300.0) is operation


def test_a_step_that_a_dead_process_began_keeps_its_time() -> None:
    operation = step_begun(begun(plan(CREATE), "me", 200.0), Turn(0), 201.0)
    operation = step_noted(operation, Turn(0), 202.0, message="m", object="o", event="e")
    again = step_begun(operation, Turn(0), 250.0).progress[0]
    assert (again.started_at, again.state) == (201.0, StepState.RUNNING)


@pytest.mark.parametrize(
    ("more", "by", "now", "versions", "reason"),
    [
        ({}, "ann", 999.0, {"Dataset team/a": "7"}, ""),
        ({}, "bob", 101.0, {"Dataset team/a": "7"}, "another person"),
        ({}, "ann", 1001.0, {"Dataset team/a": "7"}, "older than 15 minutes"),
        ({}, "ann", 101.0, {"Dataset team/a": "8"}, "changed since plan `abc` was made: Dataset"),
        ({}, "ann", 101.0, {}, "changed since"),
        ({"state": OperationState.RUNNING}, "ann", 101.0, {}, "is Running already"),
    ],
)
def test_a_plan_begins_only_as_it_was_seen(
    more: dict[str, Any], by: str, now: float, versions: dict[str, str], reason: str
) -> None:
    operation = plan(CREATE, seen={"Dataset team/a": "7"}, **more)
    found = refuse_start(operation, by, now, versions)
    assert (found is None) is (reason == "")
    assert found is None or reason in found.reason


def test_old_records_go_and_the_newest_of_a_subject_stay() -> None:
    day = 86_400.0
    now = 100 * day
    done = [
        plan(
            CREATE,
            id=f"a{age}",
            state=OperationState.SUCCEEDED,
            updated_at=now - age * day,
        )
        for age in range(30)
    ]
    running = plan(CREATE, id="running", state=OperationState.RUNNING, updated_at=0.0)
    valid = plan(CREATE, id="valid", created_at=now - 899)
    stale = plan(CREATE, id="stale", created_at=now - 901)
    other = plan(CREATE, id="other", subject="b", state=OperationState.FAILED, updated_at=0.0)
    found = records_to_remove([*done, running, valid, stale, other], now)
    assert set(found) == {"stale", *(f"a{age}" for age in range(20, 30))}


def test_the_step_in_hand_is_shown_with_the_steps_done() -> None:
    operation = begun(plan(CREATE, READY), "me", 200.0)
    operation = step_ended(step_begun(operation, Turn(0), 201.0), Turn(0), 202.0)
    assert step_in_hand(step_begun(operation, Turn(1), 203.0)) == "1/2 It is Bound"


def test_what_is_alone_never_runs_beside_another_apply() -> None:
    """An inventory is written before the first object and after the last one."""

    def apply(name: str, *, is_alone: bool = False) -> OperationStep:
        return OperationStep(name, ApplyStep({"kind": "ConfigMap"}, is_alone=is_alone))

    first, last = apply("first", is_alone=True), apply("last", is_alone=True)
    operation = onward(plan(first, apply("a"), apply("b"), last), 1.0)
    turns = []
    while next_turns(operation):
        turns.append([turn.index for turn in next_turns(operation)])
        for index in turns[-1]:
            operation = step_ended(operation, Turn(index), 2.0)
        operation = onward(operation, 2.0)
    assert turns == [[0], [1, 2], [3]]


def test_applies_of_one_kind_run_side_by_side() -> None:
    def apply(kind: str) -> OperationStep:
        return OperationStep(f"Apply {kind}", ApplyStep({"kind": kind}))

    maps = [apply("ConfigMap")] * 10
    operation = plan(CREATE, *maps, apply("Service"), READY)
    assert next_turns(operation) == (Turn(0),)
    operation = onward(step_ended(onward(operation, 1.0), Turn(0), 2.0), 2.0)
    first = tuple(map(Turn, range(1, 9)))
    assert next_turns(operation) == first
    assert [each.state for each in operation.progress[:10]] == [
        StepState.DONE,
        *[StepState.RUNNING] * 8,
        StepState.WAITING,
    ]
    for turn in (*first[:2], *first[3:]):
        operation = step_ended(operation, turn, 3.0)
    assert next_turns(operation) == (Turn(3), Turn(9), Turn(10))
    for turn in (Turn(3), Turn(9), Turn(10)):
        operation = step_ended(operation, turn, 4.0)
    assert next_turns(operation) == (Turn(11),)
    operation = onward(step_ended(operation, Turn(11), 5.0, "refused"), 6.0)
    assert (operation.state, operation.progress[12].state) == (
        OperationState.FAILED,
        StepState.SKIPPED,
    )
