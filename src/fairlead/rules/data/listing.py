"""The list of data: each data set of Fluid, and each claim that is not Fluid's own.

Specification: docs/spec/datasets.md#data-list.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from fairlead.model.jobs.data_details import DataReasons
from fairlead.model.jobs.datasets import Claim, DataRuntime, DataSet, FoundData
from fairlead.model.moment import Moment
from fairlead.rules.data.mounts import caching
from fairlead.rules.data.reasons import FOREIGN_CLAIM, reason_of

_Key = tuple[str, str]


class DataRow(Struct, frozen=True):
    """One data set or one claim.

    `source`: what a data set mounts, or the volume of a claim. `by`: names of the data sets that
    cache a claim. `status`: `Ready` or `NotReady`; `phase`: the object's own word. Bytes and
    percent; None = not reported. `is_faulty`: a person should read the message.
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
    is_faulty: bool = False

    @property
    def is_accelerated(self) -> bool:
        return self.is_data_set or bool(self.by)


_NOTHING_KNOWN = DataReasons()


def data_rows(found: FoundData, known: DataReasons = _NOTHING_KNOWN) -> list[DataRow]:
    """By namespace and name, a data set before a claim of its name. `known`: what explains data
    sets that are stuck.
    """
    runtimes: dict[_Key, list[DataRuntime]] = {}
    for each in found.runtimes:
        runtimes.setdefault((each.namespace, each.name), []).append(each)
    named = {(data_set.namespace, data_set.name): data_set for data_set in found.data_sets}
    by = caching(named.values())
    foreign = {(each.namespace, each.name) for each in found.claims if not each.is_fluids}
    rows = []
    for key, data_set in named.items():
        its = runtimes.get(key, ())
        why = reason_of(
            data_set, its, has_foreign_claim=key in foreign, known=known, now=found.taken_at
        )
        rows.append(_data_set(data_set, its, why, is_stuck=data_set.is_stuck(found.taken_at)))
    for claim in found.claims:
        key = (claim.namespace, claim.name)
        if not (claim.is_fluids and key in named):
            rows.append(_claim(claim, by.get(key, ())))
    return sorted(rows, key=lambda row: (row.namespace, row.name, not row.is_data_set))


def _data_set(
    data_set: DataSet, runtimes: Sequence[DataRuntime], why: str, *, is_stuck: bool
) -> DataRow:
    phase = "Terminating" if data_set.is_ending else data_set.phase or "Pending"
    is_ready = data_set.is_ready and FOREIGN_CLAIM not in why
    return DataRow(
        data_set.namespace,
        data_set.name,
        True,
        tuple(each.point for each in data_set.mounts),
        (),
        "Ready" if is_ready else "NotReady",
        phase,
        why,
        data_set.cache.percent,
        data_set.size,
        data_set.files,
        ", ".join(f"{each.kind} {each.ready}/{each.wanted}" for each in runtimes),
        data_set.created_at,
        is_faulty=is_stuck or (data_set.is_ready and bool(why)),
    )


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
