"""The guard's account in C does what the model does, word by word.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard.
"""

from __future__ import annotations

import random

import pytest
from tests.native.stepped import Built, SteppedAccount, words_of

from fairlead.rules.devices.guard.account import Account, enter, release, reserve
from fairlead.rules.devices.guard.steps import Moment, Step, beginning, following

Sizes = tuple[int, ...]
LONG = pytest.mark.long
WORLDS = (
    pytest.param(beginning(2, 2, 2), (1, 2), 28_000, id="two processes"),
    pytest.param(beginning(2, 3, 1, absent=1), (1, 2), 17_000, id="two processes and a child"),
    pytest.param(beginning(3, 3, 1), (2,), 23_000, id="three processes"),
    pytest.param(beginning(3, 3, 1), (1, 3), 170_000, id="three processes, two sizes", marks=LONG),
    pytest.param(beginning(3, 3, 2), (2,), 250_000, id="three processes, two turns", marks=LONG),
    pytest.param(beginning(3, 3, 2, absent=1), (2,), 190_000, id="a late fork", marks=LONG),
)
"""Each with the number of moments that are reached, at least."""


@pytest.fixture(scope="module")
def stepped() -> SteppedAccount:
    return SteppedAccount(Built(macros=("GUARD_STEPS",)))


@pytest.mark.parametrize(("first", "sizes", "most"), WORLDS)
def test_every_step_of_every_interleaving_stores_the_same_words(
    stepped: SteppedAccount, first: Moment, sizes: Sizes, most: int
) -> None:
    """Every step from every moment is tried once. `denied` only counts: two moments are not
    different by it.
    """
    seen = {first}
    stepped.start(first)
    path: list[Step] = []
    open_steps = [following(first, sizes)]
    while open_steps:
        for step, after in open_steps[-1]:
            assert stepped.next(len(path), step) == words_of(after), [*path, step]
            moment = after._replace(denied=0)
            if moment not in seen:
                seen.add(moment)
                path.append(step)
                open_steps.append(following(after, sizes))
                break
        else:
            open_steps.pop()
            del path[-1:]
    assert len(seen) > most


LIMIT, PROCESSES, GPUS = 1000, 6, 2


def operations(chance: random.Random, count: int) -> list[tuple[int, int, int, int]]:
    return [
        (
            chance.randrange(PROCESSES),
            chance.choice((0, 0, 0, 1, 1, 2) if at % 50 == 0 else (0, 1)),
            chance.randrange(GPUS),
            chance.choice((0, 1, 7, 400, 1 << 63, (1 << 64) - 1, chance.randrange(600))),
        )
        for at in range(count)
    ]


@pytest.mark.parametrize(
    "count", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)], ids=str
)
def test_a_random_trace_ends_each_operation_with_the_words_of_the_model(
    stepped: SteppedAccount, count: int
) -> None:
    chance = random.Random(31)
    accounts = [Account(LIMIT) for _ in range(GPUS)]
    for process in range(PROCESSES):
        accounts = [enter(account, process)[0] for account in accounts]
    trace = operations(chance, count)
    words = stepped.trace(LIMIT, PROCESSES, [number for row in trace for number in row])
    for at, (process, what, gpu, size) in enumerate(trace):
        granted = True
        if what == 0:
            accounts[gpu], granted = reserve(accounts[gpu], process, size)
        elif what == 1:
            accounts[gpu] = release(accounts[gpu], process, size)
        else:
            accounts = [enter(account, process)[0] for account in accounts]
        account = accounts[gpu]
        expected = [granted, account.used, account.peak, account.held[process]]
        assert words[4 * at : 4 * at + 4] == expected, (at, trace[at])
