"""The built-in series: fixed memory, one hour, gaps stay gaps."""

from __future__ import annotations

import math
import sys
import threading

from hypothesis import given
from hypothesis import strategies as st

from fairlead.console.charts.history import SLOTS, TICK_SECONDS, History, LineSample

START = 1_767_600_000.0
CARD = (("node", "gpu-1"), ("gpu", "0"))


def duty(value: float, labels: tuple[tuple[str, str], ...] = CARD) -> LineSample:
    return LineSample("gpu-duty-cycle", labels, value)


def values(history: History, ticks: int, step: float = TICK_SECONDS) -> list[float | None]:
    """The last `ticks` points of the only line, which starts at START."""
    (points,) = history.read("gpu-duty-cycle", START, START + step * (ticks - 1), step).values()
    return [value for _, value in points]


def test_samples_come_back_at_their_ticks() -> None:
    history = History()
    for tick in range(3):
        history.add(START + tick * TICK_SECONDS, [duty(tick * 10.0)])
    assert values(history, 3) == [0.0, 10.0, 20.0]


def test_a_tick_without_a_sample_is_a_gap_and_never_zero() -> None:
    history = History()
    history.add(START, [duty(5.0)])
    history.add(START + 3 * TICK_SECONDS, [duty(6.0)])
    assert values(history, 5) == [5.0, None, None, 6.0, None]


def test_the_past_is_added_behind_what_was_sampled_and_changes_none_of_it() -> None:
    history = History()
    history.add(START + 3 * TICK_SECONDS, [duty(9.0)])
    for tick in (0, 1, 3, 4):
        history.add_past(START + tick * TICK_SECONDS, [duty(float(tick))])
    history.add(START + 5 * TICK_SECONDS, [duty(8.0)])
    history.add_past(START + 2 * TICK_SECONDS, [duty(2.0)])
    assert values(history, 6) == [0.0, 1.0, 2.0, 9.0, None, 8.0]


def test_a_past_that_no_slot_is_left_for_does_not_overwrite_the_present() -> None:
    history = History()
    history.add(START + SLOTS * TICK_SECONDS, [duty(9.0)])
    history.add_past(START, [duty(1.0)])
    ((*_, (_, newest)),) = history.read(
        "gpu-duty-cycle", START, START + SLOTS * TICK_SECONDS, TICK_SECONDS
    ).values()
    assert newest == 9.0


def test_a_line_known_only_in_the_past_keeps_it() -> None:
    history, other = History(), (("node", "gone"), ("gpu", "0"))
    history.add(START + 3 * TICK_SECONDS, [duty(9.0)])
    for tick in (0, 1):
        history.add_past(START + tick * TICK_SECONDS, [duty(float(tick), other)])
    points = history.read("gpu-duty-cycle", START, START + 3 * TICK_SECONDS, TICK_SECONDS)[other]
    assert [value for _, value in points] == [0.0, 1.0, None, None]


def test_an_unknown_value_is_a_gap() -> None:
    history = History()
    history.add(START, [duty(5.0)])
    history.add(START + TICK_SECONDS, [duty(math.nan), duty(math.inf)])
    assert values(history, 2) == [5.0, None]


def test_after_a_full_turn_old_slots_do_not_come_back() -> None:
    history = History()
    history.add(START, [duty(1.0)])
    history.add(START + (SLOTS - 1) * TICK_SECONDS, [duty(2.0)])
    history.add(START + SLOTS * TICK_SECONDS, [duty(3.0)])
    assert values(history, SLOTS + 1) == [None] * (SLOTS - 1) + [2.0, 3.0]


def test_a_wide_step_gives_the_mean_of_its_ticks_and_skips_gaps() -> None:
    history = History()
    for tick, value in ((1, 10.0), (2, 30.0), (4, 7.0)):
        history.add(START + tick * TICK_SECONDS, [duty(value)])
    assert values(history, 3, step=2 * TICK_SECONDS) == [None, 20.0, 7.0]


def test_a_line_that_is_silent_for_an_hour_is_forgotten() -> None:
    history = History()
    history.add(START, [duty(1.0)])
    history.add(START + SLOTS * TICK_SECONDS, [])
    assert history.line_count == 0


def test_a_full_ring_forgets_the_lines_silent_the_longest() -> None:
    history = History(lines_max=2)
    for tick in range(4):
        history.add(START + tick * TICK_SECONDS, [duty(1.0, (("gpu", str(tick)),))])
    assert [labels[0][1] for labels in history.read("gpu-duty-cycle", START, START, 15)] == [
        "2",
        "3",
    ]


def test_another_history_empties_the_ring() -> None:
    history = History()
    history.add(START, [duty(1.0)])
    history.add(START - 600, [duty(2.0)])
    assert history.line_count == 1
    assert history.read("gpu-duty-cycle", START - 600, START, 600)[CARD] == [
        (START - 600, 2.0),
        (START, None),
    ]


def test_a_thread_reads_while_new_lines_are_written() -> None:
    history = History(slots=2)

    def card(number: int) -> LineSample:
        return duty(1.0, (("gpu", str(number)),))

    history.add(START, map(card, range(200)))
    is_over, wrong = threading.Event(), list[Exception]()

    def read() -> None:
        try:
            while not is_over.is_set():
                history.ticks("gpu-duty-cycle", START)
        except RuntimeError as error:
            wrong.append(error)

    reader, switches = threading.Thread(target=read), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        reader.start()
        for number in range(200, 3000):
            history.add(START, [card(number)], is_last=False)
    finally:
        is_over.set()
        reader.join()
        sys.setswitchinterval(switches)
    assert wrong == []


def test_a_tick_that_is_written_in_parts_is_one() -> None:
    """Old lines are removed when the last part of a tick has come, and not before: at most 3 lines,
    of 2 old and 3 new ones.
    """
    history, old, new = History(lines_max=3), "ab", "cde"
    history.add(START, [duty(1.0, (("gpu", name),)) for name in old])
    for name in new:
        history.add(START + TICK_SECONDS, [duty(2.0, (("gpu", name),))], is_last=False)
    assert history.line_count == 5
    history.add(START + TICK_SECONDS, ())
    assert {
        labels[0][1] for labels in history.ticks("gpu-duty-cycle", START + TICK_SECONDS)
    } == set(new)


def test_it_is_due_once_per_tick() -> None:
    history = History()
    assert history.is_due(START)
    history.add(START, [])
    assert not history.is_due(START + TICK_SECONDS - 1)
    assert history.is_due(START + TICK_SECONDS)


@given(st.lists(st.tuples(st.integers(1, 400), st.floats(0, 100, width=32)), max_size=30))
def test_it_answers_as_a_plain_dictionary_does(steps: list[tuple[int, float]]) -> None:
    history, model, tick = History(), {}, 0
    for forward, value in steps:
        tick += forward
        history.add(START + tick * TICK_SECONDS, [duty(value)])
        model[tick] = value
    if model:
        points = history.read("gpu-duty-cycle", START, START + tick * TICK_SECONDS, TICK_SECONDS)[
            CARD
        ]
        assert [value for _, value in points] == [
            model.get(each) if each > tick - SLOTS else None for each in range(tick + 1)
        ]
