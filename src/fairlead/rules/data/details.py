"""What is shown of one data set.

Specification: docs/spec/datasets.md#one-data-set.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.event import Event
from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.jobs.data_details import DataLoad, DataSetFacts
from fairlead.model.jobs.datasets import DataRuntime, DataSet
from fairlead.model.moment import Moment
from fairlead.rules.data.acceleration import blockers
from fairlead.rules.data.listing import DataRow, data_rows

MOST_WARNINGS: Final = 5
_ABOUT: Final = ("Dataset", "DataLoad")


class DataSetDetails(Struct, frozen=True):
    """One data set. `users`: pods that mount its claim. `blockers`: what refuses its end.
    `loads`: its preheats, the newest first. `warnings`: the newest, of it, its runtimes and
    preheats. `unread`: what this user may not read.
    """

    row: DataRow
    data_set: DataSet
    runtimes: tuple[DataRuntime, ...]
    users: tuple[DataUser, ...]
    blockers: tuple[str, ...]
    loads: tuple[DataLoad, ...]
    warnings: tuple[Event, ...]
    unread: tuple[str, ...]
    taken_at: Moment


def data_set_details(facts: DataSetFacts, namespace: str, name: str) -> DataSetDetails | None:
    """None if there is no such data set."""
    found = facts.found
    sets = [each for each in found.data_sets if (each.namespace, each.name) == (namespace, name)]
    if not sets:
        return None
    data_set = sets[0]
    rows = data_rows(found, facts.reasons)
    row = next(
        each
        for each in rows
        if each.is_data_set and (each.namespace, each.name) == (namespace, name)
    )
    runtimes = [each for each in found.runtimes if (each.namespace, each.name) == (namespace, name)]
    loads = sorted(
        (each for each in facts.loads or () if each.data_set == name),
        key=lambda each: (each.created_at or 0.0, each.name),
        reverse=True,
    )
    users = [each for each in facts.reasons.users or () if each.claim == name]
    return DataSetDetails(
        row,
        data_set,
        tuple(runtimes),
        tuple(users),
        tuple(blockers(data_set, users)),
        tuple(loads),
        tuple(each for each in facts.warnings or () if _is_about(each))[:MOST_WARNINGS],
        _unread(facts),
        found.taken_at,
    )


def _is_about(event: Event) -> bool:
    """Not about a pod, a claim or a Job that has the data set's name by chance."""
    return event.object_kind in _ABOUT or event.object_kind.endswith("Runtime")


def _unread(facts: DataSetFacts) -> tuple[str, ...]:
    parts = {
        "Fluid's controllers": facts.reasons.controllers,
        "pods": facts.reasons.users,
        "DataLoads": facts.loads,
        "events": facts.warnings,
    }
    return tuple(name for name, found in parts.items() if found is None)
