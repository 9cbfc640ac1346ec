"""What the usage recorder writes: each batch in one transaction, with the number of its claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import Connection, Table, and_, case, delete, insert, select, update

from fairlead.edge.store.columns import NAME_LENGTH
from fairlead.edge.store.ledger import rows as as_rows
from fairlead.edge.store.ledger.accounts import AccountIds, Ids
from fairlead.edge.store.ledger.bulk import Rows, Values, change, matching, upsert, upsert_joined
from fairlead.edge.store.ledger.forks import fork_of
from fairlead.edge.store.ledger_tables import (
    CLAIM_ID,
    kept_states,
    ledger_claim,
    ledger_gaps,
    ledger_jobs,
    node_hours,
    node_intervals,
    pod_hours,
    pod_intervals,
)
from fairlead.edge.store.texts import cut_text
from fairlead.errors import LedgerTaken, UserError
from fairlead.model.usage.ledger import OPEN, End, JobRecord, LedgerBatch, StateEnd

_IS_CLAIM: Final = ledger_claim.c.id == CLAIM_ID


def claim(connection: Connection, holder: str, now: int, zone: str) -> Any:
    """Make the holder the newest one; the row of the claim. Raises UserError for another zone."""
    if (
        connection.execute(
            update(ledger_claim).where(_IS_CLAIM).values(_next(holder, now))
        ).rowcount
        == 0
    ):
        _insert_claim(connection, zone)
        connection.execute(update(ledger_claim).where(_IS_CLAIM).values(_next(holder, now)))
    row = connection.execute(select(ledger_claim).where(_IS_CLAIM)).one()
    if row.zone != zone:
        raise UserError(
            f"the days of the usage ledger are those of the time zone `{row.zone}`, not `{zone}`",
            f"set `billingTimeZone: {row.zone}`",
        )
    if 0 < row.heartbeat < now:
        connection.execute(delete(ledger_gaps).where(ledger_gaps.c.started_at == row.heartbeat))
        gap = {"started_at": row.heartbeat, "ended_at": now}
        connection.execute(insert(ledger_gaps).values(gap))
    return row


def _next(holder: str, now: int) -> dict[str, Any]:
    heartbeat = ledger_claim.c.heartbeat
    return {
        "epoch": ledger_claim.c.epoch + 1,
        "holder": cut_text(holder, NAME_LENGTH),
        "claimed_at": now,
        "heartbeat": case((heartbeat > now, now), else_=heartbeat),
    }


def _insert_claim(connection: Connection, zone: str) -> None:
    """The row, if no other recorder has made it meanwhile."""
    values = {"id": CLAIM_ID, "holder": "", "zone": zone}
    values |= dict.fromkeys(("epoch", "claimed_at", "first_at", "heartbeat", "folded_until"), 0)
    rows = Rows(connection.dialect.name, [ledger_claim.c[name] for name in values])
    rows.run(connection, upsert(ledger_claim, rows, ["id"], kept=[*values]), [(*values.values(),)])


def fence(connection: Connection, epoch: int, values: dict[str, Any] | None = None) -> None:
    """Lock the row of the claim until the transaction ends. Raises LedgerTaken."""
    is_newest = and_(_IS_CLAIM, ledger_claim.c.epoch == epoch)
    statement = update(ledger_claim).where(is_newest).values(values or {"epoch": epoch})
    if connection.execute(statement).rowcount == 0:
        newest = connection.scalar(select(ledger_claim.c.epoch).where(_IS_CLAIM)) or 0
        raise LedgerTaken(epoch, newest)


def beat(at: int) -> dict[str, Any]:
    """Values of the claim after a write. The heartbeat never goes back."""
    columns = ledger_claim.c
    return {
        "heartbeat": case((columns.heartbeat < at, at), else_=columns.heartbeat),
        "first_at": case((columns.first_at == 0, at), else_=columns.first_at),
    }


def write(connection: Connection, epoch: int, batch: LedgerBatch, known: AccountIds) -> Ids:
    """All of the batch. What is returned belongs to `known` once the transaction is committed."""
    fence(connection, epoch, beat(batch.at))
    accounts = [as_rows.account_of(each) for each in batch.pods]
    ids = known.find(
        connection,
        accounts,
        (each.price_class for each in batch.nodes),
        (each.by for each in batch.jobs),
    )
    account_ids = map(ids.account, accounts)
    pods = map(as_rows.pod_values, batch.pods, account_ids)
    _write_pods(connection, batch, pods)
    _write_nodes(connection, batch, ids)
    _write_states(connection, batch)
    _write_jobs(connection, batch, ids)
    return ids


def _write_pods(connection: Connection, batch: LedgerBatch, pods: Iterable[Values]) -> None:
    key = ["pod_uid", "started_at"]
    kept = ("is_later",)
    stored = _put(connection, pod_intervals, as_rows.POD_COLUMNS, key, pods, kept)
    _mark_later(connection, sorted({values[0] for values in stored}))
    ended = (
        (as_rows.uid_text(end.key[0]), end.key[1], *_end(end), end.closed_by.value)
        for end in batch.pod_ends
    )
    _end_rows(connection, pod_intervals, key, ["ended_at", "fork", "closed_by"], ended)
    hours = map(as_rows.pod_hour_values, batch.pod_hours)
    _put_hours(connection, pod_hours, pod_intervals, key, hours)


def _write_nodes(connection: Connection, batch: LedgerBatch, ids: Ids) -> None:
    key = ["node_uid", "started_at"]
    nodes = (as_rows.node_values(each, ids) for each in batch.nodes)
    _put(connection, node_intervals, as_rows.NODE_COLUMNS, key, nodes)
    ended = (
        (as_rows.uid_text(end.key[0]), end.key[1], _end(end)[0], end.closed_by.value)
        for end in batch.node_ends
    )
    _end_rows(connection, node_intervals, key, ["ended_at", "closed_by"], ended)
    hours = map(as_rows.node_hour_values, batch.node_hours)
    _put_hours(connection, node_hours, node_intervals, key, hours)


def _write_states(connection: Connection, batch: LedgerBatch) -> None:
    key = ["kind", "uid", "started_at"]
    states = map(as_rows.state_values, batch.states)
    _put(connection, kept_states, as_rows.STATE_COLUMNS, key, states)
    ended = (
        (end.kind.value, as_rows.state_uid(end.key[0]), end.key[1], *_end(end))
        for end in batch.state_ends
    )
    _end_rows(connection, kept_states, key, ["ended_at", "fork"], ended)


def _write_jobs(connection: Connection, batch: LedgerBatch, ids: Ids) -> None:
    """A job without a manifest keeps the one that is stored."""
    jobs: dict[str, JobRecord] = {}
    for job in batch.jobs:
        before = jobs.get(job.uid)
        jobs[job.uid] = (
            job if job.manifest or before is None else replace(job, manifest=before.manifest)
        )
    for has_manifest, kept in ((True, ()), (False, ("manifest",))):
        rows = [
            as_rows.job_values(job, ids)
            for job in jobs.values()
            if bool(job.manifest) == has_manifest
        ]
        _put(connection, ledger_jobs, as_rows.JOB_COLUMNS, ["uid"], rows, kept)


def _end(end: End | StateEnd) -> tuple[int, int]:
    """The end, and the fork that the record has then."""
    started_at = end.key[1]
    ended_at = as_rows.end_of(started_at, end.ended_at)
    return ended_at, fork_of(started_at, ended_at)


def _put(
    connection: Connection,
    table: Table,
    columns: Sequence[str],
    key: Sequence[str],
    values: Iterable[Values],
    kept: Sequence[str] = (),
) -> list[Values]:
    """Store rows whose first columns are the key: the last one of each, in the order of keys, so
    that two writers lock them in the same order.
    """
    newest = {row[: len(key)]: row for row in values}
    stored = sorted(newest.values())
    rows = Rows(connection.dialect.name, [table.c[name] for name in columns])
    rows.run(connection, upsert(table, rows, key, kept), stored)
    return stored


def _end_rows(
    connection: Connection,
    table: Table,
    key: Sequence[str],
    values: Sequence[str],
    ended: Iterable[Values],
) -> None:
    """Set the values of rows that are open; the first of each."""
    first: dict[Values, Values] = {}
    for row in ended:
        first.setdefault(row[: len(key)], row)
    rows = Rows(connection.dialect.name, [table.c[name] for name in (*key, *values)])
    statement = change(table, rows, key, values, f"{table.name}.ended_at = {OPEN}")
    rows.run(connection, statement, [first[each] for each in sorted(first)])


def _put_hours(
    connection: Connection,
    table: Table,
    intervals: Table,
    key: Sequence[str],
    values: Iterable[Values],
) -> None:
    """Store hours of intervals that are stored. `values`: begin with the interval's key."""
    newest = {row[: len(key) + 1]: row for row in values}
    columns = [intervals.c[name] for name in key]
    columns += [each for each in table.columns if each.name != "interval_id"]
    rows = Rows(connection.dialect.name, columns)
    hour = ["hour", "interval_id"]
    statement = upsert_joined(table, rows, intervals, key, "interval_id", hour)
    rows.run(connection, statement, [newest[each] for each in sorted(newest)])


def _mark_later(connection: Connection, uids: list[str]) -> None:
    """Mark all intervals but the first one of pods that have several."""
    columns, name = pod_intervals.c, pod_intervals.name
    several = matching(
        connection,
        columns.pod_uid,
        uids,
        lambda listed, uid: (
            f"SELECT f.pod_uid, MIN(f.started_at), 1 FROM {listed} JOIN {name} f "
            f"ON f.pod_uid = {uid} GROUP BY f.pod_uid HAVING COUNT(*) > 1"
        ),
    )
    marked = [columns.pod_uid, columns.started_at, columns.is_later]
    rows = Rows(connection.dialect.name, marked)
    is_new = f"{name}.started_at > {rows['started_at']} AND {name}.is_later = 0"
    rows.run(
        connection,
        change(pod_intervals, rows, ["pod_uid"], ["is_later"], is_new),
        map(tuple, several),
    )
