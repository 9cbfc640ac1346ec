"""A few thousand malformed requests to the extender. For more, run `python -m tests.apps.share_fuzz
SECONDS`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.apps.broken_extender import without_reservation
from tests.apps.share_fuzz import live

from fairlead.wire.sharing.scheduler_extender import BadBody, parse_filter

QUESTIONS = 4000
LONG = 3600.0
"""Seconds. The number of requests ends the run, however slow the machine is."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level("CRITICAL")
    yield


def test_every_question_is_answered_and_no_card_is_sold_twice() -> None:
    lived = live(1, LONG, QUESTIONS)
    assert lived.asked >= QUESTIONS
    assert lived.answers.keys() == {200, 400, 404}
    assert len(lived.server.bindings) > 10, "where nothing is bound nothing can be sold twice"


def test_it_finds_an_extender_that_holds_nothing() -> None:
    with pytest.raises(
        AssertionError,
        match=(
            r"fuzz 1: AssertionError.*units of GPU-.* are granted.*again: python -m "
            r"tests.apps.share_fuzz"
        ),
    ):
        live(1, LONG, 100_000, without_reservation)


def test_whole_nodes_that_are_no_text_are_refused() -> None:
    with pytest.raises(BadBody, match="Nodes is not UTF-8"):
        parse_filter(
            b'{"Pod":{"metadata":{"name":"p"}},"Nodes":{"items":[{"metadata":{"name":"n"},"status":{"x":"\xa8"}}]}}'
        )
