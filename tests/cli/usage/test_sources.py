"""What a console answers that is of another version, or no console."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.cli.usage.sources import UsageSource, usage_source
from fairlead.console.pages.usage.prices import PriceOrder
from fairlead.errors import UserError


class OtherPages:
    """Answers each request with JSON of another form."""

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        return b'{"rows": []}'

    def post(self, path: str, body: bytes) -> bytes:
        return b'{"rows": []}'

    def delete(self, path: str) -> bytes:
        return b""


ORDER = PriceOrder(matcher={}, valid_from="2026-11-01", node_hour="1")
QUESTIONS: dict[str, Callable[[UsageSource], object]] = {
    "usage": lambda source: source.usage({}),
    "idle": lambda source: source.idle({}),
    "cost": lambda source: source.job_cost("a", "", "bert", ""),
    "prices": lambda source: source.prices(),
    "prices add": lambda source: source.add_price(ORDER),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_of_another_form_is_an_error_with_a_hint(name: str) -> None:
    args = Namespace(store="", console="", console_ca_file="")
    world = SimpleNamespace(console_pages=lambda named, ca_file: OtherPages())
    context: Any = SimpleNamespace(world=world, sleep=lambda seconds: None)
    source = usage_source(args, context)
    with pytest.raises(UserError) as found:
        QUESTIONS[name](source)
    assert "another form" in found.value.what
    assert "version" in found.value.hint
