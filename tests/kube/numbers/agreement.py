"""Finds the numbers on which the console and kubectl differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.kube.numbers.shown import Shown
from tests.kube.numbers.truth import Truth

PAGES = (
    "nodes",
    "node_pages",
    "cards",
    "pools",
    "overview",
    "jobs",
    "job_pages",
    "holders",
    "groups",
    "quota",
    "mine",
)
ABSENT = "not there"
SECONDS = 1.6
"""Tolerance in seconds: the API server reports whole seconds, and so does the page."""


def differences(
    shown: Shown, truth: Truth, pages: Iterable[str] = PAGES
) -> dict[str, tuple[Any, Any]]:
    """Page and number -> (the console's value, the true value)."""
    found: dict[str, tuple[Any, Any]] = {}
    for page in pages:
        true = getattr(truth, page)()
        try:
            printed = getattr(shown, page)()
        except AssertionError as error:
            found[page] = (str(error), "two places of the console agree")
            continue
        for name in {**true, **printed}:
            here, there = printed.get(name, ABSENT), true.get(name, ABSENT)
            if not _is_same(name, here, there):
                found[f"{page}: {name}"] = (here, there)
    return found


def _is_same(name: str, here: Any, there: Any) -> bool:
    if (
        isinstance(here, bool)
        or not isinstance(here, int | float)
        or not isinstance(there, int | float)
    ):
        return bool(here == there)
    return abs(here - there) <= (SECONDS if name.endswith((" from", " since")) else 0.006)
