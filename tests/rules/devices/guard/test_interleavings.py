"""Every interleaving of two and three processes: docs/spec/gpu-sharing.md#accounting-of-the-guard.

Each moment that can be reached is visited once. `denied` only counts, so it does not make two
moments differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.turns import in_turn

from fairlead.rules.devices.guard.steps import (
    FREE,
    At,
    Moment,
    Stand,
    beginning,
    following,
)

Sizes = tuple[int, ...]


def reached(first: Moment, sizes: Sizes) -> Iterator[Moment]:
    seen, waiting = {first}, [first]
    while waiting:
        moment = waiting.pop()
        yield moment
        for _, after in following(moment, sizes):
            after = after._replace(denied=0)
            if after not in seen:
                seen.add(after)
                waiting.append(after)


def faults_of(moment: Moment) -> Iterator[str]:
    if moment.truth > moment.limit:
        yield "truth is above the limit"
    if not moment.truth <= moment.used <= moment.limit:
        yield "truth <= used <= limit does not hold"
    if any(stand.truth > slot for stand, slot in zip(moment.stands, moment.slots, strict=True)):
        yield "a process holds more than its slot"
    if moment.owner == FREE and moment.used != sum(moment.slots):
        yield "used is not the sum of the slots although no process works on them"


WORLDS = {
    "two processes, three operations each": (beginning(2, 2, 3), (1, 2)),
    "two processes, one of them forks": (beginning(3, 3, 2, absent=1), (2,)),
    "three processes, two sizes": (beginning(3, 3, 1), (1, 3)),
}


@pytest.mark.parametrize("world", in_turn(list(WORLDS), 3))
def test_truth_never_exceeds_used_nor_used_the_limit(world: str) -> None:
    first, sizes = WORLDS[world]
    wrong = [(fault, moment) for moment in reached(first, sizes) for fault in faults_of(moment)]
    assert not wrong[:3]


def test_every_kind_of_step_is_reached() -> None:
    stands = {stand.at for moment in reached(beginning(2, 2, 2), (2,)) for stand in moment.stands}
    assert stands == set(At) - {At.ABSENT}


def test_the_memory_of_a_dead_process_can_be_granted_again() -> None:
    first = beginning(2, 2, 1)
    again = [
        moment
        for moment in reached(first, (2,))
        if moment.stands[0].at is At.DEAD and moment.stands[1].truth == 2
    ]
    assert any(moment.slots == (0, 2) for moment in again)


def test_a_child_holds_nothing_of_its_parent() -> None:
    parent = beginning(3, 2, 2, absent=1)._replace(used=2, slots=(2, 0))
    parent = parent._replace(stands=(Stand(truth=2, left=2), parent.stands[1]))
    forked = [after for step, after in following(parent, (1,)) if step.begin == "fork"]
    assert [(moment.slots, moment.stands[1].truth) for moment in forked] == [((2, 0), 0)]


def test_at_rest_only_living_or_dead_processes_hold_slots() -> None:
    for moment in reached(beginning(2, 2, 2), (1,)):
        if moment.owner != FREE:
            continue
        for stand, slot in zip(moment.stands, moment.slots, strict=True):
            waiting = stand.size if stand.at in (At.DRIVER, At.LOCK) else 0
            assert stand.at is At.DEAD or slot in (stand.truth, stand.truth + waiting), moment
