"""What is asked of the ledger, but for sums."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, LargeBinary, and_, cast, func, or_, select

from fairlead.edge.store.address import SQLITE
from fairlead.edge.store.columns import KEY_LENGTH, NAME_LENGTH
from fairlead.edge.store.ledger import rows as as_rows
from fairlead.edge.store.ledger.accounts import (
    IDS_AT_ONCE,
    accounts_by_id,
    accounts_of,
    classes_by_id,
    namespace_ids,
    owner_names,
)
from fairlead.edge.store.ledger.bulk import raw_rows
from fairlead.edge.store.ledger.forks import OPEN_FORK, ended_after, touching, valid_at, within
from fairlead.edge.store.ledger.sums import sorted_node_sums, sorted_sums
from fairlead.edge.store.ledger_tables import (
    CLAIM_ID,
    kept_states,
    ledger_claim,
    ledger_gaps,
    ledger_jobs,
    node_days,
    node_hours,
    node_intervals,
    pod_hours,
    pod_intervals,
    prices,
    usage_days,
)
from fairlead.edge.store.texts import cut_text
from fairlead.model.usage.ledger import (
    HOUR,
    OPEN,
    RECENT,
    RELEASES_KEPT,
    Gap,
    JobRecord,
    KeptState,
    LedgerBounds,
    LedgerClaim,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    StateKind,
)
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageSum

_ACCOUNT: Final = as_rows.POD_NUMBERS.index("account_id")


def bounds(connection: Connection) -> LedgerBounds:
    row = connection.execute(
        select(ledger_claim).where(ledger_claim.c.id == CLAIM_ID)
    ).one_or_none()
    if row is None:
        return LedgerBounds()
    gaps = connection.execute(select(ledger_gaps).order_by(ledger_gaps.c.started_at))
    return LedgerBounds(
        row.first_at,
        row.heartbeat,
        tuple(Gap(each.started_at, each.ended_at) for each in gaps),
        row.folded_until,
        row.epoch,
        row.zone,
        row.holder,
    )


def open_records(connection: Connection, claim: Any) -> LedgerClaim:
    """What a recorder finds; `claim`: the row of its claim."""
    hour = claim.heartbeat - claim.heartbeat % HOUR
    is_open = pod_intervals.c.fork == OPEN_FORK
    is_recent = ended_after(pod_intervals, claim.heartbeat - RECENT)
    ended = {*connection.scalars(select(pod_intervals.c.pod_uid).where(is_recent))}
    is_held = or_(
        and_(ended_after(pod_intervals, hour), pod_intervals.c.gpu > 0),
        ended_after(pod_intervals, claim.heartbeat - RELEASES_KEPT),
    )
    not_ended = node_intervals.c.ended_at == OPEN
    return LedgerClaim(
        claim.epoch,
        claim.heartbeat,
        _pods_by_uid(connection, is_open),
        tuple(sorted(ended)),
        tuple(sorted(_nodes(connection, not_ended), key=attrgetter("node_uid", "started_at"))),
        states(connection, kept_states.c.fork == OPEN_FORK),
        hours_of_pods(connection, hour, hour + 1),
        hours_of_nodes(connection, hour, hour + 1),
        tuple(sorted(_jobs(connection, ledger_jobs.c.deleted_at == 0), key=attrgetter("uid"))),
        _pods_by_uid(connection, is_held),
    )


def _pods_by_uid(connection: Connection, condition: ColumnElement[bool]) -> tuple[PodInterval, ...]:
    return tuple(sorted(_pods(connection, [condition]), key=attrgetter("pod_uid", "started_at")))


def pods_touching(
    connection: Connection,
    start: int,
    end: int,
    namespaces: Collection[str] | None,
    job_uid: str,
    pod_uids: Collection[str] | None = None,
) -> tuple[PodInterval, ...]:
    accounts = accounts_of(namespaces, job_uid)
    conditions = [within(pod_intervals, start, end)]
    if pod_uids is not None:
        conditions = [and_(*conditions, is_one) for is_one in _is_one_of(pod_uids)]
    elif not job_uid:
        conditions = touching(pod_intervals, start, end)
    if accounts is not None:
        is_one = pod_intervals.c.account_id.in_(accounts)
        conditions = [and_(each, is_one) for each in conditions]
    return tuple(sorted(_pods(connection, conditions), key=attrgetter("started_at", "pod_uid")))


def _is_one_of(pod_uids: Collection[str]) -> Iterator[ColumnElement[bool]]:
    """Conditions of which the interval of each of these pods fulfils one."""
    keys = sorted({cut_text(each, KEY_LENGTH) for each in pod_uids})
    for at in range(0, len(keys), IDS_AT_ONCE):
        yield pod_intervals.c.pod_uid.in_(keys[at : at + IDS_AT_ONCE])


def _pods(
    connection: Connection, conditions: Iterable[ColumnElement[bool]]
) -> Iterable[PodInterval]:
    columns, size = pod_intervals.c, len(as_rows.POD_TEXTS)
    texts = [columns[name] for name in as_rows.POD_TEXTS]
    numbers = [columns[name] for name in as_rows.POD_NUMBERS]
    is_sqlite = connection.dialect.name == SQLITE
    parts = [*texts, *(numbers if is_sqlite else [func.concat_ws(" ", *numbers)])]
    rows = [
        row
        for condition in conditions
        for row in raw_rows(connection, select(*parts).where(condition))
    ]
    if is_sqlite:
        pairs = [(row[:size], row[size:]) for row in rows]
    else:  # as in `states`
        pairs = [(row[:size], [int(each) for each in row[size].split()]) for row in rows]
    accounts = accounts_by_id(connection, {numbers[_ACCOUNT] for _, numbers in pairs})
    return (as_rows.pod_interval(texts, numbers, accounts) for texts, numbers in pairs)


def nodes_touching(connection: Connection, start: int, end: int) -> tuple[NodeInterval, ...]:
    found = _nodes(connection, within(node_intervals, start, end))
    return tuple(sorted(found, key=attrgetter("started_at", "node_uid")))


def _nodes(connection: Connection, condition: ColumnElement[bool]) -> Iterable[NodeInterval]:
    classes = classes_by_id(connection)
    rows = connection.execute(select(node_intervals).where(condition))
    return (as_rows.node_interval(row, classes) for row in rows)


def hours_of_pods(connection: Connection, start: int, end: int) -> tuple[PodHour, ...]:
    hours, pods = pod_hours.c, pod_intervals.c
    asked = (
        select(pods.pod_uid, pods.started_at, hours.hour, hours.busy, hours.idle, hours.unknown)
        .join_from(pod_hours, pod_intervals, pods.id == hours.interval_id)
        .where(hours.hour >= start, hours.hour < end)
    )
    found = (PodHour(*row) for row in connection.execute(asked))
    return tuple(sorted(found, key=attrgetter("hour", "pod_uid", "started_at")))


def hours_of_nodes(connection: Connection, start: int, end: int) -> tuple[NodeHour, ...]:
    hours, nodes = node_hours.c, node_intervals.c
    asked = (
        select(nodes.node_uid, nodes.started_at, node_hours)
        .join_from(node_hours, node_intervals, nodes.id == hours.interval_id)
        .where(hours.hour >= start, hours.hour < end)
    )
    found = map(as_rows.node_hour, connection.execute(asked))
    return tuple(sorted(found, key=attrgetter("hour", "node_uid", "started_at")))


def states_at(
    connection: Connection,
    at: int,
    kinds: Collection[StateKind],
    namespaces: Collection[str] | None,
) -> tuple[KeptState, ...]:
    columns = kept_states.c
    is_asked = and_(valid_at(kept_states, at), columns.kind.in_([str(kind) for kind in kinds]))
    if namespaces is not None:
        names = ["", *(as_rows.state_name(each) for each in namespaces)]
        is_asked = and_(is_asked, columns.namespace.in_(names))
    return states(connection, is_asked)


def states_begun(
    connection: Connection, start: int, end: int, kinds: Collection[StateKind]
) -> tuple[KeptState, ...]:
    columns = kept_states.c
    is_asked = and_(
        columns.started_at >= start,
        columns.started_at < end,
        columns.kind.in_([str(kind) for kind in kinds]),
    )
    found = states(connection, is_asked)
    return tuple(sorted(found, key=attrgetter("started_at", "kind", "uid")))


def states(connection: Connection, condition: ColumnElement[bool]) -> tuple[KeptState, ...]:
    """By kind, namespace, name, uid and start."""
    columns = kept_states.c
    names = [columns.kind, columns.namespace, columns.name, columns.uid]
    times = [columns.started_at, columns.ended_at]
    if connection.dialect.name == SQLITE:
        body = cast(columns.body, LargeBinary)  # as a text it would be decoded here
        found = raw_rows(connection, select(*names, *times, body).where(condition))
    else:  # the drivers are in Python: a column costs them as much as a row
        parts = [*names, *times, columns.body]
        joined = select(func.concat_ws(as_rows.SEPARATOR, *parts)).where(condition)
        texts = raw_rows(connection, joined)
        found = [
            (*names, int(started_at), int(ended_at), body.encode())
            for *names, started_at, ended_at, body in (
                each[0].split(as_rows.SEPARATOR, len(parts) - 1) for each in texts
            )
        ]
    found.sort()  # no two have the same kind, uid and start
    kinds = {str(kind): kind for kind in StateKind}
    return tuple(
        [
            KeptState(kinds[kind], uid, started_at, namespace, name, body, ended_at)
            for kind, namespace, name, uid, started_at, ended_at, body in found
        ]
    )


def jobs(
    connection: Connection,
    start: int,
    end: int,
    namespaces: Collection[str] | None,
    name: str,
) -> tuple[JobRecord, ...]:
    columns = ledger_jobs.c
    existed = and_(
        columns.created_at < end, or_(columns.deleted_at == 0, columns.deleted_at > start)
    )
    if namespaces is not None:
        existed = and_(existed, columns.namespace_id.in_(namespace_ids(namespaces)))
    if name:
        existed = and_(existed, columns.name == cut_text(name, NAME_LENGTH))
    found = _jobs(connection, existed)
    return tuple(sorted(found, key=lambda each: (-each.created_at, each.uid)))


def _jobs(connection: Connection, condition: ColumnElement[bool]) -> Iterable[JobRecord]:
    rows = connection.execute(select(ledger_jobs).where(condition)).all()
    ids = {id for row in rows for id in (row.namespace_id, row.user_id, row.leaf_id)}
    names = owner_names(connection, ids)
    return (as_rows.job_record(row, names) for row in rows)


def usage_days_from(
    connection: Connection, start: int, end: int, namespaces: Collection[str] | None
) -> tuple[UsageSum, ...]:
    columns = usage_days.c
    asked = select(usage_days).where(columns.day >= start, columns.day < end)
    accounts = accounts_of(namespaces)
    if accounts is not None:
        asked = asked.where(columns.account_id.in_(accounts))
    by_day: dict[int, dict[int, list[int]]] = {}
    for day, id, *values in connection.execute(asked):
        by_day.setdefault(day, {})[id] = values
    known = accounts_by_id(connection, {id for found in by_day.values() for id in found})
    return tuple(
        each
        for day in sorted(by_day)
        for each in sorted_sums(day, {known[id]: row for id, row in by_day[day].items()})
    )


def node_days_from(connection: Connection, start: int, end: int) -> tuple[NodeSum, ...]:
    asked = select(node_days).where(node_days.c.day >= start, node_days.c.day < end)
    classes = classes_by_id(connection)
    by_day: dict[int, dict[PriceClass, list[int]]] = {}
    for day, id, *values in connection.execute(asked):
        by_day.setdefault(day, {})[classes[id]] = [int(each) for each in values]
    return tuple(each for day in sorted(by_day) for each in sorted_node_sums(day, by_day[day]))


def all_prices(connection: Connection) -> tuple[Price, ...]:
    matcher = msgspec.json.Decoder(tuple[tuple[str, str], ...])
    return tuple(
        Price(
            matcher.decode(row.matcher),
            row.currency,
            row.node_hour,
            row.valid_from,
            row.entered_at,
            _or_none(row.list_node_hour),
            _or_none(row.gpu_permille),
            row.entered_by,
            row.note,
            bool(row.is_end),
            row.id,
        )
        for row in connection.execute(select(prices).order_by(prices.c.id))
    )


def _or_none(number: int) -> int | None:
    return None if number < 0 else number
