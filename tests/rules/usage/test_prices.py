"""Which price counts, and which new ones are refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.usage.small_ledger import A100, A100_MATCHER, DAY, NOVEMBER, PLAIN, price

from fairlead.errors import UserError
from fairlead.model.usage.prices import Price
from fairlead.rules.usage.days import time_zone
from fairlead.rules.usage.money import apportioned, parse_money, render_money, rounded
from fairlead.rules.usage.prices import PriceBook, matches_nothing, price_faults

INSTANCE = (("node.kubernetes.io/instance-type", "a100-8"),)
BOTH = (*A100_MATCHER, *INSTANCE)
UTC = time_zone("UTC")
CLASSES = (A100, PLAIN)


def at(*prices: Price, day: int = 0, as_of: int | None = None) -> int | None:
    numbered = tuple(replace(each, id=number) for number, each in enumerate(prices, 1))
    found = PriceBook(numbered, as_of).at(A100, NOVEMBER + day * DAY)
    return None if found is None else found.node_hour


def test_the_matcher_with_most_labels_counts() -> None:
    everywhere, model, exact = price(1, matcher=()), price(2), price(3, matcher=BOTH)
    assert at(everywhere, exact, model) == 3
    assert at(everywhere, model) == 2
    assert at(everywhere, replace(model, matcher=(("gpu-model", "T4"),))) == 1


def test_of_one_matcher_the_latest_beginning_counts_then_the_latest_entry() -> None:
    first, second = price(1), price(2, NOVEMBER + DAY)
    assert [at(first, second, day=day) for day in (-1, 0, 1, 9)] == [None, 1, 2, 2]
    corrected = price(3, NOVEMBER, entered_at=NOVEMBER + 5 * DAY)
    assert at(first, second, corrected, day=0) == 3
    assert at(first, second, corrected, day=1) == 2, "the later beginning, although entered before"
    assert at(first, corrected, day=0, as_of=NOVEMBER + 4 * DAY) == 1


def test_an_end_uncovers_the_less_exact_matcher() -> None:
    everywhere, model = price(1, matcher=()), price(2)
    end = price(0, NOVEMBER + DAY, ended=True)
    assert [at(everywhere, model, end, day=day) for day in (0, 1)] == [2, 1]
    assert at(model, end, day=1) is None
    again = price(5, NOVEMBER + 2 * DAY)
    assert [at(model, end, again, day=day) for day in (0, 1, 2)] == [2, None, 5]


def test_a_price_of_zero_is_a_price() -> None:
    assert at(price(0)) == 0


def faults(new: Price, *prices: Price) -> list[tuple[str, str]]:
    return [(each.field, each.rule) for each in price_faults(new, prices, CLASSES, UTC)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"node_hour": 0}, []),
        ({"node_hour": -1}, [("nodeHour", "amount")]),
        ({"node_hour": 10**12 + 1}, [("nodeHour", "amount")]),
        ({"list_node_hour": -1}, [("listNodeHour", "amount")]),
        ({"currency": "eur"}, [("currency", "code")]),
        ({"currency": "ÄÖÜ"}, [("currency", "code")]),
        ({"currency": "USD"}, [("currency", "one-currency")]),
        ({"gpu_permille": 1001}, [("gpuSharePercent", "share")]),
        ({"matcher": (("zone", "a"),)}, [("matcher", "label")]),
        ({"matcher": (("gpu-model", ""),)}, [("matcher", "value")]),
        ({"matcher": INSTANCE}, [("matcher", "overlap")]),
        ({"matcher": BOTH}, []),
        ({"matcher": ()}, []),
        ({"valid_from": NOVEMBER + 1}, [("validFrom", "day-start")]),
        ({"note": "x" * 201}, [("note", "length")]),
        ({"ended": True, "currency": ""}, []),
        ({"ended": True, "matcher": BOTH}, [("matcher", "no-price")]),
    ],
    ids=lambda each: str(each)[:50],
)
def test_what_is_refused(change: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert faults(replace(price(1), **change), price(2)) == expected


def test_an_ended_matcher_overlaps_no_more() -> None:
    old, end = price(1), price(0, NOVEMBER + DAY, ended=True)
    new = price(2, NOVEMBER + DAY, matcher=INSTANCE)
    assert faults(new, old, end) == []
    assert faults(replace(new, valid_from=NOVEMBER), old, end) == [("matcher", "overlap")]
    again = price(3, NOVEMBER + 9 * DAY)
    assert faults(new, old, end, again) == [("matcher", "overlap")]


def test_a_matcher_without_nodes_is_a_warning_that_names_labels() -> None:
    found = matches_nothing(price(1, matcher=(("gpu-model", "H100"),)), CLASSES)
    assert found is not None
    assert found.hint == (
        "the labels of nodes: gpu-model=A100,node.kubernetes.io/instance-type=a100-8; "
        "node.kubernetes.io/instance-type=c-16"
    )
    assert matches_nothing(price(1), CLASSES) is None
    empty = matches_nothing(price(1), ())
    assert empty is not None and empty.reason == "the ledger has no node of the last 90 days"


@given(st.lists(st.fractions(0, 1000), max_size=30))
def test_apportioned_amounts_add_up_and_differ_by_less_than_one(amounts: list[Fraction]) -> None:
    found = apportioned(amounts)
    assert sum(found) == rounded(sum(amounts, Fraction(0)))
    assert all(abs(a - b) < 1 for a, b in zip(found, amounts, strict=True))
    assert all(each >= 0 for each in found)


@given(st.integers(-(10**15), 10**15))
def test_money_is_read_as_it_is_printed(micro: int) -> None:
    assert parse_money(render_money(micro)) == micro


@pytest.mark.parametrize("text", ["", "1,5", "1e3", "١", "1.", ".5", "1.1234567", "5 EUR", "nan"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_money(text)
