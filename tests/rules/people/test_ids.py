"""Ids of users and names of groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.refusal import Refusal
from fairlead.rules.people.ids import group_id, user_id


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Bob", "bob"),
        ("bob@example.com", "bob-example-com"),
        ("Bob_Smith", "bob-smith"),
        ("bob 🚀", "bob"),
        ("x" * 63, "x" * 63),
        ("_" + "x" * 63 + "_", "x" * 63),
        ("7", "7"),
    ],
)
def test_a_name_makes_an_id(name: str, wanted: str) -> None:
    assert user_id(name) == wanted


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("🚀", "no letter a-z"),
        ("", "no letter a-z"),
        ("李明", "no letter a-z"),
        ("@_-", "no letter a-z"),
        ("x" * 64, "an id of 64 characters; an id has 63 at most"),
        ("Default", "the ServiceAccount that every namespace has"),
        ("BOB", "makes the id `bob`, which another user has"),
    ],
)
def test_a_name_that_makes_no_id_is_refused(name: str, why: str) -> None:
    found = user_id(name, {"bob"})
    assert isinstance(found, Refusal)
    assert why in found.reason


@given(st.text(max_size=80))
def test_every_id_is_a_dns_label(name: str) -> None:
    found = user_id(name)
    if isinstance(found, str):
        assert 1 <= len(found) <= 63
        assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert found[0] != "-" != found[-1]


@pytest.mark.parametrize("name", ["", "-a", "team_a", "a" * 64, "团队", "a b", "a\n"])
def test_a_bad_group_name_is_refused(name: str) -> None:
    assert isinstance(group_id(name), Refusal)


def test_two_group_names_that_make_one_object_are_refused() -> None:
    assert group_id("teamA") == "teama"
    assert isinstance(group_id("TeamA", {"teama"}), Refusal)


@given(st.text(max_size=80), st.text(max_size=80))
def test_an_id_makes_itself_and_is_given_once(one: str, other: str) -> None:
    first = user_id(one)
    if isinstance(first, str):
        assert user_id(first) == first
        assert user_id(other, {first}) != first
