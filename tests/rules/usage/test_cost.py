"""Costs add up to the price of the node, exactly: random worlds against an oracle in fractions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rules.usage.cost_oracle import STEP, reckon, total
from tests.rules.usage.cost_worlds import World, worlds, write
from tests.usage.memory_ledger import MemoryLedger

from fairlead.console.boards.usage.ledger_reads import UsageRead, read_usage
from fairlead.console.boards.usage.usage_rows import usage_rows
from fairlead.model.usage.ledger import GPU, HOUR, Amount, PodInterval, PriceClass, UsedBy
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageIntegral, UsageSum
from fairlead.rules.usage.cost import (
    Total,
    charge,
    gpu_split,
    node_time,
    node_totals,
    totals,
    weights,
)
from fairlead.rules.usage.days import day_bounds, time_zone
from fairlead.rules.usage.money import parse_money, rounded
from fairlead.rules.usage.periods import Period
from fairlead.rules.usage.prices import PriceBook

MANY = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def read(world: World) -> UsageRead:
    async def ask() -> UsageRead:
        ledger = MemoryLedger()
        await write(world, ledger)
        return await read_usage(
            ledger, await ledger.ledger_bounds(), Period("custom", world.start, world.end), None
        )

    return asyncio.run(ask())


def read_days(world: World, *, is_folded: bool) -> UsageRead:
    """The two billing days of a world."""

    async def ask() -> UsageRead:
        ledger, zone = MemoryLedger(), time_zone(world.zone)
        epoch = await write(world, ledger)
        days = day_bounds(world.start, zone), day_bounds(world.midnight, zone)
        ledger.heartbeat = days[1][1]
        if is_folded:
            for day in days:
                await ledger.fold_day(epoch, *day)
        return await read_usage(
            ledger, await ledger.ledger_bounds(), Period("days", days[0][0], days[1][1]), None
        )

    return asyncio.run(ask())


def by_user(sums: Iterable[UsageSum], book: PriceBook) -> dict[str, Total]:
    return totals(sums, book, lambda each: each.by.user)


@MANY
@given(worlds())
def test_costs_are_those_of_the_oracle_to_the_last_fraction(world: World) -> None:
    found = by_user((seen := read(world)).sums, seen.book)
    right = reckon(world.nodes, world.pods, world.prices, world.start, world.end)
    users = {each.pod_uid: each.by.user for each in world.pods}
    for uid, user in users.items():
        charged = found[user].charge
        assert (charged.cost if charged else None) == right.pods.get(uid), user
        assert (charged.list_cost if charged else None) == right.listed.get(uid), user
        assert found[user].unpriced == right.unpriced.get(uid, 0)


@MANY
@given(worlds())
def test_pods_and_the_rest_are_the_price_of_the_nodes(world: World) -> None:
    seen = read(world)
    right = reckon(world.nodes, world.pods, world.prices, world.start, world.end)
    whole = node_totals((("", each) for each in seen.nodes), seen.book)
    charged = whole[""].charge if whole else None
    assert (charged.cost if charged else Fraction(0)) == total(right.nodes)
    assert total(right.pods) <= total(right.nodes)
    for node in right.nodes:
        own = {each.pod_uid for each in world.pods if each.node == node}
        found = by_user(seen.sums, seen.book)
        pods = {each.by.user for each in world.pods if each.pod_uid in own}
        cost = sum((c.cost for user in pods if (c := found[user].charge)), Fraction(0))
        assert 0 <= cost <= right.nodes[node]


@MANY
@given(worlds(), st.sets(st.integers(1, 35), max_size=6))
def test_cutting_time_changes_nothing(world: World, cuts: set[int]) -> None:
    async def pieces() -> tuple[list[UsageSum], PriceBook]:
        ledger = MemoryLedger()
        await write(world, ledger)
        marks = [world.start, *(world.start + cut * STEP for cut in sorted(cuts)), world.end]
        sums: list[UsageSum] = []
        for begin, end in pairwise(marks):
            sums += (
                await read_usage(
                    ledger, await ledger.ledger_bounds(), Period("piece", begin, end), None
                )
            ).sums
        return sums, PriceBook(await ledger.prices())

    whole = read(world)
    sums, book = asyncio.run(pieces())
    direct, cut = by_user(whole.sums, whole.book), by_user(sums, book)
    assert {user: each.charge for user, each in cut.items()} == {
        user: each.charge for user, each in direct.items()
    }
    assert {user: each.integral.gpu for user, each in cut.items()} == {
        user: each.integral.gpu for user, each in direct.items()
    }


@MANY
@given(worlds())
def test_folded_days_answer_as_their_intervals(world: World) -> None:
    direct, folded = read_days(world, is_folded=False), read_days(world, is_folded=True)
    assert [each.is_folded for each in folded.plan.pieces] == [True]
    assert [each.is_folded for each in direct.plan.pieces] == [False, False]
    assert by_user(folded.sums, folded.book) == by_user(direct.sums, direct.book)
    one, other = (
        node_totals(((each.price_class, each) for each in seen.nodes), seen.book)
        for seen in (direct, folded)
    )
    assert one == other


@MANY
@given(worlds())
def test_rows_add_up_and_no_part_is_negative(world: World) -> None:
    seen = read(world)
    exact = sum(
        (each.charge.cost for each in by_user(seen.sums, seen.book).values() if each.charge),
        Fraction(0),
    )
    for by in ("user", "namespace", "leaf", "job", "model"):
        rows, figures = usage_rows(seen.sums, seen.book, by)
        costs = [parse_money(row.cost) for row in rows if row.cost is not None]
        assert all(cost >= 0 for cost in costs)
        if costs:
            assert sum(costs) == rounded(exact) == parse_money(figures.cost or "")


@MANY
@given(worlds())
def test_the_gpu_money_of_a_node_is_the_sum_of_its_parts(world: World) -> None:
    seen = read(world)
    right = reckon(world.nodes, world.pods, world.prices, world.start, world.end)
    found = node_totals((("", each) for each in seen.nodes), seen.book)
    money = found[""].money if found else None
    parts = money.parts if money else (Fraction(0),)
    assert all(part >= 0 for part in parts)
    assert sum(parts, Fraction(0)) == total(right.gpus)
    if found:
        assert all(part >= 0 for part in found[""].split.parts)


@MANY
@given(worlds())
def test_prices_as_they_were_known(world: World) -> None:
    """A price that is entered late changes nothing as of an earlier time."""
    seen = read(world)
    book = PriceBook(seen.book.prices, as_of=world.midnight)
    right = reckon(
        world.nodes, world.pods, world.prices, world.start, world.end, as_of=world.midnight
    )
    found = by_user(seen.sums, book)
    for pod in world.pods:
        charged = found[pod.by.user].charge
        assert (charged.cost if charged else None) == right.pods.get(pod.pod_uid)


NODE = PriceClass(gpu=8 * GPU, cpu_milli=64_000, memory_mib=524_288, model="A100")
PRICE = Price((), "EUR", 32_000_000, 0, 0)


def cost_of(amount: Amount, hours: int = 1, node: PriceClass = NODE) -> Fraction:
    pod = PodInterval("uid", 0, UsedBy("a"), "p", "n", node, amount)
    ms = hours * HOUR
    integral = UsageIntegral(
        gpu=pod.amount.gpu * ms, cpu=pod.amount.cpu_milli * ms, memory=pod.amount.memory_mib * ms
    )
    return charge(node_time(integral, node, PRICE), PRICE).cost


def test_pods_with_all_gpus_cost_no_more_than_the_instance() -> None:
    """OpenCost #2657: the GPU cost of a pod exceeded the price of its instance."""
    whole = Amount(8 * GPU, 0, 64_000, 524_288)
    assert cost_of(whole) == PRICE.node_hour
    assert cost_of(Amount(8 * GPU)) == Fraction(9, 10) * PRICE.node_hour


def test_a_quarter_of_a_card_costs_a_quarter() -> None:
    """OpenCost #3828: a pod with a share of a GPU was charged for the whole GPU."""
    card = cost_of(Amount(GPU))
    assert cost_of(Amount(GPU // 4)) == card / 4
    assert 4 * cost_of(Amount(GPU // 4)) == card


def test_idle_money_is_never_negative() -> None:
    """Kubecost #1978: idle costs were negative, because parts were counted with different times."""
    too_much = NodeSum(0, NODE, HOUR, used=9 * GPU * HOUR, idle=GPU * HOUR, free=GPU * HOUR)
    split = gpu_split(too_much)
    assert sum(split.parts, Fraction(0)) == 8 * GPU * HOUR
    assert all(part >= 0 for part in split.parts)
    nothing = gpu_split(NodeSum(0, NODE, HOUR))
    assert (nothing.unknown, nothing.idle) == (8 * GPU * HOUR, 0)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (NODE, ("9/10", "1/20", "1/20")),
        (replace(NODE, gpu=0), ("0", "1/2", "1/2")),
        (replace(NODE, cpu_milli=0), ("9/10", "0", "1/10")),
        (replace(NODE, memory_mib=0), ("9/10", "1/10", "0")),
        (replace(NODE, cpu_milli=0, memory_mib=0), ("1", "0", "0")),
        (PriceClass(), ("0", "0", "0")),
    ],
    ids=["all", "no GPUs", "no CPU", "no memory", "only GPUs", "nothing"],
)
def test_what_a_class_does_not_have_gets_no_share(
    node: PriceClass, expected: tuple[str, ...]
) -> None:
    assert tuple(map(str, weights(node, PRICE))) == expected


def test_a_share_of_the_price_itself_replaces_the_default() -> None:
    shared = weights(NODE, replace(PRICE, gpu_permille=1000))
    assert tuple(shared) == (1, 0, 0)
    assert weights(replace(NODE, gpu=0), replace(PRICE, gpu_permille=1000)).cpu == Fraction(1, 2)
