"""The form of the page Health: one row per thing that the console depends on."""

from __future__ import annotations

from typing import Final

from fairlead.console.pages.envelope import Envelope, Json, Sentence

STATES: Final = ("fail", "warn", "ok", "off")
"""Worst first. `off`: not in use, or not present."""


class HealthRow(Json, frozen=True):
    """`state` is one of `STATES`. `found`: what was seen. `affects`: what of the console depends on
    it.

    `setting`: what to set, null = nothing is to be done. `sources`: inputs of pages that it stands
    for, as warnings name them.
    """

    name: str
    state: str
    found: list[Sentence]
    affects: Sentence
    setting: Sentence | None
    sources: list[str]


class HealthPage(Envelope, frozen=True):
    """`stale` is false and `warnings` is empty: the rows contain everything."""

    sentence: Sentence
    items: list[HealthRow]
