"""Quantities as the API reads them: exact, every suffix, rounded up."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity as official_parse_quantity

from fairlead.wire.kube.quantity import parse_amount, parse_amounts, parse_quantity, render_amount

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


@given(number=st.decimals(min_value=0, max_value=10**5, places=3), suffix=st.sampled_from(SUFFIXES))
def test_every_suffix_agrees_with_the_official_client_rounded_up(
    number: object, suffix: str
) -> None:
    text = f"{number}{suffix}"
    exact = Fraction(official_parse_quantity(text))
    assert parse_quantity(text) == -(-exact.numerator // exact.denominator)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "100m", 100),
        ("cpu", "0.1", 100),
        ("cpu", "1n", 1),
        ("memory", "1.5Gi", 1610612736),
        ("memory", "128", 128),
        ("memory", "1e3", 1000),
        ("memory", "12E", 12 * 10**18),
        ("nvidia.com/gpu", "8", 8),
        ("nvidia.com/gpu", 8, 8),
        ("nvidia.com/gpu", "1e30", 10**30),
        ("nvidia.com/gpu", "-5", 0),
        ("nvidia.com/gpu", "0.0001n", 1),
    ],
)
def test_amounts_in_the_unit_of_their_resource(resource: str, text: str | int, amount: int) -> None:
    assert parse_amount(resource, text) == amount


@pytest.mark.parametrize(
    "text", ["", "abc", "1.2.3", "1Kib", "--1", "1e", "0x10", "1 Gi", ".", "1e999999999", "NaN"]
)
def test_what_the_api_refuses_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"`{text}`")):
        parse_quantity(text)


def test_a_bad_amount_names_its_resource() -> None:
    with pytest.raises(ValueError, match=r"`memory`.*`lots`"):
        parse_amounts({"cpu": "1", "memory": "lots"})


@given(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "aliyun.com/gpu-mem"]),
    st.integers(0, 10**15),
)
def test_rendered_amounts_parse_back(resource: str, amount: int) -> None:
    assert parse_amount(resource, render_amount(resource, amount)) == amount
