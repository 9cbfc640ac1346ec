"""Units of admission and groups of eviction, each all or nothing: single pods, gangs, jobs that can
be suspended (docs/spec/quota.md#units-and-gangs, docs/spec/quota.md#victims).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.quota.clauses import Clauses, clause
from fairlead.model.quota.plan import Reason
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.rules.quota.tree import TreeIndex, Vector

Workloads = Mapping[str, Workload]
INDIVISIBLE: Final = ("MPIJob", "TFJob", "PyTorchJob", "RayJob")
"""Kinds of jobs of which no member is evicted alone.

Not even one beyond the least number that the job needs.
"""
_AFTER: Final = 0.001


class Unit(Struct, eq=False):
    """Waiting pods that are admitted together, or a job that quota suspended and resumes whole.

    `claim_since`: when room was first claimed. It is set for a claimant, and for the missing
    members of a gang that runs in part (`is_partial`), for which no pod has been evicted.
    `missing`: what an incomplete gang lacks, () = it is complete. `behind`: for a member beyond the
    gang's size, the gang's own unit: if the member were admitted first, the gang would run with too
    few. `vector` includes the requests of late members, which are created only when the others run.
    `layout`: its pods in the order in which nodes are searched for them, once they were.
    """

    leaf: int
    pods: tuple[QuotaPod, ...]
    vector: Vector
    priority: int
    age: float
    claim_since: float | None = None
    missing: Clauses = ()
    was_displaced: bool = False
    behind: Unit | None = None
    workload: Workload | None = None
    is_partial: bool = False
    layout: Sequence[QuotaPod] = ()

    @property
    def gang(self) -> tuple[str, str] | None:
        first = self.pods[0] if self.pods else None
        return (first.namespace, first.gang) if first is not None and first.gang else None

    @property
    def name(self) -> tuple[str, str]:
        first = self.workload if self.workload is not None else self.pods[0]
        return first.namespace, first.name

    @property
    def key(self) -> str:
        return "/".join(self.name)

    @property
    def is_preemptible(self) -> bool:
        if self.workload is not None:
            return self.workload.is_preemptible is not False
        if len(self.pods) == 1:
            return self.pods[0].is_preemptible
        return all(pod.is_preemptible for pod in self.pods)

    @property
    def never_preempts(self) -> bool:
        """Whether no pod of its own leaf is evicted for it."""
        return any(pod.never_preempts for pod in self.pods)

    @property
    def user(self) -> str:
        return self.workload.user if self.workload is not None else self.pods[0].user

    @property
    def owner(self) -> str:
        """The job that the unit is part of, for the count of jobs."""
        return (
            self.workload.uid
            if self.workload is not None
            else self.pods[0].owner or self.pods[0].key
        )


class Line(Struct, eq=False):
    """Units of one leaf that differ only in age, the eldest first.

    If the first cannot proceed, no other can.

    `reason` and `clauses`: why it was set aside. `ceiling`: the node and resource where it lacks
    room, if it lacks nothing else, and `need` what it asks for there. `next`: number of its units
    that have had their turn. `turn`: the turn of the next unit, as computed at version `turn_at`.
    """

    units: list[Unit]
    next: int = 0
    reason: Reason | None = None
    clauses: Clauses = ()
    ceiling: tuple[int, int] | None = None
    need: int = 0
    turn: tuple[object, ...] = ()
    turn_at: int = -1

    @property
    def first(self) -> Unit:
        return self.units[self.next]


class VictimGroup(Struct, eq=False):
    """Admitted pods that are evicted together.

    `unit`: set if this very plan admitted them, so that taking them back costs nothing. `is_whole`:
    the rest of a gang once its surplus has gone. `workload`: the job that is suspended or lowered.
    `after`: for pods of a Job, which its controller removes in its own order, the pod that is
    removed before this one.
    """

    leaf: int
    pods: tuple[QuotaPod, ...]
    vector: Vector
    rank: tuple[object, ...]
    unit: Unit | None = None
    gang: tuple[str, str] | None = None
    is_whole: bool = False
    workload: Workload | None = None
    after: VictimGroup | None = None

    @property
    def newest(self) -> float:
        return max(pod.created_at for pod in self.pods)

    @property
    def priority(self) -> int:
        return max(pod.priority for pod in self.pods)


def waiting_units(index: TreeIndex, pods: Iterable[QuotaPod], workloads: Workloads) -> list[Unit]:
    """Units of the waiting pods of one leaf.

    Pass admitted pods, too: they count for their gangs' sizes.
    """
    singles: list[QuotaPod] = []
    gangs: defaultdict[tuple[str, str], list[QuotaPod]] = defaultdict(list)
    for pod in pods:
        if pod.gang:
            gangs[pod.namespace, pod.gang].append(pod)
        elif not pod.is_admitted:
            singles.append(pod)
    units = [_unit(index, [pod]) for pod in singles]
    for members in gangs.values():
        units += _units_of_gang(index, members, workloads)
    return units


def gated_units(index: TreeIndex, pods: Iterable[QuotaPod]) -> list[Unit]:
    """Units of pods that other controllers' gates hold, too.

    Each is shown alone and asks for nothing.
    """
    return [_unit(index, [pod]) for pod in pods if is_gated(pod)]


def is_gated(pod: QuotaPod) -> bool:
    return bool(pod.gated_by) and not pod.is_admitted


def units_held(index: TreeIndex, job: Workload, youngest: float = 0.0) -> list[Unit]:
    """Units of a job that quota suspended or lowered, with what its templates ask for: the job as a
    whole, or each missing pod.

    Waiting pods of the job go first: `youngest` is when the newest of them was created.
    """
    leaf = index.leaf_of[job.namespace]
    if job.is_suspended and not job.gives_singly:
        return [
            Unit(leaf, (), index.vector(job.request), job.priority, job.created_at, workload=job)
        ]
    each, count = index.vector(job.each), job.held + (job.pods if job.is_suspended else 0)
    age = max(job.created_at, youngest + _AFTER) if youngest else job.created_at
    return [Unit(leaf, (), each, job.priority, age, workload=job) for _ in range(count)]


def lines_of(index: TreeIndex, units: Iterable[Unit], *, is_placed: bool) -> list[Line]:
    """Lines of units. Claimants, gangs and units with a `behind` have lines of their own.

    `is_placed`: nodes are known, so units share a line only if they ask for the same of a node.
    """
    lines: list[Line] = []
    alike: defaultdict[tuple[object, ...], list[Unit]] = defaultdict(list)
    for unit in units:
        if (
            len(unit.pods) != 1
            or unit.claim_since is not None
            or unit.behind is not None
            or unit.pods[0].gang
        ):
            lines.append(Line([unit]))
            continue
        pod = unit.pods[0]
        shape = (
            unit.vector,
            pod.priority,
            pod.is_preemptible,
            pod.user,
            pod.deployment,
            pod.revision,
            pod.waits_for_surge,
            pod.never_preempts,
        )
        place = (
            (pod.choice, pod.card_units, tuple(sorted(pod.request.items()))) if is_placed else ()
        )
        alike[shape, place, unit.owner if index.max_jobs else ""].append(unit)
    for line in alike.values():
        line.sort(key=lambda unit: (unit.age, unit.name))
        lines.append(Line(line))
    return lines


def late_part(index: TreeIndex, members: Iterable[QuotaPod], job: Workload | None) -> Vector | None:
    """What is kept for pods of this job that are created only when others run; None = nothing."""
    if job is None or not job.late or job.is_finished or job.is_suspended:
        return None
    left = tuple(map(min, index.vector(job.late), missing_part(index, members, job)))
    return left if any(left) else None


def missing_part(index: TreeIndex, members: Iterable[QuotaPod], job: Workload) -> Vector:
    """What the pods of this job ask for that do not exist yet."""
    there = _sum(index, [pod for pod in members if not pod.is_stopping])
    return tuple(
        max(0, all_ - has) for all_, has in zip(index.vector(job.request), there, strict=True)
    )


def _units_of_gang(
    index: TreeIndex, members: Sequence[QuotaPod], workloads: Workloads
) -> list[Unit]:
    """The missing members up to the gang's size as one unit, and each member beyond as its own."""
    waiting = [pod for pod in members if not pod.is_admitted]
    if not waiting:
        return []
    waiting.sort(key=_eldest)
    size = max(pod.gang_size for pod in members)
    job = workloads.get(members[0].owner)
    running = sum(1 for pod in members if pod.is_admitted and not pod.is_stopping)
    missing = max(0, size - running)
    beyond = [_unit(index, [pod]) for pod in waiting[missing:]]
    if not missing:
        if job is not None and job.late:
            for each in beyond:  # their room was kept while the others started
                each.claim_since = each.age
        return beyond
    unit = _unit(index, waiting[:missing])
    if len(waiting) < missing:
        there = running + len(waiting)
        unit.missing = (clause("gang-missing", gang=members[0].gang, there=there, size=size),)
    elif running and unit.claim_since is None:
        unit.claim_since, unit.is_partial = unit.age, True  # only claimants have sooner turns
    late = late_part(index, members, job)
    if late is not None:
        unit.vector = tuple(map(sum, zip(unit.vector, late, strict=True)))
    for each in beyond:
        each.behind = unit
    return [*beyond, unit]


def _unit(index: TreeIndex, pods: Sequence[QuotaPod]) -> Unit:
    first = pods[0]
    leaf = index.leaf_of[first.namespace]
    if len(pods) == 1:
        return Unit(
            leaf,
            (first,),
            index.vector(first.request),
            first.priority,
            first.created_at,
            first.claim_since,
        )
    claims = [pod.claim_since for pod in pods]
    return Unit(
        leaf,
        tuple(pods),
        _sum(index, pods),
        max(pod.priority for pod in pods),
        min(pod.created_at for pod in pods),
        None if None in claims else min(each for each in claims if each is not None),
    )


def _eldest(pod: QuotaPod) -> tuple[float, str]:
    return pod.created_at, pod.name


def _sum(index: TreeIndex, pods: Sequence[QuotaPod]) -> Vector:
    if len(pods) == 1:
        return index.vector(pods[0].request)
    total = [0] * len(index.resources)
    for pod in pods:
        for k, amount in enumerate(index.vector(pod.request)):
            total[k] += amount
    return tuple(total)


def group_of(
    index: TreeIndex,
    leaf: int,
    pods: Sequence[QuotaPod],
    *,
    is_gang: bool,
    unit: Unit | None = None,
    workload: Workload | None = None,
) -> VictimGroup:
    """The group of these pods.

    `rank`: the lower, the sooner a victim (docs/spec/quota.md#victims).
    """
    rank = (
        max([pod.priority for pod in pods]),
        is_gang,
        all(pod.is_ready for pod in pods),
        -max([pod.created_at for pod in pods]),
        -max([pod.admitted_at for pod in pods]),
        min([(pod.namespace, pod.name) for pod in pods]),
    )
    first = pods[0]
    gang = (
        (first.namespace, first.gang or first.owner) if first.gang or workload is not None else None
    )
    return VictimGroup(leaf, tuple(pods), _sum(index, pods), rank, unit, gang, is_gang, workload)


def groups_of(
    index: TreeIndex, leaf: int, pods: Iterable[QuotaPod], workloads: Workloads
) -> list[VictimGroup]:
    """Groups of one leaf that may be evicted, the first victim first.

    Without stopping and non-preemptible pods.

    No gang is left below its size: its surplus goes pod by pod, and then all the rest at once. A
    job that can be suspended goes as a gang, or as a whole if its size is unknown. Each pod of a
    batch Job that is no gang goes alone. Members of a training job never go one by one: its
    operator would treat the loss as a failure.
    """
    groups: list[VictimGroup] = []
    gangs: defaultdict[tuple[str, str], list[QuotaPod]] = defaultdict(list)
    for pod in pods:
        if not pod.is_admitted or pod.is_stopping:
            continue
        job = workloads.get(pod.owner)
        if job is not None and job.can_suspend:
            gangs[pod.namespace, pod.owner].append(pod)
        elif pod.gang:
            gangs[pod.namespace, pod.gang].append(pod)
        elif pod.is_preemptible:
            groups.append(group_of(index, leaf, [pod], is_gang=False))
    for members in gangs.values():
        job = workloads.get(members[0].owner)
        is_indivisible = job is not None and job.kind in INDIVISIBLE
        if job is not None and (not job.can_suspend or job.is_suspended):
            job = None
        if job is not None and job.gives_singly and not members[0].gang:
            groups += _one_by_one(index, leaf, members, job)
            continue
        size = max(pod.gang_size for pod in members) or len(members)
        size += job.late_pods if job is not None else 0
        beyond = 0 if is_indivisible else max(0, len(members) - size)
        if not beyond:
            surplus: list[VictimGroup] = []
        elif job is not None and job.can_lower:
            surplus = _one_by_one(index, leaf, members, job)[:beyond]
        else:
            singles = sorted(
                (group_of(index, leaf, [pod], is_gang=False) for pod in members),
                key=lambda group: group.rank,
            )
            surplus = [group for group in singles if group.pods[0].is_preemptible][:beyond]
        gone = {group.pods[0].key for group in surplus}
        rest = [pod for pod in members if pod.key not in gone] if gone else members
        for group in surplus:
            group.gang = (members[0].namespace, members[0].gang or members[0].owner)
        groups += surplus
        if rest and all(pod.is_preemptible for pod in rest):
            groups.append(
                group_of(
                    index, leaf, sorted(rest, key=lambda pod: pod.name), is_gang=True, workload=job
                )
            )
    return sorted(groups, key=lambda group: group.rank)


def _one_by_one(
    index: TreeIndex, leaf: int, members: Iterable[QuotaPod], job: Workload
) -> list[VictimGroup]:
    """Pods of a batch Job in the order in which its controller removes them.

    No pod is ranked before one that is removed earlier, and no pod is listed behind one that may
    not be evicted.
    """
    groups: list[VictimGroup] = []
    alone = sorted(
        (group_of(index, leaf, [pod], is_gang=False) for pod in members),
        key=lambda group: (group.pods[0].removal, group.rank),
    )
    for group in alone:
        if not group.pods[0].is_preemptible:
            break
        before = groups[-1] if groups else None
        if before is not None:
            group.rank = max(group.rank, before.rank)
        group.workload, group.after = job, before
        groups.append(group)
    return groups
