"""Durations as users write them."""

from __future__ import annotations

import pytest

from fairlead.wire.text.time_span import parse_span


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("2d", 172800), ("0s", 0), ("1d1s", 86401)]
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "1m1h", "-5m", "1.5h", "1 h", "\u0661m"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not a length of time"):
        parse_span(text)
