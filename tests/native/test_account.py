"""The guard's account in C does what the model does, word by word.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard.
"""

from __future__ import annotations

import random

import pytest
from tests.native.stepped import Built, SteppedAccount, words_of

from fairlead.rules.devices.guard.account import Account, enter, release, reserve
from fairlead.rules.devices.guard.steps import Moment, Step, beginning, following

SIZES = (1, 2)
WORLDS = {
    "two processes": beginning(2, 2, 2),
    "two processes and a child": beginning(2, 3, 1, absent=1),
}


@pytest.fixture(scope="module")
def stepped() -> SteppedAccount:
    return SteppedAccount(Built(macros=("GUARD_STEPS",)))


@pytest.mark.parametrize("world", WORLDS)
def test_every_step_of_every_interleaving_stores_the_same_words(
    stepped: SteppedAccount, world: str
) -> None:
    first = WORLDS[world]
    paths: dict[Moment, list[Step]] = {first: []}
    waiting = [first]
    chance = random.Random(31)
    steps = 0
    for moment in waiting:
        for step, after in following(moment, SIZES):
            path = [*paths[moment], step]
            if after not in paths:
                paths[after] = path
                waiting.append(after)
            elif chance.random() > 0.3:
                continue
            steps += 1
            assert stepped.after(first, path) == words_of(after), path
    assert steps > 5000


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
