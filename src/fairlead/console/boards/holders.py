"""Holders of GPUs, and the sums by owner, leaf, user or namespace.

Every pod counts, whatever created it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from fairlead.console.boards.gpu_map_cells import cards_of
from fairlead.console.boards.idle_cards import Idleness, seat_idle_seconds
from fairlead.console.boards.jobs_rows import memory_allocated
from fairlead.console.boards.rows import Entry, RowSet, by_count, choices, lowered
from fairlead.console.pages.envelope import (
    Sentence,
    counted,
    gpu_count,
    neat,
    neat_or_null,
    percent,
    timestamp,
)
from fairlead.console.pages.holders import Holder, HolderGroup
from fairlead.model.pod import Owner, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.pods.devices import has_gpu, memory_units
from fairlead.rules.pods.owner import named_owner
from fairlead.rules.pods.status import pod_status
from fairlead.wire import names

UNKNOWN_STATUS: Final = "Unknown"
"""Status of a pod on an unreachable node."""
NO_VALUE: Final = "-"
"""Value of the filters `user` and `leaf` for pods without one; an empty value means all."""


def holder_rows(
    snapshot: ClusterSnapshot,
    occupancy: ClusterOccupancy,
    leaf_of: Mapping[str, str],
    job_by_pod: Mapping[str, str],
    user_of_job: Mapping[tuple[str, str], str],
    owner_by_pod: Mapping[str, tuple[str, str]],
    silent: Collection[str],
    idle: Idleness,
) -> RowSet[Holder]:
    """The largest first.

    `leaf_of`: namespace -> path; `user_of_job`: (namespace, `type/name`) -> user.

    `owner_by_pod`: of pods of training jobs, the job's kind and name; another owner may stand
    between.
    """
    pods = [pod for pod in snapshot.pods if pod.is_holding and has_gpu(pod)]
    workloads = {each.uid: each for each in snapshot.workloads}
    made_by = {pod.key: named_owner(pod, workloads) for pod in pods}
    rows = [
        _row(
            pod,
            made_by[pod.key],
            occupancy,
            leaf_of,
            job_by_pod,
            user_of_job,
            owner_by_pod,
            silent,
            idle,
        )
        for pod in pods
    ]
    rows.sort(key=lambda row: (-row.gpus, row.namespace, by_count(row.name)))
    return holder_row_set([_entry(row) for row in rows])


def holder_row_set(entries: Sequence[Entry[Holder]]) -> RowSet[Holder]:
    """These rows, with the choices of their filters."""
    rows = [entry.row for entry in entries]
    facets = {
        "namespace": choices(row.namespace for row in rows),
        "kind": choices(row.owner_kind for row in rows),
        "user": choices(row.user for row in rows),
        "leaf": choices(row.quota_path for row in rows),
        "node": choices(row.node for row in rows),
        "status": choices(row.status for row in rows),
    }
    return RowSet(Holder, entries, facets)


def holders_sentence(rows: Sequence[Holder]) -> Sentence:
    """Numbers of pods, owners, held GPUs and idle GPUs.

    >>> holders_sentence([]).text
    'No pod holds a GPU.'
    """
    if not rows:
        return Sentence("holders-none", {}, "No pod holds a GPU.")
    gpus = gpu_count(sum(row.gpus for row in rows))
    idle = gpu_count(sum(row.gpus_idle for row in rows))
    owners = len({_owner_key(row) for row in rows})
    values = {"pods": len(rows), "owners": owners, "gpus": gpus, "idle": idle}
    text = f"{counted(len(rows), 'pod')} of {counted(owners, 'owner')} hold {counted(gpus, 'GPU')}"
    if idle:
        return Sentence(
            "holders-idle", dict(values), f"{text}, {idle:g} of them idle for over an hour."
        )
    return Sentence("holders", dict(values), f"{text}.")


def user_of(pod: Pod, user_of_job: Mapping[tuple[str, str], str], job: str) -> str:
    """The user that the pod names, else its job's; "" = unknown."""
    named = pod.labels.get(names.LABEL_CONSOLE_USER) or pod.annotations.get(
        names.ANNOTATION_USERNAME, ""
    )
    return named or user_of_job.get((pod.namespace, job), "")


def _row(
    pod: Pod,
    made: Owner | None,
    occupancy: ClusterOccupancy,
    leaf_of: Mapping[str, str],
    job_by_pod: Mapping[str, str],
    user_of_job: Mapping[tuple[str, str], str],
    owner_by_pod: Mapping[str, tuple[str, str]],
    silent: Collection[str],
    idle: Idleness,
) -> Holder:
    use, seats = occupancy.use(pod), occupancy.seats(pod)
    owner_kind, owner = owner_by_pod.get(pod.key) or ((made.kind, made.name) if made else ("", ""))
    job = job_by_pod.get(pod.key, "")
    return Holder(
        namespace=pod.namespace,
        name=pod.name,
        owner_kind=owner_kind,
        owner=owner,
        job=job,
        user=user_of(pod, user_of_job, job),
        quota_path=leaf_of.get(pod.namespace, ""),
        node=pod.node,
        status=UNKNOWN_STATUS if pod.node in silent and pod.deleted_at is None else pod_status(pod),
        gpus=neat(use.gpus),
        gpu_indexes=sorted({card.index for card in cards_of(pod, occupancy)}),
        units=sum(holder.units for _, holder in seats) or memory_units(pod.limits),
        gpu_memory_allocated_mib=neat_or_null(memory_allocated(use) if use.gpus else None),
        gpu_memory_used_mib=neat_or_null(use.memory_used_mib),
        gpu_memory_used_of_mib=neat_or_null(use.memory_used_of_mib),
        gpu_util_percent=percent(use.utilization_ratio),
        held_since=timestamp(pod.held_since),
        idle_seconds=None if pod.node in silent else _idle_seconds(pod, occupancy, idle.now),
        gpus_idle=neat(idle.gpus_of(pod)),
        gpu_hours_idle=neat(idle.hours_of(pod), 1),
    )


def _idle_seconds(pod: Pod, occupancy: ClusterOccupancy, now: float) -> int | None:
    """Seconds for which all its cards have been idle while it held them.

    0 if it is known to use one, else at least 1. None if unknown, such as on a shared card that
    other pods may use.
    """
    idle = [seat_idle_seconds(*seat, now) for seat in occupancy.seats(pod)]
    known = [seconds for seconds in idle if seconds is not None]
    if 0 in known:
        return 0
    return min(known) if known and len(known) == len(idle) else None


def _entry(row: Holder) -> Entry[Holder]:
    answers = {
        "namespace": lowered(row.namespace),
        "kind": lowered(row.owner_kind),
        "owner": lowered(row.owner, f"{row.owner_kind}/{row.owner}")
        if row.owner
        else lowered(f"Pod/{row.name}"),
        "user": lowered(row.user or NO_VALUE),
        "leaf": lowered(row.quota_path or NO_VALUE),
        "node": lowered(row.node),
        "status": lowered(row.status),
    }
    return Entry(
        row,
        "\n".join((row.namespace, row.name, row.owner_kind, row.owner, row.user, row.node)).lower(),
        answers,
    )


def _owner_key(row: Holder) -> tuple[str, str, str]:
    """A pod without an owner is its own owner."""
    return (
        (row.namespace, row.owner_kind, row.owner)
        if row.owner
        else (row.namespace, "Pod", row.name)
    )


_KEYS: Final[Mapping[str, Callable[[Holder], tuple[str, str, str]]]] = {
    "owner": _owner_key,
    "leaf": lambda row: ("", "", row.quota_path),
    "user": lambda row: ("", "", row.user),
    "namespace": lambda row: ("", "", row.namespace),
}
GROUPINGS: Final = tuple(_KEYS)


def holder_groups(rows: Iterable[Holder], by: str) -> RowSet[HolderGroup]:
    """Sums of those rows by one of GROUPINGS, the largest first."""
    groups: dict[tuple[str, str, str], list[Holder]] = {}
    key = _KEYS[by]
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    found = [_group(*place, members) for place, members in groups.items()]
    found.sort(key=lambda group: (-group.gpus, group.namespace, by_count(group.name)))
    entries = [
        Entry(group, "\n".join((group.namespace, group.kind, group.name)).lower(), {})
        for group in found
    ]
    return RowSet(HolderGroup, entries)


def _group(namespace: str, kind: str, name: str, members: Sequence[Holder]) -> HolderGroup:
    jobs = {row.job for row in members}
    return HolderGroup(
        name=name,
        kind=kind,
        namespace=namespace,
        job=jobs.pop() if kind and len(jobs) == 1 else "",
        pods=len(members),
        gpus=neat(sum(row.gpus for row in members)),
        gpus_idle=neat(sum(row.gpus_idle for row in members)),
        gpu_hours_idle=neat(sum(row.gpu_hours_idle for row in members), 1),
        gpu_memory_allocated_mib=_sum(row.gpu_memory_allocated_mib for row in members),
        gpu_memory_used_mib=_sum(row.gpu_memory_used_mib for row in members),
        gpu_memory_used_of_mib=_used_of(members),
        held_since=min((row.held_since for row in members if row.held_since), default=None),
    )


def _used_of(members: Iterable[Holder]) -> float | None:
    parts = [row.gpu_memory_used_of_mib for row in members if row.gpu_memory_used_mib is not None]
    return None if None in parts else _sum(parts)


def _sum(amounts: Iterable[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return neat(sum(known)) if known else None
