"""Slow tests: a few examples run in `make test`, the others where tests marked `long` run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy


def long_case(*values: object) -> Any:
    """A row of `parametrize` that is too slow for `make test`."""
    return pytest.param(*values, marks=pytest.mark.long)


def examples(
    few: int, many: int, *strategies: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replaces `@given(*strategies)`; new examples with every run."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.long)])
        def test(count: int) -> None:
            settings(max_examples=count, deadline=None)(given(*strategies)(check))()

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate
