"""The record of an operation: a ConfigMap with its state as JSON and its steps compressed.

Specification: docs/spec/operations.md#record.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.model.actions import Manifest
from fairlead.model.moment import Moment
from fairlead.model.operations.operation import (
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    StepProgress,
    lock_of,
)
from fairlead.wire.kube.objects import WireMeta
from fairlead.wire.names import LABEL_OPERATION

STATE_KEY: Final = "state"
PLAN_KEY: Final = "plan"
MOST_PLAN_BYTES: Final = 32 << 20
"""Bytes of an uncompressed plan; a larger one is no plan of Fairlead."""
_PREFIX: Final = "operation-"
_HASH_LETTERS: Final = 16


class _WireState(Struct, frozen=True, rename="camel", kw_only=True):
    kind: OperationKind
    subject: str
    state: OperationState
    created_by: str = ""
    created_at: Moment = 0.0
    updated_at: Moment = 0.0
    is_cancelled: bool = False
    message: str = ""
    holder: str = ""
    replaced_by: str = ""
    steps: tuple[StepProgress, ...] = ()
    undo: tuple[StepProgress, ...] = ()


class _WirePlan(Struct, frozen=True, rename="camel"):
    steps: tuple[OperationStep, ...]
    undo: tuple[OperationStep, ...] = ()
    seen: Mapping[str, str] = {}


_state_decoder: Final = msgspec.json.Decoder(_WireState)
_plan_decoder: Final = msgspec.json.Decoder(_WirePlan)


def record_name(id: str) -> str:
    return f"{_PREFIX}{id}"


def lease_name(subject: str) -> str:
    """Of the Lease that the process at work on a subject holds.

    >>> lease_name("dataset/team/raw")
    'operation-e77f36f64463dd71'
    """
    return _PREFIX + hashlib.sha256(lock_of(subject).encode()).hexdigest()[:_HASH_LETTERS]


def render_record(operation: Operation, namespace: str) -> Manifest:
    """The whole ConfigMap; with the resource version if the operation has one."""
    plan = _WirePlan(operation.steps, operation.undo, operation.seen)
    packed = gzip.compress(msgspec.json.encode(plan), mtime=0)
    based_on = {"resourceVersion": operation.version} if operation.version else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": record_name(operation.id),
            "namespace": namespace,
            "labels": {LABEL_OPERATION: operation.kind.value},
            **based_on,
        },
        "data": {STATE_KEY: render_state(operation)},
        "binaryData": {PLAN_KEY: base64.b64encode(packed).decode()},
    }


def render_state(operation: Operation) -> str:
    """The part that changes, for `data.state`."""
    state = _WireState(
        kind=operation.kind,
        subject=operation.subject,
        state=operation.state,
        created_by=operation.created_by,
        created_at=operation.created_at,
        updated_at=operation.updated_at,
        is_cancelled=operation.is_cancelled,
        message=operation.message,
        holder=operation.holder,
        replaced_by=operation.replaced_by,
        steps=operation.progress,
        undo=operation.undo_progress,
    )
    return msgspec.json.format(msgspec.json.encode(state), indent=2).decode()


class WireRecord(Struct, rename="camel"):
    """A ConfigMap, as far as a record needs it."""

    metadata: WireMeta
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


def parse_record(record: WireRecord) -> Operation:
    """Raises ValueError for a ConfigMap that is no record of an operation."""
    name = record.metadata.name or ""
    if not name.startswith(_PREFIX):
        raise ValueError(f"ConfigMap `{name}`: a record's name begins with `{_PREFIX}`")
    try:
        state = _state_decoder.decode((record.data or {})[STATE_KEY])
        plan = _plan_decoder.decode(_unpacked((record.binary_data or {})[PLAN_KEY]))
    except KeyError as error:
        raise ValueError(f"ConfigMap `{name}` has no {error}") from error
    except (msgspec.MsgspecError, ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"ConfigMap `{name}`: {error}") from error
    if (len(plan.steps), len(plan.undo)) != (len(state.steps), len(state.undo)):
        raise ValueError(f"ConfigMap `{name}`: state and plan have different numbers of steps")
    return Operation(
        id=name.removeprefix(_PREFIX),
        kind=state.kind,
        subject=state.subject,
        steps=plan.steps,
        progress=state.steps,
        undo=plan.undo,
        undo_progress=state.undo,
        state=state.state,
        created_by=state.created_by,
        created_at=state.created_at,
        updated_at=state.updated_at,
        is_cancelled=state.is_cancelled,
        message=state.message,
        seen=plan.seen,
        holder=state.holder,
        replaced_by=state.replaced_by,
        version=record.metadata.resource_version or "",
    )


def _unpacked(text: str) -> bytes:
    packed = zlib.decompressobj(wbits=31)
    plan = packed.decompress(base64.b64decode(text, validate=True), MOST_PLAN_BYTES)
    if packed.unconsumed_tail or not packed.eof:
        raise ValueError("the plan is cut off, or too large")
    return plan
