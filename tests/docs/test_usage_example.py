"""The worked example of docs/how-to/usage.md, computed again by the rules that make the tables."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from fairlead.model.usage.ledger import GPU, HOUR, PriceClass
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageIntegral
from fairlead.rules.usage.cost import charge, node_time, node_totals
from fairlead.rules.usage.money import parse_money, render_money, rounded
from fairlead.rules.usage.prices import PriceBook

TEXT = Path(__file__).parents[2].joinpath("docs/how-to/usage.md").read_text(encoding="utf-8")
GIB = 1024


def example() -> tuple[PriceClass, Price]:
    """The node of the text."""
    found = re.search(
        r"a node with (\d+) GPUs, (\d+) cores and (\d+) GiB costs ([\d.]+) (\w+) per hour", TEXT
    )
    assert found is not None
    gpus, cores, gib, amount, currency = found.groups()
    node = PriceClass((), "A100", int(gpus) * GPU, int(cores) * 1000, int(gib) * GIB)
    return node, Price((), currency, parse_money(amount), 0, 0)


def rows(head: str) -> list[list[str]]:
    """The rows of the table with this head."""
    lines = TEXT[TEXT.index(head) :].splitlines()[2:]
    table = lines[: next(number for number, line in enumerate(lines) if not line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def text_of(amount: Fraction) -> str:
    return render_money(rounded(amount))


def test_each_pod_costs_what_the_table_shows() -> None:
    node, price = example()
    pods = rows("| pod | GPUs | cores |")
    assert len(pods) == 3
    total = Fraction(0)
    for _, gpus, cores, gib, hours, hourly, cost in pods:
        held = UsageIntegral(
            gpu=int(Fraction(gpus) * GPU) * HOUR,
            cpu=int(cores) * 1000 * HOUR,
            memory=int(gib) * GIB * HOUR,
        )
        each = charge(node_time(held, node, price), price).cost
        assert (text_of(each), text_of(each * int(hours))) == (hourly, cost)
        total += each * int(hours)
    whole = charge(24 * HOUR, price).cost
    assert f"The node costs\n{text_of(whole)}, so the rest is {text_of(whole - total)}." in TEXT


def test_the_money_of_the_gpus_is_split_as_the_table_shows() -> None:
    node, price = example()
    used, idle = 4 * GPU * 24 * HOUR, GPU // 4 * 24 * HOUR
    sums = NodeSum(0, node, 24 * HOUR, used, idle, free=node.gpu * 24 * HOUR - used - idle)
    found = node_totals([("", sums)], PriceBook((price,)))[""].money
    assert found is not None
    (shown,) = rows("| used | idle | free |")
    assert [text_of(each) for each in (found.used, found.idle, found.free)] == shown
    assert f"The money of the GPUs alone, {text_of(sum(found.parts, Fraction(0)))}," in TEXT
