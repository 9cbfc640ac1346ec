"""Whole numbers in texts of users: what Go reads, and no input that makes Python fail."""

from __future__ import annotations

import pytest

from fairlead_sim.controllers.job_indexes import INDEX_KEY, index_of
from fairlead_sim.schema.go_number import LARGEST, OutOfRange, parse_whole, whole_or_none
from fairlead_sim.schema.patch import apply_json_patch
from fairlead_sim.schema.status import ApiStatus


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("-12", -12),
        ("0" * 5000 + "3", 3),
        (str(LARGEST), LARGEST),
        (str(-LARGEST - 1), -LARGEST - 1),
    ],
)
def test_what_go_reads(text: str, number: int) -> None:
    assert parse_whole(text) == number


@pytest.mark.parametrize(
    "text", ["", "-", "--5", "1_000", " 1", "1\n", "0x10", "1.0", "²", "٣", "一"]
)
def test_what_go_does_not_read(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_whole(text)
    assert str(caught.value) == f"`{text}` is not a whole number"
    assert whole_or_none(text) is None


@pytest.mark.parametrize("text", [str(LARGEST + 1), str(-LARGEST - 2), "9" * 5000])
def test_what_64_bits_do_not_hold(text: str) -> None:
    with pytest.raises(OutOfRange):
        parse_whole(text)


@pytest.mark.parametrize("step", ["9" * 5000, "²"])
def test_a_patch_of_an_item_that_is_none_is_refused(step: str) -> None:
    with pytest.raises(ApiStatus):
        apply_json_patch({"items": [1]}, [{"op": "replace", "path": f"/items/{step}", "value": 2}])


@pytest.mark.parametrize("text", ["²", "9" * 5000])
def test_an_annotation_that_any_user_may_write_ends_no_controller(text: str) -> None:
    assert index_of({"metadata": {"annotations": {INDEX_KEY: text}}}) is None
