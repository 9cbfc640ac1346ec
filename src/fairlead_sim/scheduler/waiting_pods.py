"""The scheduler's queue: by priority and age, with back-off for rejected pods.

Pods that ask for the same are one group: what refuses one refuses all, so a group is tried by its
first pod, and a group that was refused rests until something changes that could help it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.model.resources import Amounts
from fairlead_sim.scheduler.rooms import PodInRoom

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 10.0
FORGOTTEN_SECONDS = 300.0
"""Seconds after which a group that might preempt is tried again in any case.

kube-scheduler does so with all groups.
"""

Signature = tuple[object, ...]


@dataclass(slots=True)
class WaitingPod:
    """A pod without a node. Those of one signature ask for the same."""

    uid: str
    namespace: str
    name: str
    priority: int
    created: str
    needs: Amounts
    signature: Signature
    looks_at_others: bool

    @property
    def order(self) -> tuple[int, str, str, str]:
        return -self.priority, self.created, self.namespace, self.name


@dataclass(slots=True)
class Group:
    """Equal pods.

    `untried` are the pods to look at now; `answer` (reason, message) is the last result for all
    others.

    `known`: the earlier result of all members except the `strangers`.
    """

    members: dict[str, WaitingPod] = field(default_factory=dict)
    untried: dict[str, None] = field(default_factory=dict)
    answer: tuple[str, str] | None = None
    known: tuple[str, str] | None = None
    strangers: dict[str, None] = field(default_factory=dict)
    example: PodInRoom | None = None
    failures: int = 0
    rests_until: float = 0.0
    tried_at: float = 0.0

    @property
    def first(self) -> WaitingPod:
        return self.members[next(iter(self.untried))]

    def skip_same_answer(self) -> None:
        """Skip pods that had this very answer before: one of thousands of equal pods is tried."""
        if self.answer is None:
            return
        if self.answer == self.known:
            self.untried = (
                {uid: None for uid in self.untried if uid in self.strangers}
                if self.strangers
                else {}
            )
        elif not self.untried:
            self.known = self.answer
        if not self.untried:
            self.strangers.clear()


class WaitingPods:
    def __init__(self) -> None:
        self._groups: dict[Signature, Group] = {}
        self._group_of: dict[str, Signature] = {}
        self._heap: list[tuple[tuple[int, str, str, str], int, Signature]] = []
        self._pushed = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._group_of

    def __bool__(self) -> bool:
        return bool(self._group_of)

    def add(self, waiting: WaitingPod) -> Group:
        """Add a pod that was never tried: it is tried soon, whatever the group's answer was."""
        group = self._groups.setdefault(waiting.signature, Group())
        group.members[waiting.uid] = waiting
        group.strangers[waiting.uid] = None
        self._group_of[waiting.uid] = waiting.signature
        self._push(waiting.signature, group, [waiting.uid])
        return group

    def remove(self, uid: str) -> WaitingPod | None:
        signature = self._group_of.pop(uid, None)
        if signature is None:
            return None
        group = self._groups[signature]
        group.untried.pop(uid, None)
        group.strangers.pop(uid, None)
        waiting = group.members.pop(uid)
        if not group.members:
            del self._groups[signature]
        return waiting

    def single_out(self, asker: PodInRoom, now: float) -> None:
        """Let a pod that was tried wait for itself alone: it was promised a place, which the others
        of its group were not.
        """
        waiting = self.remove(asker.uid)
        if waiting is not None:
            waiting.signature = (waiting.signature, asker.uid)
            self._groups[waiting.signature] = Group(
                {asker.uid: waiting}, example=asker, failures=1, tried_at=now
            )
            self._group_of[asker.uid] = waiting.signature

    def group_of(self, uid: str) -> Group | None:
        return self._groups.get(self._group_of[uid]) if uid in self._group_of else None

    def resting(self) -> Iterator[Group]:
        """Groups that wait for something to change."""
        return (group for group in self._groups.values() if not group.untried)

    def rouse(self, group: Group) -> None:
        """Try a resting group again, once its pause is over."""
        if not group.untried:
            pause = (
                min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * (1 << min(group.failures - 1, 4)))
                if group.failures
                else 0.0
            )
            group.rests_until, group.answer = group.tried_at + pause, None
            self._push(next(iter(group.members.values())).signature, group, list(group.members))

    def pop(self, now: float) -> Group | None:
        """The next group to try; it keeps its place until none of its pods is untried."""
        paused = []
        found = None
        while self._heap:
            order, _, signature = self._heap[0]
            group = self._groups.get(signature)
            if group is None or not group.untried or group.first.order != order:
                heapq.heappop(self._heap)
                if group is not None and group.untried:
                    self._push(signature, group, [])
            elif group.rests_until > now:
                paused.append(heapq.heappop(self._heap))
            else:
                found = group
                break
        for item in paused:
            heapq.heappush(self._heap, item)
        return found

    def next_at(self, may_preempt: Iterator[Group]) -> float | None:
        """When a pod must be tried again although nothing happens."""
        times = [group.rests_until for group in self._groups.values() if group.untried]
        times += [group.tried_at + FORGOTTEN_SECONDS for group in may_preempt]
        return min(times, default=None)

    def _push(self, signature: Signature, group: Group, uids: list[str]) -> None:
        group.untried |= dict.fromkeys(uids)
        self._pushed += 1
        heapq.heappush(self._heap, (group.first.order, self._pushed, signature))
