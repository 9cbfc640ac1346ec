"""Billing days in time zones whose clocks change."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import UserError
from fairlead.model.usage.ledger import HOUR
from fairlead.rules.usage.days import (
    day_bounds,
    day_of,
    day_start_fault,
    days_between,
    month_bounds,
    parse_day_start,
    start_of,
    time_zone,
)

ZONES = (
    *("UTC", "Asia/Shanghai", "Asia/Kolkata", "Europe/Berlin", "America/New_York"),
    *("Africa/Cairo", "America/Santiago", "Asia/Beirut", "America/Havana", "Australia/Lord_Howe"),
    *("Pacific/Apia", "America/Asuncion"),
)
TIMES = st.integers(1_230_768_000_000, 1_893_456_000_000)
"""2009 to 2029: the day that Apia left out is among them."""


def first_moment(day: date, zone: ZoneInfo) -> int:
    """The oracle looks at every quarter of an hour."""
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=30)
    step = timedelta(minutes=15)
    while at.astimezone(zone).date() < day:
        at += step
    return int(at.timestamp() * 1000)


@pytest.mark.parametrize("name", ZONES)
def test_a_day_begins_with_its_first_moment(name: str) -> None:
    zone = time_zone(name)
    for year in (2011, 2026):
        for number in range(366):
            day = date(year, 1, 1) + timedelta(days=number)
            assert start_of(day, zone) == first_moment(day, zone), day


@given(st.sampled_from(ZONES), TIMES)
def test_a_time_is_in_its_day(name: str, at: int) -> None:
    zone = time_zone(name)
    start, end = day_bounds(at, zone)
    assert start <= at < end
    assert day_of(start, zone) == day_of(at, zone) == day_of(end - 1, zone)


@given(st.sampled_from(ZONES), TIMES, st.integers(1, 40 * 24 * HOUR))
def test_days_of_a_time_follow_each_other(name: str, start: int, length: int) -> None:
    zone = time_zone(name)
    days = list(days_between(start, start + length, zone))
    assert days[0][0] == start and days[-1][1] == start + length
    assert all(before[1] == after[0] for before, after in itertools.pairwise(days))
    assert all(day_bounds(begin, zone)[1] >= end > begin for begin, end in days)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("Africa/Cairo", date(2026, 4, 24), 23),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("Asia/Shanghai", date(2026, 3, 29), 24),
    ],
)
def test_days_have_23_to_25_hours(zone: str, day: date, hours: float) -> None:
    start, end = day_bounds(start_of(day, time_zone(zone)), time_zone(zone))
    assert (end - start) / HOUR == hours


def test_a_month_is_its_days() -> None:
    zone = time_zone("Europe/Berlin")
    start, end = month_bounds("2026-10", zone)
    assert (end - start) / HOUR == 31 * 24 + 1
    assert month_bounds("2026-12", zone)[1] == month_bounds("2027-01", zone)[0]


@pytest.mark.parametrize(
    "month",
    ["2026-13", "2026", "november", "2026-1", "2026-11-01", "9999-12", "0001-01", "1969-12"],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_what_is_no_month_is_refused(month: str, zone: str) -> None:
    with pytest.raises(UserError) as caught:
        month_bounds(month, time_zone(zone))
    assert caught.value.what == f"`{month}` is no month"


@pytest.mark.parametrize("text", ["0001-01-01", "1969-12-31", "0001-01-01T00:00:00Z"])
def test_a_price_begins_after_1970(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_day_start(text, time_zone("America/New_York"))
    assert caught.value.what == f"`{text}` is no time"


def test_an_unknown_zone_names_similar_ones() -> None:
    with pytest.raises(UserError) as caught:
        time_zone("Asia/Shangai")
    assert caught.value.what == "there is no time zone `Asia/Shangai`"
    assert "Asia/Shanghai" in caught.value.hint
    for evil in ("../../etc/passwd", "", "a\0b", "/etc/localtime"):
        with pytest.raises(UserError):
            time_zone(evil)


def test_a_price_begins_with_a_day_of_the_zone() -> None:
    zone = time_zone("Asia/Shanghai")
    start = parse_day_start("2026-11-01", zone)
    assert start == parse_day_start("2026-10-31T16:00:00Z", zone)
    assert day_start_fault(start, zone) == ""
    assert day_start_fault(start + 1, zone) == (
        "nearest beginnings: 2026-11-01T00:00:00+08:00 and 2026-11-02T00:00:00+08:00"
    )
