"""The rows of the page Datasets, and what its panel shows of one data set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import structs

from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.data.datasets import (
    DataSetCache,
    DataSetCondition,
    DataSetDetail,
    DataSetEvent,
    DataSetMount,
    DataSetPart,
    DataSetPod,
    DataSetPreheat,
    DataSetRow,
    DataSetRuntime,
    DataSetUser,
)
from fairlead.console.pages.envelope import Sentence, Warning, counted, timestamp
from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.jobs.data_details import DataLoad, DataReasons, DataSetFacts
from fairlead.model.jobs.datasets import (
    CacheState,
    DataMount,
    DataRuntime,
    DataSet,
    FoundData,
)
from fairlead.model.pod import Owner
from fairlead.rules.data.details import data_set_details
from fairlead.rules.data.listing import DataRow, data_rows
from fairlead.rules.data.mounted import POD, ClaimUsers, by_owner

STRANGERS: Final = "another namespace"
"""Stands for data sets that the reader may not see."""
CLAIM: Final = "PersistentVolumeClaim"
DATA_SET: Final = "Dataset"
USERS_SHOWN: Final = 5
"""Titles of users in a row; the detail has all."""
READY: Final = "Ready"
NOT_READY: Final = "NotReady"
NO_FLUID: Final = Warning(
    code="crd-missing",
    source="datasets.data.fluid.io",
    message="Fluid is not installed: only claims of volumes are shown, and none is accelerated",
    hint="install Fluid: https://fluid-cloudnative.io",
    values={"source": "datasets.data.fluid.io"},
)
_YES_NO: Final = {True: "yes", False: "no"}


def data_set_rows(
    found: FoundData,
    known: DataReasons,
    namespaces: Collection[str] | None,
    operations: Mapping[str, str],
    users: ClaimUsers | None = None,
) -> RowSet[DataSetRow]:
    """By namespace and name. `known`: why data sets are stuck. `namespaces`: None = all.
    `operations`: see `operations_at_work`. `users`: what mounts claims, None = not known.
    """
    found, known = seen_data(found, namespaces), seen_reasons(known, namespaces)
    rows = [_row(each, operations, users) for each in data_rows(found, known)]
    facets = {
        "namespace": choices(row.namespace for row in rows),
        "accelerated": [
            word for is_so, word in _YES_NO.items() if any(row.accelerated is is_so for row in rows)
        ],
        "status": [word for word in (READY, NOT_READY) if any(row.status == word for row in rows)],
    }
    return RowSet(DataSetRow, [_entry(row) for row in rows], facets)


def data_sets_sentence(rows: Sequence[DataSetRow]) -> Sentence:
    """
    >>> data_sets_sentence([]).text
    'There are no data sets and no claims of volumes.'
    """
    if not rows:
        return Sentence("datasets-none", {}, "There are no data sets and no claims of volumes.")
    sets = sum(row.kind == DATA_SET for row in rows)
    claims = len(rows) - sets
    accelerated = sum(row.kind == CLAIM and row.accelerated for row in rows)
    not_ready = sum(row.status == NOT_READY for row in rows)
    text = (
        f"{counted(sets, 'data set')}; {accelerated} of {counted(claims, 'claim')} accelerated; "
        f"{not_ready} not ready."
    )
    values = {"sets": sets, "claims": claims, "accelerated": accelerated, "notReady": not_ready}
    return Sentence("datasets", dict(values), text)


def data_set_detail(
    facts: DataSetFacts,
    row: DataSetRow,
    namespaces: Collection[str] | None,
    envelope: tuple[str, bool, str, list[Warning]],
    mounted: ClaimUsers | None = None,
) -> DataSetDetail:
    """`row`: of the list. `facts`: of its name. `namespaces`: those that the reader may see, None =
    all. `mounted`: to which jobs pods belong, None = not known.
    """
    seen = structs.replace(
        facts,
        found=seen_data(facts.found, namespaces),
        reasons=seen_reasons(facts.reasons, namespaces),
    )
    details = data_set_details(seen, row.namespace, row.name) if row.kind == DATA_SET else None
    users = [each for each in seen.reasons.users or () if each.claim == row.name]
    shown_users = _users(users, mounted or ClaimUsers())
    if details is None:
        return DataSetDetail(
            *envelope,
            row=row,
            mounts=[],
            runtimes=[],
            cache=None,
            conditions=[],
            finalizers=[],
            preheats=[],
            events=[],
            users=shown_users,
            blockers=[],
            unread=[] if seen.reasons.users is not None else ["pods"],
        )
    data_set = details.data_set
    return DataSetDetail(
        *envelope,
        row=row,
        mounts=[_mount(each) for each in data_set.mounts],
        runtimes=[_runtime(each) for each in details.runtimes],
        cache=_cache(data_set.cache),
        conditions=[
            DataSetCondition(each.type, each.status, each.reason, each.message, timestamp(each.at))
            for each in data_set.conditions
        ],
        finalizers=list(data_set.finalizers),
        preheats=[_preheat(each) for each in details.loads],
        events=[
            DataSetEvent(
                each.reason,
                each.message,
                f"{each.object_kind} {each.object_name}",
                timestamp(each.at),
            )
            for each in details.warnings
        ],
        users=shown_users,
        blockers=list(details.blockers),
        unread=list(details.unread),
    )


def _users(users: Sequence[DataUser], mounted: ClaimUsers) -> list[DataSetUser]:
    owners = {each.key: mounted.by_pod.get(each.key) for each in users}
    jobs = {(one.kind, one.name): one.job for one in owners.values() if one is not None}
    named = [
        each
        if (owner := owners[each.key]) is None or owner.kind == POD
        else structs.replace(each, owner=Owner(owner.kind, owner.name, ""))
        for each in users
    ]
    return [
        DataSetUser(
            namespace=mine[0].namespace,
            kind=user.kind,
            name=user.name,
            job=jobs.get((user.kind, user.name), ""),
            pods=[DataSetPod(each.name, each.node) for each in mine],
        )
        for user, mine in by_owner(named)
    ]


def data_set_of(found: FoundData, namespace: str, name: str) -> DataSet | None:
    return next(
        (each for each in found.data_sets if (each.namespace, each.name) == (namespace, name)),
        None,
    )


def seen_data(found: FoundData, namespaces: Collection[str] | None) -> FoundData:
    """The data of these namespaces. Data sets of others that refer to one have no name here."""
    if namespaces is None:
        return found
    return structs.replace(
        found,
        claims=tuple(each for each in found.claims if each.namespace in namespaces),
        data_sets=tuple(
            _without_strangers(each, namespaces)
            for each in found.data_sets
            if each.namespace in namespaces
        ),
        runtimes=tuple(each for each in found.runtimes if each.namespace in namespaces),
    )


def seen_reasons(known: DataReasons, namespaces: Collection[str] | None) -> DataReasons:
    if namespaces is None or known.users is None:
        return known
    users = tuple(each for each in known.users if each.namespace in namespaces)
    return structs.replace(known, users=users)


def _without_strangers(data_set: DataSet, namespaces: Collection[str]) -> DataSet:
    own = tuple(each for each in data_set.references if each.partition("/")[0] in namespaces)
    if len(own) == len(data_set.references):
        return data_set
    return structs.replace(data_set, references=(*own, STRANGERS))


def _mount(mount: DataMount) -> DataSetMount:
    return DataSetMount(
        point=mount.point,
        path=mount.path or f"/{mount.name}",
        read_only=mount.is_read_only,
        options=[f"{name}={value}" for name, value in mount.options],
        secrets=[f"{each.option}: {each.secret}/{each.key}" for each in mount.secrets],
    )


def _runtime(runtime: DataRuntime) -> DataSetRuntime:
    return DataSetRuntime(
        kind=runtime.kind,
        ready=runtime.ready,
        wanted=runtime.wanted,
        parts=[
            DataSetPart(each.name, each.phase, each.reason) for each in runtime.parts if each.phase
        ],
    )


def _cache(cache: CacheState) -> DataSetCache:
    return DataSetCache(
        cached_bytes=cache.cached,
        capacity_bytes=cache.capacity,
        hit_percent=cache.hit_percent,
        local_hit_percent=cache.local_percent,
        remote_hit_percent=cache.remote_percent,
    )


def _preheat(load: DataLoad) -> DataSetPreheat:
    return DataSetPreheat(
        name=load.name,
        phase=load.phase or "Pending",
        paths=list(load.paths),
        schedule=load.schedule,
        duration=load.duration,
        message=load.message,
        created_at=timestamp(load.created_at),
    )


def _row(row: DataRow, operations: Mapping[str, str], users: ClaimUsers | None) -> DataSetRow:
    keys = [f"dataset/{row.namespace}/{row.name}"]
    if not row.is_data_set:
        own = f"claim/{row.namespace}/{row.name}"
        keys = [own, *(f"dataset/{row.namespace}/{name}" for name in row.by)]
    at_work = [operations[key] for key in keys if key in operations]
    # the claim of a data set has its name, and is in its namespace
    found = None if users is None else users.by_claim.get((row.namespace, row.name), ())
    return DataSetRow(
        namespace=row.namespace,
        name=row.name,
        kind=DATA_SET if row.is_data_set else CLAIM,
        source=list(row.source),
        accelerated=row.is_accelerated,
        accelerated_by=list(row.by),
        status=row.status,
        phase=row.phase,
        message=row.message,
        cached_percent=row.cached_percent,
        size_bytes=row.size,
        files=row.files,
        runtime=row.runtime,
        users=None if found is None else len(found),
        used_by=[each.title for each in (found or ())[:USERS_SHOWN]],
        created_at=timestamp(row.created_at),
        operation=at_work[0] if at_work else "",
    )


def _entry(row: DataSetRow) -> Entry[DataSetRow]:
    words = [row.namespace, row.name, row.phase, row.runtime, *row.source, *row.accelerated_by]
    answers = {
        "namespace": lowered(row.namespace),
        "accelerated": (_YES_NO[row.accelerated],),
        "status": lowered(row.status, row.phase),
    }
    return Entry(row, "\n".join(words).lower(), answers)
