"""The usage recorder's decider: what the ledger records (docs/spec/usage.md#recorder).

It follows the cluster, keeps intervals, hours and states, and asks for writes. Only changes cost
work: a quiet cluster is one row of heartbeat in ten seconds, and the rows of hours once an hour.

A driver calls `begin` with the claim before it calls `done` for `ClaimLedger`. Invariants: at most
one write is under way; what it contains returns to `Pending` if it may not have been stored. A
record is stored before the heartbeat that covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    Changes,
)
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.jobs.manifests import FollowedJob
from fairlead.model.node import Node
from fairlead.model.pod import Pod, without_report
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.model.usage.actions import (
    ClaimLedger,
    FoldDay,
    ForgetLedger,
    UsageAction,
    WriteLedger,
)
from fairlead.model.usage.ledger import (
    DAY,
    HOUR,
    RECENT,
    RECORDS_KEPT,
    SUMS_KEPT,
    JobRecord,
    LedgerClaim,
    StateKind,
)
from fairlead.rules.usage.past import kept_cards
from fairlead.rules.usage.recording.hours import HourBook
from fairlead.rules.usage.recording.intervals import (
    ChargedPod,
    Intervals,
    finished_at,
    first_starts,
    milliseconds,
)
from fairlead.rules.usage.recording.job_records import deleted, job_record
from fairlead.rules.usage.recording.kept import KeptStates
from fairlead.rules.usage.recording.manifests import JobManifests
from fairlead.rules.usage.recording.owners import JobMarks, PodOwners
from fairlead.rules.usage.recording.pending import Pending
from fairlead.rules.usage.recording.readings import CardReadings
from fairlead.rules.usage.recording.stranding import is_waiting, shapes_of, stranded_on

HEARTBEAT_SECONDS: Final = 10.0
RETRY_SECONDS: Final = (1.0, 2.0, 5.0, 10.0)
_OF_NODES: Final = (StateKind.CARDS, StateKind.WITHHELD)
"""Kinds of states whose uid is the name of a node."""
_PAUSE_AFTER: Final = 200
"""Rows after which the driver may let other work run."""

Days = Callable[[int], tuple[int, int]]
"""The beginning and the end of the billing day that contains a time."""


class UsageRecorder:
    """A `rules.control.decider.Decider` of `UsageAction`.

    `job_kinds`, `workload_kinds`: the names of followed kinds of jobs, and of owners of pods, in
    `Changes`. `body`: the body of a row's kept state. `days`: billing days.
    """

    def __init__(
        self,
        job_kinds: Collection[str],
        workload_kinds: Collection[str],
        body: Callable[[Any], bytes],
        marks: JobMarks,
        days: Days,
    ) -> None:
        self.pending = Pending()
        self.hours = HourBook()
        self.intervals = Intervals(self.pending, self.hours)
        self.epoch = self.heartbeat = self.waiting_since = 0
        self.owners = PodOwners(marks)
        self._cards = CardReadings(self.intervals, self.hours)
        self._states = KeptStates(self.pending)
        self._body = body
        self._days = days
        self._kinds: dict[str, StateKind] = {
            KIND_NODES: StateKind.NODE,
            KIND_PODS: StateKind.POD,
            KIND_QUOTA_TREES: StateKind.TREE,
            KIND_NAMESPACES: StateKind.NAMESPACE,
            KIND_BUDGETS: StateKind.BUDGET,
            GPU_WITHHELD: StateKind.WITHHELD,
            **dict.fromkeys(job_kinds, StateKind.JOB),
            **dict.fromkeys(workload_kinds, StateKind.WORKLOAD),
        }
        self._known: dict[str, set[str]] = {kind: set() for kind in self._kinds}
        self._dirty: dict[StateKind, dict[str, Any]] = {kind: {} for kind in StateKind}
        self._missing: set[str] = set(self._kinds)
        self._rows: dict[str, Pod] = {}
        self._node_names: dict[str, str] = {}
        self._node_uids: dict[str, str] = {}
        self._waiting: dict[str, Pod] = {}
        self._pods_of: dict[str, set[str]] = {}
        self._jobless: dict[str, set[str]] = {}
        self._shown_cards: dict[str, int | None] = {}
        """By node: the hash of what is kept of its cards; None = not known."""
        self._withheld: dict[str, str] = {}
        self._records: dict[str, JobRecord] = {}
        self._manifests = JobManifests()
        self._jobs_to_record: set[str] = set()
        self._recorded: set[str] = set()
        self._doubt: int | None = None
        self._is_first = False
        self._is_looking = False
        self._now = 0
        self._under_way: UsageAction | None = None
        self._failures = 0
        self._retry_at = self._beat_at = float("-inf")
        self._fold_from = self._forgotten_at = 0

    # --- the decider ------------------------------------------------------------------------------

    @property
    def is_rebuilt(self) -> bool:
        return not self._missing

    @property
    def kinds(self) -> Collection[str]:
        """The kinds that it follows."""
        return self._kinds.keys()

    @property
    def is_claimed(self) -> bool:
        return self.epoch > 0

    @property
    def next_at(self) -> float | None:
        if self._under_way is not None:
            return 0.0 if self.is_claimed and any(self._dirty.values()) else None
        if not self.is_claimed or self._failures:
            return self._retry_at
        return 0.0 if any(self._dirty.values()) or len(self.pending) else self._beat_at

    def rebuild(self) -> None:
        self._missing = set(self._kinds)
        under_way, self._under_way = self._under_way, None
        if isinstance(under_way, WriteLedger):
            self.pending.give_back(under_way.batch)
        if self.is_claimed:
            self._doubt = self.heartbeat

    def observe(self, changes: Changes[Any]) -> None:
        """Take what the API server reported of one kind. Jobs may come as `FollowedJob`.

        ValueError for a kind that the recorder does not follow.
        """
        kind, known = self._kinds.get(changes.kind), self._known.get(changes.kind)
        if kind is None or known is None:
            raise ValueError(
                f"the usage recorder does not follow `{changes.kind}`, "
                f"only {', '.join(self._kinds)}"
            )
        dirty = self._dirty[kind]
        if changes.is_list:
            kept = {*changes.rows, *changes.unreadable}
            dirty.update(dict.fromkeys(known - kept))
            known &= kept
            self._missing.discard(changes.kind)
        for uid, row in changes.rows.items():
            if isinstance(row, FollowedJob):
                self._manifests.see(uid, row)
                row = row.job
            dirty[uid] = row
            (known.add if row is not None else known.discard)(uid)

    def look(self, now: float) -> Iterator[UsageAction | None]:
        if not self.is_rebuilt:
            return
        at = milliseconds(now)
        if not self.is_claimed:
            if self._under_way is None and now >= self._retry_at:
                yield self._send(ClaimLedger(at))
            return
        self._is_looking = True
        try:
            yield from self._reconcile(at)
        finally:
            self._is_looking = False
        if now >= self._beat_at:
            self._strand(at)
        self._close_hours(at)
        yield from self._next(at, now)

    def done(self, action: UsageAction, outcome: Outcome, now: float) -> Iterable[UsageAction]:
        if action is not self._under_way:
            return ()  # of an earlier Lease: what it contains is sent again
        self._under_way = None
        if outcome.result is not Result.DONE:
            if isinstance(action, WriteLedger):
                self.pending.give_back(action.batch)
            wait = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
            self._failures += 1
            self._retry_at = now + wait
            return ()
        self._failures = 0
        if isinstance(action, WriteLedger):
            self.heartbeat = max(self.heartbeat, action.batch.at)
            self._beat_at = now + HEARTBEAT_SECONDS
            if not len(self.pending):
                self.waiting_since = 0
        elif isinstance(action, FoldDay):
            self._fold_from = action.end
        if self._is_looking or self._doubt is not None or not self.is_claimed:
            return ()
        return tuple(self._next(max(self._now, milliseconds(now)), now, is_after=True))

    # --- the ledger -------------------------------------------------------------------------------

    def begin(self, claim: LedgerClaim, folded_until: int, now: float) -> None:
        """Go on from what is stored. `folded_until`: the end of the last folded day, 0 = none."""
        at = milliseconds(now)
        self.epoch, self.heartbeat, self._doubt = claim.epoch, claim.heartbeat, claim.heartbeat
        self._is_first = claim.heartbeat == 0
        hour, last = at - at % HOUR, claim.heartbeat - claim.heartbeat % HOUR
        self.hours.begin(
            last if hour - HOUR <= last <= hour else hour, claim.pod_hours, claim.node_hours
        )
        self.intervals.begin(claim.pods, claim.nodes, claim.held, claim.heartbeat)
        self._states.begin(claim.states)
        self._shown_cards = dict.fromkeys(self._states.ids(StateKind.CARDS))
        self._records = {each.uid: replace(each, manifest="") for each in claim.jobs}
        self._manifests.begin(claim.jobs)
        self._recorded = set(claim.ended)
        self._fold_from = folded_until
        self._known_from(claim)

    def _known_from(self, claim: LedgerClaim) -> None:
        """What the ledger has and the cluster does not show any more is gone."""
        for kind, rows in (
            (StateKind.POD, [each.pod_uid for each in claim.pods]),
            (StateKind.NODE, [each.node_uid for each in claim.nodes]),
            (StateKind.JOB, list(self._records)),
            *((kind, self._states.ids(kind)) for kind in StateKind if kind not in _OF_NODES),
        ):
            dirty = self._dirty[kind]
            there = self._there(kind)
            for uid in rows:
                if uid not in there:
                    dirty[uid] = None
        withheld = {each.node for each in self._dirty[StateKind.WITHHELD].values() if each}
        for node in self._states.ids(StateKind.WITHHELD):
            if node not in withheld:
                self._dirty[StateKind.WITHHELD].setdefault(node, None)
        self._node_names.update({each.node_uid: each.node for each in claim.nodes})
        self._node_uids.update({each.node: each.node_uid for each in claim.nodes})

    def _there(self, kind: StateKind) -> set[str]:
        return {
            uid for name, each in self._kinds.items() if each == kind for uid in self._known[name]
        }

    def readings(self, gpus: Iterable[GpuReading], now: float) -> None:
        """Take what the exporters of the cluster's cards report."""
        if self.is_claimed and self.is_rebuilt and self._doubt is None:
            at, by_node = milliseconds(now), dict[str, list[GpuReading]]()
            for gpu in gpus:
                by_node.setdefault(gpu.node, []).append(gpu)
            self._cards.read(by_node, at)
            self._keep_cards(by_node, at)

    def _keep_cards(self, by_node: Mapping[str, list[GpuReading]], at: int) -> None:
        """Who is on which card, and what is broken, while a node's exporter reports it."""
        for node, mine in by_node.items():
            shown = hash(tuple(map(_shown, mine)))
            if self._shown_cards.get(node) != shown:
                self._shown_cards[node] = shown
                body = self._body(kept_cards(mine)[node])
                self._states.put(StateKind.CARDS, node, ("", node), body, at)
        for node in self._shown_cards.keys() - by_node.keys():
            del self._shown_cards[node]
            self._states.drop(StateKind.CARDS, node, at)

    def finish(self, now: float) -> tuple[WriteLedger, ...]:
        """The last writes of a recorder that ends in order: the rows of the hour so far, too."""
        if not self.is_claimed or not self.is_rebuilt:
            return ()
        at = milliseconds(now)
        for _ in self._reconcile(at):
            pass
        self._put_hours(at, at + HOUR)
        batches: list[WriteLedger] = []
        while len(self.pending) or not batches:
            batches.append(WriteLedger(self.pending.take(at, self.heartbeat)))
        return tuple(batches)

    def _next(self, at: int, now: float, *, is_after: bool = False) -> Iterator[UsageAction]:
        """The next write, if one is due and none is under way."""
        if self._under_way is not None or (self._failures and now < self._retry_at):
            return
        if len(self.pending) or (now >= self._beat_at and not is_after):
            self.waiting_since = self.waiting_since or at
            yield self._send(WriteLedger(self.pending.take(at, self.heartbeat)))
            return
        day, end = self._days(self._fold_from) if self._fold_from else (0, 0)
        if end and end + HOUR <= self.heartbeat:
            yield self._send(FoldDay(day, end))
        elif self._forgotten_at + DAY <= at:
            self._forgotten_at = at
            yield self._send(ForgetLedger(at - RECORDS_KEPT, at - SUMS_KEPT))

    def _send(self, action: UsageAction) -> UsageAction:
        self._under_way = action
        return action

    # --- what has changed -------------------------------------------------------------------------

    def _reconcile(self, at: int) -> Iterator[None]:
        """Bring the records up to date with the cluster as it is at `at`."""
        if at < self._now:
            self.intervals.repair_clock(at)
        self._now = at
        dirty, self._dirty = self._dirty, {kind: {} for kind in StateKind}
        doubt, self._doubt = self._doubt, None
        again = self._take_owners(dirty, at, doubt)
        again |= self._take_nodes(dirty[StateKind.NODE], dirty[StateKind.POD], at, doubt)
        yield from self._take_pods(dirty[StateKind.POD], again, at, doubt)
        self._take_jobs(dirty[StateKind.JOB], at, doubt)
        for kind in (StateKind.WORKLOAD, StateKind.BUDGET, StateKind.NAMESPACE):
            for uid, row in dirty[kind].items():
                self._keep(kind, uid, row, at, doubt)
        for uid, row in dirty[StateKind.WITHHELD].items():
            self._keep_withheld(uid, row, at)
        self._cards.doubt(self.intervals.settle(at))
        self._is_first = False

    def _keep(self, kind: StateKind, uid: str, row: Any, at: int, doubt: int | None) -> None:
        if row is None:
            self._states.drop(kind, uid, at if doubt is None else min(at, doubt))
            return
        name = getattr(row, "namespace", ""), row.name
        self._states.put(kind, uid, name, self._body(row), at)

    def _keep_withheld(self, uid: str, row: Withheld | None, at: int) -> None:
        """GPUs out of use have a state by the name of their node; `uid` is of the ConfigMap."""
        node = self._withheld.pop(uid, uid)
        if row is None or not row.node or not row.indexes:
            self._states.drop(StateKind.WITHHELD, node, at)
            return
        self._withheld[uid] = row.node
        self._states.put(StateKind.WITHHELD, row.node, ("", row.node), self._body(row), at)

    def _take_owners(
        self, dirty: dict[StateKind, dict[str, Any]], at: int, doubt: int | None
    ) -> set[str]:
        """Jobs, owners and the tree, which decide who is charged; the pods to look at again."""
        spaces: set[str] = set()
        for uid, row in dirty[StateKind.TREE].items():
            self._keep(StateKind.TREE, uid, row, at, doubt)
            spaces |= self.owners.put_tree(row)
        again: set[str] = set()
        if spaces:
            pods = self.intervals.pods.items()
            again |= {uid for uid, each in pods if each.row.by.namespace in spaces}
        for uid, row in dirty[StateKind.WORKLOAD].items():
            if row is None:
                self.owners.workloads.pop(uid, None)
            else:
                self.owners.workloads[uid] = row
        for uid, row in dirty[StateKind.JOB].items():
            is_new = uid not in self.owners.jobs
            self.owners.put_job(uid, row)
            if is_new and row is not None:
                again |= self._jobless.get(row.namespace, set())
        return again

    def _take_nodes(
        self, dirty: dict[str, Any], pods: dict[str, Any], at: int, doubt: int | None
    ) -> set[str]:
        """The pods whose amounts depend on a node that has changed."""
        again: set[str] = set()
        starts = first_starts([pod for pod in pods.values() if pod is not None], at)
        for uid, row in sorted(dirty.items(), key=lambda each: each[1] is not None):
            self._keep(StateKind.NODE, uid, row, at, doubt)
            if row is None:
                name = self._node_names.pop(uid, "")
                if self._node_uids.get(name) == uid:
                    del self._node_uids[name]
                    self.intervals.drop_node(name, at, doubt)
                continue
            self._node_names[uid], self._node_uids[row.name] = row.name, uid
            self.intervals.count_node(row.name, at)
            began = self._node_began(row, starts.get(row.name, at), at, doubt)
            if self.intervals.put_node(row, uid, began, at, doubt):
                again |= self.intervals.nodes[row.name].pods
        return again

    def _node_began(self, node: Node, first_start: int, at: int, doubt: int | None) -> int:
        """When the record of a node begins. The first recorder does not know how it was before its
        pods were bound; a later one knows that it did not exist at the heartbeat.
        """
        created = min(milliseconds(node.created_at), at)
        if self._is_first and doubt is not None:
            return max(created, first_start)
        return created if doubt is None else max(created, min(doubt, at))

    def _take_pods(
        self, dirty: dict[str, Any], again: set[str], at: int, doubt: int | None
    ) -> Iterator[None]:
        """Ends come before beginnings, so that a node's pods are never more than it has."""
        pods = self.intervals.pods
        begun: list[tuple[int, str, ChargedPod]] = []
        for count, (uid, row) in enumerate(dirty.items()):
            if count % _PAUSE_AFTER == _PAUSE_AFTER - 1:
                yield None
            self._keep(StateKind.POD, uid, row, at, doubt)
            self._count_before(uid, row, at)
            if row is None:
                self._forget_pod(uid, at, doubt)
                continue
            charged = self._see(uid, row)
            if uid not in pods:
                if self._begins(uid, row, at, doubt):
                    begun.append((milliseconds(row.held_since), uid, charged))
            elif row.is_finished:
                self.intervals.finish(uid, row, at)
                self._recorded.add(uid)
            else:
                self.intervals.change(uid, charged, at, doubt)
        for uid in again - dirty.keys():
            if uid in pods and uid in self._rows:
                self.intervals.change(uid, self._see(uid, self._rows[uid]), at, doubt)
        for count, (_, uid, charged) in enumerate(sorted(begun, key=lambda each: each[:2])):
            if count % _PAUSE_AFTER == _PAUSE_AFTER - 1:
                yield None
            self.intervals.start(uid, charged, at)
            if charged.pod.is_finished:
                self._recorded.add(uid)
        if self._is_first and doubt is not None and begun and not self._fold_from:
            self._fold_from = max(min(each[0] for each in begun), at - RECORDS_KEPT)
        elif not self._fold_from:
            self._fold_from = at

    def _begins(self, uid: str, pod: Pod, at: int, doubt: int | None) -> bool:
        """Whether a pod without an open record gets one."""
        if not pod.node or uid in self._recorded:
            return False
        if pod.is_finished and doubt and finished_at(pod, at) <= doubt - RECENT:
            self._recorded.add(uid)  # by the recorder before this one
            return False
        return pod.is_holding or pod.is_finished

    def _count_before(self, uid: str, row: Pod | None, at: int) -> None:
        """What a node's GPUs were until now is counted before its pods change."""
        opened = self.intervals.pods.get(uid)
        node = opened.row.node if opened is not None else row.node if row is not None else ""
        if node:
            self.intervals.count_node(node, at)

    def _see(self, uid: str, pod: Pod) -> ChargedPod:
        """Keep what is needed of a pod, and find who is charged for it."""
        self._rows[uid] = without_report(pod)
        if is_waiting(pod):
            self._waiting[uid] = self._rows[uid]
        else:
            self._waiting.pop(uid, None)
        job = self.owners.job_of(pod)
        jobless = self._jobless.setdefault(pod.namespace, set())
        if job.uid in self.owners.jobs:  # a serving job is no object, and has no record
            self._pods_of.setdefault(job.uid, set()).add(uid)
            self._jobs_to_record.add(job.uid)
        (jobless.discard if job.uid else jobless.add)(uid)
        return ChargedPod(pod, self.owners.used_by(pod), job)

    def _forget_pod(self, uid: str, at: int, doubt: int | None) -> None:
        if uid in self.intervals.pods:
            self.intervals.gone(uid, at, doubt)
        before = self._rows.pop(uid, None)
        self._waiting.pop(uid, None)
        self._recorded.discard(uid)
        if before is not None:
            self._jobless.get(before.namespace, set()).discard(uid)

    def _take_jobs(self, dirty: dict[str, Any], at: int, doubt: int | None) -> None:
        for uid, row in dirty.items():
            self._keep(StateKind.JOB, uid, row, at, doubt)
            if row is not None:
                self._jobs_to_record.add(uid)
                continue
            record = self._records.pop(uid, None)
            self._pods_of.pop(uid, None)
            self._manifests.forget(uid)
            if record is not None:
                self.pending.put_job(deleted(record, at if doubt is None else min(at, doubt)))
        for uid in self._jobs_to_record:
            if (job := self.owners.jobs.get(uid)) is not None:
                self._record_job(uid, job)
        self._jobs_to_record.clear()

    def _record_job(self, uid: str, job: Any) -> None:
        mine = self._pods_of.get(uid, set())
        gone = {each for each in mine if each not in self._rows}
        mine -= gone
        pods = [self._rows[each] for each in sorted(mine)]
        before = self._records.get(uid)
        record = job_record(uid, job, self.owners.used_by_job(job), pods, before)
        manifest = self._manifests.take(uid)
        if manifest or record != before:
            self._records[uid] = record
            self.pending.put_job(replace(record, manifest=manifest))

    # --- hours ------------------------------------------------------------------------------------

    def _strand(self, at: int) -> None:
        shapes = shapes_of(self._waiting.values())
        for book in self.intervals.nodes.values():
            if not shapes and not book.stranded:
                continue
            found = stranded_on(book, shapes, self.intervals.pods) if shapes else None
            self.intervals.strand(book, found.gpu if found else 0, at)
            if found and book.row is not None:
                key = book.row.node_uid, book.row.started_at
                self.hours.stranded(key, at, found.lacking, found.holders)

    def _close_hours(self, at: int) -> None:
        until = self.hours.next_close(at)
        if until:
            self._put_hours(until, until)
            self.hours.forget_cards(self.intervals.nodes)

    def _put_hours(self, counted_to: int, until: int) -> None:
        self.intervals.count_all(counted_to)
        pods, nodes = self.hours.close(until)
        for pod in pods:
            self.pending.put_pod_hour(pod)
        for node in nodes:
            self.pending.put_node_hour(node)


def _shown(gpu: GpuReading) -> object:
    """What of a reading is kept, as far as it changes."""
    return (
        gpu.index,
        gpu.uuid,
        gpu.healthy,
        gpu.last_xid,
        tuple([(each.namespace, each.pod, each.container) for each in gpu.holders]),
        tuple([(each.id, each.profile, len(each.holders)) for each in gpu.instances]),
    )
