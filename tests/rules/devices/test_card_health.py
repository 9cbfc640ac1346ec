"""When a card is healthy and when it is not (docs/spec/gpu-sharing.md#gpu-health)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.devices.cards import t4, uuid

from fairlead.model.devices.driver import CardAnswer
from fairlead.rules.devices.card_health import CardHealths

CARDS = [t4(0), t4(1)]
A, B = uuid(0), uuid(1)
STICKY = (48, 64, 79, 95, 119, 120)
APPLICATION = (13, 31, 43, 45, 68, 109)


def healths(**settings: tuple[int, ...]) -> CardHealths:
    made = CardHealths(**settings)
    made.shown([A, B])
    return made


def reasons(of: CardHealths, withheld: tuple[int, ...] = ()) -> list[str]:
    judged = of.judged(CARDS, withheld)
    assert all((card.health.value == "Healthy") is (card.reason == "") for card in judged)
    return [card.reason for card in judged]


def probe(of: CardHealths, times: int, start: float, every: float = 30.0) -> list[bool]:
    """Probes the first card with good answers; returns whether it was healthy after each."""
    healthy = []
    for number in range(1, times + 1):
        of.probed(A, CardAnswer(), start + number * every)
        healthy.append(reasons(of)[0] == "")
    return healthy


@pytest.mark.parametrize("xid", [1, 48, 62, 63, 64, 74, 79, 94, 95, 119, 120, 140, 154, 999])
def test_any_other_xid_takes_out_exactly_its_card(xid: int) -> None:
    of = healths()
    of.xid(xid, A, 0.0)
    assert reasons(of) == [f"XID {xid}", ""]


@pytest.mark.parametrize("xid", APPLICATION)
def test_faults_of_applications_are_ignored(xid: int) -> None:
    of = healths()
    of.xid(xid, A, 0.0)
    of.xid(xid, None, 0.0)
    assert reasons(of) == ["", ""]


def test_more_can_be_ignored_and_none_of_the_others_less() -> None:
    of = healths(ignored=(79, 94))
    for xid in (79, 94, 31):
        of.xid(xid, A, 0.0)
    assert reasons(of) == ["", ""]


def test_an_xid_without_device_is_of_all_cards() -> None:
    of = healths()
    of.xid(74, None, 0.0)
    assert reasons(of) == ["XID 74", "XID 74"]


def test_a_card_recovers_after_ten_minutes_of_good_probes() -> None:
    of = healths()
    of.xid(74, A, 1000.0)
    assert probe(of, 20, 1000.0) == [False] * 19 + [True]


def test_a_second_fatal_xid_and_a_failed_probe_restart_the_ten_minutes_an_ignored_does_not() -> (
    None
):
    for disturb in (
        lambda of: of.xid(62, A, 1300.0),
        lambda of: of.probed(A, CardAnswer("no answer"), 1300.0),
    ):
        of = healths()
        of.xid(74, A, 1000.0)
        assert not any(probe(of, 10, 1000.0))
        disturb(of)
        assert probe(of, 20, 1300.0) == [False] * 19 + [True]
    of = healths()
    of.xid(74, A, 1000.0)
    probe(of, 10, 1000.0)
    of.xid(31, A, 1300.0)
    assert probe(of, 10, 1300.0)[-1]


@pytest.mark.parametrize("xid", STICKY)
def test_a_sticky_xid_needs_a_reset(xid: int) -> None:
    of = healths()
    of.xid(xid, A, 0.0)
    of.xid(62, A, 0.0)
    assert not any(probe(of, 100, 0.0))
    assert reasons(of) == [f"XID {xid}", ""]
    of.xid(xid, B, 0.0)
    of.was_reset(A)
    assert reasons(of) == ["", f"XID {xid}"]


def test_the_newest_of_two_sticky_xids_is_reported() -> None:
    of = healths()
    of.xid(79, A, 0.0)
    of.xid(48, A, 1.0)
    assert reasons(of)[0] == "XID 48"


def test_which_xids_are_sticky_can_be_set_and_a_boot_resets_all() -> None:
    of = healths(sticky=(62,))
    of.xid(79, A, 0.0)
    assert probe(of, 20, 0.0)[-1]
    of.xid(62, None, 600.0)
    assert not any(probe(of, 40, 600.0))
    of.was_reset(None)
    assert reasons(of) == ["", ""]


def test_a_failed_probe_is_over_with_the_next_good_one() -> None:
    of = healths()
    of.probed(B, CardAnswer("no answer in 5 s"), 30.0)
    assert reasons(of) == ["", "probe failed: no answer in 5 s"]
    of.probed(B, CardAnswer(), 60.0)
    assert reasons(of) == ["", ""]


def test_a_lost_card_is_back_when_the_driver_shows_it_and_not_healed_by_it() -> None:
    of = healths()
    of.shown([B])
    assert reasons(of) == ["the driver does not show this GPU", ""]
    of.probed(A, CardAnswer(), 30.0)
    assert reasons(of)[0], "an absent card cannot be well"
    of.shown([A, B])
    assert reasons(of) == ["", ""]
    of.xid(79, A, 60.0)
    of.shown([])
    of.shown([A, B])
    assert reasons(of) == ["XID 79", ""]
    assert not any(probe(of, 40, 60.0))


def test_a_reset_brings_no_lost_card_back() -> None:
    of = healths()
    of.xid(79, A, 0.0)
    of.shown([B])
    of.was_reset(A)
    of.was_reset("GPU-of-nobody")
    assert reasons(of) == ["the driver does not show this GPU", ""]


def test_a_driver_that_goes_takes_all_cards_with_it() -> None:
    of = healths()
    of.shown([])
    assert all(reasons(of))


def test_an_operator_takes_cards_out_and_gives_them_back_and_a_fault_is_reported_first() -> None:
    of = healths()
    assert reasons(of, (1, 7)) == ["", "taken out by an operator"]
    of.xid(79, B, 0.0)
    assert reasons(of, (1,)) == ["", "XID 79"]
    assert reasons(healths()) == ["", ""]


RESET = [
    pytest.param(
        [CardAnswer(energy_mj=900)],
        CardAnswer(energy_mj=5),
        True,
        id="its energy counter began anew",
    ),
    pytest.param(
        [CardAnswer(energy_mj=900)],
        CardAnswer(energy_mj=900),
        False,
        id="the counter stands still",
    ),
    pytest.param(
        [CardAnswer(energy_mj=900), CardAnswer()],
        CardAnswer(energy_mj=5),
        True,
        id="not reported once meanwhile",
    ),
    pytest.param([CardAnswer(energy_mj=900)], CardAnswer(), False, id="no longer reported"),
    pytest.param([], CardAnswer(energy_mj=5), True, id="it began anew since before the XID"),
    pytest.param(
        [CardAnswer("GPU is lost", is_down=True)],
        CardAnswer(energy_mj=5),
        True,
        id="lost, and counts anew",
    ),
    pytest.param(
        [CardAnswer("GPU requires restart", is_down=True)],
        CardAnswer(),
        True,
        id="waited for it, and answers",
    ),
    pytest.param(
        [CardAnswer("no answer in 5 s")], CardAnswer(energy_mj=1001), False, id="it was slow"
    ),
    pytest.param(
        [CardAnswer("no answer in 5 s")],
        CardAnswer(),
        False,
        id="it was slow, and reports no energy",
    ),
    pytest.param(
        [CardAnswer(energy_mj=900), CardAnswer("GPU is lost", is_down=True)],
        CardAnswer(energy_mj=950),
        False,
        id="lost for a moment, and counts on",
    ),
]


@pytest.mark.parametrize("xid", [48, 63, 79])
@pytest.mark.parametrize("is_other_process", [False, True])
@pytest.mark.parametrize(("before", "answer", "is_reset"), RESET)
def test_a_reset_ends_what_an_xid_began(
    before: list[CardAnswer], answer: CardAnswer, is_reset: bool, is_other_process: bool, xid: int
) -> None:
    """The agent must be stopped for a reset, so the next process must detect it."""
    of = healths()
    of.probed(A, CardAnswer(energy_mj=800), 0.0)
    of.xid(xid, A, 1.0)
    of.xid(74, B, 1.0)
    for number, each in enumerate(before):
        of.probed(A, each, 30.0 * (number + 1))
    if is_other_process:
        of = CardHealths(of.kept())
        of.shown([A, B])
    of.probed(A, answer, 120.0)
    assert reasons(of) == ["" if is_reset else f"XID {xid}", "XID 74"]
    of.xid(xid, A, 130.0)
    of.probed(A, CardAnswer(energy_mj=10_000), 150.0)
    assert reasons(of)[0] == f"XID {xid}", "what comes after it is new"


def test_a_card_that_fell_off_the_bus_is_well_when_its_counter_began_anew() -> None:
    """After XID 79 NVML no longer lists the card. A lower energy counter shows that the card was
    reset.
    """
    of = healths()
    for each in (A, B):
        of.probed(each, CardAnswer(energy_mj=900), 0.0)
        of.xid(79, each, 10.0)
    of.shown([])
    of = CardHealths(of.kept())
    of.shown([A, B])
    assert reasons(of) == ["XID 79", "XID 79"], "neither has answered yet"
    of.probed(A, CardAnswer(energy_mj=5), 60.0)
    of.probed(B, CardAnswer(energy_mj=901), 60.0)
    assert reasons(of) == ["", "XID 79"]


def test_a_sticky_xid_is_over_like_others_where_the_driver_asks_for_nothing() -> None:
    for action, is_over in ((0, True), (1, False), (None, False)):
        of = healths()
        of.xid(95, A, 0.0)
        for number in range(1, 41):
            of.probed(A, CardAnswer(recovery_action=action), number * 30.0)
            assert reasons(of)[0] == ("" if is_over and number >= 20 else "XID 95")


def test_the_next_process_knows_what_is_broken() -> None:
    of = healths()
    of.xid(79, A, 50_000.0)
    of.xid(74, B, 50_000.0)
    after = CardHealths(of.kept())
    after.shown([A, B])
    assert reasons(after) == ["XID 79", "XID 74"]
    assert not any(probe(after, 40, 0.0)), "its clock starts anew"
    for number in range(1, 22):
        after.probed(B, CardAnswer(), number * 30.0)
    assert reasons(after) == ["XID 79", ""]


@given(jumps=st.lists(st.floats(-1e7, 1e7), min_size=1, max_size=6), places=st.data())
def test_a_clock_that_jumps_heals_no_card_early_and_each_in_the_end(
    jumps: list[float], places: st.DataObject
) -> None:
    """Probes come every 30 real seconds, whatever the clock shows. Each jump delays recovery by at
    most one probe.
    """
    of = healths()
    clock = 1e9
    at = {places.draw(st.integers(1, 19)): jump for jump in jumps}
    of.xid(74, A, clock)
    for number in range(1, 20 + len(jumps) + 1):
        clock += 30.0 + at.get(number, 0.0)
        of.probed(A, CardAnswer(), clock)
        if number < 20:
            assert reasons(of)[0], "nine and a half minutes are not ten"
    assert reasons(of)[0] == ""


@given(steps=st.lists(st.floats(5.0, 29.0), min_size=30, max_size=80))
def test_probes_that_come_more_often_count_the_time_between_them(steps: list[float]) -> None:
    of = healths()
    of.xid(74, A, 0.0)
    clock = 0.0
    for step in steps:
        clock += step
        of.probed(A, CardAnswer(), clock)
        assert (reasons(of)[0] == "") is (clock >= 600.0 - 1e-6) or abs(clock - 600.0) < 1e-6
