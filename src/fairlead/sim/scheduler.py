"""Which node gets a waiting pod? Kubernetes' default scheduler in small: a queue by priority and age, filters, a score, binding.

It looks at waiting pods when something changed that could help them, never on a tick. A pod that preempted others is only promised
its node: it is bound in a later round, when the victims are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU, Amounts
from fairlead.sim.affinity import Neighbourhood, has_preferences, looks_at_others, preference
from fairlead.sim.cluster import Cluster
from fairlead.sim.conditions import conditions_of, find_condition, phase_of, status_of, with_condition
from fairlead.sim.hooks import Extender, Victims
from fairlead.sim.needs import pod_needs
from fairlead.sim.pod_shape import unreadable
from fairlead.sim.preemption import NO_VICTIM_ON, PREEMPTED, Preemption, find_candidates, refused_to_preempt
from fairlead.sim.recorder import Recorder
from fairlead.sim.resources import NODES, POD_DISRUPTION_BUDGETS, PODS
from fairlead.sim.room_ledger import RoomLedger
from fairlead.sim.rooms import Refused, Room, Tenant
from fairlead.sim.timers import Timer, Timers
from fairlead.sim.watch_log import DELETED, WatchEvent
from fairlead.wire.kube_time import render_time

Object = dict[str, Any]

COMPONENT = "default-scheduler"
SCHEDULERS = frozenset({COMPONENT, "fairlead-scheduler"})
"""The scheduler's profiles: names under which pods are ours, and whose events tell of them. A pod of another scheduler waits for it."""

NO_EXTENDER = f"the scheduler extender for {GPU_MEMORY} does not answer: this cluster runs without it"
NEW_POD_SECONDS = 0.05
WAKE_SECONDS = 1.0
MOST_ALIKE = 64
"""Of rooms with equally many free GPUs so many are compared, and not all five thousand."""


@dataclass(slots=True)
class _Waiting:
    namespace: str
    name: str
    priority: int
    created: str
    needs: Amounts
    signature: tuple[object, ...]
    looks_at_others: bool


class Scheduler:
    def __init__(self, cluster: Cluster, timers: Timers, recorder: Recorder, extender: Extender | None) -> None:
        self._cluster = cluster
        self._timers = timers
        self._recorder = recorder
        self._extender = extender  # None: pods that need one wait, as when a real one is down
        self.ledger = RoomLedger()
        self._waiting: dict[str, _Waiting] = {}
        self._round: Timer | None = None
        self._start = 0
        cluster.subscribe(NODES, self._on_node)
        cluster.subscribe(PODS, self._on_pod)

    # --- what the API tells ------------------------------------------------------------------------------------------------------

    def _on_node(self, event: WatchEvent) -> None:
        if event.type == DELETED:
            self.ledger.remove_node(event.object["metadata"]["name"])
        elif self.ledger.set_node(event.object):
            self._wake(WAKE_SECONDS)

    def _on_pod(self, event: WatchEvent) -> None:
        pod = event.object
        uid = pod["metadata"]["uid"]
        if event.type == DELETED or phase_of(pod) in ("Succeeded", "Failed"):
            self._forget(uid)
            if self.ledger.release(uid):
                self._wake(WAKE_SECONDS)
        elif pod["spec"].get("nodeName"):
            self._forget(uid)
            if uid in self.ledger.tenants:
                self.ledger.tenants[uid].pod = pod
            elif not unreadable(pod):
                self.ledger.admit(Tenant(pod, pod_needs(pod), _priority(pod), pod["spec"]["nodeName"]))
        elif uid not in self._waiting and pod["spec"].get("schedulerName", COMPONENT) in SCHEDULERS:
            self._queue(pod)

    def _forget(self, uid: str) -> None:
        if self._waiting.pop(uid, None) is not None:
            self.ledger.take_back(uid)

    def _queue(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        if why := unreadable(pod):
            self._tell(pod, why)
            return
        if spec.get("schedulingGates"):
            self._write_condition(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return
        needs, priority = pod_needs(pod), _priority(pod)
        alike: tuple[Any, ...] = (spec.get("nodeSelector"), spec.get("tolerations"), spec.get("affinity"), spec.get("preemptionPolicy"))
        if self._extender_of(pod) is not None:  # it looks at more: who has written what on the pod, and what each container asks
            alike += (metadata.get("labels"), metadata.get("annotations"), spec["containers"], spec.get("initContainers"))
        signature = (tuple(needs.items()), priority, str(alike))
        self._waiting[metadata["uid"]] = _Waiting(
            metadata["namespace"], metadata["name"], priority, metadata["creationTimestamp"], needs, signature, looks_at_others(spec)
        )
        promised = self.ledger.rooms.get(status_of(pod).get("nominatedNodeName", ""))
        if promised is not None:  # in an earlier life of the world, whose victims are going
            self.ledger.promise(Tenant(pod, needs, priority), promised)
        self._wake(NEW_POD_SECONDS)

    # --- a round -----------------------------------------------------------------------------------------------------------------

    def _wake(self, seconds: float) -> None:
        """Look at the waiting pods soon; a sooner wish replaces a later one."""
        if not self._waiting:
            return
        at = self._timers.clock.now() + seconds
        if self._round is not None:
            if self._round.at <= at:
                return
            self._round.cancel()
        self._round = self._timers.at(at, self._run_round)

    def _run_round(self) -> None:
        self._round = None
        order = sorted(self._waiting.items(), key=lambda item: (-item[1].priority, item[1].created, item[1].namespace, item[1].name))
        told: dict[tuple[object, ...], str] = {}
        placed = len(self.ledger.tenants)
        for uid, waiting in order:
            pod = self._cluster.get(PODS, waiting.namespace, waiting.name)
            if pod is None or pod["metadata"]["uid"] != uid or pod["spec"].get("nodeName"):
                self._forget(uid)
            elif "deletionTimestamp" not in pod["metadata"]:
                self._try(uid, pod, waiting, told)
        if len(self.ledger.tenants) > placed and any(waiting.looks_at_others for waiting in self._waiting.values()):
            self._wake(WAKE_SECONDS)

    def _try(self, uid: str, pod: Object, waiting: _Waiting, told: dict[tuple[object, ...], str]) -> None:
        """Place one pod. An equal pod that failed in this round already has the answer: room only shrinks within a round."""
        if self._extender is None and waiting.needs.get(GPU_MEMORY):
            self._tell(pod, NO_EXTENDER, "SchedulerError")
            return
        asker = Tenant(pod, waiting.needs, waiting.priority)
        is_plain = not self.ledger.minds_others(pod["spec"])
        message = told.get(waiting.signature) if is_plain else None
        if message is None:
            neighbours = self.ledger.neighbours(pod)
            fullest = self._fullest(asker, neighbours)
            fitting, refused = ([fullest], {}) if fullest is not None else self._filter(asker, neighbours)
            if fitting:
                self._bind(asker, self._choose(asker, fitting))
                return
            message, is_final = self._preempt(asker, refused)
            if is_final and is_plain:
                told[waiting.signature] = message
        self._tell(pod, message)

    def _fullest(self, asker: Tenant, neighbours: Neighbourhood) -> Room | None:
        """For a pod with whole GPUs the fullest room that fits, found without looking at all others; None: look at all."""
        wanted = asker.needs.get(NVIDIA_GPU)
        spec = asker.pod["spec"]
        if not wanted or self.ledger.promised_room(asker.uid) or self._extender_of(asker.pod) or has_preferences(spec):
            return None
        for rooms in self.ledger.by_free_gpus(wanted):
            usable = (room for room in rooms if room.refusal(asker, neighbours) is None and not (room.taints and room.unwelcoming(spec)))
            if fitting := list(islice(usable, MOST_ALIKE)):
                return min(fitting, key=lambda room: (room.busy_ratio(), room.name))
        return None

    def _filter(self, asker: Tenant, neighbours: Neighbourhood) -> tuple[list[Room], dict[str, Refused]]:
        """Rooms that fit, and why the others do not. In a large cluster it stops at enough, each time going on where it stopped."""
        promised = self.ledger.promised_room(asker.uid)
        if promised is not None and promised.refusal(asker, neighbours) is None and not self._refused_outside(asker.pod, [promised]):
            return [promised], {}
        rooms = list(self.ledger.rooms.values())
        enough, start = _enough(len(rooms)), self._start
        fitting: list[Room] = []
        refused: dict[str, Refused] = {}
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

    def _extender_of(self, pod: Object) -> Extender | None:
        """The extender, if the pod is its business."""
        return self._extender if self._extender is not None and self._extender.wants(pod) else None

    def _refused_outside(self, pod: Object, rooms: list[Room]) -> dict[str, Refused]:
        """What the extender has against these rooms."""
        extender = self._extender_of(pod)
        if extender is None or not rooms:
            return {}
        failed, hopeless = extender.filter(pod, [room.name for room in rooms])
        refused = {name: Refused([reason], False) for name, reason in failed.items()}
        return refused | {name: Refused([reason], True) for name, reason in hopeless.items()}

    def _choose(self, asker: Tenant, fitting: list[Room]) -> Room:
        """What the pod prefers; then GPU pods go where the fewest GPUs stay free (whole machines stay whole), others keep off GPU nodes
        and spread by cpu."""
        pod = asker.pod
        extender = self._extender_of(pod)
        if extender is not None:
            scores = extender.prioritize(pod, [room.name for room in fitting])
            return min(fitting, key=lambda room: (-scores.get(room.name, 0), room.name))
        spec = pod["spec"]

        def liking(room: Room) -> tuple[int, int]:
            return -preference(spec, room.name, room.labels), room.unwelcoming(spec) if room.taints else 0

        if asker.needs.get(NVIDIA_GPU):
            return min(fitting, key=lambda room: (liking(room), room.free(NVIDIA_GPU), room.busy_ratio(), room.name))
        return min(fitting, key=lambda room: (liking(room), room.has_gpus, room.free(GPU_MEMORY) > 0, room.busy_ratio(), room.name))

    def _bind(self, asker: Tenant, room: Room) -> None:
        """The room counts as taken before anybody is asked, as kube-scheduler "assumes" a pod: the news of it come while it is bound."""
        pod, waiting = asker.pod, self._waiting.get(asker.uid)
        metadata = pod["metadata"]
        self._forget(asker.uid)
        self.ledger.admit(Tenant(pod, asker.needs, asker.priority, room.name))
        extender = self._extender_of(pod)
        if extender is None:
            binding = {"target": {"kind": "Node", "name": room.name}, "metadata": {"uid": asker.uid}}
            self._cluster.bind(metadata["namespace"], metadata["name"], binding)
        elif why := extender.bind(pod, room.name):
            self.ledger.release(asker.uid)
            self._tell(pod, why, "SchedulerError")
            if waiting is not None:
                self._waiting[asker.uid] = waiting
                self._wake(WAKE_SECONDS)
            return
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {room.name}"
        self._recorder.normal(pod, "Scheduled", message, _profile(pod))

    # --- pushing others aside ----------------------------------------------------------------------------------------------------

    def _preempt(self, asker: Tenant, refused: Mapping[str, Refused]) -> tuple[str, bool]:
        """Make room by preemption if that can be. The sentence to write, and whether it holds for equal pods too."""
        sentence = _unschedulable(len(self.ledger.rooms), refused.values())
        if not self.ledger.rooms:
            return sentence, True
        if why := refused_to_preempt(asker, self.ledger.promised_room(asker.uid)):
            return f"{sentence}{_NO_CLAIMS}{why}", False
        budgets = [] if self.ledger.is_lowest(asker.priority) else self._cluster.list(POD_DISRUPTION_BUDGETS)
        found, why_not = find_candidates(asker, self.ledger.rooms, refused, budgets, lambda gone: self.ledger.neighbours(asker.pod, gone))
        if found and not (found := self._corrected(asker, found)):
            return f"{sentence}{_NO_CLAIMS}no candidate node for preemption", False
        if found:
            self._promise(asker, min(found, key=lambda item: item.cost))
            return sentence, False
        self.ledger.take_back(asker.uid)
        self._nominate(asker.pod, "")
        strange = sorted(reason for reasons in why_not.values() for reason in reasons if reason.startswith(NO_VICTIM_ON))
        if strange:  # kube-scheduler takes it for an error of its own and says nothing else
            told = ", ".join(strange)
            return f"{sentence} preemption: {told if len(strange) == 1 else f'[{told}]'}", False
        return f"{sentence}{_NO_CLAIMS}{_unschedulable(len(self.ledger.rooms), why_not.values())}", True

    def _corrected(self, asker: Tenant, found: list[Preemption]) -> list[Preemption]:
        """The candidates as the extender sees them: it may name other victims, or none."""
        extender = self._extender_of(asker.pod)
        if extender is None:
            return found
        proposed = {item.room.name: Victims([victim.uid for victim in item.victims], item.violations) for item in found}
        rooms = {item.room.name: item.room for item in found}
        answers = extender.preempt(asker.pod, proposed)
        return [Preemption.of(rooms[name], victims.uids, victims.violations) for name, victims in answers.items()]

    def _promise(self, asker: Tenant, found: Preemption) -> None:
        self.ledger.promise(asker, found.room)
        for victim in found.victims:
            metadata = victim.pod["metadata"]
            self._recorder.normal(victim.pod, "Preempted", f"Preempted by pod {asker.uid} on node {found.room.name}", _profile(asker.pod))
            self._cluster.mutate(PODS, metadata["namespace"], metadata["name"], partial(self._as_target, preemptor=_profile(asker.pod)))
            self._cluster.delete(PODS, metadata["namespace"], metadata["name"], uid=victim.uid)
        self._nominate(asker.pod, found.room.name)

    def _as_target(self, pod: Object, preemptor: str) -> Object:
        time, why = render_time(self._timers.clock.now()), f"{preemptor}: preempting to accommodate a higher priority pod"
        conditions = with_condition(conditions_of(pod), "DisruptionTarget", "True", PREEMPTED, why, time)
        return {**pod, "status": {**status_of(pod), "conditions": conditions}}

    def _nominate(self, pod: Object, node: str) -> None:
        def change(old: Object) -> Object:
            status = {key: value for key, value in status_of(old).items() if key != "nominatedNodeName"}
            return {**old, "status": {**status, "nominatedNodeName": node} if node else status}

        if status_of(pod).get("nominatedNodeName", "") != node:
            self._cluster.mutate(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], change)

    # --- what is written ---------------------------------------------------------------------------------------------------------

    def _tell(self, pod: Object, why: str, reason: str = "Unschedulable") -> None:
        if self._write_condition(pod, reason, why):
            self._recorder.warning(pod, "FailedScheduling", why, _profile(pod))

    def _write_condition(self, pod: Object, reason: str, message: str) -> bool:
        """Write why the pod waits; False when it already says so."""
        before = find_condition(conditions_of(pod), "PodScheduled")
        if before is not None and (before.get("reason"), before.get("message")) == (reason, message):
            return False
        time = render_time(self._timers.clock.now())

        def change(old: Object) -> Object:
            conditions = with_condition(conditions_of(old), "PodScheduled", "False", reason, message, time)
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


_NO_CLAIMS = " no new claims to deallocate, preemption: "
"""kube-scheduler 1.36 tries to free resource claims before it preempts; there are none here, and it says so each time."""


def _unschedulable(nodes: int, refused: Iterable[Refused | list[str]]) -> str:
    """Kubernetes' sentence: reasons counted over nodes, sorted as text.

    >>> _unschedulable(3, [["Insufficient cpu"], ["Insufficient cpu", "Insufficient memory"], ["node(s) were unschedulable"]])
    '0/3 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 Insufficient cpu.'
    """
    if not nodes:
        return "no nodes available to schedule pods"
    counts = Counter(reason for item in refused for reason in (item.reasons if isinstance(item, Refused) else item))
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {told}."
