"""Which node gets a waiting pod? Kubernetes' default scheduler in small: a queue by priority and age, filters, a score, binding.

It looks at waiting pods when something changed that could help them, never on a tick. Preemption is not here yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU, Amounts
from fairlead.sim.cluster import Cluster
from fairlead.sim.conditions import conditions_of, find_condition, phase_of, status_of, with_condition
from fairlead.sim.gpushare import Extender
from fairlead.sim.needs import pod_needs
from fairlead.sim.pod_shape import unreadable
from fairlead.sim.recorder import Recorder
from fairlead.sim.resources import NODES, PODS, PRIORITY_CLASSES
from fairlead.sim.rooms import Room, room_of
from fairlead.sim.timers import Timer, Timers
from fairlead.sim.watch_log import DELETED, WatchEvent
from fairlead.wire.kube_time import render_time

Object = dict[str, Any]

COMPONENT = "default-scheduler"
SCHEDULERS = frozenset({"default-scheduler", "fairlead-scheduler"})
"""Names under which pods are ours; a pod of another scheduler waits for it."""

NEW_POD_SECONDS = 0.05
WAKE_SECONDS = 1.0


@dataclass(slots=True)
class _Waiting:
    namespace: str
    name: str
    priority: int
    created: str
    needs: Amounts
    signature: tuple[object, ...] = field(default=())


class Scheduler:
    def __init__(self, cluster: Cluster, timers: Timers, recorder: Recorder, extender: Extender) -> None:
        self._cluster = cluster
        self._timers = timers
        self._recorder = recorder
        self._extender = extender
        self._rooms: dict[str, Room] = {}
        self._bound: dict[str, tuple[str, Amounts]] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._round: Timer | None = None
        self._start = 0
        self._fullest: dict[tuple[object, ...], Room] = {}
        cluster.subscribe(NODES, self._on_node)
        cluster.subscribe(PODS, self._on_pod)

    # --- what the API tells ------------------------------------------------------------------------------------------------------

    def _on_node(self, event: WatchEvent) -> None:
        name = event.object["metadata"]["name"]
        before = self._rooms.get(name)
        if event.type == DELETED:
            self._rooms.pop(name, None)
            return
        room = room_of(event.object, before)
        self._rooms[name] = room
        if before is None or before != room:
            self._wake(WAKE_SECONDS)

    def _on_pod(self, event: WatchEvent) -> None:
        pod = event.object
        uid = pod["metadata"]["uid"]
        if event.type == DELETED or phase_of(pod) in ("Succeeded", "Failed"):
            self._waiting.pop(uid, None)
            self._let_go(uid)
        elif pod["spec"].get("nodeName"):
            self._waiting.pop(uid, None)
            if uid not in self._bound and not unreadable(pod):
                self._account(uid, pod["spec"]["nodeName"], pod_needs(pod))
        elif uid not in self._waiting and pod["spec"].get("schedulerName", COMPONENT) in SCHEDULERS:
            self._queue(pod)

    def _queue(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        if why := unreadable(pod):
            if self._write_condition(pod, "Unschedulable", why):
                self._recorder.warning(pod, "FailedScheduling", why, COMPONENT)
            return
        if spec.get("schedulingGates"):
            self._write_condition(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return
        needs = pod_needs(pod)
        signature = (tuple(needs.items()), str(spec.get("nodeSelector")), str(spec.get("tolerations")))
        waiting = _Waiting(metadata["namespace"], metadata["name"], self._priority(spec), metadata["creationTimestamp"], needs, signature)
        self._waiting[metadata["uid"]] = waiting
        self._wake(NEW_POD_SECONDS)

    def _priority(self, spec: Object) -> int:
        if spec.get("priority"):
            return int(spec["priority"])
        found = self._cluster.get(PRIORITY_CLASSES, None, spec.get("priorityClassName") or "")
        return int(found["value"]) if found else 0

    def _account(self, uid: str, node: str, needs: Amounts) -> None:
        self._bound[uid] = (node, needs)
        if node in self._rooms:
            self._rooms[node].take(needs)

    def _let_go(self, uid: str) -> None:
        node, needs = self._bound.pop(uid, ("", {}))
        if node in self._rooms:
            self._rooms[node].take(needs, sign=-1)
        if node:
            self._wake(WAKE_SECONDS)

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
        self._fullest = {}
        for uid, waiting in order:
            pod = self._cluster.get(PODS, waiting.namespace, waiting.name)
            if pod is None or pod["metadata"]["uid"] != uid or pod["spec"].get("nodeName"):
                self._waiting.pop(uid, None)
            elif "deletionTimestamp" not in pod["metadata"]:
                self._try(uid, pod, waiting, told)

    def _try(self, uid: str, pod: Object, waiting: _Waiting, told: dict[tuple[object, ...], str]) -> None:
        """Place one pod. An equal pod that failed in this round already has the answer: room only shrinks within a round."""
        message = told.get(waiting.signature)
        if message is None:
            again = self._fullest.get(waiting.signature)
            is_fit = again is not None and not again.refusals(pod["spec"], waiting.needs)
            fitting, refused = ([again], {}) if again is not None and is_fit else self._filter(pod, waiting.needs)
            if fitting and self._bind(uid, pod, self._choose(pod, fitting, waiting), waiting.needs):
                return
            message = told[waiting.signature] = _unschedulable(len(self._rooms), refused.values())
        if self._write_condition(pod, "Unschedulable", message):
            self._recorder.warning(pod, "FailedScheduling", message, COMPONENT)

    def _filter(self, pod: Object, needs: Amounts) -> tuple[list[Room], dict[str, list[str]]]:
        """Rooms that fit, and why the others do not. In a large cluster it stops at enough, each time going on where it stopped."""
        rooms = list(self._rooms.values())
        enough, start = _enough(len(rooms)), self._start
        fitting: list[Room] = []
        refused: dict[str, list[str]] = {}
        for offset in range(len(rooms)):
            room = rooms[(start + offset) % len(rooms)]
            if reasons := room.refusals(pod["spec"], needs):
                refused[room.name] = reasons
            else:
                fitting.append(room)
                if len(fitting) == enough:
                    self._start = (start + offset + 1) % len(rooms)
                    break
        if self._extender.wants(pod):
            refused |= {name: [reason] for name, reason in self._extender.filter(pod, [room.name for room in fitting]).items()}
        return [room for room in fitting if room.name not in refused], refused

    def _choose(self, pod: Object, fitting: list[Room], waiting: _Waiting) -> Room:
        """GPU pods go where the fewest GPUs stay free (whole machines stay whole), others keep off GPU nodes and spread by cpu."""
        if self._extender.wants(pod):
            scores: Mapping[str, int] = self._extender.prioritize(pod, [room.name for room in fitting])
            return min(fitting, key=lambda room: (-scores.get(room.name, 0), room.name))
        if waiting.needs.get(NVIDIA_GPU):
            room = min(fitting, key=lambda room: (room.free(NVIDIA_GPU), room.busy_ratio(), room.name))
            self._fullest[waiting.signature] = room  # it stays the fullest that fits equal pods, until it no longer does
            return room
        return min(fitting, key=lambda room: (room.has_gpus, room.free(GPU_MEMORY) > 0, room.busy_ratio(), room.name))

    def _bind(self, uid: str, pod: Object, room: Room, needs: Amounts) -> bool:
        now = self._timers.clock.now()
        chosen = self._extender.bind(pod, room.name, now) if self._extender.wants(pod) else {}
        if chosen is None:
            return False
        metadata = pod["metadata"]
        self._waiting.pop(uid, None)
        self._account(uid, room.name, needs)
        binding = {"target": {"kind": "Node", "name": room.name}, "metadata": {"uid": uid, "annotations": dict(chosen)}}
        self._cluster.bind(metadata["namespace"], metadata["name"], binding)
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {room.name}"
        self._recorder.normal(pod, "Scheduled", message, COMPONENT)
        return True

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


def _unschedulable(nodes: int, refused: Iterable[list[str]]) -> str:
    """Kubernetes' sentence: reasons counted over nodes, sorted as text.

    >>> _unschedulable(3, [["Insufficient cpu"], ["Insufficient cpu", "Insufficient memory"], ["node(s) were unschedulable"]])
    '0/3 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 Insufficient cpu.'
    """
    if not nodes:
        return "no nodes available to schedule pods"
    counts = Counter(reason for reasons in refused for reason in reasons)
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {told}."
