"""Days are folded, old rows removed: in short transactions, each with the number of the claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, and_, case, delete, func, insert, select

from fairlead.edge.store.ledger.accounts import remove_unused
from fairlead.edge.store.ledger.forks import ended_before
from fairlead.edge.store.ledger.rows import integral
from fairlead.edge.store.ledger.sums import node_sums_by_class, usage_by_account
from fairlead.edge.store.ledger.writing import fence
from fairlead.edge.store.ledger_tables import (
    kept_states,
    ledger_claim,
    ledger_gaps,
    ledger_jobs,
    node_days,
    node_hours,
    node_intervals,
    pod_hours,
    pod_intervals,
    usage_days,
)
from fairlead.model.usage.ledger import HOUR

ROWS_AT_ONCE: Final = 1000
ACCOUNTS_AT_ONCE: Final = 5000
Step = Callable[[Connection], int]
"""Removes some rows, and returns their number: 0 = none are left."""


def fold(connection: Connection, epoch: int, day: int, end: int) -> None:
    """Replace the rows of the day by the sums of its intervals."""
    until = ledger_claim.c.folded_until
    fence(connection, epoch, {"folded_until": case((until < end, end), else_=until)})
    usage, nodes = usage_by_account(connection, day, end), node_sums_by_class(connection, day, end)
    connection.execute(delete(usage_days).where(usage_days.c.day == day))
    connection.execute(delete(node_days).where(node_days.c.day == day))
    _insert(connection, usage_days, ((day, id, *map(integral, usage[id])) for id in sorted(usage)))
    _insert(connection, node_days, ((day, id, *map(str, nodes[id])) for id in sorted(nodes)))


def _insert(connection: Connection, table: Table, values: Iterable[tuple[Any, ...]]) -> None:
    names = [each.name for each in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in values]
    if rows:
        connection.execute(insert(table), rows)


def removals(records_before: int, days_before: int) -> list[Step]:
    """What forgetting consists of, in this order. Each is repeated until it removes nothing."""
    hours_before = records_before - HOUR
    return [
        lambda connection: _remove_hour(connection, pod_hours, hours_before),
        lambda connection: _remove_hour(connection, node_hours, hours_before),
        lambda connection: _remove_intervals(
            connection, pod_intervals, pod_hours, ended_before(pod_intervals, records_before)
        ),
        lambda connection: _remove_intervals(
            connection, node_intervals, node_hours, node_intervals.c.ended_at < records_before
        ),
        lambda connection: _remove(
            connection, kept_states, kept_states.c.id, ended_before(kept_states, records_before)
        ),
        lambda connection: _remove(
            connection,
            ledger_jobs,
            ledger_jobs.c.uid,
            and_(ledger_jobs.c.deleted_at > 0, ledger_jobs.c.deleted_at < days_before),
        ),
        lambda connection: _remove(
            connection, ledger_gaps, ledger_gaps.c.started_at, ledger_gaps.c.ended_at < days_before
        ),
        lambda connection: _remove_day(connection, usage_days, days_before),
        lambda connection: _remove_day(connection, node_days, days_before),
    ]


def _remove(connection: Connection, table: Table, id: Any, condition: ColumnElement[bool]) -> int:
    ids = connection.scalars(select(id).where(condition).limit(ROWS_AT_ONCE)).all()
    if not ids:
        return 0
    return connection.execute(delete(table).where(id.in_(ids))).rowcount


def _remove_intervals(
    connection: Connection, table: Table, hours: Table, condition: ColumnElement[bool]
) -> int:
    """Intervals, and the hours of them that are left."""
    asked = select(table.c.id, table.c.ended_at).where(condition).limit(ROWS_AT_ONCE)
    found = connection.execute(asked).all()
    if not found:
        return 0
    ids = [row.id for row in found]
    last = [row.ended_at - row.ended_at % HOUR for row in found]
    of_hours = delete(hours).where(
        hours.c.hour >= min(last) - HOUR, hours.c.hour <= max(last), hours.c.interval_id.in_(ids)
    )
    removed = connection.execute(of_hours).rowcount
    return removed + connection.execute(delete(table).where(table.c.id.in_(ids))).rowcount


def _remove_hour(connection: Connection, table: Table, before: int) -> int:
    return _remove_first(connection, table, table.c.hour, before)


def _remove_day(connection: Connection, table: Table, before: int) -> int:
    return _remove_first(connection, table, table.c.day, before)


def _remove_first(connection: Connection, table: Table, column: Any, before: int) -> int:
    """All rows of the first hour or day that is before the time."""
    first = connection.scalar(select(func.min(column)))
    if first is None or first >= before:
        return 0
    return connection.execute(delete(table).where(column == first)).rowcount


def remove_accounts(connection: Connection, epoch: int, after: int) -> int:
    """Of some accounts those that nothing refers to; the last id, 0 at the end."""
    fence(connection, epoch)
    return remove_unused(connection, after, ACCOUNTS_AT_ONCE)
