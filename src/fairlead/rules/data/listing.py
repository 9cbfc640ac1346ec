"""The list of data: each data set of Fluid, and each claim that is not Fluid's own.

Specification: docs/spec/datasets.md#data-list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.datasets import Claim, DataRuntime, DataSet, FoundData
from fairlead.model.moment import Moment

_CLAIM: Final = "pvc://"
_Key = tuple[str, str]


class DataRow(Struct, frozen=True):
    """One data set or one claim.

    `source`: what a data set mounts, or the volume of a claim. `by`: names of the data sets that
    cache a claim. `status`: `Ready` or `NotReady`; `phase`: the object's own word. Bytes and
    percent; None = not reported.
    """

    namespace: str
    name: str
    is_data_set: bool
    source: tuple[str, ...]
    by: tuple[str, ...]
    status: str
    phase: str
    message: str = ""
    cached_percent: float | None = None
    size: int | None = None
    files: int | None = None
    runtime: str = ""
    created_at: Moment | None = None

    @property
    def is_accelerated(self) -> bool:
        return self.is_data_set or bool(self.by)


def data_rows(found: FoundData) -> list[DataRow]:
    """By namespace and name, a data set before a claim of its name."""
    runtimes: dict[_Key, list[DataRuntime]] = {}
    for each in found.runtimes:
        runtimes.setdefault((each.namespace, each.name), []).append(each)
    named = {(data_set.namespace, data_set.name): data_set for data_set in found.data_sets}
    caching: dict[_Key, list[str]] = {}
    for (namespace, name), data_set in named.items():
        for mounted in claims_of(data_set):
            caching.setdefault((namespace, mounted), []).append(name)
    rows = [_data_set(data_set, runtimes.get(key, ())) for key, data_set in named.items()]
    for claim in found.claims:
        key = (claim.namespace, claim.name)
        if not (claim.is_fluids and key in named):
            rows.append(_claim(claim, caching.get(key, ())))
    return sorted(rows, key=lambda row: (row.namespace, row.name, not row.is_data_set))


def claims_of(data_set: DataSet) -> list[str]:
    """Names of the claims of its namespace that a data set mounts.

    >>> from fairlead.model.jobs.datasets import DataMount
    >>> claims_of(DataSet("n", "d", (DataMount("pvc://raw/2026"), DataMount("s3://bucket"))))
    ['raw']
    """
    return [
        each.point.removeprefix(_CLAIM).partition("/")[0]
        for each in data_set.mounts
        if each.point.startswith(_CLAIM)
    ]


def _data_set(data_set: DataSet, runtimes: Sequence[DataRuntime]) -> DataRow:
    phase = "Terminating" if data_set.is_ending else data_set.phase or "Pending"
    return DataRow(
        data_set.namespace,
        data_set.name,
        True,
        tuple(each.point for each in data_set.mounts),
        (),
        "Ready" if data_set.is_ready else "NotReady",
        phase,
        "" if data_set.is_ready else data_set.message or _why(data_set, runtimes),
        data_set.cache.percent,
        data_set.size,
        data_set.files,
        ", ".join(f"{each.kind} {each.ready}/{each.wanted}" for each in runtimes),
        data_set.created_at,
    )


def _why(data_set: DataSet, runtimes: Sequence[DataRuntime]) -> str:
    """What keeps a data set from being ready, where Fluid has not written it."""
    if data_set.is_ending:
        return "it is being deleted"
    if not runtimes:
        return "no runtime has its name"
    if len(runtimes) > 1:
        return f"{len(runtimes)} runtimes have its name: {_kinds(runtimes)}"
    return ""


def _kinds(runtimes: Iterable[DataRuntime]) -> str:
    return ", ".join(each.kind for each in runtimes)


def _claim(claim: Claim, by: Sequence[str]) -> DataRow:
    phase = "Terminating" if claim.is_ending else claim.phase or "Pending"
    return DataRow(
        claim.namespace,
        claim.name,
        False,
        (claim.volume,) if claim.volume else (),
        tuple(sorted(by)),
        "Ready" if claim.is_ready else "NotReady",
        phase,
        size=claim.size or None,
        created_at=claim.created_at,
    )
