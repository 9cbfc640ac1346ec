"""The time at which a pod was bound is kept, even for a pod of which no other condition is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairlead.model.node import Condition
from fairlead.wire.kube.objects import parse_pod_conditions
from fairlead.wire.kube.time import parse_time

AT = "2026-11-23T18:31:55Z"
LATER = "2026-11-23T18:31:56Z"


def reported(*conditions: dict[str, Any]) -> tuple[Condition, ...]:
    return parse_pod_conditions(msgspec.Raw(msgspec.json.encode(list(conditions))))


def true(type_: str, at: str | None = LATER) -> dict[str, Any]:
    return {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": at}


def test_a_healthy_pod_keeps_when_it_was_bound_and_nothing_else() -> None:
    [kept] = reported(
        true("Initialized"), true("Ready"), true("PodScheduled", AT), true("ContainersReady")
    )
    assert (kept.type, kept.status, kept.at) == ("PodScheduled", "True", parse_time(AT))


def test_so_does_one_with_more_content() -> None:
    found = reported(
        {**true("Ready"), "status": "False", "reason": "ContainersNotReady"},
        true("PodScheduled", AT),
        true("Initialized"),
    )
    assert [(each.type, each.at) for each in found] == [
        ("Ready", parse_time(LATER)),
        ("PodScheduled", parse_time(AT)),
    ]


@pytest.mark.parametrize(
    "condition", [true("PodScheduled", None), {"type": "PodScheduled", "status": "True"}]
)
def test_without_a_time_there_is_none(condition: dict[str, Any]) -> None:
    [kept] = reported(condition)
    assert kept.at is None
