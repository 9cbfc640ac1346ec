"""What `/idle` asks of hours: those of pods that are idle, and sums of what nodes' pods held."""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter

from sqlalchemy import Connection, and_, or_, select

from fairlead.edge.store.ledger.accounts import accounts_of, classes_by_id
from fairlead.edge.store.ledger.sums import summed, whole
from fairlead.edge.store.ledger_tables import pod_hours, pod_intervals, usage_accounts
from fairlead.model.usage.ledger import HOUR, HeldHour, PodHour


def idle_hours(
    connection: Connection, start: int, end: int, namespaces: Collection[str] | None
) -> tuple[PodHour, ...]:
    """See `ports.LedgerReading`."""
    hours, pods = pod_hours.c, pod_intervals.c
    is_listed = and_(
        hours.hour >= max(start, end - HOUR),
        hours.hour < end,
        or_(hours.idle > 0, hours.busy == 0),
    )
    listed = (
        select(pods.pod_uid)
        .join_from(pod_hours, pod_intervals, pods.id == hours.interval_id)
        .where(is_listed)
    )
    accounts = accounts_of(namespaces)
    if accounts is not None:
        listed = listed.where(pods.account_id.in_(accounts))
    asked = (
        select(pods.pod_uid, pods.started_at, hours.hour, hours.busy, hours.idle, hours.unknown)
        .join_from(pod_hours, pod_intervals, pods.id == hours.interval_id)
        .where(hours.hour >= start, hours.hour < end, pods.pod_uid.in_(listed))
    )
    if accounts is not None:
        asked = asked.where(pods.account_id.in_(accounts))
    found = (PodHour(*row) for row in connection.execute(asked))
    return tuple(sorted(found, key=attrgetter("hour", "pod_uid", "started_at")))


def held_hours(connection: Connection, start: int, end: int) -> tuple[HeldHour, ...]:
    """See `ports.LedgerReading`."""
    hours, pods, accounts = pod_hours.c, pod_intervals.c, usage_accounts.c
    parts = [
        each for name in ("busy", "idle", "unknown") for each in summed(connection, hours[name])
    ]
    asked = (
        select(hours.hour, pods.node, accounts.class_id, *parts)
        .join_from(pod_hours, pod_intervals, pods.id == hours.interval_id)
        .join(usage_accounts, accounts.id == pods.account_id)
        .where(hours.hour >= start, hours.hour < end)
        .group_by(hours.hour, pods.node, accounts.class_id)
    )
    classes = classes_by_id(connection)
    found = (
        HeldHour(hour, node, classes[id], *whole(connection, [int(each) for each in values]))
        for hour, node, id, *values in connection.execute(asked)
    )
    return tuple(sorted(found, key=attrgetter("hour", "node", "price_class")))
