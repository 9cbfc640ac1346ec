"""The properties of quota contract 2.15 over random trees and pods. `_check` of the small world holds (1) and (8) at every plan."""

from __future__ import annotations

import msgspec
import pytest
from tests.rules.quota.random_worlds import random_world

from fairlead.model.quota.plan import QuotaPlan
from fairlead.rules.quota.plan import plan_quota

SEEDS = [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(100, 3000, 100))]


@pytest.mark.parametrize("first", SEEDS)
def test_what_holds_in_every_world(first: int) -> None:
    for seed in range(first, first + 100):
        try:
            _live(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def _live(seed: int) -> None:
    """(2) order does not matter; (3) it ends; (4) nobody causes evictions twice; (5) who claims is admitted when the victims are gone."""
    world = random_world(seed)
    world.settle()
    rng_leaf = next(iter(world.tree.leaves())).name
    world.add(rng_leaf, 3, dict.fromkeys(world.tree.min, 1), priority=50)
    caused: dict[str, int] = {}
    for _ in range(60):
        first, again = plan_quota(world.state()), plan_quota(world.state())
        assert _bytes(first) == _bytes(again), "the order of the lists matters"
        for unit in {each.for_unit for each in first.evict}:
            caused[unit] = caused.get(unit, 0) + 1
            assert caused[unit] == 1, f"{unit} causes evictions again"
        plan = world.step()
        if plan.is_empty and not world.is_busy:
            return
    raise AssertionError("no end")


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_what_arrives_at_once_settles_without_evictions(count: int) -> None:
    """The aim of the contract is 999 of 1,000."""
    evicted = []
    for seed in range(count):
        world = random_world(seed, is_empty=True)
        world.settle()
        if world.evictions:
            evicted.append(seed)
    assert len(evicted) <= 1, evicted


def _bytes(plan: QuotaPlan) -> bytes:
    """Lists in their order; the keys of mappings have none."""
    return msgspec.json.encode(plan, order="deterministic")
