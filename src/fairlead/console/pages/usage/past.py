"""The form of the moments of the past that can be shown (docs/spec/usage.md#past)."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, Timestamp
from fairlead.console.pages.usage.tables import UnrecordedTime


class PastTimes(Json, frozen=True):
    """Moments from `first` to `last` can be shown; null: there is no record yet.

    `gaps`: times between, in which no recorder ran, the oldest first. `zone`: of billing days, for
    times without a zone.
    """

    first: Timestamp | None
    last: Timestamp | None
    gaps: list[UnrecordedTime]
    zone: str
