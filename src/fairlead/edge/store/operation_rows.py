"""Rows of operations that have ended."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, Select, and_, or_, select

from fairlead.edge.store.columns import NAME_LENGTH
from fairlead.edge.store.tables import operations
from fairlead.edge.store.texts import cut_text, whole_text
from fairlead.model.records.rows import OperationRow


def operation_values(row: OperationRow) -> dict[str, Any]:
    return {
        "operation": row.id,
        "kind": row.kind,
        "subject": whole_text(row.subject),
        "state": row.state,
        "created_by": cut_text(row.created_by, NAME_LENGTH),
        "created_at": row.created_at,
        "ended_at": row.ended_at,
        "message": whole_text(row.message),
        "steps": whole_text(row.steps),
    }


def operation_row(row: Row[Any]) -> OperationRow:
    found = row._mapping
    _, *names = OperationRow.__struct_fields__
    return OperationRow(found["operation"], **{name: found[name] for name in names})


def operations_before(before: tuple[int, str] | None) -> Select[Any]:
    """The newest first; `before`: those that began before this time, and of that time those with a
    smaller id.
    """
    asked = select(operations).order_by(
        operations.c.created_at.desc(), operations.c.operation.desc()
    )
    if before is None:
        return asked
    at, id = before
    is_older = operations.c.created_at < at
    return asked.where(
        or_(is_older, and_(operations.c.created_at == at, operations.c.operation < id))
    )
