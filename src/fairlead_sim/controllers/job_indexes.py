"""The indexes of an Indexed Job that are done and that come next, written as ranges: `0-3,7`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any

from fairlead_sim.schema.go_number import whole_or_none

Object = dict[str, Any]

INDEX_KEY = "batch.kubernetes.io/job-completion-index"
_FAILURES_KEY = "batch.kubernetes.io/job-index-failure-count"


def parse_indexes(text: str) -> frozenset[int]:
    """
    >>> sorted(parse_indexes("0-2,5"))
    [0, 1, 2, 5]
    """
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def render_indexes(indexes: Collection[int]) -> str:
    """
    >>> render_indexes({5, 0, 1, 2, 7, 8})
    '0-2,5,7,8'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(parts)


def index_of(pod: Object) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX_KEY, "")
    return whole_or_none(text)


def failure_count(pod: Object) -> int:
    """How often the pod's index had failed before it."""
    text = (pod["metadata"].get("annotations") or {}).get(_FAILURES_KEY, "0")
    return whole_or_none(text) or 0


def pending_indexes(done: Collection[int], completions: int, count: int) -> list[int]:
    """The first indexes that have no active pod and are not done."""
    return list(islice((index for index in range(completions) if index not in done), count))


def duplicates(pods: Iterable[Object]) -> list[Object]:
    """Of several pods of one index all but the first."""
    seen: set[int | None] = set()
    surplus = []
    for pod in pods:
        index = index_of(pod)
        if index in seen:
            surplus.append(pod)
        seen.add(index)
    return surplus
