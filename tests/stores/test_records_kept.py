"""States, intervals and hours are kept for 90 days on each engine: what is older goes, nothing
newer is lost, and a moment that is too old is refused with the reason (docs/spec/usage.md#past).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from tests.stores.stored_ledger import StoredLedger
from tests.usage.recording import NODES, PODS, T0, Recording, a_node, a_pod, at_once

from fairlead.console.boards.usage.past import find_moment
from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.migrate import migrate
from fairlead.errors import UserError
from fairlead.model.usage.ledger import DAY, GPU, HOUR, RECORDS_KEPT, StateKind

START: Final = int(T0) * 1000
LIVES: Final = {
    "early": (0, 2),
    "bounded": (0, 9),
    "edge": (1, 10),
    "later": (9, 40),
    "last": (60, 99),
    "whole": (0, 200),
}
"""Pods by name: from when to when, in days after the beginning."""
DAYS: Final = 100


def lived(address: StoreAddress) -> StoredLedger:
    """What a recorder has written that has looked once a day."""
    migrate(address)
    ledger = StoredLedger(address)
    recording: Any = Recording(ledger)  # type: ignore[arg-type]
    recording.put(NODES, a_node("n", T0 - 100))
    for day in range(DAYS + 1):
        at = T0 + day * 86_400
        for name, (begin, end) in LIVES.items():
            if day == begin:
                recording.put(PODS, a_pod(name, "n", at))
            if day == end:
                recording.drop(PODS, f"pod-{name}")
        if day:
            recording.look(at)
        else:
            recording.begin(at)
    return ledger


def test_what_ended_90_days_ago_goes_and_nothing_newer(address: StoreAddress) -> None:
    ledger = lived(address)
    try:
        check_records(ledger)
        check_moments(ledger)
    finally:
        ledger.close()


def check_records(ledger: StoredLedger) -> None:
    now = START + DAYS * DAY
    for day in (10, 11, 39, 40, 59, 61, 98.9, 99, 100):
        at = START + round(day * DAY)
        states = ledger.ask("states_at", at, (StateKind.POD, StateKind.NODE))
        shown = {each.name for each in states if each.kind == StateKind.POD}
        assert shown == {name for name, (a, b) in LIVES.items() if a <= day < b}, day
        assert [each.name for each in states if each.kind == StateKind.NODE] == ["n"]
    kept = {name for name, (_, end) in LIVES.items() if end >= DAYS - 90}
    begun = ledger.ask("states_begun", START, now + 1, (StateKind.POD,))
    assert {each.name for each in begun} == kept
    pods = ledger.ask("pod_intervals", START, now)
    assert {each.pod for each in pods} == kept
    hours = ledger.ask("pod_hours", START, now)
    assert {each.pod_uid for each in hours} == {f"pod-{each}" for each in kept}
    first = now - RECORDS_KEPT - HOUR
    assert first <= min(each.hour for each in hours) <= first + HOUR
    until = START - START % DAY + 3 * DAY
    spans = [(START + begin * DAY, min(START + end * DAY, until)) for begin, end in LIVES.values()]
    held = sum(GPU * max(0, end - begin) for begin, end in spans)
    days = ledger.ask("usage_days", START - DAY, until)
    assert sum(each.integral.gpu for each in days) == held, "days are kept for longer"


def check_moments(ledger: StoredLedger) -> None:
    def asked(day: float) -> int:
        text = datetime.fromtimestamp(T0 + day * 86_400, UTC).isoformat()
        now = START + DAYS * DAY
        return at_once(find_moment(ledger, text, now))[0].shown  # type: ignore[arg-type]

    assert asked(10) == START + 10 * DAY
    for day, why in (
        (9.99, "is older than 90 days, for which states are kept"),
        (0, "is older than 90 days, for which states are kept"),
        (-1, "is before the first record"),
        (DAYS + 1, "is in the future"),
    ):
        with pytest.raises(UserError) as caught:
            asked(day)
        assert caught.value.what.endswith(why), day
        assert caught.value.hint.startswith("ask for a moment from 2026-06-07T"), day
