"""Which node gets a waiting pod? Kubernetes' default scheduler in small: a queue by priority and age, filters, a score, binding.

It looks at waiting pods when something changed that could help them, never on a tick. A pod that preempted others is only promised
its node: it is bound in a later round, when the victims are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU, Amounts
from fairlead.sim.affinity import Neighbourhood, has_preferences, looks_at_others, preference
from fairlead.sim.cluster import Cluster
from fairlead.sim.conditions import conditions_of, find_condition, phase_of, status_of, with_condition
from fairlead.sim.gpushare import Extender
from fairlead.sim.needs import pod_needs
from fairlead.sim.pod_shape import unreadable
from fairlead.sim.preemption import PREEMPTED, Preemption, choose_victims, refused_to_preempt
from fairlead.sim.recorder import Recorder
from fairlead.sim.resources import NODES, POD_DISRUPTION_BUDGETS, PODS
from fairlead.sim.room_ledger import RoomLedger
from fairlead.sim.rooms import Refused, Room, Tenant
from fairlead.sim.timers import Timer, Timers
from fairlead.sim.watch_log import DELETED, WatchEvent
from fairlead.wire.kube_time import render_time

Object = dict[str, Any]

COMPONENT = "default-scheduler"
SCHEDULERS = frozenset({"default-scheduler", "fairlead-scheduler"})
"""Names under which pods are ours; a pod of another scheduler waits for it."""

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
    def __init__(self, cluster: Cluster, timers: Timers, recorder: Recorder, extender: Extender) -> None:
        self._cluster = cluster
        self._timers = timers
        self._recorder = recorder
        self._extender = extender
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
        alike = (spec.get("nodeSelector"), spec.get("tolerations"), spec.get("affinity"), spec.get("preemptionPolicy"))
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
        asker = Tenant(pod, waiting.needs, waiting.priority)
        is_plain = not self.ledger.minds_others(pod["spec"])
        message = told.get(waiting.signature) if is_plain else None
        if message is None:
            neighbours = self.ledger.neighbours(pod)
            fullest = self._fullest(asker, neighbours)
            fitting, refused = ([fullest], {}) if fullest is not None else self._filter(asker, neighbours)
            if fitting and self._bind(asker, self._choose(asker, fitting)):
                return
            message, is_final = self._preempt(asker, refused)
            if is_final and is_plain:
                told[waiting.signature] = message
        self._tell(pod, message)

    def _fullest(self, asker: Tenant, neighbours: Neighbourhood) -> Room | None:
        """For a pod with whole GPUs the fullest room that fits, found without looking at all others; None: look at all."""
        wanted = asker.needs.get(NVIDIA_GPU)
        spec = asker.pod["spec"]
        if not wanted or self.ledger.promised_room(asker.uid) or self._extender.wants(asker.pod) or has_preferences(spec):
            return None
        for rooms in self.ledger.by_free_gpus(wanted):
            usable = (room for room in rooms if room.refusal(asker, neighbours) is None and not (room.taints and room.unwelcoming(spec)))
            if fitting := list(islice(usable, MOST_ALIKE)):
                return min(fitting, key=lambda room: (room.busy_ratio(), room.name))
        return None

    def _filter(self, asker: Tenant, neighbours: Neighbourhood) -> tuple[list[Room], dict[str, Refused]]:
        """Rooms that fit, and why the others do not. In a large cluster it stops at enough, each time going on where it stopped."""
        promised = self.ledger.promised_room(asker.uid)
        if promised is not None and not self._extender.wants(asker.pod) and promised.refusal(asker, neighbours) is None:
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
        if self._extender.wants(asker.pod):
            answers = self._extender.filter(asker.pod, [room.name for room in fitting])
            refused |= {name: Refused([reason], True) for name, reason in answers.items()}
        return [room for room in fitting if room.name not in refused], refused

    def _choose(self, asker: Tenant, fitting: list[Room]) -> Room:
        """What the pod prefers; then GPU pods go where the fewest GPUs stay free (whole machines stay whole), others keep off GPU nodes
        and spread by cpu."""
        pod = asker.pod
        if self._extender.wants(pod):
            scores: Mapping[str, int] = self._extender.prioritize(pod, [room.name for room in fitting])
            return min(fitting, key=lambda room: (-scores.get(room.name, 0), room.name))
        spec = pod["spec"]

        def liking(room: Room) -> tuple[int, int]:
            return -preference(spec, room.name, room.labels), room.unwelcoming(spec) if room.taints else 0

        if asker.needs.get(NVIDIA_GPU):
            return min(fitting, key=lambda room: (liking(room), room.free(NVIDIA_GPU), room.busy_ratio(), room.name))
        return min(fitting, key=lambda room: (liking(room), room.has_gpus, room.free(GPU_MEMORY) > 0, room.busy_ratio(), room.name))

    def _bind(self, asker: Tenant, room: Room) -> bool:
        now, pod = self._timers.clock.now(), asker.pod
        chosen = self._extender.bind(pod, room.name, now) if self._extender.wants(pod) else {}
        if chosen is None:
            return False
        metadata = pod["metadata"]
        self._forget(asker.uid)
        self.ledger.admit(Tenant(pod, asker.needs, asker.priority, room.name))
        binding = {"target": {"kind": "Node", "name": room.name}, "metadata": {"uid": asker.uid, "annotations": dict(chosen)}}
        self._cluster.bind(metadata["namespace"], metadata["name"], binding)
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {room.name}"
        self._recorder.normal(pod, "Scheduled", message, COMPONENT)
        return True

    # --- pushing others aside ----------------------------------------------------------------------------------------------------

    def _preempt(self, asker: Tenant, refused: Mapping[str, Refused]) -> tuple[str, bool]:
        """Make room by preemption if that can be. The sentence to write, and whether it holds for equal pods too."""
        sentence = _unschedulable(len(self.ledger.rooms), refused.values())
        if not self.ledger.rooms:
            return sentence, True
        if why := refused_to_preempt(asker, self.ledger.promised_room(asker.uid)):
            return f"{sentence}{_NO_CLAIMS}{why}", False
        budgets = [] if self.ledger.is_lowest(asker.priority) else self._cluster.list(POD_DISRUPTION_BUDGETS)
        found = choose_victims(asker, self.ledger.rooms, refused, budgets, lambda gone: self.ledger.neighbours(asker.pod, gone))
        if isinstance(found, Preemption):
            self._promise(asker, found)
            return sentence, False
        self.ledger.take_back(asker.uid)
        self._nominate(asker.pod, "")
        return f"{sentence}{_NO_CLAIMS}{_unschedulable(len(self.ledger.rooms), found.values())}", True

    def _promise(self, asker: Tenant, found: Preemption) -> None:
        self.ledger.promise(asker, found.room)
        for victim in found.victims:
            metadata = victim.pod["metadata"]
            self._recorder.normal(victim.pod, "Preempted", f"Preempted by pod {asker.uid} on node {found.room.name}", COMPONENT)
            self._cluster.mutate(PODS, metadata["namespace"], metadata["name"], self._as_target)
            self._cluster.delete(PODS, metadata["namespace"], metadata["name"], uid=victim.uid)
        self._nominate(asker.pod, found.room.name)

    def _as_target(self, pod: Object) -> Object:
        time, why = render_time(self._timers.clock.now()), f"{COMPONENT}: preempting to accommodate a higher priority pod"
        conditions = with_condition(conditions_of(pod), "DisruptionTarget", "True", PREEMPTED, why, time)
        return {**pod, "status": {**status_of(pod), "conditions": conditions}}

    def _nominate(self, pod: Object, node: str) -> None:
        def change(old: Object) -> Object:
            status = {key: value for key, value in status_of(old).items() if key != "nominatedNodeName"}
            return {**old, "status": {**status, "nominatedNodeName": node} if node else status}

        if status_of(pod).get("nominatedNodeName", "") != node:
            self._cluster.mutate(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], change)

    # --- what is written ---------------------------------------------------------------------------------------------------------

    def _tell(self, pod: Object, why: str) -> None:
        if self._write_condition(pod, "Unschedulable", why):
            self._recorder.warning(pod, "FailedScheduling", why, COMPONENT)

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
