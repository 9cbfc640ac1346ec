"""The state machine of the quota controller: what the cluster tells goes in, actions come out.

Pure and synchronous: time is an argument, nothing is awaited, and all state is here. Whatever must survive a
crash is in the API server: claims are conditions of pods, suspends are annotations of workloads. The rest
(calls on their way, refusals, back-off) may be lost at any time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.actions import (
    AdmitPod,
    DeleteObject,
    EvictPod,
    ObjectRef,
    Outcome,
    PatchObject,
    QuotaAction,
    Result,
    SetPodCondition,
    TellObjectEvent,
    WriteTreeStatus,
)
from fairlead.model.keys import ANNOTATION_LEAF, ANNOTATION_SUSPENDED_FOR, LABEL_QUOTA, QUOTA_ENFORCED
from fairlead.model.quota.plan import How, QuotaEviction, QuotaPlan, QuotaWaiting, Reason
from fairlead.model.quota.rows import Namespace, Workload
from fairlead.model.quota.state import QuotaPod, QuotaSettings, QuotaState
from fairlead.model.quota.tree import QuotaNode, QuotaTree, Violation
from fairlead.rules.quota.calls import Calls
from fairlead.rules.quota.feed import QuotaFeed
from fairlead.rules.quota.node_use import node_uses
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.telling import Telling, pod_ref, workload_ref
from fairlead.rules.quota.told_status import TreeStatus
from fairlead.rules.quota.validate import validate

LOOK_SECONDS: Final = 30.0
"""While anybody waits, stops or is unbound, a plan is made so often without any change."""
PATCH_SECONDS: Final = 10.0
"""A namespace that was patched and does not show it is patched again after that."""
TRIAL_SECONDS: Final = 5.0
"""What a trial says is good for so long."""
NO_TREE: Final = "there is no quota tree: `kubectl get elasticquotatree -n kube-system elasticquotatree`"
RUN_POLICY_KINDS: Final = ("TFJob", "PyTorchJob", "MPIJob")

DEFAULT_SETTINGS: Final = QuotaSettings()
_SUSPEND: Final = How.SUSPEND
_CLAIMS: Final = Reason.WAITING_FOR_EVICTIONS


class _Trial(Struct):
    """Evictions for one unit, tried dry. `left`: uids of those that have not been answered."""

    uids: frozenset[str]
    left: set[str]
    at: float


class QuotaMachine:
    """`look` says what is to be done now; `done` is told how each action ended, and says what follows.

    `next_at`: when the clock alone calls for the next look. `plan`: the latest.
    """

    def __init__(self, settings: QuotaSettings = DEFAULT_SETTINGS, on_change: Callable[[], None] = lambda: None) -> None:
        self.feed = QuotaFeed(settings, on_change)
        self.plan = QuotaPlan()
        self.next_at: float | None = None
        self._settings = settings
        self._calls = Calls(self.feed)
        self._telling = Telling(self.feed)
        self._trials: dict[str, _Trial] = {}
        self._patched: dict[str, tuple[Namespace, float]] = {}
        self._returns: dict[str, int] = {}
        self._told: dict[str, tuple[str, str]] = {}
        self._victims: dict[str, tuple[QuotaEviction, ...]] = {}
        self._planned_version = -1
        self._planned_at = 0.0
        self._is_stale = True
        self._calls_due: float | None = None
        self._broken = ""
        self._validated: tuple[QuotaTree | None, frozenset[str], tuple[Violation, ...]] | None = None
        self._status = TreeStatus()

    def look(self, now: float) -> list[QuotaAction]:
        """All that is to be done now, in the order in which it is to be done."""
        if not self.feed.is_rebuilt:
            return []
        self._calls.forget(now)
        actions: list[QuotaAction] = list(self._calls.again(now))
        if self._is_due(now):
            actions += self._replan(now)
        actions += self._status.next(now)
        actions += self._telling.next(now)
        self._calls_due = self._calls.next_after(now)
        self.next_at = self._next_after(now)
        return actions

    def done(self, action: QuotaAction, outcome: Outcome, now: float) -> list[QuotaAction]:
        match action:
            case SetPodCondition():
                self._telling.done(action, outcome, now)
                if action.condition.reason == _CLAIMS:
                    self._changed()  # what it was written for may go on
            case TellObjectEvent():
                self._telling.done(action, outcome, now)
            case EvictPod(is_trial=True):
                self._tried(action, outcome, now)
            case WriteTreeStatus():
                self._status.done(outcome, now)
            case PatchObject() if action.target.kind == "Namespace":
                if outcome.result is not Result.DONE:
                    self._patched.pop(action.target.name, None)
                    self._calls.pause(action.target.uid, now)
            case AdmitPod() | EvictPod() | DeleteObject() | PatchObject():
                self._called(action, outcome, now)
        return list(self._telling.next(now))

    # --- when -----------------------------------------------------------------------------------------------

    def _is_due(self, now: float) -> bool:
        if self._is_stale or self._planned_version != self.feed.version:
            return True
        if self._calls_due is not None and now >= self._calls_due:
            return True
        return now >= self._planned_at + LOOK_SECONDS and self._has_clocks

    @property
    def _has_clocks(self) -> bool:
        """Whether time alone can change the plan."""
        return bool(self.feed.waiting or self.feed.restless)

    def _next_after(self, now: float) -> float | None:
        times = [self._calls_due, self._telling.next_after(now), self._status.next_after(now)]
        if self._has_clocks:
            times.append(self._planned_at + LOOK_SECONDS)
        return min((at for at in times if at is not None), default=None)

    def _changed(self) -> None:
        self._is_stale = True
        self.feed.on_change()

    # --- the plan -------------------------------------------------------------------------------------------

    def _replan(self, now: float) -> Iterator[QuotaAction]:
        self._is_stale, self._planned_version, self._planned_at = False, self.feed.version, now
        self.feed.settle()
        tree = self.feed.tree
        violations = self._violations(tree)
        root = tree.root if tree is not None and not any(each.stops for each in violations) else None
        if tree is None or root is None:
            self._break(tree, violations, now)
            return
        self._broken = ""
        state = self._state(root, now)
        self.plan = plan = replace(plan_quota(state), violations=violations)
        rows = {row.unit: row for row in plan.waiting}
        claims = [row for row in plan.waiting if row.reason == _CLAIMS]
        self._telling.want(plan.waiting, now)
        yield from self._claim(claims, now)
        yield from self._evict(plan.evict, rows, now)
        yield from self._resume(plan, now)
        yield from self._admit(plan, root, now)
        yield from self._return(plan, now)
        yield from self._enforce(root, now)
        nodes = plan.nodes or node_uses(state, plan.claims)
        self._status.want(tree, nodes, violations, self._not_enforced(root), now)

    def _violations(self, tree: QuotaTree | None) -> tuple[Violation, ...]:
        """Of the tree as it stands; validated again only when it, or the set of namespaces, has changed."""
        names = frozenset(space.name for space in self.feed.namespaces.rows.values())
        if self._validated is None or self._validated[0] is not tree or self._validated[1] != names:
            found = validate(tree, tree, names) if tree is not None else ()
            self._validated = tree, names, found
        return self._validated[2]

    def _state(self, root: QuotaNode, now: float) -> QuotaState:
        """What the watch shows, with our calls laid over it."""
        feed, pods = self.feed, dict(self.feed.known)
        for uid in self._calls.touched | set(self._telling.touched):
            pod = pods.get(uid)
            if pod is not None:
                pods[uid] = self._calls.over(self._telling.over(pod))
        turned = {uid: self._calls.over_workload(feed.workload_of[uid]) for uid in self._calls.turning if uid in feed.workload_of}
        leaf_spaces = frozenset(name for leaf in root.leaves() for name in leaf.namespaces)
        return QuotaState(
            root,
            tuple(pod for pod in pods.values() if pod.namespace in leaf_spaces),
            budgets=feed.sight.allowed(),
            now=now,
            settings=self._settings,
            nodes=feed.rooms(leaf_spaces, now),
            workloads={**feed.workload_of, **turned},
        )

    def _break(self, tree: QuotaTree | None, violations: tuple[Violation, ...], now: float) -> None:
        """Without a tree, or with one that cannot be planned by, nobody is admitted and nobody evicted."""
        first = next((each.message for each in violations if each.stops), "it has no root")
        sentence = NO_TREE if tree is None else f"the quota tree is invalid: {first}"
        pods = (self._telling.over(self.feed.known[uid]) for uid in self.feed.waiting)
        rows = [QuotaWaiting(pod.key, "", (pod,), Reason.TREE_INVALID, sentence) for pod in pods]
        self.plan = QuotaPlan(waiting=tuple(rows), violations=violations)
        self._telling.want(rows, now)
        if tree is not None and self._broken != sentence:
            target = ObjectRef("scheduling.sigs.k8s.io/v1beta1", "ElasticQuotaTree", tree.name, tree.namespace, tree.uid)
            self._telling.event(target, "QuotaTreeInvalid", sentence, "Warning")
        self._broken = sentence
        if tree is not None:
            self._status.want(tree, (), violations, "the tree is invalid", now)

    # --- what it asks for -----------------------------------------------------------------------------------

    def _claim(self, rows: Iterable[QuotaWaiting], now: float) -> Iterator[QuotaAction]:
        for row in rows:
            for pod in row.pods:
                if pod.claim_since is None:
                    written = self._telling.claim(pod, row.message, now)
                    if written is not None:
                        yield written

    def _evict(self, evictions: Sequence[QuotaEviction], rows: Mapping[str, QuotaWaiting], now: float) -> Iterator[QuotaAction]:
        """Those of a unit whose claim is written: of several victims only what a trial allowed."""
        by_unit: defaultdict[str, list[QuotaEviction]] = defaultdict(list)
        for eviction in evictions:
            by_unit[eviction.for_unit].append(eviction)
        for unit in [unit for unit in self._trials if unit not in by_unit]:
            del self._trials[unit]
        for unit, victims in by_unit.items():
            row = rows.get(unit)
            if unit and (row is None or any(pod.claim_since is None for pod in row.pods)):
                continue
            if any(self._calls.is_paused(each.pod.uid, now) for each in victims):
                continue
            if len(victims) == 1 and victims[0].how != _SUSPEND:
                yield self._evict_one(victims[0], now)
            else:
                yield from self._evict_all(unit, victims, now)

    def _evict_all(self, unit: str, victims: Sequence[QuotaEviction], now: float) -> Iterator[QuotaAction]:
        uids = frozenset(each.pod.uid for each in victims)
        trial = self._trials.get(unit)
        if trial is None or trial.uids != uids or (not trial.left and now >= trial.at + TRIAL_SECONDS):
            self._trials[unit] = _Trial(uids, set(uids), now)
            yield from (EvictPod(pod_ref(each.pod), is_trial=True) for each in victims)
            return
        if trial.left:
            return
        del self._trials[unit]
        suspended: dict[str, list[QuotaEviction]] = {}
        for each in victims:
            if each.how == _SUSPEND and each.workload is not None:
                suspended.setdefault(each.workload.uid, []).append(each)
            else:
                yield self._evict_one(each, now)
        for uid, group in suspended.items():
            self._victims[uid] = tuple(group)
            workload = group[0].workload
            if workload is not None:
                yield self._calls.send(turn_action(workload, unit), now, unit)

    def _evict_one(self, eviction: QuotaEviction, now: float) -> QuotaAction:
        self._victims[eviction.pod.uid] = (eviction,)
        grace = None if eviction.grace_seconds is None else int(eviction.grace_seconds)
        return self._calls.send(EvictPod(pod_ref(eviction.pod), grace), now, eviction.for_unit)

    def _resume(self, plan: QuotaPlan, now: float) -> Iterator[QuotaAction]:
        for each in plan.resume:
            uid = each.workload.uid
            if uid not in self._calls.turning and not self._calls.is_paused(uid, now):
                yield self._calls.send(turn_action(each.workload, ""), now)

    def _admit(self, plan: QuotaPlan, root: QuotaNode, now: float) -> Iterator[QuotaAction]:
        for each in plan.admit:
            if not self._calls.is_paused(each.pod.uid, now):
                self._told[each.pod.uid] = each.leaf, admitted_sentence(each.leaf)
                yield self._admit_one(each.pod, now)
        leaves = {name for leaf in root.leaves() for name in leaf.namespaces}
        for uid in self.feed.waiting:
            pod = self.feed.known[uid]
            if pod.namespace not in leaves and uid not in self._calls.admitting and not self._calls.is_paused(uid, now):
                yield self._admit_one(pod, now)  # its namespace has left the tree

    def _admit_one(self, pod: QuotaPod, now: float) -> QuotaAction:
        return self._calls.send(AdmitPod(pod_ref(pod), self.feed.waiting.get(pod.uid, 0)), now)

    def _return(self, plan: QuotaPlan, now: float) -> Iterator[QuotaAction]:
        """Pods that were never bound: each time twice as late, by their owner."""
        for each in plan.returned:
            pod = each.pod
            times = self._returns.get(pod.owner, 0)
            if each.is_told:
                if pod.uid not in self._told:
                    self._told[pod.uid] = each.leaf, ""
                    self._telling.event(pod_ref(pod), "QuotaReturned", f"admitted by {each.leaf}, and no node has taken it", "Warning")
            elif now - pod.admitted_at >= self._settings.unbound_seconds * 2**times and not self._calls.is_paused(pod.uid, now):
                yield self._calls.send(DeleteObject(pod_ref(pod)), now)

    def _enforce(self, root: QuotaNode, now: float) -> Iterator[QuotaAction]:
        """The label and the annotation by which namespaces of leaves are known to admission."""
        leaf_of = {name: leaf.name for leaf in root.leaves() for name in leaf.namespaces}
        for space in self.feed.namespaces.rows.values():
            leaf = leaf_of.get(space.name)
            patch = namespace_patch(space, leaf)
            if not patch or space.is_ending or self._calls.is_paused(space.uid, now):
                continue
            known = self._patched.get(space.name)
            if known is not None and known[0] == space and now < known[1] + PATCH_SECONDS:
                continue
            self._patched[space.name] = space, now
            yield PatchObject(ObjectRef("v1", "Namespace", space.name, "", space.uid), patch)

    def _not_enforced(self, root: QuotaNode) -> str:
        """Which namespaces of leaves are not marked yet, "" = none."""
        leaf_of = {name: leaf.name for leaf in root.leaves() for name in leaf.namespaces}
        spaces = [each for each in self.feed.namespaces.rows.values() if each.name in leaf_of]
        left = sorted(each.name for each in spaces if namespace_patch(each, leaf_of[each.name]))
        return f"namespaces without the label {LABEL_QUOTA}: {', '.join(left)}" if left else ""

    # --- how they ended -------------------------------------------------------------------------------------

    def _tried(self, action: EvictPod, outcome: Outcome, now: float) -> None:
        uid = action.target.uid
        for unit, trial in list(self._trials.items()):
            if uid not in trial.left:
                continue
            if outcome.result in (Result.DONE, Result.GONE):
                trial.left.discard(uid)
                trial.at = now
            else:
                del self._trials[unit]
                if outcome.result is Result.REFUSED:
                    self._calls.refused_at[uid] = now
                self._calls.pause(uid, now)
            self._changed()

    def _called(self, action: AdmitPod | EvictPod | DeleteObject | PatchObject, outcome: Outcome, now: float) -> None:
        call = self._calls.ended(action, outcome, now)
        if call is None:
            return
        uid = action.target.uid
        if outcome.result is Result.REFUSED:
            self._changed()
        if outcome.result is not Result.DONE:
            self._calls_due = self._calls.next_after(now)
            self.next_at = self._next_after(now)
            return
        match action:
            case AdmitPod():
                pod, told = self.feed.known.get(uid), self._told.pop(uid, None)
                if pod is not None and told is not None:
                    self._telling.admitted(pod, told[1])
            case EvictPod() | PatchObject():
                self._tell_victims(uid, action, call.for_unit)
            case DeleteObject():
                pod = self.feed.known.get(uid)
                if pod is not None:
                    self._returns[pod.owner] = self._returns.get(pod.owner, 0) + 1
                    self._tell_owner(pod, "QuotaReturned", f"{pod.name} was admitted, and no node has taken it")

    def _tell_victims(self, uid: str, action: EvictPod | PatchObject, unit: str) -> None:
        for each in self._victims.pop(uid, ()):
            told = each.told or f"makes room for {unit}"
            self._telling.event(pod_ref(each.pod), "QuotaReclaimed", told, "Warning")
            if isinstance(action, EvictPod):
                self._tell_owner(each.pod, "QuotaReclaimed", f"{each.pod.name}: {told}")
        if isinstance(action, PatchObject):
            workload = self.feed.workload_of.get(uid)
            if workload is not None and unit:
                self._telling.event(workload_ref(workload), "QuotaSuspended", f"makes room for {unit}", "Warning")
            elif workload is not None:
                self._telling.event(workload_ref(workload), "QuotaResumed", "there is room again")

    def _tell_owner(self, pod: QuotaPod, reason: str, told: str) -> None:
        owner = self.feed.workload_of.get(pod.owner)
        if owner is not None:
            self._telling.event(workload_ref(owner), reason, told, "Warning")


def admitted_sentence(leaf: str) -> str:
    return f"admitted by {leaf}"


def turn_action(workload: Workload, for_unit: str) -> PatchObject:
    """Suspends the workload for that unit; resumes it when there is none."""
    suspend: dict[str, Any] = {"suspend": bool(for_unit)}
    spec = {"runPolicy": suspend} if workload.kind in RUN_POLICY_KINDS else suspend
    annotations = {ANNOTATION_SUSPENDED_FOR: for_unit or None}
    return PatchObject(workload_ref(workload), {"metadata": {"annotations": annotations}, "spec": spec})


def namespace_patch(space: Namespace, leaf: str | None) -> dict[str, Any]:
    """What makes its label and annotation say that leaf; None: no leaf. Empty when they do already."""
    label = QUOTA_ENFORCED if leaf is not None else None
    patch: dict[str, Any] = {}
    if space.labels.get(LABEL_QUOTA) != label:
        patch["labels"] = {LABEL_QUOTA: label}
    if space.annotations.get(ANNOTATION_LEAF) != leaf:
        patch["annotations"] = {ANNOTATION_LEAF: leaf}
    return {"metadata": patch} if patch else {}
