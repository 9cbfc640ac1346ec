"""Metrics that dcgm-exporter computes itself, against a list of all events.

See docs/spec/telemetry.md#dcgm-metrics-made-by-the-exporter.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.apps.fakes import device

from fairlead.model.devices.device import XidEvent
from fairlead.rules.metrics.dcgm_computed import (
    P2P_STATUS,
    WATCHES,
    ClockEventCounts,
    ComputedMetrics,
    ComputedRow,
    XidCounts,
    health_rows,
    p2p_rows,
)

BITS = {
    "gpu_idle": 1,
    "clocks_setting": 2,
    "power_cap": 4,
    "hw_slowdown": 8,
    "sync_boost": 16,
    "sw_thermal": 32,
    "hw_thermal": 64,
    "hw_power_brake": 128,
    "display_clocks": 256,
}
"""Bits of the throttle reasons, from the specification."""


def flat(rows: Sequence[ComputedRow], label: str) -> dict[str, int]:
    """Values by the label, "" where a row has none."""
    found = {row.labels.get(label, ""): row.value for row in rows}
    assert len(found) == len(rows)
    return found


events = st.lists(
    st.tuples(st.integers(0, 2000), st.sampled_from((13, 31, 79)), st.sampled_from("ab")),
    max_size=40,
)


@given(
    events, st.integers(1, 900), st.lists(st.integers(0, 2600), min_size=1, max_size=5).map(sorted)
)
def test_xids_of_the_window_are_counted_and_forgotten(
    happened: list[tuple[int, int, str]], window: int, looks: list[int]
) -> None:
    counts = XidCounts(window * 1000)
    waiting = sorted(happened)
    for now in looks:
        while waiting and waiting[0][0] <= now:
            at, xid, card = waiting.pop(0)
            counts.reported(card, xid, float(at))
        for card in "ab":
            past = [xid for at, xid, owner in happened if owner == card and at <= now]
            recent = [
                xid for at, xid, owner in happened if owner == card and now - window < at <= now
            ]
            expected = {str(xid): recent.count(xid) for xid in recent} or {"": 0}
            assert flat(counts.rows(card, float(now)), "xid") == (expected if past else {})
            assert all(
                row.labels["window_size_in_ms"] == str(window * 1000)
                for row in counts.rows(card, float(now))
            )


@given(events)
def test_the_order_of_events_does_not_matter(happened: list[tuple[int, int, str]]) -> None:
    forward, shuffled = XidCounts(500_000), XidCounts(500_000)
    for at, xid, card in sorted(happened):
        forward.reported(card, xid, float(at))
    for at, xid, card in happened:
        shuffled.reported(card, xid, float(at))
    for now in (1000.0, 1500.0, 2100.0, 3000.0):
        assert [forward.rows(card, now) for card in "ab"] == [
            shuffled.rows(card, now) for card in "ab"
        ]


def test_totals_become_events_and_may_begin_anew() -> None:
    counts = XidCounts(10_000)
    counts.set_totals("a", (), 0.0)
    assert flat(counts.rows("a", 0.0), "xid") == {"": 0}, "watched, and nothing happened"
    counts.set_totals("a", (XidEvent(31, 2, 0.0),), 1.0)
    counts.set_totals("a", (XidEvent(31, 2, 0.0),), 5.0)
    assert flat(counts.rows("a", 5.0), "xid") == {"31": 2}
    counts.set_totals("a", (XidEvent(31, 3, 0.0), XidEvent(79, 1, 0.0)), 9.0)
    assert flat(counts.rows("a", 10.9), "xid") == {"31": 3, "79": 1}
    assert flat(counts.rows("a", 11.0), "xid") == {"31": 1, "79": 1}, (
        "the first two are ten seconds old"
    )
    counts.set_totals("a", (XidEvent(31, 1, 0.0),), 12.0)
    assert flat(counts.rows("a", 12.0), "xid") == {"31": 2, "79": 1}


samples = st.lists(st.tuples(st.integers(1, 30), st.none() | st.integers(0, 0x3FF)), max_size=60)


@given(samples, st.integers(1, 400))
def test_clock_events_are_samples_with_the_bit(
    steps: list[tuple[int, int | None]], window: int
) -> None:
    counts = ClockEventCounts(window * 1000)
    seen: list[tuple[int, int]] = []
    now = 0
    for step, reasons in steps:
        now += step
        counts.sampled("a", reasons, float(now))
        counts.sampled("a", reasons, float(now))  # a page that is made twice of one sample
        if reasons is not None:
            seen.append((now, reasons))
        expected = {
            name: sum(at > now - window and bool(bits & bit) for at, bits in seen)
            for name, bit in BITS.items()
        }
        there = {name: count for name, count in expected.items() if count}
        assert flat(counts.rows("a", float(now)), "clock_event") == (
            there or {"": 0} if seen else {}
        )


def test_a_card_that_reports_nothing_has_no_rows_and_one_that_is_gone_is_forgotten() -> None:
    clocks, xids = ClockEventCounts(), XidCounts()
    clocks.sampled("a", None, 1.0)
    assert clocks.rows("a", 1.0) == [] == xids.rows("a", 1.0)
    for card in "ab":
        clocks.sampled(card, 4, 2.0)
        xids.set_totals(card, (XidEvent(13, 1, 0.0),), 2.0)
    for made in (clocks, xids):
        made.keep({"b"})
        assert made.rows("a", 3.0) == [] != made.rows("b", 3.0)
    xids.set_totals("a", (XidEvent(13, 1, 0.0),), 4.0)
    assert flat(xids.rows("a", 4.0), "xid") == {"13": 1}, "a card that comes back is a new one"


LEVELS = {0: 0, 1: 10, 2: 20}
CHECKS = ("xid", "ecc", "remap", "thermal", "power", "nvlink", "pcie", "lost")
PARTS = {
    "PCIE": {"pcie", "lost"},
    "NVLINK": {"nvlink"},
    "MEM": {"ecc", "remap"},
    "THERMAL": {"thermal"},
    "POWER": {"power"},
}


@given(st.dictionaries(st.sampled_from(CHECKS), st.sampled_from((0, 1, 2))))
def test_health_is_the_worst_of_what_was_checked(checks: dict[str, int]) -> None:
    rows = health_rows(checks)
    found = flat(rows, "health_watch")
    for watch in WATCHES:
        levels = [
            level
            for name, level in checks.items()
            if watch == "ALL" or name in PARTS.get(watch, ())
        ]
        assert found.get(watch) == (LEVELS[max(levels)] if levels else None)
    assert all(("health_error_code" in row.labels) is (row.value > 0) for row in rows)


@pytest.mark.parametrize(
    ("status", "word"),
    [(0, "OK"), (1, "CNS"), (2, "GNS"), (3, "TNS"), (4, "DR"), (5, "NS"), (6, "U"), (99, "U")],
)
def test_links_are_reported_in_nvidia_smis_words(status: int, word: str) -> None:
    assert p2p_rows({7: status}) == [ComputedRow({"link_status": word, "peer_gpu": "7"}, status)]


def test_the_way_to_peers_is_on_the_page_of_a_card_that_answers() -> None:
    card = device(0, peers={1: 0, 3: 5})
    rows = ComputedMetrics().of(
        [card, structs.replace(card, node="gpu-2", up=False)], 10.0, 1010.0
    )[P2P_STATUS]
    assert rows == {
        ("gpu-1", card.uuid): [
            ComputedRow({"link_status": "OK", "peer_gpu": "1"}, 0),
            ComputedRow({"link_status": "NS", "peer_gpu": "3"}, 5),
        ],
        ("gpu-2", card.uuid): [],
    }
