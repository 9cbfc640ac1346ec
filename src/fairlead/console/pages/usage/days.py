"""The form of usage per billing day, for the bars of the page (docs/spec/usage.md#usage)."""

from __future__ import annotations

from fairlead.console.pages.envelope import Envelope, Json, Timestamp
from fairlead.console.pages.usage.tables import UsagePeriod


class UsageDayRow(Json, frozen=True):
    """Whose hours a part of a day is. `name`, `namespace`, `type`, `uid`: as in the table of usage.

    `is_rest`: all rows that are not named, together.
    """

    name: str
    namespace: str
    type: str
    uid: str
    is_rest: bool


class UsageDay(Json, frozen=True):
    """One billing day, or the part of it that is in the period, in GPU-hours.

    `day`: its date in the zone of the ledger. `rows`: in the order of `UsageDays.rows`; they add up
    to `busy` + `idle` + `unknown`, except for rounding.
    """

    day: str
    start: Timestamp
    rows: list[float]
    busy: float
    idle: float
    unknown: float


class UsageDays(Envelope, frozen=True):
    """`rows`: the eight with most GPU-hours in the period, and the rest. `days`: every billing day
    of the period since the first record, the oldest first. `recorded_since`: when the ledger
    begins; null: it is empty.
    """

    by: str
    period: UsagePeriod
    recorded_since: Timestamp | None
    rows: list[UsageDayRow]
    days: list[UsageDay]
