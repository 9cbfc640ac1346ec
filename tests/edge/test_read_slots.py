"""Slots for reading pages: a page that hangs blocks no other, the number of open pages is limited,
and no slot is lost.
"""

from __future__ import annotations

import random

from hypothesis.strategies import integers
from tests.examples import examples

from fairlead.edge.prometheus.read_slots import ReadSlots


@examples(30, 1000, integers(0, 2**32))
def test_a_lane_holds_no_more_than_its_places_and_loses_none(seed: int) -> None:
    rng = random.Random(seed)
    at_once, silent, now = rng.randint(1, 5), rng.randint(0, 5), 0.0
    slots: ReadSlots[int] = ReadSlots(at_once, silent, lambda page: 1.0 + page % 3)
    opened: dict[int, float] = {}
    waiting: list[int] = []
    for page in range(200):
        now += rng.choice([0, 0.5, 2])
        slots.put(page)
        waiting.append(page)
        began = slots.give_places(now)
        assert began == waiting[: len(began)]
        del waiting[: len(began)]
        opened |= dict.fromkeys(began, now)
        keeping = [each for each, at in opened.items() if now < at + 1.0 + each % 3]
        assert len(keeping) == at_once or not waiting, "a place is free and a request waits"
        assert len(keeping) <= at_once
        for left in slots.too_many():
            assert left not in keeping
            del opened[left]
            slots.end(left)
        assert len(slots) == len(opened) <= at_once + silent
        for ended in rng.sample(sorted(opened), rng.randint(0, min(2, len(opened)))):
            del opened[ended]
            slots.end(ended)
    for page in opened:
        slots.end(page)
    assert (len(slots), len(slots.give_places(now))) == (0, min(at_once, len(waiting)))


def test_the_page_that_is_silent_longest_is_left() -> None:
    slots: ReadSlots[str] = ReadSlots(2, 1, {"a": 3.0, "b": 1.0, "c": 1.0, "d": 1.0}.__getitem__)
    for page in "abcd":
        slots.put(page)
    assert slots.give_places(0.0) == ["a", "b"]
    assert slots.look_at() == 1.0
    assert (slots.give_places(1.0), slots.too_many()) == (["c"], [])
    assert (slots.give_places(2.0), slots.too_many()) == (["d"], ["b"])
    assert slots.look_at() is None
