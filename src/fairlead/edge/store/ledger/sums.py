"""Integrals of the ledger, added up by the engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    literal_column,
    select,
    union_all,
)

from fairlead.edge.store.address import MYSQL, SQLITE
from fairlead.edge.store.ledger.accounts import (
    UsageAccount,
    accounts_by_id,
    accounts_of,
    class_ids,
    classes_by_id,
)
from fairlead.edge.store.ledger.bulk import number_rows
from fairlead.edge.store.ledger.forks import touching, within
from fairlead.edge.store.ledger_tables import (
    CLAIM_ID,
    ledger_claim,
    node_hours,
    node_intervals,
    pod_hours,
    pod_intervals,
)
from fairlead.errors import UserError
from fairlead.model.usage.ledger import PriceClass
from fairlead.model.usage.sums import NodeSum, UsageIntegral, UsageSum

LONGEST: Final = 1 << 36
"""Milliseconds: an amount times this time stays within 63 bits (`MOST`)."""
_HALF: Final = 32
_AMOUNTS: Final = ("gpu", "gpu_memory_mib", "cpu_milli", "memory_mib")
_STATES: Final = ("busy", "idle", "unknown")
_ACCOUNT: Final = (pod_intervals.c.account_id + literal_column("0", BigInteger)).label("account_id")
"""Not the column itself: MariaDB would follow its index, and so look for each row by itself,
in the order of accounts.
"""


def usage_sums(
    connection: Connection, start: int, end: int, namespaces: Collection[str] | None = None
) -> tuple[UsageSum, ...]:
    """As `ports.LedgerReading.usage_sums`."""
    found = usage_by_account(connection, start, end, namespaces)
    accounts = accounts_by_id(connection, found.keys())
    return sorted_sums(start, {accounts[id]: values for id, values in found.items()})


def sorted_sums(day: int, found: Mapping[UsageAccount, list[int]]) -> tuple[UsageSum, ...]:
    """`found`: the fields of the integral, and the number of pods."""
    return tuple(
        UsageSum(day, *account, UsageIntegral(*found[account][:-1]), found[account][-1])
        for account in sorted(found)
    )


def usage_by_account(
    connection: Connection, start: int, end: int, namespaces: Collection[str] | None = None
) -> dict[int, list[int]]:
    """By the id of the account: the fields of the integral, and the number of pods."""
    _check_length(start, end)
    accounts = accounts_of(namespaces)
    found: dict[int, list[int]] = defaultdict(lambda: [0] * 8)
    last, has_later = min(end, heartbeat(connection)), False
    asked = _pod_question(connection, start, last, accounts)
    for id, pods, later, *values in number_rows(connection, asked):
        found[id][:4] = whole(connection, values)
        found[id][-1] = pods
        has_later = has_later or later > 0
    for asked in _later_questions(start, last, accounts) if has_later else ():
        for id, pods in number_rows(connection, asked):
            found[id][-1] += pods
    for id, *values in number_rows(connection, _hours_question(connection, start, end, accounts)):
        found[id][4:7] = whole(connection, values)
    return found


def node_sums(connection: Connection, start: int, end: int) -> tuple[NodeSum, ...]:
    """As `ports.LedgerReading.node_sums`."""
    classes = classes_by_id(connection)
    found = {
        classes[id]: values for id, values in node_sums_by_class(connection, start, end).items()
    }
    return sorted_node_sums(start, found)


def sorted_node_sums(day: int, found: Mapping[PriceClass, list[int]]) -> tuple[NodeSum, ...]:
    return tuple(NodeSum(day, each, *found[each]) for each in sorted(found))


def node_sums_by_class(connection: Connection, start: int, end: int) -> dict[int, list[int]]:
    """By the id of the price class: the numbers of `NodeSum`."""
    _check_length(start, end)
    found: dict[int, list[int]] = defaultdict(lambda: [0] * 7)
    last = min(end, heartbeat(connection))
    columns = node_intervals.c
    ms = _overlap(connection, node_intervals, start, last)
    is_within = within(node_intervals, start, last)
    inner = select(columns.class_id, ms.label("ms")).where(is_within).subquery()
    asked = select(inner.c.class_id, *summed(connection, inner.c.ms)).group_by(inner.c.class_id)
    for id, *values in number_rows(connection, asked):
        found[id][:1] = whole(connection, values)
    for id, values in _held_by_class(connection, start, end).items():
        found[id][1:4] = values
    hours, names = node_hours.c, ("free", "stranded", "broken")
    of_nodes = (
        select(
            columns.class_id, *(each for name in names for each in summed(connection, hours[name]))
        )
        .join_from(node_hours, node_intervals, columns.id == hours.interval_id)
        .where(hours.hour >= start, hours.hour < end)
        .group_by(columns.class_id)
    )
    for id, *values in number_rows(connection, of_nodes):
        found[id][4:] = whole(connection, values)
    return found


def _held_by_class(connection: Connection, start: int, end: int) -> dict[int, list[int]]:
    asked = _hours_question(connection, start, end, None)
    rows = {id: whole(connection, values) for id, *values in number_rows(connection, asked)}
    found: dict[int, list[int]] = defaultdict(lambda: [0] * 3)
    for id, class_id in class_ids(connection, rows.keys()).items():
        for at, each in enumerate(rows[id]):
            found[class_id][at] += each
    return found


def heartbeat(connection: Connection) -> int:
    asked = select(ledger_claim.c.heartbeat).where(ledger_claim.c.id == CLAIM_ID)
    return connection.scalar(asked) or 0


def _check_length(start: int, end: int) -> None:
    if end - start > LONGEST:
        days = (end - start) // 86_400_000
        raise UserError(f"a period of {days} days is too long", "ask for two years at most")


def _pod_question(
    connection: Connection, start: int, end: int, accounts: Select[Any] | None
) -> Select[Any]:
    """Account, the number of pods, of intervals that `_later_questions` are about, and sums.

    Only SQLite finds out at once which of the pods' later intervals count. PostgreSQL would add up
    in one process alone, and compile the statement, which takes longer than to add up.
    """
    columns, engine = pod_intervals.c, connection.dialect.name
    pods, later = (
        (_first_of_pod(start), literal(0))
        if engine == SQLITE
        else (1 - columns.is_later, columns.is_later)
    )
    account = _ACCOUNT if engine == MYSQL else columns.account_id
    ms = _overlap(connection, pod_intervals, start, end)
    counts = [pods.label("pods"), later.label("later")]
    amounts = [(columns[name] * ms).label(name) for name in _AMOUNTS]
    parts = [
        select(account, *counts, *amounts).where(condition)
        for condition in _of_accounts(touching(pod_intervals, start, end), accounts)
    ]
    inner = parts[0].subquery() if len(parts) == 1 else union_all(*parts).subquery()
    sums = [each for name in _AMOUNTS for each in summed(connection, inner.c[name])]
    id = inner.c.account_id
    return select(id, func.sum(inner.c.pods), func.sum(inner.c.later), *sums).group_by(id)


def _first_of_pod(start: int) -> ColumnElement[int]:
    """1 for the first interval of a pod in the account that touches the time, 0 for the others: so
    their sum is the number of pods. The inner question is asked for pods with several intervals.
    """
    return case((pod_intervals.c.is_later == 0, 1), (_has_earlier(start), 0), else_=1)


def _has_earlier(start: int) -> ColumnElement[bool]:
    """Whether an interval of the pod in the account before this one touches the time."""
    columns, before = pod_intervals.c, pod_intervals.alias("earlier")
    return exists().where(
        before.c.pod_uid == columns.pod_uid,
        before.c.started_at < columns.started_at,
        before.c.account_id == columns.account_id,
        before.c.ended_at > start,
        before.c.started_at < before.c.ended_at,
    )


def _later_questions(
    start: int, end: int, accounts: Select[Any] | None
) -> Iterator[Select[tuple[int, int]]]:
    """Account, and the number of pods whose first interval of the account in this time is not the
    pod's first one. An account is in several answers.
    """
    for condition in _of_accounts(touching(pod_intervals, start, end), accounts):
        asked = select(_ACCOUNT, func.count()).group_by(_ACCOUNT)
        yield asked.where(condition, pod_intervals.c.is_later == 1, ~_has_earlier(start))


def _of_accounts(
    conditions: Iterable[ColumnElement[bool]], accounts: Select[Any] | None
) -> list[ColumnElement[bool]]:
    if accounts is None:
        return [*conditions]
    return [and_(each, pod_intervals.c.account_id.in_(accounts)) for each in conditions]


def _hours_question(
    connection: Connection, start: int, end: int, accounts: Select[Any] | None
) -> Select[Any]:
    """UsageAccount, and sums of its hours that begin in the time."""
    hours, columns = pod_hours.c, pod_intervals.c
    sums = [each for name in _STATES for each in summed(connection, hours[name])]
    asked = (
        select(columns.account_id, *sums)
        .join_from(pod_hours, pod_intervals, columns.id == hours.interval_id)
        .where(hours.hour >= start, hours.hour < end)
        .group_by(columns.account_id)
    )
    return asked if accounts is None else asked.where(columns.account_id.in_(accounts))


def _overlap(connection: Connection, table: FromClause, start: int, end: int) -> ColumnElement[int]:
    columns = table.c
    is_sqlite = connection.dialect.name == SQLITE
    least, greatest = (func.min, func.max) if is_sqlite else (func.least, func.greatest)
    found: ColumnElement[int] = least(columns.ended_at, literal(end, BigInteger)) - greatest(
        columns.started_at, literal(start, BigInteger)
    )
    return found


def summed(connection: Connection, column: Column[Any] | ColumnElement[Any]) -> list[Any]:
    """The sum, exactly. SQLite's own fails above 63 bits: there halves are added up."""
    if connection.dialect.name != SQLITE:
        return [func.sum(column)]
    low = column.op("&")((1 << _HALF) - 1)
    return [func.sum(low), func.sum(column.op(">>")(_HALF))]


def whole(connection: Connection, values: Sequence[int]) -> list[int]:
    """The sums of what `summed` asked for."""
    if connection.dialect.name != SQLITE:
        return [*values]
    pairs = zip(values[::2], values[1::2], strict=True)
    return [low + (high << _HALF) for low, high in pairs]
