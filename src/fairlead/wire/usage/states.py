"""Rows of the cluster as bodies of kept states, and back (docs/spec/usage.md#past).

A body is the row as JSON, without fields that have their default: the same row gives the same bytes
in every version that knows the same fields, so that a recorder can compare bodies. An older version
ignores fields of a newer one, and a field that a body lacks has its default.

The status of the quota tree is left out. The quota controller writes it with each admission, and no
table of the past shows it: what is used follows from the pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields, replace

from fairlead.errors import OutsideError
from fairlead.model.jobs.job import Job
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.sharing import Withheld
from fairlead.model.usage.ledger import KeptCards, KeptState, StateKind

StateRow: TypeAlias = (
    Node | Pod | Job | QuotaTree | KeptCards | Workload | Budget | Namespace | Withheld
)

ROW_TYPES: Final[Mapping[StateKind, type[StateRow]]] = {
    StateKind.NODE: Node,
    StateKind.POD: Pod,
    StateKind.JOB: Job,
    StateKind.TREE: QuotaTree,
    StateKind.CARDS: KeptCards,
    StateKind.WORKLOAD: Workload,
    StateKind.BUDGET: Budget,
    StateKind.NAMESPACE: Namespace,
    StateKind.WITHHELD: Withheld,
}
_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decoders: Final = {kind: msgspec.json.Decoder(row) for kind, row in ROW_TYPES.items()}
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))


def state_body(row: StateRow) -> bytes:
    """The body of the row's state. Equal rows have equal bodies.

    >>> state_body(Pod("ml", "bert-0", uid="u1", labels={"b": "2", "a": "1"}))
    b'{"labels":{"a":"1","b":"2"},"name":"bert-0","namespace":"ml","uid":"u1"}'
    """
    shown = replace(row, status={}, user_use=()) if isinstance(row, QuotaTree) else row
    return _encode(_kept(shown))


def parse_state(kind: StateKind, body: bytes) -> Any:
    """The row of a body, of the type in `ROW_TYPES`.

    Raises OutsideError for a body that is none of this kind.

    >>> parse_state(StateKind.POD, b'{"namespace":"ml","name":"bert-0","later":1}').key
    'ml/bert-0'
    """
    try:
        return _decoders[kind].decode(body)
    except msgspec.MsgspecError as error:
        raise OutsideError(
            "the store",
            f"a kept state of kind `{kind}` cannot be read: {error}",
            "it was changed by another program, or damaged; restore the store from a backup",
        ) from error


class StateRows:
    """Reads states moment by moment. A state that the moment before had, too, is the same row."""

    def __init__(self) -> None:
        self._known: dict[tuple[StateKind, str, int], tuple[bytes, Any]] = {}

    def of(self, states: Iterable[KeptState]) -> dict[StateKind, list[Any]]:
        """The rows of these states by kind, in their order. Raises OutsideError."""
        before, known = self._known, dict[tuple[StateKind, str, int], tuple[bytes, Any]]()
        found: dict[StateKind, list[Any]] = {kind: [] for kind in StateKind}
        for state in states:
            kind, body = state.kind, state.body
            key = kind, state.uid, state.started_at
            read = before.get(key)
            if read is None or read[0] != body:
                read = body, parse_state(kind, body)
            known[key] = read
            found[kind].append(read[1])
        self._known = known
        return {kind: rows for kind, rows in found.items() if rows}


def _kept(row: Struct) -> dict[str, Any]:
    """The fields of the row, and of all rows in it, that do not have their default."""
    found: dict[str, Any] = {}
    for name, default in _defaults(type(row)):
        value = getattr(row, name)
        if default is NODEFAULT or value != default:
            found[name] = _kept_value(value)
    return found


def _kept_value(value: Any) -> Any:
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, Struct):
        return _kept(value)
    if isinstance(value, Mapping):
        return {key: _kept_value(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_kept_value(each) for each in value]
    return value


@cache
def _defaults(row: type[Struct]) -> tuple[tuple[str, Any], ...]:
    """Each field with its default."""
    return tuple(
        (field.name, _default(field.default, field.default_factory)) for field in fields(row)
    )


def _default(value: Any, factory: Callable[[], Any] | Any) -> Any:
    return value if factory is NODEFAULT else factory()
