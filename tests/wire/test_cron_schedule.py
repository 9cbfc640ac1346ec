"""Cron schedules: what robfig/cron accepts, when a schedule is due, and its errors for what it
refuses.

`robfig_cron.jsonl` contains the answers of `cron.ParseStandard` of github.com/robfig/cron v3.0.1
(panics recovered, as by Kubernetes): the text, a moment, and the next three times or the error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from fairlead.wire.kube.time import parse_time, render_time
from fairlead.wire.text.cron_schedule import Schedule, parse_schedule

RECORDED = [
    json.loads(line)
    for line in Path(__file__)
    .with_name("robfig_cron.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def strikes(schedule: Schedule, at: float) -> list[str]:
    def each(moment: float | None) -> Iterator[str]:
        while (moment := schedule.next_after(moment or 0.0)) is not None:
            yield render_time(moment)

    return list(islice(each(at), 3))


@pytest.mark.parametrize(
    ("text", "at", "answer"), [case for case in RECORDED if isinstance(case[2], list)]
)
def test_it_strikes_at_robfigs_times(text: str, at: str, answer: list[str]) -> None:
    assert strikes(parse_schedule(text), parse_time(at)) == answer


@pytest.mark.parametrize(
    ("text", "answer"), [(case[0], case[2]) for case in RECORDED if isinstance(case[2], str)]
)
def test_it_is_refused_in_robfigs_words(text: str, answer: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_schedule(text)
    assert str(refused.value) == answer
