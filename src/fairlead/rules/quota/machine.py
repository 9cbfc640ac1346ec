"""The decider of the quota controller: what the API server reports goes in (`observe`), actions
come out (`look`), and the outcome of each action goes in again (`done`).

The problem. The controller sees the cluster through watches, which are late, and changes it by
calls, which may be refused or end without an answer. Also after a crash it must not admit more than
the tree allows, nor evict more than it needs. Thousands of pods may wait, so a look must not read
all of them.

Where state lives. Time is an argument, nothing is awaited, and all state of the process is here.
What must survive a crash is in the API server: claims are conditions of pods, suspends are
annotations of workloads. The rest (pending calls, refusals, pauses, trials) may be lost at any
time. A plan is made from the account: the pods as the watch shows them, with the conditions that
were written (`reports`) and the calls that were sent (`calls`) laid over them.

The states of an eviction for a unit:

- unclaimed: `_claim` writes the condition `WaitingForEvictions` to the pods of the unit;
- claimed: a single pod is evicted. For several victims, and for a job that is to be suspended or
  lowered, a trial (a dry run) of each eviction is sent first;
- tried: if all trials were allowed, the evictions are sent. A trial that is not allowed ends the
  attempt and pauses its victim; the next plan chooses again.

An eviction that drains a node above its max (`is_drain`) is for no unit and needs no claim. The
pods of one job or gang go together, all others one by one.

The invariants:

- No pod is evicted for a unit before the claim is written on all pods of the unit.
- Without a tree, or with an invalid one, no pod is admitted and no pod is evicted.
- An object whose call was refused gets no new call during its pause.

Why the order of a look (docs/spec/quota.md#the-quota-controller): annotations that no longer hold
go first, so that no later step takes them for Fairlead's; a claim precedes the evictions that it
stands for; conditions, Events and the status follow the calls that move pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
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
    RecordObjectEvent,
    Result,
    ScaleJob,
    SetPodCondition,
    WriteTreeStatus,
)
from fairlead.model.changes import Changes
from fairlead.model.keys import (
    ANNOTATION_LEAF,
    LABEL_QUOTA,
    NO_NODE,
    OVER_MAX,
    QUOTA_ENFORCED,
)
from fairlead.model.quota.plan import (
    EvictionMethod,
    QuotaEviction,
    QuotaNodeUse,
    QuotaPlan,
    QuotaReturn,
    QuotaWaiting,
    Reason,
)
from fairlead.model.quota.rows import Namespace, Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import AdmittedUse, QuotaNode, QuotaTree, Violation
from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.calls import CallAction, Calls
from fairlead.rules.quota.feed import QuotaFeed
from fairlead.rules.quota.jobs.removal import left_without
from fairlead.rules.quota.jobs.turning import (
    disown_action,
    lower_action,
    raise_action,
    resume_action,
    suspend_action,
)
from fairlead.rules.quota.managed import PROTECTED
from fairlead.rules.quota.node_use import NodeUses, promised_by_leaf
from fairlead.rules.quota.plan import Planned, plan_account
from fairlead.rules.quota.reports import QuotaReports, pod_ref, workload_ref
from fairlead.rules.quota.tree_status import TreeStatus
from fairlead.rules.quota.validate import validate

LOOK_SECONDS: Final = 30.0
"""While a pod waits, stops or is unbound: the longest time between two plans without a change."""
REFRESH_ROWS: Final = 50
"""For leaves that a plan did not look at: the number of rows whose sentences are made in one look,
so that a look stays short.
"""
REFRESH_PAUSE_SECONDS: Final = 0.2
"""The pause before the next `REFRESH_ROWS` rows."""
PATCH_SECONDS: Final = 10.0
"""The time after which a patch is sent again if the watch does not show it: of a namespace's marks,
and of a job's stale annotations.
"""
TRIAL_SECONDS: Final = 5.0
"""How long the result of a trial is valid."""
NO_TREE: Final = (
    "there is no quota tree: `kubectl get elasticquotatree -n kube-system elasticquotatree`"
)

_EVICT: Final = EvictionMethod.EVICT
_JOB: Final = "Job"
_CLAIMS: Final = Reason.WAITING_FOR_EVICTIONS


_Batch = tuple[str, str]
"""Names the evictions that are sent together or not at all: those for one unit, or those of one job
or gang of a node that is drained.
"""


class _Trial(Struct):
    """Dry runs of the evictions of one batch.

    `left`: uids of the victims whose dry run has not been answered. `at`: when it began, then when
    its latest answer arrived.
    """

    uids: frozenset[str]
    left: set[str]
    at: float


class QuotaMachine:
    """`look` returns the actions that are due now; `done` takes the outcome of an action and
    returns the actions that follow from it.

    `own`: Fairlead's namespaces, if they are not the default. `next_at`: when the next look is due
    even if nothing changes.
    """

    def __init__(
        self, workload_kinds: Collection[str] = (), own: Collection[str] = frozenset()
    ) -> None:
        self.own = own
        self.feed = QuotaFeed(workload_kinds)
        self.calls = Calls(self.feed)
        self.reports = QuotaReports(self.feed)
        self._trials: dict[_Batch, _Trial] = {}
        self._patched: dict[str, tuple[Namespace, float]] = {}
        self._disowned: dict[str, float] = {}
        self._returns: dict[str, int] = {}
        self._admission_messages: dict[str, str] = {}
        self._victims: dict[str, tuple[QuotaEviction, ...]] = {}
        self._plan: QuotaPlan | None = QuotaPlan()
        self._planned: Planned | None = None
        self._account: QuotaAccount | None = None
        self._uses: NodeUses | None = None
        self._uncounted: set[int] = set()
        self._recounted: set[int] = set()
        self._is_all_refreshed = False
        self._unrefreshed: dict[int, None] = {}
        self._rested_at = 0.0
        self._overlaid: set[str] = set()
        self._admitting: set[str] = set()
        self._turned: set[str] = set()
        self._strays: set[str] = set()
        self._stray_jobs: set[str] = set()
        self._leaf_of: dict[str, str] = {}
        self._unmarked: list[tuple[Namespace, dict[str, Any]]] = []
        self._marks_version = -1
        self._now = 0.0
        self._planned_version = -1
        self._planned_at = 0.0
        self._alarm: float | None = None
        self._refreshed_at = 0.0
        self._listing: tuple[int, QuotaAccount | None] = -1, None
        self._is_stale = True
        self._calls_due: float | None = None
        self._next_at: float | None = None
        self._broken = ""
        self._validated: tuple[QuotaTree | None, int, tuple[Violation, ...]] | None = None
        self._status = TreeStatus()

    @property
    def is_rebuilt(self) -> bool:
        """Whether every kind has been listed since the last `rebuild`."""
        return self.feed.is_rebuilt

    def rebuild(self) -> None:
        """Trust no earlier report, and await no answer of a trial: every kind is listed anew."""
        self.feed.rebuild()
        self._trials.clear()

    @property
    def next_at(self) -> float | None:
        """When the next look is due; 0.0 = now, None while a kind has not been listed yet."""
        if not self.feed.is_rebuilt:
            return None
        return 0.0 if self._has_changed else self._next_at

    def observe(self, changes: Changes[Any]) -> None:
        """Take what a list or a watch reported about one kind."""
        self.feed.observe(changes)

    def look(self, now: float) -> list[QuotaAction]:
        """The actions that are due now, in the order in which they must be carried out."""
        if not self.feed.is_rebuilt:
            return []
        if now < self._now:
            self._step_back(now)
        self._now = now
        self.calls.forget(now)
        self.reports.forget(now)
        actions: list[QuotaAction] = list(self.calls.again(now))
        if self._is_due(now):
            actions += self._replan(now)
        if self._unrefreshed:
            self._refresh_more(now)
        actions += self._status.next(now)
        actions += self.reports.more(now)
        self._calls_due = self.calls.next_after(now)
        self._next_at = self._next_after(now)
        return actions

    def done(self, action: QuotaAction, outcome: Outcome, now: float) -> list[QuotaAction]:
        match action:
            case SetPodCondition():
                self.reports.done(action, outcome, now)
                if action.condition.reason == _CLAIMS:
                    self._is_stale = True  # the evictions that wait for this claim may now be sent
            case RecordObjectEvent():
                self.reports.done(action, outcome, now)
            case EvictPod(is_trial=True):
                self._tried(action, outcome, now)
            case WriteTreeStatus():
                self._status.done(outcome, now)
            case PatchObject() if action.target.kind == "Namespace":
                if outcome.result is not Result.DONE:
                    self._patched.pop(action.target.name, None)
                    self.calls.pauses.pause(action.target.uid, now)
            case PatchObject() if "spec" not in action.patch:
                if outcome.result is not Result.DONE:
                    self.calls.pauses.pause(action.target.uid, now)
            case AdmitPod() | EvictPod() | DeleteObject() | PatchObject() | ScaleJob():
                self._called(action, outcome, now)
        return list(self.reports.more(now))

    # --- when -------------------------------------------------------------------------------------

    def _is_due(self, now: float) -> bool:
        if self._has_changed:
            return True
        if any(due is not None and now >= due for due in (self._calls_due, self._alarm)):
            return True
        return now >= self._planned_at + LOOK_SECONDS and self._has_clocks

    @property
    def _has_changed(self) -> bool:
        """Whether something has changed since the latest plan."""
        return self._is_stale or self._planned_version != self.feed.version

    @property
    def _has_clocks(self) -> bool:
        """Whether time alone can change the plan."""
        return bool(self.feed.waiting or self.feed.restless)

    def _next_after(self, now: float) -> float | None:
        times = [
            self._calls_due,
            self._alarm,
            self.reports.next_after(now),
            self._status.next_after(now),
        ]
        if self._has_clocks:
            times.append(self._planned_at + LOOK_SECONDS)
        if self._unrefreshed:
            times.append(self._rested_at)
        return min((at for at in times if at is not None), default=None)

    def _step_back(self, now: float) -> None:
        """The clock was set back: no pause may last longer because of it."""
        self.calls.step_back(now)
        self.reports.step_back(now)
        self._status.step_back(now)
        self._trials.clear()
        self._patched.clear()
        self._disowned.clear()
        self._admitting.clear()
        self._refreshed_at, self._rested_at, self._is_stale = 0.0, 0.0, True

    # --- the plan ---------------------------------------------------------------------------------

    def _replan(self, now: float) -> Iterator[QuotaAction]:
        self._is_stale, self._planned_version, self._planned_at = False, self.feed.version, now
        self.feed.settle()
        tree = self.feed.tree
        violations = self._violations(tree)
        root = (
            tree.root if tree is not None and not any(each.stops for each in violations) else None
        )
        if tree is None or root is None:
            self._break(tree, violations, now)
            return
        self._broken = ""
        account = self.keep(root, now)
        account.violations = violations
        planned = self._planned = plan_account(account, now)
        self._alarm = account.next_at()
        self._plan = None
        refreshed = self._refresh(account, planned, now)
        rows = {row.unit: row for its in refreshed.values() for row in its}
        yield from self._disown(now)
        yield from self._claim([row for row in rows.values() if row.reason == _CLAIMS], now)
        yield from self._evict(planned.evict, rows, now)
        yield from self._resume(planned, now)
        yield from self._admit(planned, now)
        yield from self._return(planned, now)
        yield from self._enforce(now)
        self._uncounted |= set(account.reread)
        self._recounted |= refreshed.keys()
        self._status.want(
            tree,
            self._node_uses,
            violations,
            self._not_enforced(),
            now,
            self._charged,
            self._user_uses,
        )

    @property
    def plan(self) -> QuotaPlan:
        """The latest plan."""
        if self._plan is None:
            self._plan = (
                QuotaPlan()
                if self._planned is None
                else replace(self._planned.plan(), nodes=self._node_uses())
            )
        return self._plan

    def _refresh(
        self, account: QuotaAccount, planned: Planned, now: float
    ) -> dict[int, Sequence[QuotaWaiting]]:
        """Pass the plan's rows to `reports`; return those of the leaves that the plan looked at.

        The conditions of these leaves follow every plan. In other leaves only sentences may have
        changed: their rows are passed on at most every `LOOK_SECONDS`, a few leaves in each look.
        """
        places, names = planned.looked_at(), account.index.names
        rows: dict[int, Sequence[QuotaWaiting]] = {
            place: planned.waiting_in(place) for place in places
        }
        self._is_all_refreshed = self._is_all_refreshed and not account.reread
        if self._listing != (listing := (self.feed.listings, account)):
            self._listing, self._refreshed_at, self._is_all_refreshed, self._unrefreshed = (
                listing,
                now,
                True,
                {},
            )
            self.reports.want(
                {
                    names[place]: rows.get(place) or planned.waiting_in(place)
                    for place in account.books
                },
                now,
            )
            return rows
        for place in places:
            self._unrefreshed.pop(place, None)
            self.reports.want_in(names[place], rows[place], now)
        if (
            not self._is_all_refreshed
            and not self._unrefreshed
            and now >= self._refreshed_at + LOOK_SECONDS
        ):
            self._refreshed_at, self._is_all_refreshed, self._unrefreshed = (
                now,
                True,
                dict.fromkeys(account.books),
            )
        return rows

    def _refresh_more(self, now: float) -> None:
        """Pass on the rows of some leaves that the latest plan did not look at."""
        account, planned = self._account, self._planned
        if account is None or planned is None or now < self._rested_at:
            return
        left = REFRESH_ROWS
        while self._unrefreshed and left > 0:
            place, _ = self._unrefreshed.popitem()
            its = planned.waiting_in(place)
            self.reports.want_in(account.index.names[place], its, now)
            left -= 1 + len(its)
        self._rested_at = now + REFRESH_PAUSE_SECONDS

    def keep(self, root: QuotaNode, now: float) -> QuotaAccount:
        """The account of what the watch shows, with this controller's calls laid over it."""
        feed, account = self.feed, self._account
        changed, feed.touched_pods = feed.touched_pods, set()
        turned, feed.touched_workloads = feed.touched_workloads, set()
        if account is None or account.tree is not root or account.settings != feed.settings:
            account = self._account = QuotaAccount(root, feed.settings)
            self._uses, self._uncounted = NodeUses(root, feed.settings), set(account.books)
            self._recounted = set()
            self._leaf_of = {
                name: leaf.name
                for leaf in root.leaves()
                for name in leaf.namespaces
                if name not in PROTECTED and name not in self.own
            }
            self._marks_version, self._strays, self._admitting = -1, set(), set()
            changed, turned = set(feed.known), set(feed.workload_of)
        calls = self.calls
        overlaid = {*calls.touched, *self.reports.touched}
        others = {*calls.stopping, *calls.refused_at, *self.reports.touched}
        # pending admissions may be thousands: each is laid over once
        admitting = set() if calls.turning else calls.admitting.keys() - others
        for uid in (changed | overlaid | self._overlaid) - (
            (admitting & self._admitting) - changed
        ):
            self._keep_pod(account, uid)
        self._overlaid, self._admitting = overlaid, admitting
        turning = {*self.calls.turning, *self.calls.awaited}
        for uid in turned | turning | self._turned:
            job = feed.workload_of.get(uid)
            if job is None:
                account.drop_workload(uid)
            elif account.workloads.get(uid) != (laid := self.calls.over_workload(job)):
                account.put_workload(laid)
            self._stray_jobs.discard(uid)
            if (
                job is not None
                and job.namespace not in self._leaf_of
                and (job.own_parallelism or (job.is_suspended and job.suspended_for))
            ):
                self._stray_jobs.add(uid)
        self._turned = turning
        account.budgets, account.scheduled_at = feed.sight.allowed(), feed.scheduled_at
        account.set_nodes(feed.rooms(frozenset(self._leaf_of), now))
        return account

    def _keep_pod(self, account: QuotaAccount, uid: str) -> None:
        pod = self.feed.known.get(uid)
        self._strays.discard(uid)
        if pod is not None and pod.namespace in self._leaf_of:
            account.put(self.calls.over(self.reports.over(pod)))
            return
        going = self.calls.going_though_admitted(uid)
        if going is not None and going.namespace in self._leaf_of:
            account.put(going)
            return
        ghost = self.calls.ghosts.get(uid)
        if pod is None and ghost is not None and ghost[0].namespace in self._leaf_of:
            account.put(ghost[0])
            return
        account.drop(uid)
        if pod is not None and not pod.is_admitted:
            self._strays.add(uid)

    def _node_uses(self) -> tuple[QuotaNodeUse, ...]:
        """What each node uses; only leaves that changed are counted again."""
        uses, account, planned = self._uses, self._account, self._planned
        if uses is None or account is None or planned is None:
            return ()
        names = account.index.names
        for place in self._uncounted:
            uses.read(names[place], account.books[place].pods.values(), account.now)
        for place in self._recounted:
            uses.wait_in(names[place], planned.waiting_units_in(place))
        self._uncounted, self._recounted = set(), set()
        return uses.rows(promised_by_leaf(planned.claims, account.kept()), account.index.counted())

    def _user_uses(self) -> tuple[AdmittedUse, ...]:
        """What each user has admitted in each leaf."""
        return self._account.user_uses() if self._account is not None else ()

    def _charged(self) -> list[QuotaPod]:
        """Admitted pods of all leaves."""
        return (
            [pod for pod in self._account.pods.values() if pod.is_admitted]
            if self._account is not None
            else []
        )

    def _violations(self, tree: QuotaTree | None) -> tuple[Violation, ...]:
        """Violations of the tree, found again only if it or the set of namespaces changed."""
        spaces = self.feed.namespaces
        if (
            self._validated is None
            or self._validated[0] is not tree
            or self._validated[1] != spaces.version
        ):
            names = frozenset(space.name for space in spaces.rows.values())
            self._validated = (
                tree,
                spaces.version,
                validate(tree, tree, names, own=self.own) if tree is not None else (),
            )
        return self._validated[2]

    def _break(self, tree: QuotaTree | None, violations: tuple[Violation, ...], now: float) -> None:
        """Without a tree, or with an invalid one, no pod is admitted and no pod is evicted."""
        first = next((each.message for each in violations if each.stops), "it has no root")
        sentence = NO_TREE if tree is None else f"the quota tree is invalid: {first}"
        pods = (self.reports.over(self.feed.known[uid]) for uid in self.feed.waiting)
        rows = [QuotaWaiting(pod.key, "", (pod,), Reason.TREE_INVALID, sentence) for pod in pods]
        self._plan = QuotaPlan(waiting=tuple(rows), violations=violations)
        self._account = self._planned = self._uses = self._alarm = None
        self._unrefreshed = {}
        self.reports.want({"": rows}, now)
        if tree is not None and self._broken != sentence:
            target = ObjectRef(
                "scheduling.sigs.k8s.io/v1beta1",
                "ElasticQuotaTree",
                tree.name,
                tree.namespace,
                tree.uid,
            )
            self.reports.event(target, "QuotaTreeInvalid", sentence, "Warning")
        self._broken = sentence
        if tree is not None:
            self._status.want(tree, tuple, violations, "the tree is invalid", now)

    # --- actions of a plan ------------------------------------------------------------------------

    def _claim(self, rows: Iterable[QuotaWaiting], now: float) -> Iterator[QuotaAction]:
        for row in rows:
            for pod in row.pods:
                if pod.claim_since is None:
                    written = self.reports.claim(pod, row.message, now)
                    if written is not None:
                        yield written

    def _evict(
        self, evictions: Sequence[QuotaEviction], rows: Mapping[str, QuotaWaiting], now: float
    ) -> Iterator[QuotaAction]:
        """Evictions for units with a written claim, and for nodes that are drained; several victims
        only if a trial allowed all.

        The order is that of the plan, and no later unit overtakes one that waits for a trial: a pod
        that stops makes room for the first unit of the next plan, so it would make room for the
        wrong unit, and other victims would be chosen. For the same reason no eviction is sent for a
        unit before all claims of its second are written. A failed claim is none in flight.
        """
        batches: defaultdict[_Batch, list[QuotaEviction]] = defaultdict(list)
        for eviction in evictions:
            batches[_batch_of(eviction)].append(eviction)
        for batch in [batch for batch in self._trials if batch not in batches]:
            del self._trials[batch]
        is_held, in_flight = False, self._eldest_in_flight(rows.values()) if batches else inf
        for batch, victims in batches.items():
            is_drain = victims[0].is_drain
            if not is_drain:
                row = rows.get(victims[0].for_unit)
                if row is None:
                    continue
                if not all(self.reports.is_claimed(pod) for pod in row.pods):
                    continue
                is_held = is_held or any((pod.claim_since or 0) >= in_flight for pod in row.pods)
            if any(self._is_left_alone(each, now) for each in victims):
                continue
            if len(victims) > 1 or victims[0].method != _EVICT:
                yield from self._evict_all(batch, victims, now, may_send=not is_held)
                is_held = is_held or (not is_drain and batch in self._trials)
            elif not is_held:
                yield self._evict_one(victims[0], now)

    def _eldest_in_flight(self, rows: Iterable[QuotaWaiting]) -> float:
        """When the eldest claim that is not written yet was sent, in epoch seconds; inf = none."""
        return min(
            (
                pod.claim_since
                for row in rows
                if row.reason == _CLAIMS
                for pod in row.pods
                if pod.claim_since is not None and not self.reports.is_claimed(pod)
            ),
            default=inf,
        )

    def _evict_all(
        self, batch: _Batch, victims: Sequence[QuotaEviction], now: float, *, may_send: bool
    ) -> Iterator[QuotaAction]:
        uids = frozenset(each.pod.uid for each in victims)
        trial = self._trials.get(batch)
        if (
            trial is None
            or trial.uids != uids
            or (not trial.left and now >= trial.at + TRIAL_SECONDS)
        ):
            self._trials[batch] = _Trial(uids, set(uids), now)
            yield from (EvictPod(pod_ref(each.pod), is_trial=True) for each in victims)
            return
        if trial.left or not may_send:
            return
        del self._trials[batch]
        by_job: dict[str, list[QuotaEviction]] = {}
        for each in victims:
            if each.workload is not None:
                by_job.setdefault(each.workload.uid, []).append(each)
            else:
                yield self._evict_one(each, now)
        for group in by_job.values():
            workload = group[0].workload
            if workload is not None:
                yield from self._take(workload, group, now)

    def _take(
        self, job: Workload, group: Sequence[QuotaEviction], now: float
    ) -> Iterator[QuotaAction]:
        """Take pods of a job: lower its parallelism, or suspend it if all its pods must stop."""
        unit = OVER_MAX if group[0].is_drain else group[0].for_unit
        gone = [each.pod.uid for each in group]
        priority = max(each.pod.priority for each in group)
        left = 0
        if all(each.method == EvictionMethod.LOWER for each in group):
            found = left_without(self.feed.active_of(job.uid), gone)
            if found is None:  # the Job controller would delete another pod
                return
            left = found
        self._victims[job.uid] = tuple(group)
        if left:
            yield self.calls.send(lower_action(job, left, priority), now, unit, frozenset(gone))
        else:
            yield self.calls.send(suspend_action(job, unit, priority), now, unit)

    def _is_left_alone(self, eviction: QuotaEviction, now: float) -> bool:
        """Whether the pod or its job is paused, or another call for its job is pending."""
        if self.calls.pauses.is_paused(eviction.pod.uid, now):
            return True
        job = eviction.workload
        if job is None:
            return False
        return (
            job.uid in self.calls.turning
            or job.uid in self.feed.stale
            or self.calls.pauses.is_paused(job.uid, now)
        )

    def _disown(self, now: float) -> Iterator[QuotaAction]:
        """Withdraw annotations of this controller that no longer hold: a later suspend or
        parallelism is the owner's, and must not be taken for this controller's.
        """
        for uid in [uid for uid in self._disowned if uid not in self.feed.stale]:
            del self._disowned[uid]
        for uid in sorted(self.feed.stale):
            job = self.feed.workload_of.get(uid)
            is_asked = now < self._disowned.get(uid, -PATCH_SECONDS) + PATCH_SECONDS
            if (
                job is None
                or not job.stale
                or is_asked
                or uid in self.calls.turning
                or self.calls.pauses.is_paused(uid, now)
            ):
                continue
            self._disowned[uid] = now
            yield disown_action(job)

    def _evict_one(self, eviction: QuotaEviction, now: float) -> QuotaAction:
        self._victims[eviction.pod.uid] = (eviction,)
        grace = None if eviction.grace_seconds is None else int(eviction.grace_seconds)
        return self.calls.send(EvictPod(pod_ref(eviction.pod), grace), now, eviction.for_unit)

    def _resume(self, plan: Planned, now: float) -> Iterator[QuotaAction]:
        for each in plan.resume:
            uid = each.workload.uid
            if (
                uid not in self.calls.turning
                and uid not in self.feed.stale
                and not self.calls.pauses.is_paused(uid, now)
            ):
                action = (
                    raise_action(each.workload, each.pods)
                    if each.pods
                    else resume_action(each.workload)
                )
                yield self.calls.send(action, now)
        # the namespace of these jobs has left the tree: they get back what this controller took
        for uid in sorted(self._stray_jobs):
            job = self.feed.workload_of.get(uid)
            if (
                job is not None
                and not job.is_finished
                and uid not in self.calls.turning
                and not self.calls.pauses.is_paused(uid, now)
            ):
                yield self.calls.send(
                    raise_action(job, job.pods + job.held)
                    if job.own_parallelism
                    else resume_action(job),
                    now,
                )

    def _admit(self, plan: Planned, now: float) -> Iterator[QuotaAction]:
        for each in plan.admit:
            if not self.calls.pauses.is_paused(each.pod.uid, now):
                self._admission_messages[each.pod.uid] = each.message
                yield self._admit_one(each.pod, now)
        for uid in sorted(self._strays):  # the namespace of these pods has left the tree
            if uid not in self.calls.admitting and not self.calls.pauses.is_paused(uid, now):
                yield self._admit_one(self.feed.known[uid], now)

    def _admit_one(self, pod: QuotaPod, now: float) -> QuotaAction:
        return self.calls.send(AdmitPod(pod_ref(pod), self.feed.waiting.get(pod.uid, 0)), now)

    def _return(self, plan: Planned, now: float) -> Iterator[QuotaAction]:
        """Return admitted pods that were never bound.

        The wait doubles with each return for the same owner.
        """
        of_jobs: defaultdict[str, list[QuotaPod]] = defaultdict(list)
        for each in plan.returned:
            pod = each.pod
            times = self._returns.get(pod.owner, 0)
            if each.is_event_only:
                self._notify_unbound(each)
            elif (
                now - pod.admitted_at >= self.feed.settings.unbound_seconds * 2** times
                and not self.calls.pauses.is_paused(pod.uid, now)
            ):
                if not self._is_of_batch_job(pod):
                    yield self.calls.send(DeleteObject(pod_ref(pod)), now)
                elif pod.owner in self.feed.workload_of:
                    of_jobs[pod.owner].append(pod)
                else:
                    self._notify_unbound(each)
        for uid, pods in of_jobs.items():
            yield from self._return_job(self.feed.workload_of[uid], pods, now)

    def _return_job(
        self, job: Workload, pods: Sequence[QuotaPod], now: float
    ) -> Iterator[QuotaAction]:
        """Return pods of a batch Job that were never bound.

        A deleted pod would count as failed, so the Job is lowered, or suspended: itself, or the
        training job whose launcher it is.
        """
        uid = job.uid
        if (
            uid in self.calls.turning
            or uid in self.feed.stale
            or self.calls.pauses.is_paused(uid, now)
            or job.is_suspended
        ):
            return
        gone = frozenset(pod.uid for pod in pods)
        left = left_without(self.feed.active_of(uid), list(gone)) if job.can_lower else 0
        size = max(pod.gang_size for pod in pods)
        if job.can_lower and left is not None and left >= max(1, size):
            yield self.calls.send(lower_action(job, left, pods[0].priority), now, NO_NODE, gone)
        elif (
            job.can_suspend
            and left is not None
            and not any(pod.owner == uid and pod.budgets for pod in self.feed.known.values())
        ):
            yield self.calls.send(suspend_action(job, NO_NODE, pods[0].priority), now, NO_NODE)
        else:
            for pod in pods:
                self._notify_unbound(QuotaReturn(pod, self._leaf_of.get(pod.namespace, "")))

    def _is_of_batch_job(self, pod: QuotaPod) -> bool:
        row = self.feed.rows.get(pod.uid)
        return row is not None and row.controller is not None and row.controller.kind == _JOB

    def _notify_unbound(self, returned: QuotaReturn) -> None:
        """Write the Event, once per pod."""
        pod = returned.pod
        if pod.uid not in self._admission_messages:
            self._admission_messages[pod.uid] = ""
            self.reports.event(
                pod_ref(pod),
                "QuotaReturned",
                f"admitted by {returned.leaf}, and no node has taken it",
                "Warning",
            )

    def _enforce(self, now: float) -> Iterator[QuotaAction]:
        """Write the label and the annotation by which admission finds the namespaces of leaves."""
        spaces = self.feed.namespaces
        if self._marks_version != spaces.version:
            self._marks_version = spaces.version
            patches = (
                (space, namespace_patch(space, self._leaf_of.get(space.name)))
                for space in spaces.rows.values()
            )
            self._unmarked = [(space, patch) for space, patch in patches if patch]
        for space, patch in self._unmarked:
            if space.is_ending or self.calls.pauses.is_paused(space.uid, now):
                continue
            known = self._patched.get(space.name)
            if known is not None and known[0] == space and now < known[1] + PATCH_SECONDS:
                continue
            self._patched[space.name] = space, now
            yield PatchObject(ObjectRef("v1", "Namespace", space.name, "", space.uid), patch)

    def _not_enforced(self) -> str:
        """A sentence with the namespaces of leaves that are not marked yet, "" = none."""
        left = sorted(space.name for space, _ in self._unmarked if space.name in self._leaf_of)
        return f"namespaces without the label {LABEL_QUOTA}: {', '.join(left)}" if left else ""

    # --- outcomes ---------------------------------------------------------------------------------

    def _tried(self, action: EvictPod, outcome: Outcome, now: float) -> None:
        uid = action.target.uid
        for batch, trial in list(self._trials.items()):
            if uid not in trial.left:
                continue
            if outcome.result in (Result.DONE, Result.GONE):
                trial.left.discard(uid)
                trial.at = now
            else:
                del self._trials[batch]
                if outcome.result is Result.REFUSED:
                    self.calls.refused_at[uid] = now
                self.calls.pauses.pause(uid, now)
            self._is_stale = True

    def _called(self, action: CallAction, outcome: Outcome, now: float) -> None:
        call = self.calls.ended(action, outcome, now)
        if call is None:
            return
        uid = action.target.uid
        if outcome.result is Result.REFUSED:
            self._is_stale = True
        if outcome.result is not Result.DONE:
            self._calls_due = self.calls.next_after(now)
            self._next_at = self._next_after(now)
            return
        match action:
            case AdmitPod():
                pod, message = self.feed.known.get(uid), self._admission_messages.pop(uid, None)
                if pod is not None and message is not None:
                    self.reports.admitted(pod, message)
            case EvictPod():
                self._notify_victims(uid, call.for_unit)
            case PatchObject() | ScaleJob():
                self._notify_turned(uid, action, call.for_unit)
            case DeleteObject():
                pod = self.feed.known.get(uid)
                if pod is not None:
                    self._returns[pod.owner] = self._returns.get(pod.owner, 0) + 1
                    self._notify_owner(
                        pod, "QuotaReturned", f"{pod.name} was admitted, and no node has taken it"
                    )

    def _notify_victims(self, uid: str, unit: str, *, is_owner_notified: bool = True) -> None:
        for each in self._victims.pop(uid, ()):
            message = each.message or f"makes room for {unit}"
            self.reports.event(pod_ref(each.pod), "QuotaReclaimed", message, "Warning")
            if is_owner_notified:
                self._notify_owner(each.pod, "QuotaReclaimed", f"{each.pod.name}: {message}")

    def _notify_turned(self, uid: str, action: PatchObject | ScaleJob, unit: str) -> None:
        claimant = unit
        if unit == OVER_MAX:
            nodes = [each.for_unit for each in self._victims.get(uid, ())]
            claimant = f"the max of {nodes[0]}" if nodes else "a max of the quota tree"
        self._notify_victims(uid, unit, is_owner_notified=isinstance(action, ScaleJob))
        job = self.feed.workload_of.get(uid)
        if job is None:
            return
        scaled = (
            f"; parallelism {action.before} is {action.count} now"
            if isinstance(action, ScaleJob)
            else ""
        )
        if unit == NO_NODE:
            self._returns[uid] = self._returns.get(uid, 0) + 1
            self.reports.event(
                workload_ref(job),
                "QuotaReturned",
                f"pods were admitted, and no node has taken them{scaled}",
                "Warning",
            )
        elif unit:
            reason = "QuotaReclaimed" if isinstance(action, ScaleJob) else "QuotaSuspended"
            self.reports.event(
                workload_ref(job), reason, f"makes room for {claimant}{scaled}", "Warning"
            )
        else:
            self.reports.event(workload_ref(job), "QuotaResumed", f"there is room again{scaled}")

    def _notify_owner(self, pod: QuotaPod, reason: str, message: str) -> None:
        owner = self.feed.workload_of.get(pod.owner)
        if owner is not None:
            self.reports.event(workload_ref(owner), reason, message, "Warning")


def _batch_of(eviction: QuotaEviction) -> _Batch:
    if not eviction.is_drain:
        return "unit", eviction.for_unit
    pod = eviction.pod
    if eviction.workload is not None:
        return "job", eviction.workload.uid
    return ("gang", f"{pod.namespace}/{pod.gang}") if pod.gang else ("pod", pod.uid)


def namespace_patch(space: Namespace, leaf: str | None) -> dict[str, Any]:
    """The patch that gives a namespace the label and the annotation of `leaf`; None: of no leaf.

    It is empty if the namespace has them already.
    """
    label = QUOTA_ENFORCED if leaf is not None else None
    patch: dict[str, Any] = {}
    if space.labels.get(LABEL_QUOTA) != label:
        patch["labels"] = {LABEL_QUOTA: label}
    if space.annotations.get(ANNOTATION_LEAF) != leaf:
        patch["annotations"] = {ANNOTATION_LEAF: leaf}
    return {"metadata": patch} if patch else {}
