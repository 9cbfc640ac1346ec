"""Events are ordered as they happened, although the API has times in seconds only."""

from __future__ import annotations

from fairlead.console.pages.events import event_rows
from fairlead.model.event import Event


def event(name: str, at: float | None, version: int = 0) -> Event:
    return Event(
        "default", name, message=name, object_kind="Pod", object_name="p", at=at, version=version
    )


EVENTS = [
    event("b", 5.0, 12),
    event("c", 5.0, 11),
    event("a", 4.0, 13),
    event("unknown", None),
    event("e", 5.0, 10),
    event("d", 6.0, 9),
]


def test_within_a_second_what_was_written_first_comes_first() -> None:
    assert [each.name for each in sorted(EVENTS, key=lambda each: each.order)] == [
        "unknown",
        "a",
        "e",
        "c",
        "b",
        "d",
    ]


def test_pages_show_the_newest_first_and_those_of_unknown_time_last() -> None:
    assert [row.message for row in event_rows(EVENTS, lambda _: True)] == [
        "d",
        "b",
        "c",
        "e",
        "a",
        "unknown",
    ]


def test_events_of_a_snapshot_without_versions_go_by_their_names() -> None:
    names = ["p.18a0000000000003", "p.18a0000000000001", "p.18a0000000000002"]
    assert [
        each.name
        for each in sorted((event(name, 5.0) for name in names), key=lambda each: each.order)
    ] == sorted(names)
