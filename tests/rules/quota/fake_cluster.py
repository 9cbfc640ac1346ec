"""A cluster in memory for the quota decider: an API server with late watches, controllers,
kubelets, and a driver that may crash.

Time jumps from one event to the next; a seeded random generator decides how long each step takes.
At every change an independent auditor counts, from the API server's pods alone, what is charged to
each node of the tree.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.actions import (
    AdmitPod,
    DeleteObject,
    EvictPod,
    Outcome,
    PatchObject,
    QuotaAction,
    Result,
    ScaleJob,
    SetPodCondition,
)
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    changed,
    listed,
)
from fairlead.model.keys import (
    ANNOTATION_SUSPENDED_FOR,
    LABEL_POD_GROUP,
    LABEL_POD_GROUP_SIZE,
    LABEL_USER,
    QUOTA_GATE,
)
from fairlead.model.node import Condition, Node
from fairlead.model.node_choice import Expression
from fairlead.model.people.rows import KIND_GROUPS
from fairlead.model.pod import Container, Owner, Pod, PodPhase
from fairlead.model.quota.rows import Budget, Namespace, Workload, stale_marks
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.rules.quota.machine import QuotaMachine

START = 1_000_000.0
NODE = Node(
    "node-1",
    "node",
    allocatable=dict.fromkeys(("gpu", "cpu", "pods"), 10_000),
    conditions=(Condition("Ready", "True"),),
)
OWN = ("gpu-platform", "gpu-nodes")
"""Namespaces of an installation that are not the default, for a machine that knows them."""
PROTECTED = ("kube-system", *OWN)
"""Namespaces whose pods are not counted, wherever they stand in the tree."""
KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "Job", "RayJob", "MPIJob")


class Owning(Struct):
    """A workload with its pods. `kind`: Deployment (its ReplicaSet), StatefulSet, Job, RayJob
    (suspended as a whole), MPIJob (without suspend), or Bare. `replicas`: the `parallelism` for a
    Job. `marks`: its annotations. `failed`: pods of a Job that were deleted, but not by its
    controller.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    replicas: int
    request: Mapping[str, int]
    priority: int = 0
    gang: bool = False
    is_suspended: bool = False
    marks: dict[str, str] = {}
    failed: int = 0
    labels: Mapping[str, str] = {}
    made: int = 0

    @property
    def suspended_for(self) -> str:
        return self.marks.get(ANNOTATION_SUSPENDED_FOR, "")

    @property
    def suspended_priority(self) -> str | None:
        return self.marks.get("fairlead.io/suspended-priority")


class Faults(Struct, frozen=True):
    """Probabilities per call. `lost`: the call has no answer (carried out or not, with equal
    chance). `busy`: refused with 429. `crash`: the controller crashes before or after the call.
    """

    lost: float = 0.0
    busy: float = 0.0
    crash: float = 0.0


NO_FAULTS = Faults()


class FakeCluster:
    """`unclaimed`: evictions that reached the API server while no pod there had the condition that
    it waits for evictions.

    `evictions`: uids of pods that the decider's calls evicted, suspended or deleted, in order.
    `removed`: admitted pods that the controller of a Job removed because its `parallelism` was
    lowered. `machine`: the decider under test. `is_binding`: whether pods are bound to nodes.
    `is_answering`: whether a scheduler refuses pods that are not bound.
    """

    def __init__(
        self,
        root: QuotaNode,
        *,
        seed: int = 0,
        grace: float = 30.0,
        delay: float = 2.0,
        faults: Faults = NO_FAULTS,
        machine: Callable[[Collection[str]], QuotaMachine] = QuotaMachine,
    ) -> None:
        self.now = START
        self.rng = random.Random(seed)
        self.root = root
        self.faults = faults
        self.grace, self.delay = grace, delay
        self.pods: dict[str, Pod] = {}
        self.owners: dict[str, Owning] = {}
        self.budgets: dict[str, Budget] = {}
        self.namespaces = {
            space: Namespace(space, f"ns-{space}")
            for leaf in root.leaves()
            for space in leaf.namespaces
        }
        self.tree: QuotaTree | None = QuotaTree("elasticquotatree", "kube-system", root, "tree-uid")
        self.evictions: list[str] = []
        self.removed: list[str] = []
        self.unclaimed: list[str] = []
        self.calls: list[QuotaAction] = []
        self.crashes = 0
        self.broken: list[str] = []
        self.machine: QuotaMachine | None = None
        self.is_binding = True
        self.is_answering = True
        self._make_machine = machine
        self._life = 0
        self._flying = 0
        self._look_at: float | None = None
        self._numbers = itertools.count(1)
        self._order = itertools.count()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._reported_at: dict[str, float] = {}
        self.start()

    # --- time -------------------------------------------------------------------------------------

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.now + seconds, next(self._order), do))

    def some(self, most: float) -> float:
        return self.rng.random() * most

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._heap and self._heap[0][0] <= until:
            self.now, _, do = heapq.heappop(self._heap)
            do()
        self.now = until

    def settle(self, quiet: float = 45.0, most: float = 7200.0) -> None:
        """Runs until nothing has changed for `quiet` seconds. Raises AssertionError after `most`
        seconds.
        """
        end = self.now + most
        while self.now < end:
            before = self._picture()
            self.run(quiet)
            if self._picture() == before and not self._flying:
                return
        raise AssertionError("no end")

    def _picture(self) -> object:
        """The state of all pods that must come to rest; messages may go on changing."""
        return sorted(
            (uid, self.is_admitted(pod), pod.deleted_at, pod.node) for uid, pod in self.pods.items()
        ), len(self.evictions)

    # --- actions of users -------------------------------------------------------------------------

    def create(
        self,
        kind: str,
        namespace: str,
        name: str,
        replicas: int,
        request: Mapping[str, int] | int,
        **more: Any,
    ) -> str:
        uid = f"{kind}-{namespace}-{name}"
        asked = {"gpu": request} if isinstance(request, int) else request
        self.owners[uid] = Owning(kind, namespace, name, uid, replicas, asked, **more)
        self._notify_owner(uid)
        self.after(0, lambda: self._sync(uid))
        return uid

    def scale(self, uid: str, replicas: int) -> None:
        """Deletes surplus pods, waiting pods first."""
        owner = self.owners[uid]
        owner.replicas = replicas
        mine = sorted(self._live(uid), key=lambda pod: (self.is_admitted(pod), pod.name))
        for pod in mine[: max(0, len(mine) - replicas)]:
            self._stop(pod.uid, 0.0 if not self.is_admitted(pod) else None)
        self.after(0, lambda: self._sync(uid))

    def budget(self, namespace: str, least: int) -> None:
        """A PodDisruptionBudget: at least `least` pods of the namespace stay."""
        selector = (Expression("app", "Exists"),)
        self.budgets[namespace] = Budget(namespace, "web", f"pdb-{namespace}", selector, 0)
        self._least = {**getattr(self, "_least", {}), namespace: least}
        self._disrupt(namespace)

    def fail(self, uid: str) -> None:
        """A pod ends without a call of the controller."""
        self._gone(uid)

    def set_tree(self, root: QuotaNode | None, **more: Any) -> None:
        self.tree = (
            None
            if root is None
            else QuotaTree("elasticquotatree", "kube-system", root, "tree-uid", **more)
        )
        self.root = root or self.root
        self._watch("tree", "tree")

    # --- what exists ------------------------------------------------------------------------------

    @staticmethod
    def is_admitted(pod: Pod) -> bool:
        return QUOTA_GATE not in pod.gates

    def running(self, *namespaces: str) -> tuple[int, ...]:
        return tuple(
            sum(
                1
                for pod in self.pods.values()
                if pod.namespace == space and self.is_admitted(pod) and not pod.deleted_at
            )
            for space in namespaces
        )

    def waiting(self, namespace: str) -> list[Pod]:
        return [
            pod
            for pod in self.pods.values()
            if pod.namespace == namespace and not self.is_admitted(pod)
        ]

    def reasons(self, namespace: str) -> list[str]:
        return sorted(each.reason for pod in self.waiting(namespace) for each in pod.conditions)

    def _live(self, owner: str) -> list[Pod]:
        return [
            pod
            for pod in self.pods.values()
            if pod.owners and pod.owners[0].uid == owner and pod.deleted_at is None
        ]

    def _audit(self) -> None:
        """No node is ever above its max, counted from the API server's pods alone."""
        for node in self.root.walk():
            spaces = {space for leaf in node.leaves() for space in leaf.namespaces}
            for resource, most in node.max.items():
                used = sum(
                    pod.containers[0].requests.get(resource, 0)
                    for pod in self.pods.values()
                    if pod.namespace in spaces
                    and pod.namespace not in PROTECTED
                    and self.is_admitted(pod)
                )
                if used > most:
                    self.broken.append(
                        f"{self.now}: {node.name} uses {used} of max {most} {resource}"
                    )
        assert not self.broken, self.broken[0]

    # --- controllers and kubelets -----------------------------------------------------------------

    def _sync(self, uid: str) -> None:
        owner = self.owners[uid]
        live = self._live(uid)
        if owner.kind == "Bare":
            while owner.made < owner.replicas:
                self._make(owner, f"{owner.name}-{owner.made:03d}")
        elif owner.is_suspended:
            for pod in live:
                self._stop(pod.uid, by_owner=True)
        elif owner.kind == "Job" and len(live) > owner.replicas:
            self.rng.shuffle(live)  # the real order of equal pods is random
            live.sort(
                key=lambda pod: (bool(pod.node), self._is_ready(pod), -(pod.created_at or 0.0))
            )
            for pod in live[: len(live) - owner.replicas]:
                self._stop(pod.uid, by_owner=True)
        elif owner.kind == "StatefulSet":
            names = {
                pod.name: pod
                for pod in self.pods.values()
                if pod.owners and pod.owners[0].uid == uid
            }
            for ordinal in range(owner.replicas):
                pod = names.get(f"{owner.name}-{ordinal}")
                if pod is None:
                    self._make(owner, f"{owner.name}-{ordinal}")
                if (
                    pod is None
                    or not pod.conditions
                    or pod.deleted_at is not None
                    or not self._is_ready(pod)
                ):
                    break
        elif len(live) < owner.replicas:
            self._make(owner, f"{owner.name}-{owner.made:03d}")
            self.after(self.some(0.3), lambda: self._sync(uid))

    def _make(self, owner: Owning, name: str) -> None:
        owner.made += 1
        uid = f"{owner.uid}-{next(self._numbers)}"
        labels = {"app": owner.name, **owner.labels}
        if owner.gang:
            labels |= {LABEL_POD_GROUP: owner.name, LABEL_POD_GROUP_SIZE: str(owner.replicas)}
        self.pods[uid] = Pod(
            owner.namespace,
            name,
            uid,
            labels,
            owners=()
            if owner.kind == "Bare"
            else (Owner(owner.kind, owner.name, owner.uid, True),),
            priority=owner.priority,
            gates=(QUOTA_GATE,),
            containers=(Container("main", requests=owner.request),),
            created_at=float(int(self.now)),
        )
        self._watch("pod", uid)

    @staticmethod
    def _is_ready(pod: Pod) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in pod.conditions)

    def _bind(self, uid: str) -> None:
        pod = self.pods.get(uid)
        if not self.is_binding and pod is not None:
            refused = Condition("PodScheduled", "False", "Unschedulable", at=pod.created_at)
            if self.is_answering:
                self.pods[uid] = replace(pod, conditions=(*pod.conditions, refused))
                self._watch("pod", uid)
        elif pod is not None and not pod.node and pod.deleted_at is None:
            ready = Condition("Ready", "True", at=float(int(self.now)))
            self.pods[uid] = replace(
                pod, node="node-1", phase=PodPhase.RUNNING, conditions=(*pod.conditions, ready)
            )
            self._watch("pod", uid)
            self._react(pod)

    def _stop(self, uid: str, grace: float | None = None, *, by_owner: bool = False) -> None:
        pod = self.pods[uid]
        if pod.deleted_at is not None:
            return
        if not by_owner and pod.owners and pod.owners[0].kind == "Job":
            self.owners[pod.owners[0].uid].failed += 1
        if (
            by_owner
            and self.is_admitted(pod)
            and pod.owners[0].kind == "Job"
            and not self.owners[pod.owners[0].uid].is_suspended
        ):
            self.removed.append(uid)
        seconds = self.some(self.grace) if grace is None else min(grace, self.some(self.grace))
        if not pod.node:  # no kubelet has to stop it
            seconds = 0.0
        self.pods[uid] = replace(pod, deleted_at=float(int(self.now)))
        self._watch("pod", uid)
        self._react(pod)
        if seconds:
            self.after(seconds, lambda: self._gone(uid))
        else:
            self._gone(uid)

    def _gone(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self._watch("pod", uid)
            self._react(pod)

    def _react(self, pod: Pod) -> None:
        if pod.owners:
            self.after(self.some(self.delay), lambda: self._sync(pod.owners[0].uid))
        if pod.namespace in self.budgets:
            self.after(self.some(self.delay), lambda: self._disrupt(pod.namespace))

    def _disrupt(self, namespace: str) -> None:
        """The disruption controller: how many disruptions are allowed, from the number of ready
        pods.
        """
        healthy = sum(
            1
            for pod in self.pods.values()
            if pod.namespace == namespace and pod.deleted_at is None and self._is_ready(pod)
        )
        self.budgets[namespace] = replace(
            self.budgets[namespace], allowed=max(0, healthy - self._least[namespace])
        )
        self._watch("budget", namespace)

    # --- the API server ---------------------------------------------------------------------------

    def carry_out(self, action: QuotaAction) -> Outcome:
        match action:
            case AdmitPod():
                pod = self.pods.get(action.target.uid)
                if pod is None:
                    return Outcome(Result.GONE)
                if pod.gates[action.gate : action.gate + 1] != (QUOTA_GATE,):
                    return Outcome(Result.REFUSED, "the gate is absent")
                gates = tuple(gate for gate in pod.gates if gate != QUOTA_GATE)
                self.pods[pod.uid] = replace(pod, gates=gates)
                self._watch("pod", pod.uid)
                self._audit()
                self.after(self.some(self.delay), lambda: self._bind(pod.uid))
            case EvictPod():
                pod = self.pods.get(action.target.uid)
                if pod is None:
                    return Outcome(Result.GONE)
                budget = self.budgets.get(pod.namespace)
                if budget is not None and pod.deleted_at is None and pod.node:
                    if not budget.allowed:
                        return Outcome(
                            Result.REFUSED,
                            "Cannot evict pod as it would violate the pod's disruption budget.",
                            is_busy=True,
                        )
                    if not action.is_trial:
                        self.budgets[pod.namespace] = replace(budget, allowed=budget.allowed - 1)
                        self._watch("budget", pod.namespace)
                if not action.is_trial and pod.deleted_at is None:
                    if not any(
                        each.reason == "WaitingForEvictions"
                        for one in self.pods.values()
                        for each in one.conditions
                    ):
                        self.unclaimed.append(pod.uid)
                    self.evictions.append(pod.uid)
                    self._stop(pod.uid, action.grace_seconds)
            case DeleteObject():
                if action.target.uid not in self.pods:
                    return Outcome(Result.GONE)
                self.evictions.append(action.target.uid)
                self._stop(action.target.uid)
            case SetPodCondition():
                pod = self.pods.get(action.target.uid)
                if pod is None:
                    return Outcome(Result.GONE)
                others = [each for each in pod.conditions if each.type != action.condition.type]
                self.pods[pod.uid] = replace(pod, conditions=(*others, action.condition))
                self._watch("pod", pod.uid)
            case PatchObject():
                return self._patch(action)
            case ScaleJob():
                return self._scale(action)
            case _:
                pass
        return Outcome()

    def _patch(self, action: PatchObject) -> Outcome:
        meta = action.patch.get("metadata", {})
        if action.target.kind == "Namespace":
            space = self.namespaces[action.target.name]
            labels = {**space.labels, **meta.get("labels", {})}
            notes = {**space.annotations, **meta.get("annotations", {})}
            kept = [
                {key: value for key, value in each.items() if value is not None}
                for each in (labels, notes)
            ]
            self.namespaces[space.name] = replace(space, labels=kept[0], annotations=kept[1])
            self._watch("namespace", space.name)
            return Outcome()
        owner = self.owners[action.target.uid]
        if "spec" in action.patch:
            suspend = action.patch["spec"]["suspend"]
            if suspend and not owner.is_suspended:
                self.evictions.append(owner.uid)
            owner.is_suspended = suspend
        owner.marks = {
            key: value
            for key, value in {**owner.marks, **meta["annotations"]}.items()
            if value is not None
        }
        self._notify_owner(owner.uid)
        self.after(self.some(self.delay), lambda: self._sync(owner.uid))
        return Outcome()

    def _scale(self, action: ScaleJob) -> Outcome:
        owner = self.owners[action.target.uid]
        if owner.replicas != action.before or (action.is_resumed and not owner.is_suspended):
            return Outcome(
                Result.REFUSED, "the server rejected our request due to an error in our request"
            )
        owner.replicas = action.count
        owner.is_suspended = owner.is_suspended and not action.is_resumed
        own = {
            "fairlead.io/parallelism": str(action.own),
            "fairlead.io/lowered-parallelism": str(action.count),
        }
        kept = {
            key: value
            for key, value in owner.marks.items()
            if key not in own and (not action.is_resumed or "suspended" not in key)
        }
        owner.marks = kept | (own if action.count != action.own else {})
        self._notify_owner(owner.uid)
        self.after(self.some(self.delay), lambda: self._sync(owner.uid))
        return Outcome()

    def edit(self, uid: str, **changes: Any) -> None:
        """The owner of a job changes `parallelism` or `suspend`."""
        owner = self.owners[uid]
        owner.replicas = changes.get("parallelism", owner.replicas)
        owner.is_suspended = changes.get("suspend", owner.is_suspended)
        self._notify_owner(uid)
        self.after(self.some(self.delay), lambda: self._sync(uid))

    # --- the watch --------------------------------------------------------------------------------

    def _watch(self, kind: str, key: str = "") -> None:
        """Sends changes to the current life of the controller, with a delay, in order for each
        kind.
        """
        life, value = self._life, self._value(kind, key)
        at = max(self._reported_at.get(kind, 0.0), self.now + self.some(self.delay))
        self._reported_at[kind] = at
        self.after(
            at - self.now, lambda: self._deliver(kind, key, value) if life == self._life else None
        )

    def _value(self, kind: str, key: str) -> Any:
        match kind:
            case "pod":
                return self.pods.get(key)
            case "budget":
                return self.budgets.get(key)
            case "namespace":
                return self.namespaces.get(key)
            case "tree":
                return self.tree
            case _:
                return self._row(self.owners[key]) if key in self.owners else None

    def _deliver(self, kind: str, key: str, value: Any) -> None:
        machine = self.machine
        if machine is None:
            return
        by_kind = {
            "pod": KIND_PODS,
            "budget": KIND_BUDGETS,
            "namespace": KIND_NAMESPACES,
            "tree": KIND_QUOTA_TREES,
        }
        machine.observe(changed(by_kind.get(kind, kind), key, value))
        self._look_when_due()

    def _notify_owner(self, uid: str) -> None:
        if self.owners[uid].kind != "Bare":
            self._watch(self.owners[uid].kind, uid)

    def _row(self, owner: Owning) -> Workload:
        can, is_single = owner.kind in ("Job", "RayJob"), owner.kind == "Job"
        own = int(owner.marks.get("fairlead.io/parallelism", 0))
        own = (
            own if owner.marks.get("fairlead.io/lowered-parallelism") == str(owner.replicas) else 0
        )
        total = {each: amount * owner.replicas for each, amount in owner.request.items()}
        return Workload(
            owner.kind,
            "batch/v1" if can else "apps/v1",
            owner.namespace,
            owner.name,
            owner.uid,
            can_suspend=can,
            is_suspended=owner.is_suspended,
            suspended_for=owner.suspended_for,
            pods=owner.replicas,
            request=total,
            priority=int(owner.suspended_priority or 0),
            is_preemptible=False if owner.kind == "MPIJob" else None,
            can_lower=is_single,
            is_gang=is_single and owner.gang,
            parallelism=owner.replicas if is_single else 0,
            own_parallelism=own if is_single else 0,
            each=owner.request if is_single else {},
            held=max(0, own - owner.replicas) if is_single else 0,
            stale=stale_marks(owner.marks, is_suspended=owner.is_suspended, own_parallelism=own),
            has_annotations=bool(owner.marks),
            user=owner.labels.get(LABEL_USER, ""),
        )

    # --- the driver -------------------------------------------------------------------------------

    def start(self) -> None:
        """A new leader first lists everything."""
        self._life += 1
        self._reported_at.clear()
        self._look_at = None
        machine = self.machine = self._make_machine(KINDS)
        self.rebuild(machine)
        self._look_when_due()

    def rebuild(self, machine: QuotaMachine) -> None:
        """Lists everything for this machine."""
        machine.feed.rebuild()
        feed = machine.feed
        for kind in KINDS:
            feed.observe(
                listed(
                    kind,
                    {
                        uid: self._row(each)
                        for uid, each in self.owners.items()
                        if each.kind == kind
                    },
                )
            )
        feed.observe(listed(KIND_NODES, {"node": NODE}))
        feed.observe(listed(KIND_QUOTA_TREES, {"tree": self.tree} if self.tree else {}))
        feed.observe(listed(KIND_NAMESPACES, dict(self.namespaces)))
        feed.observe(listed(KIND_BUDGETS, dict(self.budgets)))
        feed.observe(listed(KIND_GROUPS, {}))
        feed.observe(listed(KIND_PODS, dict(self.pods)))

    def crash(self) -> None:
        """The next life begins when no call of this life can still be under way."""
        if self.machine is None:
            return
        self.crashes += 1
        self._life += 1
        self.machine = None
        self.after(5 + self.some(10), self.start)

    def _look_when_due(self) -> None:
        if self.machine is not None and self.machine.next_at is not None:
            self._look_by(max(self.machine.next_at, self.now + 0.05))

    def _look_by(self, at: float) -> None:
        if self._look_at is not None and self._look_at <= at:
            return
        self._look_at = at
        life = self._life
        self.after(max(0.0, at - self.now), lambda: self._look(life, at))

    def _look(self, life: int, at: float) -> None:
        machine = self.machine
        if life != self._life or machine is None or self._look_at != at:
            return
        self._look_at = None
        actions = machine.look(self.now)
        self._look_when_due()
        self._send(actions)

    def _send(self, actions: list[QuotaAction]) -> None:
        for action in actions:
            life = self._life
            self._flying += 1
            self.calls.append(action)
            crash = self.rng.random()
            if crash < self.faults.crash:
                self.crash()
                if crash < self.faults.crash / 2:  # the crash comes before the call is sent
                    self._flying -= 1
                    return
            self.after(self.some(1.0), lambda action=action, life=life: self._arrive(action, life))
            if life != self._life:
                return

    def _arrive(self, action: QuotaAction, life: int) -> None:
        chance = self.rng.random()
        if chance < self.faults.lost / 2:
            outcome = Outcome(Result.UNKNOWN, "it never came")
        elif chance < self.faults.lost:
            self.carry_out(action)
            outcome = Outcome(Result.UNKNOWN, "no answer")
        elif chance < self.faults.lost + self.faults.busy:
            outcome = Outcome(Result.REFUSED, "too many requests", is_busy=True)
        else:
            outcome = self.carry_out(action)
        self.after(self.some(0.5), lambda: self._answer(action, outcome, life))

    def _answer(self, action: QuotaAction, outcome: Outcome, life: int) -> None:
        self._flying -= 1
        if life == self._life and self.machine is not None:
            machine = self.machine
            self._send(machine.done(action, outcome, self.now))
            if machine is self.machine:
                self._look_when_due()
