"""The record of an operation (docs/spec/operations.md#record)."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import msgspec
import pytest

from fairlead.model.actions import ObjectRef
from fairlead.model.operations.operation import (
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
    StepProgress,
    StepState,
)
from fairlead.wire.operations.record import WireRecord, parse_record, render_record

REF = ObjectRef("v1", "ConfigMap", "a", "team", "uid", "configmaps")
STEPS = (
    OperationStep("create", CreateStep({"kind": "A", "metadata": {"name": "ä"}}, "as")),
    OperationStep("apply", ApplyStep({"kind": "B"}, "bs", is_forced=True)),
    OperationStep("remove", RemoveStep((REF, REF), is_own_only=True)),
    OperationStep("ready", ReadyStep((REF,), 5.0)),
    OperationStep("gone", GoneStep((REF,), 6.0)),
    OperationStep(
        "helm",
        HelmStep("upgrade", "fluid", "fluid-system", "oci://x", "1.0.8", {"a": {"b": [1]}}, 3, 7.0),
    ),
)
OPERATION = Operation(
    id="abc",
    kind=OperationKind.UPGRADE,
    subject="component/fluid",
    steps=STEPS,
    progress=(
        StepProgress(StepState.DONE, 1.0, 2.0),
        StepProgress(StepState.RUNNING, 3.0, None, "m", "o", "e"),
        *(StepProgress() for _ in range(4)),
    ),
    undo=STEPS[:1],
    undo_progress=(StepProgress(),),
    state=OperationState.RUNNING,
    created_by="ann",
    created_at=100.0,
    updated_at=101.5,
    is_cancelled=True,
    message="why",
    seen={"ConfigMap team/a": "7"},
    holder="host_1",
)


def wire(record: Any) -> WireRecord:
    """As an API server answers."""
    return msgspec.json.decode(json.dumps(record), type=WireRecord)


def changed(**keys: str | None) -> WireRecord:
    """The record with other texts; None takes a key away."""
    record = render_record(OPERATION, "system")
    for part in ("data", "binaryData"):
        for key in record[part].keys() & keys.keys():
            if keys[key] is None:
                del record[part][key]
            else:
                record[part][key] = keys[key]
    return wire(record)


def packed(document: bytes) -> str:
    return base64.b64encode(gzip.compress(document)).decode()


def test_an_operation_comes_back_as_it_was_written() -> None:
    record = render_record(OPERATION, "system")
    assert parse_record(wire(record)) == OPERATION
    assert record["metadata"] == {
        "name": "operation-abc",
        "namespace": "system",
        "labels": {"fairlead.io/operation": "upgrade"},
    }
    state = json.loads(record["data"]["state"])
    assert state["steps"][0] == {"state": "Done", "startedAt": 1.0, "endedAt": 2.0}
    assert (state["createdBy"], state["isCancelled"]) == ("ann", True)


def test_the_same_plan_is_the_same_bytes() -> None:
    first, second = (render_record(OPERATION, "system")["binaryData"] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"state": None}, "has no 'state'"),
        ({"plan": None}, "has no 'plan'"),
        ({"state": "{"}, "operation-abc"),
        ({"state": '{"kind": "other"}'}, "Invalid enum value 'other'"),
        ({"plan": "?"}, "operation-abc"),
        ({"plan": base64.b64encode(b"no gzip").decode()}, "incorrect header"),
        ({"plan": packed(b'{"steps": [{"title": "a", "work": {"do": "x"}}]}')}, "Invalid value"),
        ({"plan": packed(b'{"steps": []}')}, "different numbers of steps"),
        ({"plan": packed(b" " * (33 << 20))}, "cut off, or too large"),
        ({"plan": packed(b'{"steps": []}')[:-12]}, "operation-abc"),
    ],
)
def test_what_is_no_record_has_a_reason(keys: dict[str, str | None], reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_record(changed(**keys))
    assert reason in str(caught.value)


def test_a_config_map_of_another_name_is_no_record() -> None:
    record = render_record(OPERATION, "system")
    record["metadata"]["name"] = "other"
    with pytest.raises(ValueError) as caught:
        parse_record(wire(record))
    assert "begins with `operation-`" in str(caught.value)
