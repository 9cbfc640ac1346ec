"""Simulated GPUs of one node, described by a text."""

from __future__ import annotations

import pytest

from fairlead.errors import UserError
from fairlead_sim.gpus.node_cards import SimulatedDriver, parse_models


def test_the_cards_of_document_003() -> None:
    (card,) = SimulatedDriver("n1", parse_models("1xTesla-T4")).cards()
    assert (card.index, card.minor, card.model, card.memory_mib) == (0, 0, "Tesla T4", 15079)


def test_the_same_node_and_text_give_the_same_cards() -> None:
    first, again, elsewhere = (
        SimulatedDriver(node, parse_models("2xTesla-T4")).cards() for node in ("n1", "n1", "n2")
    )
    assert first == again
    assert len({card.uuid for card in (*first, *elsewhere)}) == 4


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "`` names no simulated GPUs"),
        ("Tesla-T4", "`Tesla-T4` names no simulated GPUs"),
        ("2xTesla-T4,", "`` names no simulated GPUs"),
        ("1xTesla-T5", "no GPU model is called `Tesla-T5`"),
        ("65xTesla-T4", "`65xTesla-T4` are 65 GPUs"),
    ],
)
def test_bad_texts(text: str, what: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_models(text)
    assert raised.value.what == what
