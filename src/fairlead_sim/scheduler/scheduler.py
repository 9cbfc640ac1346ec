"""Kubernetes' default scheduler in small: a queue (`waiting_pods`), filters, a score, binding.

It looks at waiting pods when something changed that could help them, never on a tick. A pod that
preempted others is only promised its node: it is bound in a later round, when the victims are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU
from fairlead.wire.kube.time import render_time
from fairlead_sim.objects.conditions import (
    conditions_of,
    find_condition,
    phase_of,
    status_of,
    with_condition,
)
from fairlead_sim.objects.resources import NODES, POD_DISRUPTION_BUDGETS, PODS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scheduler.affinity import (
    NO_NEIGHBOURS,
    AllowedTopologies,
    has_pod_affinity,
    has_preferences,
    preference,
)
from fairlead_sim.scheduler.hooks import HookVictims, SchedulerHook
from fairlead_sim.scheduler.needs import pod_needs
from fairlead_sim.scheduler.pod_shape import unreadable
from fairlead_sim.scheduler.preemption import (
    NO_VICTIM_ON,
    PREEMPTED,
    Preemption,
    find_candidates,
    refused_to_preempt,
)
from fairlead_sim.scheduler.room_ledger import RoomLedger
from fairlead_sim.scheduler.rooms import PodInRoom, Room, Shortfall
from fairlead_sim.scheduler.waiting_pods import FORGOTTEN_SECONDS, Group, WaitingPod, WaitingPods
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.timers import Timer, Timers

Object = dict[str, Any]

COMPONENT = "default-scheduler"
SCHEDULERS = frozenset({COMPONENT, "fairlead-scheduler"})
"""The scheduler's profiles: names under which it schedules pods, and which its events have. Pods of
another scheduler wait for theirs.
"""

NO_EXTENDER = (
    f"the scheduler extender for {GPU_MEMORY} does not answer: this cluster runs without it"
)
NEW_POD_SECONDS = 0.05
WAKE_SECONDS = 1.0
MOST_LOOKS = 20_000
"""How many rooms are looked at in one step, so that requests to the API never wait for long."""
LOOKS_PER_WRITE = 400
MOST_ALIKE = 64
"""`MOST_ALIKE`: rooms with equally many free GPUs that are compared, instead of all five thousand.
"""


class Scheduler:
    def __init__(
        self,
        cluster: StoredCluster,
        timers: Timers,
        recorder: Recorder,
        extender: SchedulerHook | None,
    ) -> None:
        self._cluster = cluster
        self._timers = timers
        self._recorder = recorder
        self._extender = extender  # None: pods that need one wait, as when a real one is down
        self.ledger = RoomLedger()
        self._waiting = WaitingPods()
        self._round: Timer | None = None
        self._start = 0
        self.looks = 0
        self._changed_rooms: dict[str, bool] = {}
        self._pods_moved = False
        self._all_helped = False
        self._extender_changed = False
        cluster.subscribe(NODES, self._on_node)
        cluster.subscribe(PODS, self._on_pod)
        if extender is not None:
            extender.on_change(self._on_extender)

    # --- events of the API ------------------------------------------------------------------------

    def _on_node(self, event: LoggedChange) -> None:
        name = event.object["metadata"]["name"]
        if event.type == DELETED:
            left = self.ledger.rooms.get(name)
            self.ledger.remove_node(name)
            for uid in left.promised if left is not None else ():
                if (group := self._waiting.group_of(uid)) is not None:
                    self._waiting.rouse(group)
            self._pods_moved = True
            self._wake(WAKE_SECONDS)
        elif self.ledger.set_node(event.object):
            self._changed_rooms[name] = True
            self._pods_moved = True
            self._wake(WAKE_SECONDS)

    def _on_pod(self, event: LoggedChange) -> None:
        pod = event.object
        uid = pod["metadata"]["uid"]
        if event.type == DELETED or phase_of(pod) in ("Succeeded", "Failed"):
            self._forget(uid)
            self._release(uid)
        elif pod["spec"].get("nodeName"):
            self._forget(uid)
            if uid in self.ledger.tenants:
                self._pods_moved |= event.previous is not None and _differs(event.previous, pod)
                self.ledger.tenants[uid].pod = pod
            elif not unreadable(pod):
                self.ledger.admit(
                    PodInRoom(pod, pod_needs(pod), _priority(pod), pod["spec"]["nodeName"])
                )
                self._pods_moved = True
                self._wake(WAKE_SECONDS)
        elif pod["spec"].get("schedulerName", COMPONENT) in SCHEDULERS and (
            uid not in self._waiting
            or (event.previous is not None and _asks_other(event.previous, pod))
        ):
            self._forget(uid)
            self._queue(pod)

    def _on_extender(self) -> None:
        self._extender_changed = True
        self._wake(WAKE_SECONDS)

    def _release(self, uid: str) -> None:
        """A pod let go of its room: that may help others, and
        those that look at others look anew.
        """
        tenant, was_alone = self.ledger.tenants.get(uid), self.ledger.is_loner(uid)
        if self.ledger.release(uid) and tenant is not None:
            self._changed_rooms.setdefault(tenant.node, False)
            self._pods_moved = True
            self._all_helped |= was_alone
            self._wake(WAKE_SECONDS)

    def _forget(self, uid: str) -> None:
        if self._waiting.remove(uid) is not None:
            self.ledger.take_back(uid)

    def _queue(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        if why := unreadable(pod):
            self._report(pod, why)
            return
        if spec.get("schedulingGates"):
            self._write_condition(
                pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"
            )
            return
        needs, priority, uid = pod_needs(pod), _priority(pod), metadata["uid"]
        is_social = has_pod_affinity(spec)
        signature = (tuple(needs.items()), priority, self._alike(pod, is_social=is_social))
        waiting = WaitingPod(
            uid,
            metadata["namespace"],
            metadata["name"],
            priority,
            metadata["creationTimestamp"],
            needs,
            signature,
            is_social,
        )
        self._waiting.add(waiting)
        promised = self.ledger.rooms.get(status_of(pod).get("nominatedNodeName", ""))
        if promised is not None:  # in an earlier life of the world, whose victims are going
            self.ledger.promise(PodInRoom(pod, needs, priority), promised)
        self._wake(NEW_POD_SECONDS)

    def _alike(self, pod: Object, *, is_social: bool) -> str:
        """All else that decides where a pod may go: pods that agree in it share one answer."""
        metadata, spec = pod["metadata"], pod["spec"]
        alike: tuple[Any, ...] = (
            spec.get("nodeSelector"),
            spec.get("tolerations"),
            spec.get("affinity"),
            spec.get("preemptionPolicy"),
        )
        if is_social:
            alike += (
                metadata["namespace"],
                metadata.get("labels"),
                spec.get("topologySpreadConstraints"),
            )
        # the extender reads more: annotations of the pod, and requests of each container
        if self._extender_of(pod) is not None:
            alike += (
                metadata.get("labels"),
                metadata.get("annotations"),
                spec["containers"],
                spec.get("initContainers"),
            )
        return str(alike)

    # --- a round ----------------------------------------------------------------------------------

    def _wake(self, seconds: float) -> None:
        """Look at the waiting pods soon; a sooner wish replaces a later one."""
        if not self._waiting:
            return
        self._wake_at(self._timers.clock.now() + seconds)

    def _wake_at(self, at: float) -> None:
        if self._round is not None:
            if self._round.at <= at:
                return
            self._round.cancel()
        self._round = self._timers.at(at, self._run_round)

    def _run_round(self) -> None:
        """Try who may be tried, for a short while; the rest comes at the same instant, but in a
        step of its own.
        """
        self._round = None
        self.looks = 0
        self._rouse()
        now = self._timers.clock.now()
        while (group := self._waiting.pop(now)) is not None:
            if self.looks >= MOST_LOOKS:
                self._wake_at(now)
                return
            self._try_group(group)
        if self._pods_moved and any(
            group.example is not None and has_pod_affinity(group.example.pod["spec"])
            for group in self._waiting.resting()
        ):
            self._wake(WAKE_SECONDS)
        later = self._waiting.next_at(
            group
            for group in self._waiting.resting()
            if not self.ledger.is_lowest(_priority_of(group))
        )
        if later is not None:
            self._wake_at(max(later, now))

    def _rouse(self) -> None:
        """Try pods again that a change could help, and a group that was tried long ago."""
        changed, self._changed_rooms = self._changed_rooms, {}
        moved, self._pods_moved = self._pods_moved, False
        everybody, self._all_helped = self._all_helped, False
        asks_again, self._extender_changed = self._extender_changed, False
        now = self._timers.clock.now()
        for group in list(self._waiting.resting()):
            is_old = group.tried_at + FORGOTTEN_SECONDS <= now and not self.ledger.is_lowest(
                _priority_of(group)
            )
            asker = group.example
            is_due = everybody or is_old or asker is None or (asks_again and self._is_shared(asker))
            if is_due or asker is None or self._is_helped(asker, changed, has_moved=moved):
                self._waiting.rouse(group)

    def _is_shared(self, asker: PodInRoom) -> bool:
        return self._extender_of(asker.pod) is not None

    def _is_helped(self, asker: PodInRoom, changed: Mapping[str, bool], *, has_moved: bool) -> bool:
        """Whether one of these rooms has, or might make, room for the pod now; `changed`: whether
        it was the node that changed.
        """
        if has_moved and has_pod_affinity(asker.pod["spec"]):
            return True
        for name, is_node in changed.items():
            room = self.ledger.rooms.get(name)
            refused = room.refusal(asker) if room is not None else None
            if room is not None and (refused is None or (is_node and not refused.is_final)):
                return True
        return False

    def _try_group(self, group: Group) -> None:
        """Place the pods of a group in order, until one is refused for a cause that all share."""
        group.tried_at = self._timers.clock.now()
        is_refused = False
        for uid in list(group.untried):
            if self.looks >= MOST_LOOKS:
                return
            if uid not in group.untried:
                continue
            waiting = group.members[uid]
            pod = self._cluster.get(PODS, waiting.namespace, waiting.name)
            if pod is None or pod["metadata"]["uid"] != uid or pod["spec"].get("nodeName"):
                self._forget(uid)
                continue
            group.untried.pop(uid)
            if "deletionTimestamp" not in pod["metadata"]:
                is_refused |= not self._try(pod, waiting, group)
                group.skip_same_answer()
        group.failures = group.failures + 1 if is_refused else 0

    def _try(self, pod: Object, waiting: WaitingPod, group: Group) -> bool:
        """Place one pod; whether it was placed.

        What holds for equal pods too becomes the group's answer.
        """
        asker = group.example = PodInRoom(pod, waiting.needs, waiting.priority)
        self.looks += 1
        if self._extender is None and waiting.needs.get(GPU_MEMORY):
            group.answer = "SchedulerError", NO_EXTENDER
        if group.answer is not None:
            self.looks += self._report(pod, group.answer[1], group.answer[0]) * LOOKS_PER_WRITE
            return False
        neighbours = self.ledger.neighbours(pod)
        fullest = self._fullest(asker, neighbours)
        fitting, refused = (
            ([fullest], {}) if fullest is not None else self._filter(asker, neighbours)
        )
        self.looks += len(fitting) + len(refused) + LOOKS_PER_WRITE
        if fitting:
            return self._bind(asker, waiting, self._choose(asker, fitting, neighbours))
        message, is_shared = self._preempt(asker, refused)
        if is_shared and (not self.ledger.minds_others(pod["spec"]) or waiting.looks_at_others):
            group.answer = "Unschedulable", message
        else:
            group.known = None
        self._report(pod, message)
        return False

    def _fullest(self, asker: PodInRoom, neighbours: AllowedTopologies) -> Room | None:
        """For a pod with whole GPUs the fullest room that fits, found without looking at all
        others; None: look at all.
        """
        wanted = asker.needs.get(NVIDIA_GPU)
        spec = asker.pod["spec"]
        if (
            not wanted
            or self.ledger.promised_room(asker.uid)
            or self._extender_of(asker.pod)
            or has_preferences(spec)
        ):
            return None
        for rooms in self.ledger.by_free_gpus(wanted):
            usable = (
                room
                for room in rooms
                if room.refusal(asker, neighbours) is None
                and not (room.taints and room.unwelcoming(spec))
            )
            if fitting := list(islice(usable, MOST_ALIKE)):
                return min(fitting, key=lambda room: (room.busy_ratio(), room.name))
        return None

    def _filter(
        self, asker: PodInRoom, neighbours: AllowedTopologies
    ) -> tuple[list[Room], dict[str, Shortfall]]:
        """Rooms that fit, and why the others do not.

        In a large cluster it stops at enough, each time going on where it stopped.
        """
        promised = self.ledger.promised_room(asker.uid)
        if (
            promised is not None
            and promised.refusal(asker, neighbours) is None
            and not self._refused_outside(asker.pod, [promised])
        ):
            return [promised], {}
        rooms = list(self.ledger.rooms.values())
        enough, start = _enough(len(rooms)), self._start
        fitting: list[Room] = []
        refused: dict[str, Shortfall] = {}
        for offset in range(len(rooms)):
            room = rooms[(start + offset) % len(rooms)]
            if refusal := room.refusal(asker, neighbours):
                refused[room.name] = refusal
            else:
                fitting.append(room)
                if len(fitting) == enough:
                    self._start = (start + offset + 1) % len(rooms)
                    break
        refused |= self._refused_outside(asker.pod, fitting)
        return [room for room in fitting if room.name not in refused], refused

    def _extender_of(self, pod: Object) -> SchedulerHook | None:
        """The extender, if the pod is its business."""
        return self._extender if self._extender is not None and self._extender.wants(pod) else None

    def _refused_outside(self, pod: Object, rooms: list[Room]) -> dict[str, Shortfall]:
        """What the extender has against these rooms."""
        extender = self._extender_of(pod)
        if extender is None or not rooms:
            return {}
        failed, hopeless = extender.filter(pod, [room.name for room in rooms])
        refused = {name: Shortfall([reason], False) for name, reason in failed.items()}
        return refused | {name: Shortfall([reason], True) for name, reason in hopeless.items()}

    def _choose(self, asker: PodInRoom, fitting: list[Room], neighbours: AllowedTopologies) -> Room:
        """What the pod prefers; then GPU pods go where the fewest GPUs stay free (whole machines
        stay whole), others keep off GPU nodes and spread by cpu.
        """
        pod = asker.pod
        extender = self._extender_of(pod)
        if extender is not None:
            scores = extender.prioritize(pod, [room.name for room in fitting])
            return min(fitting, key=lambda room: (-scores.get(room.name, 0), room.name))
        spec = pod["spec"]

        def liking(room: Room) -> tuple[int, int, int]:
            wished, unevenness = (
                neighbours.liking(room.labels) if neighbours is not NO_NEIGHBOURS else (0, 0)
            )
            return (
                wished - preference(spec, room.name, room.labels),
                unevenness,
                room.unwelcoming(spec) if room.taints else 0,
            )

        if asker.needs.get(NVIDIA_GPU):
            return min(
                fitting,
                key=lambda room: (
                    liking(room),
                    room.free(NVIDIA_GPU),
                    room.busy_ratio(),
                    room.name,
                ),
            )
        return min(
            fitting,
            key=lambda room: (
                liking(room),
                room.has_gpus,
                room.free(GPU_MEMORY) > 0,
                room.busy_ratio(),
                room.name,
            ),
        )

    def _bind(self, asker: PodInRoom, waiting: WaitingPod, room: Room) -> bool:
        """The room counts as taken before the bind is sent, as kube-scheduler "assumes" a pod: the
        pod's event comes while it is being bound.
        """
        pod = asker.pod
        metadata = pod["metadata"]
        self._forget(asker.uid)
        self.ledger.admit(PodInRoom(pod, asker.needs, asker.priority, room.name))
        extender = self._extender_of(pod)
        if extender is None:
            binding = {
                "target": {"kind": "Node", "name": room.name},
                "metadata": {"uid": asker.uid},
            }
            self._cluster.bind(metadata["namespace"], metadata["name"], binding)
        elif why := extender.bind(pod, room.name):
            self.ledger.release(asker.uid)
            self._report(pod, why, "SchedulerError")
            group = self._waiting.add(waiting)
            group.tried_at = group.rests_until = self._timers.clock.now() + WAKE_SECONDS
            return False
        self._pods_moved = True
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {room.name}"
        self._recorder.normal(pod, "Scheduled", message, _profile(pod))
        return True

    # --- pushing others aside ---------------------------------------------------------------------

    def _preempt(self, asker: PodInRoom, refused: Mapping[str, Shortfall]) -> tuple[str, bool]:
        """Preempt if possible.

        The sentence to write, and whether it holds for equal pods too.
        """
        sentence = _unschedulable(len(self.ledger.rooms), refused.values())
        if not self.ledger.rooms:
            return sentence, True
        if why := refused_to_preempt(asker, self.ledger.promised_room(asker.uid)):
            return f"{sentence}{_NO_CLAIMS}{why}", False
        budgets = (
            []
            if self.ledger.is_lowest(asker.priority)
            else self._cluster.list(POD_DISRUPTION_BUDGETS)
        )
        found, why_not = find_candidates(
            asker,
            self.ledger.rooms,
            refused,
            budgets,
            lambda gone: self.ledger.neighbours(asker.pod, gone),
        )
        if found and not (found := self._corrected(asker, found)):
            return f"{sentence}{_NO_CLAIMS}no candidate node for preemption", False
        if found:
            self._promise(asker, min(found, key=lambda item: item.cost))
            return sentence, False
        self.ledger.take_back(asker.uid)
        self._nominate(asker.pod, "")
        strange = sorted(
            reason
            for reasons in why_not.values()
            for reason in reasons
            if reason.startswith(NO_VICTIM_ON)
        )
        if strange:  # kube-scheduler treats it as an internal error and reports nothing else
            detail = ", ".join(strange)
            return f"{sentence} preemption: {detail if len(strange) == 1 else f'[{detail}]'}", False
        return (
            f"{sentence}{_NO_CLAIMS}{_unschedulable(len(self.ledger.rooms), why_not.values())}",
            True,
        )

    def _corrected(self, asker: PodInRoom, found: list[Preemption]) -> list[Preemption]:
        """The candidates as the extender sees them: it may name other victims, or none."""
        extender = self._extender_of(asker.pod)
        if extender is None:
            return found
        proposed = {
            item.room.name: HookVictims([victim.uid for victim in item.victims], item.violations)
            for item in found
        }
        rooms = {item.room.name: item.room for item in found}
        answers = extender.preempt(asker.pod, proposed)
        return [
            Preemption.of(rooms[name], victims.uids, victims.violations)
            for name, victims in answers.items()
        ]

    def _promise(self, asker: PodInRoom, found: Preemption) -> None:
        self.ledger.promise(asker, found.room)
        self._waiting.single_out(asker, self._timers.clock.now())
        for victim in found.victims:
            metadata = victim.pod["metadata"]
            self._recorder.normal(
                victim.pod,
                "Preempted",
                f"Preempted by pod {asker.uid} on node {found.room.name}",
                _profile(asker.pod),
            )
            self._cluster.mutate(
                PODS,
                metadata["namespace"],
                metadata["name"],
                partial(self._as_target, preemptor=_profile(asker.pod)),
            )
            self._cluster.delete(PODS, metadata["namespace"], metadata["name"], uid=victim.uid)
        self._nominate(asker.pod, found.room.name)

    def _as_target(self, pod: Object, preemptor: str) -> Object:
        time, why = (
            render_time(self._timers.clock.now()),
            f"{preemptor}: preempting to accommodate a higher priority pod",
        )
        conditions = with_condition(
            conditions_of(pod), "DisruptionTarget", "True", PREEMPTED, why, time
        )
        return {**pod, "status": {**status_of(pod), "conditions": conditions}}

    def _nominate(self, pod: Object, node: str) -> None:
        def change(old: Object) -> Object:
            status = {
                key: value for key, value in status_of(old).items() if key != "nominatedNodeName"
            }
            return {**old, "status": {**status, "nominatedNodeName": node} if node else status}

        if status_of(pod).get("nominatedNodeName", "") != node:
            self._cluster.mutate(
                PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], change
            )

    # --- what is written --------------------------------------------------------------------------

    def _report(self, pod: Object, why: str, reason: str = "Unschedulable") -> bool:
        """Write why the pod waits; returns whether that is new."""
        is_news = self._write_condition(pod, reason, why)
        if is_news:
            self._recorder.warning(pod, "FailedScheduling", why, _profile(pod))
        return is_news

    def _write_condition(self, pod: Object, reason: str, message: str) -> bool:
        """Write why the pod waits; False if its condition already has it."""
        before = find_condition(conditions_of(pod), "PodScheduled")
        if before is not None and (before.get("reason"), before.get("message")) == (
            reason,
            message,
        ):
            return False
        time = render_time(self._timers.clock.now())

        def change(old: Object) -> Object:
            conditions = with_condition(
                conditions_of(old), "PodScheduled", "False", reason, message, time
            )
            return {**old, "status": {**status_of(old), "conditions": conditions}}

        metadata = pod["metadata"]
        self._cluster.mutate(PODS, metadata["namespace"], metadata["name"], change)
        return True


def _enough(nodes: int) -> int:
    """After how many fitting nodes the search ends: kube-scheduler's rule.

    >>> _enough(50), _enough(1000), _enough(5000)
    (50, 420, 500)
    """
    if nodes < 100:
        return nodes
    return max(100, nodes * max(5, 50 - nodes // 125) // 100)


def _profile(pod: Object) -> str:
    return str(pod["spec"].get("schedulerName") or COMPONENT)


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _priority_of(group: Group) -> int:
    return next(iter(group.members.values())).priority


def _differs(before: Object, now: Object) -> bool:
    """Whether a placed pod changed what others see of it."""
    return bool(
        before["metadata"].get("labels") != now["metadata"].get("labels")
        or ("deletionTimestamp" in before["metadata"]) != ("deletionTimestamp" in now["metadata"])
    )


def _asks_other(before: Object, now: Object) -> bool:
    """Whether a waiting pod changed what decides where it may go."""
    return bool(
        before["spec"] != now["spec"]
        or before["metadata"].get("labels") != now["metadata"].get("labels")
    )


_NO_CLAIMS = " no new claims to deallocate, preemption: "
"""kube-scheduler 1.36 tries to free resource claims before it preempts; there are none here, and
its message always has this part.
"""


def _unschedulable(nodes: int, refused: Iterable[Shortfall | list[str]]) -> str:
    """Kubernetes' sentence: reasons counted over nodes, sorted as text.

    >>> two = ["Insufficient cpu", "Insufficient memory"]
    >>> _unschedulable(3, [["Insufficient cpu"], two, ["Too many pods"]])
    '0/3 nodes are available: 1 Insufficient memory, 1 Too many pods, 2 Insufficient cpu.'
    """
    if not nodes:
        return "no nodes available to schedule pods"
    counts = Counter(
        reason
        for item in refused
        for reason in (item.reasons if isinstance(item, Shortfall) else item)
    )
    detail = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {detail}."
