"""Moments of the past: how they are written, which of them the ledger has, and their snapshot."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from fairlead.errors import UserError
from fairlead.model.devices.gpu import GpuHolder, GpuInstance, GpuReading
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.sharing import Withheld
from fairlead.model.source import SourceState
from fairlead.model.usage.ledger import Gap, KeptCards, LedgerBounds, StateKind
from fairlead.rules.usage.past import (
    PastMoment,
    gap_text,
    kept_cards,
    parse_past_moment,
    past_moment,
    past_snapshot,
)

DAY = 86_400_000
HOUR = 3_600_000
BERLIN = ZoneInfo("Europe/Berlin")
NOW = 1_795_903_200_000  # 2026-11-28T22:00:00Z
BOUNDS = LedgerBounds(
    first=NOW - 10 * DAY,
    heartbeat=NOW - 5_000,
    gaps=(Gap(NOW - 5 * DAY, NOW - 5 * DAY + HOUR),),
    zone="UTC",
)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-20T02:00:00Z", 1_795_140_000_000),
        ("2026-11-20T02:00:00.250Z", 1_795_140_000_250),
        ("2026-11-20T02:00+08:00", 1_795_111_200_000),
        ("2026-11-20T02:00", 1_795_136_400_000),  # Berlin
        ("2026-11-20 02:00:30", 1_795_136_430_000),
        ("2026-11-20", 1_795_129_200_000),
        ("-2h", NOW - 2 * HOUR),
        ("-90m", NOW - 90 * 60_000),
        ("-15s", NOW - 15_000),
        ("-3d", NOW - 3 * DAY),
        ("yesterday 02:00", 1_795_741_200_000),  # in Berlin it is the 28th
        ("today 00:30:15", 1_795_822_215_000),
    ],
)
def test_a_moment_is_read_as_it_is_written(text: str, moment: int) -> None:
    assert parse_past_moment(text, NOW, BERLIN) == moment


@pytest.mark.parametrize(
    "text",
    [
        *("", "2h", "-2", "-2w", "--2h", "-2h5m", "tomorrow 02:00", "yesterday", "yesterday 2:00"),
        *("2026-13-01", "2026-11-31T00:00", "now", "24:00", "-١h"),
        "-99999999d",
    ],
)
def test_what_names_no_moment_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_past_moment(text, NOW, BERLIN)
    assert caught.value.what == f"`{text}` names no moment"
    assert "`-2h`" in caught.value.hint


def test_a_time_that_the_clocks_show_twice_or_never_is_refused_with_both_moments() -> None:
    with pytest.raises(UserError) as twice:
        parse_past_moment("2026-10-25T02:30", NOW, BERLIN)
    assert twice.value.what == "`2026-10-25T02:30:00` is twice on the clocks of `Europe/Berlin`"
    assert twice.value.hint == ("write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00")
    with pytest.raises(UserError) as never:
        parse_past_moment("2026-03-29T02:30", NOW, BERLIN)
    assert never.value.what == "`2026-03-29T02:30:00` is not on the clocks of `Europe/Berlin`"
    assert never.value.hint == ("write 2026-03-29T01:30:00+01:00 or 2026-03-29T03:30:00+02:00")


def test_a_recorded_moment_shows_itself() -> None:
    at = NOW - 2 * DAY
    assert past_moment(at, BOUNDS, NOW) == PastMoment(at, at)
    assert past_moment(BOUNDS.first, BOUNDS, NOW) == PastMoment(BOUNDS.first, BOUNDS.first)


def test_a_moment_in_a_gap_shows_the_state_before_it_and_names_it() -> None:
    gap = BOUNDS.gaps[0]
    for at in (gap.started_at, gap.ended_at - 1):
        assert past_moment(at, BOUNDS, NOW) == PastMoment(at, gap.started_at - 1, gap)
    assert past_moment(gap.ended_at, BOUNDS, NOW).gap is None
    assert gap_text(past_moment(gap.started_at, BOUNDS, NOW), ZoneInfo("UTC")) == (
        "nothing was recorded from 2026-11-23T22:00:00+00:00 to 2026-11-23T23:00:00+00:00: "
        "the last state before it is shown"
    )


def test_after_the_heartbeat_the_last_state_is_shown_and_a_late_heartbeat_is_a_gap() -> None:
    assert past_moment(NOW, BOUNDS, NOW) == PastMoment(NOW, NOW - 5_000)
    later = NOW + 2 * HOUR
    assert past_moment(later, BOUNDS, later) == PastMoment(
        later, NOW - 5_000, Gap(NOW - 5_000, later)
    )


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (NOW + 1000, "2026-11-28T22:00:01+00:00 is in the future"),
        (BOUNDS.first - 1000, "2026-11-18T21:59:59+00:00 is before the first record"),
        (10**18, "the moment 1000000000000000000 ms after 1970 is in the future"),
        (-(10**18), "the moment -1000000000000000000 ms after 1970 is before the first record"),
    ],
)
def test_a_moment_outside_is_refused_with_the_bounds(at: int, why: str) -> None:
    with pytest.raises(UserError) as caught:
        past_moment(at, BOUNDS, NOW)
    assert caught.value.what == why
    assert caught.value.hint == (
        "ask for a moment from 2026-11-18T22:00:00+00:00 to 2026-11-28T22:00:00+00:00"
    )


def test_states_older_than_90_days_are_refused() -> None:
    bounds = LedgerBounds(first=NOW - 200 * DAY, heartbeat=NOW)
    assert past_moment(NOW - 90 * DAY, bounds, NOW).shown == NOW - 90 * DAY
    with pytest.raises(UserError) as caught:
        past_moment(NOW - 90 * DAY - 1000, bounds, NOW)
    assert caught.value.what == (
        "2026-08-30T21:59:59+00:00 is older than 90 days, for which states are kept"
    )


def test_an_empty_ledger_has_no_moment() -> None:
    with pytest.raises(UserError) as caught:
        past_moment(NOW, LedgerBounds(), NOW)
    assert caught.value.what == "the ledger has no record yet"


def test_the_snapshot_has_sorted_rows_and_sources_that_are_off() -> None:
    reading = GpuReading("n1", 0, "GPU-0", holders=(GpuHolder("ml", "b"),))
    taken = past_snapshot(
        {
            StateKind.NODE: [Node("n2"), Node("n1")],
            StateKind.POD: [Pod("ml", "b"), Pod("ml", "a")],
            StateKind.TREE: [QuotaTree("t", "kube-system", QuotaNode("root", "root"))],
            StateKind.CARDS: [KeptCards("n1", (reading,))],
            StateKind.WITHHELD: [Withheld("n1", frozenset((3, 1))), Withheld("", frozenset())],
        },
        NOW,
        ("mpijobs",),
    )
    assert [node.name for node in taken.nodes] == ["n1", "n2"]
    assert [pod.name for pod in taken.pods] == ["a", "b"]
    assert (taken.gpus, taken.withheld, taken.taken_at) == ((reading,), {"n1": (1, 3)}, NOW / 1000)
    assert taken.quota is not None
    states = {name: source.state for name, source in taken.sources.items()}
    off = {name for name, state in states.items() if state == SourceState.OFF}
    assert off == {"gpu-telemetry", "gpu-topologies", "events"}
    assert {"nodes", "pods", "mpijobs", "elasticquotatrees", "namespaces"} <= states.keys() - off


def test_kept_cards_have_who_and_what_but_no_telemetry() -> None:
    holder = GpuHolder("ml", "a", "c", memory_used_mib=5.0, utilization_ratio=0.5)
    full = GpuReading(
        *("n", 1, "GPU-1", "H200"),
        memory_total_mib=143771,
        memory_used_mib=5.0,
        utilization_ratio=0.5,
        temperature_celsius=40.0,
        power_watts=100.0,
        healthy=True,
        idle_since=3.0,
        read_at=4.0,
        holders=(holder,),
        instances=(GpuInstance(1, "1g.18gb", 17_000, 5.0, 0.5, (holder,)),),
    )
    (kept,) = kept_cards([full])["n"].readings
    who = GpuHolder("ml", "a", "c")
    assert kept == GpuReading(
        *("n", 1, "GPU-1", "H200"),
        memory_total_mib=143771.0,
        healthy=True,
        holders=(who,),
        instances=(GpuInstance(1, "1g.18gb", 17_000.0, holders=(who,)),),
    )
