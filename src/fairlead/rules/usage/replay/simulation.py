"""A replay: the pods of a history arrive, and the quota plan admits and evicts them once more.

Specification: docs/spec/usage.md#replay.

The problem. The plan decides by what the cluster is at a moment, so the cluster is simulated from
moment to moment: pods arrive, are admitted and bound to the node on which the plan has room for
them, run, and end; nodes come and go as they did. Only moments at which something happens are
played, and a plan is made only if a pod waits.

What is assumed (the rest is the plan's): an admitted pod runs at once, for the time that it ran; a
pod of a service, and one that never ran, goes when it went. A victim stops for the median of what
pods took, or for its own grace period if it is shorter; what its controller creates instead waits,
and runs from the beginning. Pods that quota does not count hold what they held.

Stages of a place: coming, waiting, held, away (evicted, and not created again yet), gone. `attempt`
grows with each admission and eviction, so that the end of an earlier attempt is no end of this one.
A victim that stops is a `_Victim`, apart from its place, which waits again.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.keys import DRAIN_OVER_MAX
from fairlead.model.quota.plan import EvictionMethod, QuotaEviction
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.managed import PROTECTED
from fairlead.rules.quota.plan import Planned, plan_account
from fairlead.rules.quota.room import PlacedPod
from fairlead.rules.quota.validate import validate
from fairlead.rules.usage.replay.cluster import ReplayedCluster
from fairlead.rules.usage.replay.history import NodeSpan, PastPod, ReplayInput, TreeSpan

BATCH_SECONDS: Final = 0.05
"""Events of this time are seen by one plan, as the controller gathers them."""
LOST_SECONDS: Final = 5.0
"""How long the room of a gang's pod is kept after it ended, as the quota controller does."""
LOOK_SECONDS: Final = 0.1
"""After this time the controller sees where pods were bound."""
MOST_CLAIMS: Final = 20
"""How often claims may be written at one moment, before evictions follow."""
_MOST_LATE: Final = 4
"""A job has one launcher or submitter, and perhaps a few; with more pods it goes on."""
_KEEPS_LATE: Final = "MPIJob"
"""The kind of job whose late pods come with the others when it is resumed."""
_NO_NODE: Final = "-"
"""The node of a held pod if it is not known. Not "": quota returns a pod without a node."""


class PodStage(Enum):
    COMING = "coming"
    AWAY = "away"
    WAITING = "waiting"
    HELD = "held"
    GONE = "gone"


class _Event(Enum):
    """In the order in which events of one moment happen."""

    TREE = 0
    NODE = 1
    NODE_GONE = 2
    VICTIM_GONE = 3
    END = 4
    LEAVE = 5
    ARRIVAL = 6
    GHOST = 7
    RESUMED = 8
    LOOK = 9


class ReplayedPod(Struct, gc=False, eq=False):
    """A `PastPod` in the replay. `leaf`: full name, "" = quota does not count it. `since`: when its
    state began. `waited`: seconds. `admitted_at`: the first time. `held`, `lost`: GPUs (millionths)
    × milliseconds; `lost` is the part of the attempts that did not come to their end.
    """

    past: PastPod
    pod: QuotaPod
    leaf: str = ""
    state: PodStage = PodStage.COMING
    since: float = 0.0
    attempt: int = 0
    waited: float = 0.0
    admitted_at: float | None = None
    evictions: int = 0
    held: int = 0
    lost: int = 0

    @property
    def is_waiting(self) -> bool:
        return self.state is PodStage.WAITING


class _Victim(Struct, gc=False, eq=False):
    """A pod that stops. `since`: when it began. `returns`: its place waits again afterwards."""

    place: ReplayedPod
    pod: QuotaPod
    since: float
    returns: bool


class HeldSum(Struct, frozen=True, order=True):
    """What a leaf held on a node in a part of the time. `part`: its number, from 0. `leaf` "": what
    pods held that quota does not count.

    `gpu`, `idle`: millionths of a GPU × milliseconds.
    """

    leaf: str
    node: str
    part: int
    gpu: int = 0
    idle: int = 0


class Replay:
    """Plays a history with a tree. `advance` plays a part of it, so that a caller can show how far
    it is, and stop.

    `tree`: for the whole time; None = the trees that were in force. `cuts`: times (seconds) at
    which sums of what is held are divided. `places`: in the order of the history's pods.
    """

    def __init__(
        self, history: ReplayInput, tree: QuotaTree | None = None, cuts: Sequence[float] = ()
    ) -> None:
        self.history = history
        self.now = history.start
        self.plans = 0
        self.places = [ReplayedPod(past, past.pod) for past in history.pods]
        self._cuts = sorted(cuts)
        self._spaces: Mapping[str, str] = {}
        self._account: QuotaAccount | None = None
        self._drains = False
        self._cluster = ReplayedCluster()
        self._budgets: defaultdict[str, int] = defaultdict(int, history.budgets)
        self._missed: set[str] = set()
        """Keys of pods that came instead of victims and wait; their budgets count one pod less."""
        self._there: dict[str, ReplayedPod] = {}
        """Places that wait or hold, by the uid of their pod."""
        self._victims: dict[str, _Victim] = {}
        self._waiting: set[str] = set()
        self._claimed: set[str] = set()
        self._late: defaultdict[str, list[ReplayedPod]] = defaultdict(list)
        self._ended_jobs: set[str] = set()
        """Owners whose pods with `after_job` have been ended."""
        self._shrunk: set[str] = set()
        """Owners of which a pod has ended, and no other comes instead."""
        self._next: defaultdict[str, list[ReplayedPod]] = defaultdict(list)
        """By the uid of a pod: places whose pods are created when it has ended."""
        self._ghosts: dict[str, QuotaPod] = {}
        """By the uid in the history: pods of gangs that have ended, and whose room is kept."""
        self._suspended: dict[str, list[ReplayedPod]] = {}
        self._jobs: dict[str, Workload] = {}
        """By uid: jobs that quota has suspended, or resumed a moment ago, and their pods."""
        self._members: dict[str, dict[str, ReplayedPod]] = {}
        """By owner: those of its places that wait or hold, by the uid of their pod."""
        self._sums: defaultdict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0, 0])
        self._is_due = False
        self._look_at: float | None = None
        self._heap: list[tuple[float, int, int, _Event, object]] = []
        self._count = 0
        self._prepare([TreeSpan(history.start, tree)] if tree is not None else history.trees)

    @property
    def part_done(self) -> float:
        """From 0 to 1."""
        whole = self.history.end - self.history.start
        return min(1.0, (self.now - self.history.start) / whole) if whole > 0 else 1.0

    def advance(self, moments: int = 200) -> bool:
        """Play at most this number of moments; whether there are more after them."""
        for _ in range(moments):
            if not self._heap or self._heap[0][0] >= self.history.end:
                self._finish()
                return False
            self._play()
        return True

    def holding(self) -> list[QuotaPod]:
        """The pods that hold their room now, those that stop included."""
        pods = [each.pod for each in self._there.values() if each.state is PodStage.HELD]
        return pods + [victim.pod for victim in self._victims.values()]

    def held(self) -> tuple[HeldSum, ...]:
        """What was held, by leaf, node and part of the time."""
        return tuple(
            sorted(HeldSum(*key, gpu, idle) for key, (gpu, idle) in self._sums.items() if gpu)
        )

    # --- the beginning ----------------------------------------------------------------------------

    def _prepare(self, trees: Iterable[TreeSpan]) -> None:
        start = self.history.start
        for tree in trees:
            self._push(max(start, tree.started_at), _Event.TREE, tree)
        for node in self.history.nodes:
            if node.ended_at is None or node.ended_at > start:
                self._push(max(start, node.started_at), _Event.NODE, node)
            if node.ended_at is not None and node.ended_at > start:
                self._push(node.ended_at, _Event.NODE_GONE, node)
        uids = {each.past.pod.uid for each in self.places}
        for place in self.places:
            past = place.past
            if past.follows is not None and past.arrived_at > start:
                self._late[past.pod.owner].append(place)
            elif past.after and past.arrived_at > start and past.after in uids:
                self._next[past.after].append(place)
            elif past.ended_at is None or past.ended_at > start:
                self._push(max(start, past.arrived_at), _Event.ARRIVAL, place)
            if past.run_seconds is None and past.ended_at is not None:
                self._push(max(start, past.ended_at), _Event.LEAVE, place)

    def _push(self, at: float, event: _Event, what: object) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at, event.value, self._count, event, what))

    # --- a moment ---------------------------------------------------------------------------------

    def _play(self) -> None:
        last = self._heap[0][0] + BATCH_SECONDS
        while self._heap and self._heap[0][0] <= last and self._heap[0][0] < self.history.end:
            at, _, _, event, what = heapq.heappop(self._heap)
            self.now = max(self.now, at)
            self._take(event, what)
        if self._is_due and (self._waiting or self._suspended or self._drains):
            self._plan()
        self._is_due = False

    def _take(self, event: _Event, what: object) -> None:
        match what:
            case ReplayedPod():
                if event is _Event.ARRIVAL:
                    self._arrive(what)
                else:
                    self._leave(what)
            case (ReplayedPod() as place, attempt):
                if place.attempt == attempt and place.state is PodStage.HELD:
                    self._end(place)
            case _Victim():
                self._stopped(what)
            case NodeSpan():
                self._turn_node(what, is_there=event is _Event.NODE)
            case TreeSpan():
                self._turn_tree(what.tree)
            case str():
                if event is _Event.GHOST:
                    self._forget_ghost(what)
                else:
                    self._return_pods(what)
            case _:
                self._look_at, self._is_due = None, True

    def _finish(self) -> None:
        """Count what holds and waits at the end of the history."""
        end = self.now = self.history.end
        for place in self._there.values():
            if place.state is PodStage.WAITING:
                place.waited += end - place.since
            else:
                self._count_held(place, place.pod.node, place.since)
            place.since = end
        for victim in self._victims.values():
            self._count_held(victim.place, victim.pod.node, victim.since)
            victim.since = end
        for place in [each for places in self._suspended.values() for each in places]:
            if place.state is PodStage.AWAY:
                place.waited += end - place.since

    # --- pods come and go -------------------------------------------------------------------------

    def _arrive(self, place: ReplayedPod) -> None:
        if place.state is not PodStage.COMING:
            return
        self._forget_ghost(place.past.after)
        past, start = place.past, self.history.start
        place.leaf = self._spaces.get(past.pod.namespace, "") if past.is_counted else ""
        admitted = past.admitted_at if place.leaf else past.bound_at
        began = admitted is not None and admitted < start
        is_alone = past.follows is not None and past.pod.owner not in self._members
        if is_alone and past.pod.owner not in self._suspended and not began:
            self._vanish(place)  # those that it follows have ended before it came
        elif place.leaf and not began and not self._bypasses(past):
            self._wait(place, place.pod)
        elif admitted is not None and admitted > self.now:
            self._push(admitted, _Event.ARRIVAL, place)  # until then it holds nothing
        elif admitted is None:
            self._vanish(place)
        else:
            self._hold(place, past.node or _NO_NODE, began=began)

    def _bypasses(self, past: PastPod) -> bool:
        """Whether the pod had no gate though quota counted it then: no tree would hold it."""
        tree = tree_at(self.history.trees, past.arrived_at)
        return not past.is_gated and past.pod.namespace in leaves_of(tree)

    def _wait(self, place: ReplayedPod, pod: QuotaPod) -> None:
        place.state, place.since, place.pod = PodStage.WAITING, self.now, pod
        self._enter(place)
        self._waiting.add(pod.uid)
        self._put(place)

    def _enter(self, place: ReplayedPod) -> None:
        self._members.setdefault(place.pod.owner, {})[place.pod.uid] = place
        self._there[place.pod.uid] = place

    def _exit(self, uid: str) -> ReplayedPod | None:
        place = self._there.pop(uid, None)
        if place is not None:
            members = self._members[place.pod.owner]
            del members[uid]
            if not members:
                del self._members[place.pod.owner]
        return place

    def _hold(self, place: ReplayedPod, node: str, card: int = -1, *, began: bool = False) -> None:
        """`began`: it has run since before the history."""
        past, now = place.past, self.now
        if place.state is PodStage.WAITING:
            place.waited += now - place.since
            self._waiting.discard(place.pod.uid)
            self._claimed.discard(place.pod.uid)
        at = past.admitted_at if began and past.admitted_at is not None else now
        place.state, place.since, place.attempt = PodStage.HELD, now, place.attempt + 1
        place.admitted_at = at if place.admitted_at is None else place.admitted_at
        place.pod = replace(
            place.pod, is_admitted=True, is_ready=True, admitted_at=at, claim_since=None, node=node
        )
        self._enter(place)
        self._cluster.come(place.pod, card)
        self._put(place)
        self._return_budgets(place.pod)
        is_ended_by_job = place.leaf and past.after_job is not None
        has_own_end = not is_ended_by_job or place.pod.owner in self._ended_jobs
        if has_own_end and past.run_seconds is not None and past.ended_at is not None:
            begun = past.bound_at if began and past.bound_at else now
            ends = begun + past.run_seconds if place.leaf else past.ended_at
            self._push(max(now, ends), _Event.END, (place, place.attempt))
        for late in self._late.pop(place.pod.owner, ()) if place.pod.owner else ():
            comes = late.past.arrived_at if began else now + (late.past.follows or 0.0)
            self._push(max(now, comes), _Event.ARRIVAL, late)

    def _end(self, place: ReplayedPod) -> None:
        """The pod has done its work."""
        pod = place.pod
        self._release(place)
        if place.past.ends_job:
            self._end_job(pod.owner)
        elif pod.gang and place.leaf and self._is_awaited(place):
            self._ghosts[place.past.pod.uid] = replace(pod, is_stopping=True, stopping_at=self.now)
            if self._account is not None:
                self._account.put(self._ghosts[place.past.pod.uid])
            self._push(self.now + LOST_SECONDS, _Event.GHOST, place.past.pod.uid)
        self._vanish(place)

    def _end_job(self, owner: str) -> None:
        """No room is kept for a job that has finished."""
        for uid, ghost in list(self._ghosts.items()):
            if ghost.owner == owner:
                self._forget_ghost(uid)

    def _is_awaited(self, place: ReplayedPod) -> bool:
        """Whether the gang goes on, so that its controller may replace the pod."""
        owner = place.pod.owner
        return owner in self.history.workloads and (
            place.past.pod.uid in self._next or owner in self._members
        )

    def _forget_ghost(self, uid: str) -> None:
        """The room of a pod that has ended is kept no longer."""
        ghost = self._ghosts.pop(uid, None)
        if ghost is not None and self._account is not None:
            self._account.drop(ghost.uid)
            self._is_due = True

    def _vanish(self, place: ReplayedPod) -> None:
        """The place is empty for ever; what its controller creates then, comes."""
        past = place.past
        place.state = PodStage.GONE
        if past.ends_job and past.after_job is None and place.pod.owner:
            self._ended_jobs.add(place.pod.owner)
            for each in self._members.get(place.pod.owner, {}).values():
                if each.past.after_job is not None and each.state is PodStage.HELD:
                    end = self.now + each.past.after_job
                    self._push(end, _Event.END, (each, each.attempt))
        if place.pod.owner and past.pod.uid not in self._next:
            self._shrunk.add(place.pod.owner)
            self._forget_late(place.pod.owner)
        for each in self._next.pop(past.pod.uid, ()):
            pause = each.past.arrived_at - (past.ended_at or each.past.arrived_at)
            self._push(self.now + max(0.0, pause), _Event.ARRIVAL, each)

    def _forget_rest(self, owner: str) -> None:
        """Pods that come again after others of their gang have ended: the gang is never whole."""
        if owner in self._shrunk:
            self._forget_late(owner)

    def _forget_late(self, owner: str) -> None:
        """Pods that their job creates when the others run end with the last of the others."""
        places = list(self._members.get(owner, {}).values())
        if len(places) > _MOST_LATE:
            return
        if all(
            each.is_waiting and (each.past.follows is not None or len(places) < each.pod.gang_size)
            for each in places
        ):
            for each in places:
                self._leave(each)

    def _leave(self, place: ReplayedPod) -> None:
        """The pod is deleted, whatever it does."""
        if place.state is PodStage.WAITING:
            place.waited += self.now - place.since
            self._drop(place)
        elif place.state is PodStage.HELD:
            self._release(place)
        self._vanish(place)

    def _release(self, place: ReplayedPod) -> None:
        """The pod goes, as slowly as it went."""
        if place.leaf and place.past.stops:
            self._stop(place, place.past.stops, returns=False)
        else:
            self._let_go(place)

    def _stop(self, place: ReplayedPod, seconds: float, *, returns: bool) -> None:
        pod = replace(place.pod, is_stopping=True, stopping_at=self.now)
        victim = _Victim(place, pod, place.since, returns)
        self._exit(pod.uid)
        self._victims[pod.uid] = victim
        if self._account is not None:
            self._account.put(pod)
        self._is_due = True
        self._push(self.now + seconds, _Event.VICTIM_GONE, victim)

    def _let_go(self, place: ReplayedPod) -> None:
        self._count_held(place, place.pod.node, place.since)
        self._cluster.go(place.pod)
        self._drop(place)

    def _stopped(self, victim: _Victim) -> None:
        if self._victims.pop(victim.pod.uid, None) is None:  # its node has gone before
            return
        self._count_held(victim.place, victim.pod.node, victim.since)
        self._cluster.go(victim.pod)
        if self._account is not None:
            self._account.drop(victim.pod.uid)
        self._is_due = True
        if victim.returns and victim.place.state is PodStage.AWAY:
            self._wait(victim.place, self._again(victim.place, victim.pod.created_at))
            self._missed.add(victim.place.pod.uid)

    def _again(self, place: ReplayedPod, created_at: float) -> QuotaPod:
        """The pod that the controller creates in the place of one that was evicted."""
        pod = place.past.pod
        turn = place.attempt
        return replace(
            pod, name=f"{pod.name}+{turn}", uid=f"{pod.uid}+{turn}", created_at=created_at
        )

    # --- what holds -------------------------------------------------------------------------------

    def _put(self, place: ReplayedPod) -> None:
        """The account and the cluster learn of the pod."""
        self._is_due = True
        if not place.leaf:
            self._cluster.strange(place.pod, 1)
            return
        if self._account is not None:
            self._know_owner(self._account, place.pod.owner)
            self._account.put(place.pod)

    def _drop(self, place: ReplayedPod) -> None:
        self._is_due = True
        uid = place.pod.uid
        self._exit(uid)
        self._waiting.discard(uid)
        self._claimed.discard(uid)
        if not place.leaf:
            self._cluster.strange(place.pod, -1)
            return
        if self._account is not None:
            self._account.drop(uid)

    def _know_owner(self, account: QuotaAccount, owner: str) -> None:
        job = (self._jobs.get(owner) or self.history.workloads.get(owner)) if owner else None
        if job is not None and owner not in account.workloads:
            account.put_workload(job)

    def _count_held(self, place: ReplayedPod, node: str, since: float) -> None:
        """Add what the pod held until now."""
        past, began = place.past, since
        if not past.gpu:
            return
        for part in range(bisect_right(self._cuts, since), len(self._cuts) + 1):
            until = min(self.now, self._cuts[part]) if part < len(self._cuts) else self.now
            gpu = past.gpu * round((until - began) * 1000)
            place.held += gpu
            sums = self._sums[place.leaf, node, part]
            sums[0] += gpu
            sums[1] += gpu * past.idle // past.held if past.held else 0
            if until >= self.now:
                return
            began = until

    # --- nodes and trees --------------------------------------------------------------------------

    def _turn_node(self, span: NodeSpan, *, is_there: bool) -> None:
        self._is_due = True
        if is_there:
            self._cluster.put(span)
            return
        for uid in self._cluster.remove(span):
            victim = self._victims.get(uid)
            if victim is not None:
                self._stopped(victim)
            elif (place := self._there.get(uid)) is not None:
                held = place.held
                self._let_go(place)
                place.lost += place.held - held
                self._come_back(place)

    def _come_back(self, place: ReplayedPod) -> None:
        """The node of the pod has gone: its controller creates another one."""
        place.attempt += 1
        place.state = PodStage.COMING if place.pod.owner and place.leaf else PodStage.GONE
        if place.state is PodStage.COMING:
            self._wait(place, self._again(place, self.now))

    def _turn_tree(self, tree: QuotaTree | None) -> None:
        """Another tree is in force. While it stops every plan, no pod is admitted; while there is
        none, pods do what they did.
        """
        root = tree.root if tree is not None else None
        self._spaces = leaves_of(tree)
        self._account = None
        for place in [each for each in self._there.values() if not each.leaf]:
            self._cluster.strange(place.pod, -1)
        if tree is not None and root is not None and not stops(tree):
            self._account = QuotaAccount(root, tree.settings)
            for job in self._jobs.values():
                self._account.put_workload(job)
        self._drains = root is not None and any(
            node.attributes.get(DRAIN_OVER_MAX) == "true" for node in root.walk()
        )
        self._cluster.renew()
        self._claimed.clear()
        for place in list(self._there.values()):
            past = place.past
            place.leaf = self._spaces.get(past.pod.namespace, "") if past.is_counted else ""
            if place.state is PodStage.WAITING and not place.leaf:
                self._hold(place, past.node or _NO_NODE)
            else:
                self._put(place)
        going = [*(victim.pod for victim in self._victims.values()), *self._ghosts.values()]
        for pod in going:
            if self._account is not None and pod.namespace in self._spaces:
                self._account.put(pod)

    # --- the plan ---------------------------------------------------------------------------------

    def _plan(self) -> None:
        account = self._account
        if account is None:
            return
        if (nodes := self._cluster.changed()) is not None:
            account.set_nodes(nodes)
        account.budgets = self._budgets
        planned = self._claimed_plan(account)
        if planned.admit:
            seats = self._bound(account, {each.pod.uid for each in planned.admit})
            for admission in planned.admit:
                place, seat = self._there[admission.pod.uid], seats.get(admission.pod.uid)
                if seat is None:
                    self._hold(place, _NO_NODE)
                else:
                    self._hold(place, seat.node, seat.card)
        for eviction in planned.evict:
            self._evict(account, eviction)
        for resume in planned.resume:
            self._resume(account, resume.workload)
        self._unclaim(account, planned)
        alarm = account.next_at()
        if alarm is not None:
            self._look(alarm)

    def _look(self, at: float) -> None:
        if self._look_at is None or at < self._look_at:
            self._look_at = at
            self._push(max(at, self.now), _Event.LOOK, None)

    def _bound(self, account: QuotaAccount, admitted: set[str]) -> dict[str, PlacedPod]:
        """Where the admitted pods (uids) are bound: where they were in the past, if all have room
        then, else where the plan laid them out.

        The plan does not know what kube-scheduler prefers, and kube-scheduler knows neither claims
        nor room that is kept. No unit is admitted that would take a claimant's room on any node.
        """
        seats = {
            seat.pod.uid: seat
            for its in account.seats.values()
            for seat in its
            if seat.pod.uid in admitted
        }
        wished = []
        for uid, seat in seats.items():
            node = self._there[uid].past.node
            is_other = node != seat.node and self._cluster.has_room(seat.pod, node)
            wished.append(PlacedPod(seat.pod, node) if is_other else seat)
        if wished == list(seats.values()) or not self._cluster.has_room_for(wished):
            return seats
        self._look(self.now + LOOK_SECONDS)  # there is other room than the plan knew
        return {seat.pod.uid: seat for seat in wished}

    def _claimed_plan(self, account: QuotaAccount) -> Planned:
        """The plan, once the claims for which it evicts are written."""
        for _ in range(MOST_CLAIMS):
            self.plans += 1
            planned = plan_account(account, self.now, has_text=False)
            new = [pod for claim in planned.claims for pod in claim.pods if pod.claim_since is None]
            for pod in new:
                place = self._there[pod.uid]
                place.pod = replace(place.pod, claim_since=self.now)
                self._claimed.add(pod.uid)
                account.put(place.pod)
            if not new or not planned.evict:
                break
        return planned

    def _unclaim(self, account: QuotaAccount, planned: Planned) -> None:
        """A claim ends when the plan no longer has it."""
        if not self._claimed:
            return
        for uid in self._claimed - {pod.uid for each in planned.claims for pod in each.pods}:
            self._claimed.discard(uid)
            place = self._there[uid]
            place.pod = replace(place.pod, claim_since=None)
            account.put(place.pod)

    def _evict(self, account: QuotaAccount, eviction: QuotaEviction) -> None:
        pod, job = eviction.pod, eviction.workload
        place = self._there.get(pod.uid)
        if place is None:
            return
        self._lose_budgets(pod)
        own = place.past.stopped[place.evictions : place.evictions + 1]
        place.evictions += 1
        place.lost += place.past.gpu * round((self.now - place.since) * 1000)
        graces = (*(own or (self.history.stop_seconds,)), pod.grace_seconds, eviction.grace_seconds)
        is_lowered = eviction.method is EvictionMethod.LOWER and bool(pod.owner)
        self._stop(place, min(each for each in graces if each is not None), returns=is_lowered)
        place.attempt += 1
        place.since = self.now
        place.state = PodStage.AWAY if pod.owner else PodStage.GONE
        if eviction.method is EvictionMethod.SUSPEND and job is not None:
            self._suspend(account, job, eviction).append(place)
        elif pod.owner and not is_lowered:
            again = self._again(place, self.now)
            self._missed.add(again.uid)
            self._wait(place, again)
            self._forget_rest(pod.owner)

    def _suspend(
        self, account: QuotaAccount, job: Workload, eviction: QuotaEviction
    ) -> list[ReplayedPod]:
        """The job is suspended, once for all of its pods, and those that wait are deleted."""
        if job.uid in self._suspended:
            return self._suspended[job.uid]
        priority = max(job.priority, eviction.pod.priority)
        unit = eviction.for_unit
        self._jobs[job.uid] = replace(
            job, is_suspended=True, suspended_for=unit, is_awaited=False, priority=priority
        )
        account.put_workload(self._jobs[job.uid])
        waiting = [
            each for each in self._there.values() if each.is_waiting and each.pod.owner == job.uid
        ]
        for each in waiting:
            each.waited += self.now - each.since
            self._drop(each)
            each.state, each.since, each.attempt = PodStage.AWAY, self.now, each.attempt + 1
        self._suspended[job.uid] = waiting
        return waiting

    def _resume(self, account: QuotaAccount, job: Workload) -> None:
        """Its room is kept until its controller has made the pods."""
        if job.uid not in self._suspended:
            return
        self._jobs[job.uid] = replace(
            self._jobs[job.uid], is_suspended=False, suspended_for="", is_awaited=True
        )
        account.put_workload(self._jobs[job.uid])
        self._push(self.now + LOOK_SECONDS, _Event.RESUMED, job.uid)

    def _return_pods(self, owner: str) -> None:
        """The controller of a resumed job has made its pods.

        mpi-operator keeps the suspended Job of a launcher, whose pod comes with the workers. Other
        pods that follow come when the others run.
        """
        job = self._jobs.pop(owner)
        if self._account is not None:
            self._account.put_workload(replace(job, is_awaited=False))
        places = [each for each in self._suspended.pop(owner) if each.state is PodStage.AWAY]
        for place in places:
            place.waited += self.now - place.since
            is_late = place.past.follows is not None and job.kind != _KEEPS_LATE
            if is_late and any(e.past.follows is None for e in places):
                place.state, place.pod = PodStage.COMING, self._again(place, self.now)
                self._late[owner].append(place)
            else:
                self._wait(place, self._again(place, self.now))
                self._missed.add(place.pod.uid)
        self._forget_rest(owner)

    def _lose_budgets(self, pod: QuotaPod) -> None:
        for budget in pod.budgets:
            self._budgets[budget] -= 1

    def _return_budgets(self, pod: QuotaPod) -> None:
        if pod.uid in self._missed:
            self._missed.discard(pod.uid)
            for budget in pod.budgets:
                self._budgets[budget] += 1


def leaves_of(tree: QuotaTree | None) -> dict[str, str]:
    """The leaf of each namespace that quota counts."""
    root = tree.root if tree is not None else None
    return (
        {
            space: leaf.name
            for leaf in root.leaves()
            for space in leaf.namespaces
            if space not in PROTECTED
        }
        if root is not None
        else {}
    )


def tree_at(trees: Sequence[TreeSpan], at: float) -> QuotaTree | None:
    """The tree that was in force."""
    number = bisect_right([span.started_at for span in trees], at)
    return trees[number - 1].tree if number else None


def stops(tree: QuotaTree) -> bool:
    """Whether no plan is made with the tree."""
    return any(each.stops for each in validate(tree, tree))
