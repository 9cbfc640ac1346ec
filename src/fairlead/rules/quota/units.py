"""What is admitted, and what is evicted, all or nothing: single pods and gangs (quota contract 2.3, 2.9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from fairlead.model.quota.state import QuotaPod
from fairlead.rules.quota.tree import TreeIndex, Vector


class Unit(Struct, eq=False):
    """QuotaWaiting pods that are admitted together.

    `claim_since` is set of a claimant. `missing`: what an incomplete gang lacks, "" = it is complete.
    `behind`: the gang's own unit, of a member beyond its size: were it admitted before, the gang would run
    with too few.
    """

    leaf: int
    pods: tuple[QuotaPod, ...]
    vector: Vector
    priority: int
    age: float
    claim_since: float | None = None
    missing: str = ""
    was_displaced: bool = False
    behind: Unit | None = None

    @property
    def key(self) -> str:
        return self.pods[0].key

    @property
    def is_preemptible(self) -> bool:
        return all(pod.is_preemptible for pod in self.pods)


class VictimGroup(Struct, eq=False):
    """Admitted pods that are evicted together.

    `unit`: what this very plan admitted, which costs nothing to take back. `is_whole`: all of a gang that is
    left when its surplus has gone.
    """

    leaf: int
    pods: tuple[QuotaPod, ...]
    vector: Vector
    rank: tuple[object, ...]
    unit: Unit | None = None
    gang: tuple[str, str] | None = None
    is_whole: bool = False

    @property
    def newest(self) -> float:
        return max(pod.created_at for pod in self.pods)


def waiting_units(index: TreeIndex, pods: Iterable[QuotaPod]) -> list[Unit]:
    singles: list[QuotaPod] = []
    gangs: defaultdict[tuple[str, str], list[QuotaPod]] = defaultdict(list)
    for pod in pods:
        if pod.gang:
            gangs[pod.namespace, pod.gang].append(pod)
        elif not pod.is_admitted:
            singles.append(pod)
    units = [_unit(index, [pod]) for pod in singles]
    for members in gangs.values():
        units += _units_of_gang(index, members)
    return units


def _units_of_gang(index: TreeIndex, members: Sequence[QuotaPod]) -> list[Unit]:
    """The missing members up to the gang's size are one unit; who waits beyond that is on his own."""
    size = max(pod.gang_size for pod in members)
    running = sum(1 for pod in members if pod.is_admitted and not pod.is_stopping)
    waiting = sorted((pod for pod in members if not pod.is_admitted), key=_eldest)
    missing = max(0, size - running)
    beyond = [_unit(index, [pod]) for pod in waiting[missing:]]
    if not waiting or not missing:
        return beyond
    unit = _unit(index, waiting[:missing])
    if len(waiting) < missing:
        unit.missing = f"gang {members[0].gang}: {running + len(waiting)}/{size} pods exist"
    elif running and unit.claim_since is None:
        unit.claim_since = unit.age  # a gang with too few members running does not let others go first
    for each in beyond:
        each.behind = unit
    return [*beyond, unit]


def _unit(index: TreeIndex, pods: Sequence[QuotaPod]) -> Unit:
    claims = [pod.claim_since for pod in pods]
    return Unit(
        leaf=index.leaf_of[pods[0].namespace],
        pods=tuple(pods),
        vector=_sum(index, pods),
        priority=max(pod.priority for pod in pods),
        age=min(pod.created_at for pod in pods),
        claim_since=None if None in claims else min(each for each in claims if each is not None),
    )


def _eldest(pod: QuotaPod) -> tuple[float, str]:
    return pod.created_at, pod.name


def _sum(index: TreeIndex, pods: Sequence[QuotaPod]) -> Vector:
    if len(pods) == 1:
        return index.vector(pods[0].request)
    return tuple(map(sum, zip(*(index.vector(pod.request) for pod in pods), strict=True)))


def group_of(index: TreeIndex, leaf: int, pods: Sequence[QuotaPod], *, is_gang: bool, unit: Unit | None = None) -> VictimGroup:
    """`rank`: the lower, the sooner it goes (quota contract 2.9)."""
    rank = (
        max(pod.priority for pod in pods),
        is_gang,
        all(pod.is_ready for pod in pods),
        -max(pod.created_at for pod in pods),
        -max(pod.admitted_at for pod in pods),
        min((pod.namespace, pod.name) for pod in pods),
    )
    gang = (pods[0].namespace, pods[0].gang) if pods[0].gang else None
    return VictimGroup(leaf, tuple(pods), _sum(index, pods), rank, unit, gang, is_gang)


def groups_of(index: TreeIndex, leaf: int, pods: Iterable[QuotaPod]) -> list[VictimGroup]:
    """Of one leaf: what may be evicted, the first to go first. Stopping and non-preemptible pods are in none.

    No gang is left below its size: what it has beyond that goes pod by pod, and then all of it.
    """
    groups: list[VictimGroup] = []
    gangs: defaultdict[tuple[str, str], list[QuotaPod]] = defaultdict(list)
    for pod in pods:
        if not pod.is_admitted or pod.is_stopping:
            continue
        if pod.gang:
            gangs[pod.namespace, pod.gang].append(pod)
        elif pod.is_preemptible:
            groups.append(group_of(index, leaf, [pod], is_gang=False))
    for members in gangs.values():
        beyond = max(0, len(members) - max(pod.gang_size for pod in members))
        singles = sorted((group_of(index, leaf, [pod], is_gang=False) for pod in members), key=lambda group: group.rank)
        surplus = [group for group in singles if group.pods[0].is_preemptible][:beyond]
        rest = [pod for pod in members if all(pod is not group.pods[0] for group in surplus)]
        groups += surplus
        if rest and all(pod.is_preemptible for pod in rest):
            groups.append(group_of(index, leaf, rest, is_gang=True))
    return sorted(groups, key=lambda group: group.rank)
