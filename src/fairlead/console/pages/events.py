"""Events as pages list them, newest first.

Which events are about an object is decided by uid wherever the event carries one, not by name:
names come back with the next object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead.console.pages.envelope import Json, Timestamp, timestamp
from fairlead.model.event import Event


class EventRow(Json, frozen=True):
    at: Timestamp | None
    type: str
    reason: str
    object: str
    message: str
    count: int


def event_rows(events: Iterable[Event], is_about: Callable[[Event], bool]) -> list[EventRow]:
    """The events that `is_about` picks, newest first; those of unknown time last."""
    found = sorted(
        (event for event in events if is_about(event)), key=lambda event: event.order, reverse=True
    )
    return [
        EventRow(
            at=timestamp(event.at),
            type=event.type,
            reason=event.reason,
            object=f"{event.object_kind}/{event.object_name}",
            message=event.message,
            count=event.count,
        )
        for event in found
    ]
