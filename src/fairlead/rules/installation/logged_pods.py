"""Which logs a bundle of the doctor contains: of Fairlead's own pods, those with trouble first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.installed.facts import PodFact
from fairlead.model.pod import Pod

MOST_PODS_OF_A_PART: Final = 3
"""A DaemonSet has a pod on each node, and most of their logs are alike."""
MOST_PODS: Final = 40


class LogWish(Struct, frozen=True):
    """One log of one container. `is_previous`: of the run before its last restart."""

    namespace: str
    pod: str
    container: str
    is_previous: bool = False


def wanted_logs(facts: Iterable[PodFact], pods: Sequence[Pod]) -> list[LogWish]:
    """`pods`: of the snapshot, which have the containers; a pod that is not among them is left
    out.

    >>> from fairlead.model.pod import Container
    >>> pod = Pod("fairlead-system", "console-1", containers=(Container("console"),))
    >>> fact = PodFact("fairlead-system", "console-1", "fairlead-console", is_ready=True)
    >>> [(wish.pod, wish.container) for wish in wanted_logs([fact], [pod])]
    [('console-1', 'console')]
    """
    known: Mapping[tuple[str, str], Pod] = {(pod.namespace, pod.name): pod for pod in pods}
    ordered = sorted(facts, key=lambda each: (each.is_ready, -each.restarts, each.part, each.name))
    counts: Counter[str] = Counter()
    wishes: list[LogWish] = []
    for fact in ordered:
        pod = known.get((fact.namespace, fact.name))
        if pod is None or not fact.part or counts[fact.part] == MOST_PODS_OF_A_PART:
            continue
        if counts.total() == MOST_PODS:
            break
        counts[fact.part] += 1
        restarted = {
            status.name for status in (*pod.init_statuses, *pod.statuses) if status.restarts
        }
        for container in (*pod.init_containers, *pod.containers):
            wishes.append(LogWish(pod.namespace, pod.name, container.name))
            if container.name in restarted:
                wishes.append(LogWish(pod.namespace, pod.name, container.name, is_previous=True))
    return wishes
