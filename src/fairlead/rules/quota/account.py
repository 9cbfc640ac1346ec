"""What a quota plan reads, kept up to date pod by pod.

So a plan looks only at what has changed.

The problem. A cluster has thousands of pods, and a plan follows every change. Reading all pods each
time would cost seconds. So the account keeps, by leaf, the sums and lists that follow from its
pods, and reads a leaf anew only when one of its pods, owners or settings changed, or a deadline of
it has passed (`alarm`).

Where a fact lives:

- The input is `pods`, `workloads`, `nodes`, budgets, caps and the tree. Everything else follows
  from it, and nothing else is remembered: an account that is fed the same objects in another order
  is the same account.
- `dirty` is the set of leaves to read anew. `settle` reads each as a whole and carries its sums up
  the tree; it is never patched pod by pod, so an error cannot accumulate.
- `sums` is what is charged now. `after` is what is charged once the pods that stop have stopped.
  Both include what the last plan reckoned with.
- `undo` is what the last plan added to them (admissions, claims, victims). The additions stay until
  the next `settle`, since sentences are made from them after the plan; then they are taken out in
  reverse order. Without that, a plan that was never carried out would count for ever.
- `rooms` keeps the cluster's nodes between plans; `seats` is what the last plan laid out on them,
  and is taken away in the same way.

Why the order in `settle`: undo first, so that the sums hold only pods; then leaves; then what binds
them all (capacity and counted mins, contested resources), since it follows from the demand of all
leaves. When the capacity changes, no pod is read anew: only leaves with a unit that alone exceeds
the capacity are, since that unit becomes hopeless or stops being so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import add, sub
from typing import Final

from fairlead.model.quota.plan import Reason
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.quota.tree import AdmittedUse, QuotaNode, QuotaSettings, Violation
from fairlead.model.resources import Amounts
from fairlead.rules.quota.node_use import is_lost
from fairlead.rules.quota.room import PlacedPod, Rooms
from fairlead.rules.quota.tree import Capacity, Sums, TreeIndex, Vector
from fairlead.rules.quota.units import (
    Line,
    Unit,
    VictimGroup,
    gated_units,
    groups_of,
    is_gated,
    late_part,
    lines_of,
    missing_part,
    units_held,
    waiting_units,
)

NEVER: Final = float("inf")
_NO_FIT: Final = Reason.NO_FIT_ON_NODES
_OVER_FIRM: Final = Reason.NON_PREEMPTIBLE_OVER_MIN


class LeafBook:
    """One leaf: its pods, and what follows from them.

    Kept from reading to reading: `pods` (by uid), `nodes` (cluster nodes of its admitted pods),
    `suspended` and `awaited` jobs, and the sums `used`, `live` (without pods that stop) and
    `demand` (with what waits).

    Made anew at each reading (`forget`): `firm` is what non-preemptible pods use. `peak` is the
    most that any unit with hope asks of each resource. `needs` is what its lines lack when all of
    them lack only room; None = the leaf must be looked at in the next plan. `holder` is, in a
    strict leaf, the first unit that lacks room and holds the later ones. `alarm` is when time alone
    changes the leaf.
    """

    def __init__(self, place: int, width: int) -> None:
        self.place = place
        self.pods: dict[str, QuotaPod] = {}
        self.nodes: set[str] = set()
        self.suspended: dict[str, Workload] = {}
        self.awaited: dict[str, Workload] = {}
        self.used: Vector = (0,) * width
        self.live: Vector = (0,) * width
        self.demand: Vector = (0,) * width
        self.forget()

    def forget(self) -> None:
        """Drop what is read anew."""
        self.firm = [0] * len(self.used)
        self.users: dict[str, list[int]] = {}
        self.owners: dict[str, int] = {}
        self.lowest: float = NEVER
        self.revisions: dict[str, int] = {}
        self.latest: dict[str, int] = {}
        """By Deployment: the newest revision that has a pod, waiting or admitted."""
        self.unbound: list[QuotaPod] = []
        self.late: list[Vector] = []
        self.lost: list[QuotaPod] = []
        self.peak: Vector = (0,) * len(self.used)
        self.units: list[Unit] = []
        self.hopeless: list[tuple[Unit, Reason, tuple[int, int]]] = []
        self.lines: list[Line] = []
        self.needs: dict[tuple[int, int], int] | None = None
        self.holder: Unit | None = None
        self.alarm = NEVER
        self.groups: list[VictimGroup] | None = None
        self.shares: tuple[int, ...] = ()
        self.shares_at = -1


class QuotaAccount:
    """The state of the tree between plans.

    Callers `put` and `drop` objects as the cluster changes; `rules/quota/plan.plan_account` plans.

    `pods` and `workloads` are by uid. `stopping`: admitted pods that stop. `undo`: additions of the
    last plan to `sums` and `after`, the last one last. `reread`: leaves that the last `settle`
    read. `_moved`: pods that changed since `rooms` followed, each as it was before. `_firm`: by
    leaf, what its non-preemptible pods use.
    """

    def __init__(
        self,
        tree: QuotaNode,
        settings: QuotaSettings | None = None,
        capacity: Amounts | None = None,
    ) -> None:
        self.settings = settings or QuotaSettings()
        self.budgets: Mapping[str, int] = {}
        self.user_caps: Mapping[tuple[str, str], Amounts] = {}
        self.returns: Mapping[str, int] = {}
        self.nodes: tuple[NodeRoom, ...] | None = None
        self.scheduled_at = 0.0
        """When a pod of the cluster was last bound to a node."""
        self.violations: tuple[Violation, ...] = ()
        self.rooms: Rooms | None = None
        """The cluster's nodes with the pods on them; None = not known."""
        self.workloads: dict[str, Workload] = {}
        self.pods: dict[str, QuotaPod] = {}
        self.stopping: dict[str, QuotaPod] = {}
        self.undo: list[tuple[Sums, int, Vector, int]] = []
        self.now = 0.0
        self.reread: list[int] = []
        self.seats: dict[Unit, list[PlacedPod]] = {}
        self._moved: dict[str, QuotaPod | None] = {}
        self._firm: dict[int, Vector] = {}
        self.set_tree(tree, capacity)

    # --- input ------------------------------------------------------------------------------------

    def set_tree(self, tree: QuotaNode, capacity: Amounts | None = None) -> None:
        """Replace the tree and read everything anew.

        Without `capacity` it follows from the nodes.
        """
        self.tree, self._given = tree, capacity
        self.index = index = TreeIndex(tree)
        width = len(index.resources)
        self.sums, self.after, self.claims = Sums(index), Sums(index), Sums(index)
        self.live = [[0] * width for _ in index.nodes]
        self.demand = Sums(index).own  # what is not lent counts as demand, too
        self.full: list[set[int]] = [
            {k for k, most in enumerate(index.max[place]) if most is not None and own[k] > most}
            for place, own in enumerate(self.demand)
        ]
        self.is_full_changed = True
        self.contested: list[tuple[int, ...]] = [()] * len(index.nodes)
        self.books = {place: LeafBook(place, width) for place in sorted(index.leaf_of.values())}
        self.dirty = set(self.books)
        self._on_node: defaultdict[str, dict[int, list[VictimGroup]]] = defaultdict(dict)
        self._misplaced = set(self.books)
        self.undo.clear()
        for uid, pod in self.pods.items():
            if (place := index.leaf_of.get(pod.namespace)) is not None:
                self.books[place].pods[uid] = pod
        for job in self.workloads.values():
            self._note(job)

    def put(self, pod: QuotaPod) -> None:
        uid = pod.uid or pod.key
        old = self.pods.get(uid)
        if old is pod or old == pod:
            return
        if old is not None and old.namespace != pod.namespace:
            self.drop(uid)
        self._moved.setdefault(uid, old)
        self.pods[uid] = pod
        if pod.is_stopping and pod.is_admitted:
            self.stopping[uid] = pod
        else:
            self.stopping.pop(uid, None)
        place = self.index.leaf_of.get(pod.namespace)
        if place is not None:
            self.books[place].pods[uid] = pod
            self.dirty.add(place)

    def drop(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        self.stopping.pop(uid, None)
        if pod is not None:
            self._moved.setdefault(uid, pod)
        place = self.index.leaf_of.get(pod.namespace) if pod is not None else None
        if place is not None:
            del self.books[place].pods[uid]
            self.dirty.add(place)

    def put_workload(self, job: Workload) -> None:
        self.drop_workload(job.uid)
        self.workloads[job.uid] = job
        self._note(job)

    def drop_workload(self, uid: str) -> None:
        job = self.workloads.pop(uid, None)
        place = self.index.leaf_of.get(job.namespace) if job is not None else None
        if place is not None:
            self.books[place].suspended.pop(uid, None)
            self.books[place].awaited.pop(uid, None)
            self.dirty.add(place)

    def set_nodes(self, nodes: tuple[NodeRoom, ...] | None) -> None:
        if (nodes is None) != (self.nodes is None):
            self.dirty |= set(self.books)
        self.nodes = nodes

    def _note(self, job: Workload) -> None:
        place = self.index.leaf_of.get(job.namespace)
        if place is not None:
            if (job.suspended_for if job.is_suspended else job.held) and not job.is_finished:
                self.books[place].suspended[job.uid] = job
            if job.is_awaited and not job.is_finished:
                self.books[place].awaited[job.uid] = job
            self.dirty.add(place)

    # --- what follows from it ---------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Take out what the last plan added, and read anew what changed since."""
        for sums, leaf, vector, sign in reversed(self.undo):
            sums.add(leaf, vector, -sign)
        self.undo.clear()
        if now < self.now:
            self.dirty |= set(self.books)
        self.now = now
        for place, book in self.books.items():
            if book.alarm <= now:
                self.dirty.add(place)
        self.reread = sorted(self.dirty)
        for place in self.reread:
            self._read(self.books[place])
        self.dirty.clear()
        self._follow_nodes()
        self._bind()
        if self.is_full_changed:
            self._find_contested()

    def add(
        self,
        leaf: int,
        vector: Vector,
        sign: int = 1,
        *,
        now: bool = True,
        after: bool = True,
        claim: bool = False,
    ) -> None:
        """Charge what a plan decided, until the next `settle`."""
        for sums in (
            (self.sums, *((self.after,) if after else ()), *((self.claims,) if claim else ()))
            if now
            else (self.after,)
        ):
            sums.add(leaf, vector, sign)
            self.undo.append((sums, leaf, vector, sign))
        self.dirty.add(leaf)

    def kept(self) -> dict[str, dict[str, int]]:
        """Amounts kept in each leaf for pods that are created only when others of their job run."""
        return self._by_leaf(
            (place, vector) for place, book in self.books.items() for vector in book.late
        )

    def promised(self) -> dict[str, dict[str, int]]:
        """The same with what claimants were promised, as their conditions show."""
        return self._by_leaf(self.promises())

    def promises(self) -> list[tuple[int, Vector]]:
        """The promises one by one, each with its leaf."""
        return [
            (place, vector)
            for place, book in self.books.items()
            for vector in (
                *book.late,
                *(
                    unit.vector
                    for unit in book.units
                    if unit.claim_since is not None and not unit.is_partial
                ),
            )
        ]

    def _by_leaf(self, parts: Iterable[tuple[int, Vector]]) -> dict[str, dict[str, int]]:
        sums: dict[int, list[int]] = {}
        for place, vector in parts:
            mine = sums.setdefault(place, [0] * len(vector))
            for k, amount in enumerate(vector):
                mine[k] += amount
        return {
            self.index.names[place]: self.index.amounts(vector) for place, vector in sums.items()
        }

    def groups(self, leaf: int) -> list[VictimGroup]:
        book = self.books.get(leaf)
        if book is None:
            return []
        if book.groups is None:
            book.groups = groups_of(self.index, leaf, self._counted(book), self.workloads)
        return book.groups

    def victims_on(self) -> Mapping[str, Mapping[int, list[VictimGroup]]]:
        """Groups of victims by cluster node and leaf.

        A group is listed at each node where it has a pod.
        """
        for place in self._misplaced:
            book = self.books[place]
            for node in book.nodes:
                del self._on_node[node][place]
            book.nodes.clear()
            for group in self.groups(place):
                for node in {pod.node for pod in group.pods}:
                    self._on_node[node].setdefault(place, []).append(group)
                    book.nodes.add(node)
        self._misplaced.clear()
        return self._on_node

    def next_at(self) -> float | None:
        """When time alone changes something next."""
        soonest = min((book.alarm for book in self.books.values()), default=NEVER)
        return None if soonest == NEVER else soonest

    def _counted(self, book: LeafBook) -> list[QuotaPod]:
        return [
            pod
            for pod in book.pods.values()
            if not (pod.is_stopping and is_lost(pod, self.now, self.settings))
        ]

    def _read(self, book: LeafBook) -> None:
        """Read a leaf as a whole."""
        index = self.index
        width = len(index.resources)
        book.forget()
        self._misplaced.add(book.place)
        held, stopping, firm, wanted = (list[Vector]() for _ in range(4))
        counted: list[QuotaPod] = []
        gangs: dict[str, list[QuotaPod]] = {}
        is_any_waiting = is_any_gated = False
        for pod in book.pods.values():
            if pod.is_stopping and self._stopping(book, pod):
                continue
            counted.append(pod)
            if pod.gang and pod.owner:
                gangs.setdefault(pod.owner, []).append(pod)
            if (
                pod.deployment
                and not pod.is_stopping
                and pod.revision > book.latest.get(pod.deployment, 0)
            ):
                book.latest[pod.deployment] = pod.revision
            if not pod.is_admitted:
                is_any_waiting = True
                is_any_gated = is_any_gated or bool(pod.gated_by)
                continue
            vector = index.vector(pod.request)
            held.append(vector)
            if pod.is_stopping:
                stopping.append(vector)
            if not pod.is_preemptible:
                firm.append(vector)
            elif not pod.is_stopping:
                if pod.priority < book.lowest:
                    book.lowest = pod.priority
                if pod.deployment and pod.revision < book.revisions.get(
                    pod.deployment, pod.revision + 1
                ):
                    book.revisions[pod.deployment] = pod.revision
            if pod.user:
                mine = book.users.setdefault(pod.user, [0] * width)
                for k, amount in enumerate(vector):
                    mine[k] += amount
            owner = pod.owner or pod.key
            book.owners[owner] = book.owners.get(owner, 0) + 1
            if not pod.node and not pod.gated_by:
                self._unbound(book, pod)
        used, book.firm = _sum_of(held, width), list(_sum_of(firm, width))
        if is_any_waiting:
            ready = [pod for pod in counted if not is_gated(pod)] if is_any_gated else counted
            book.units = waiting_units(index, ready, self.workloads)
            book.units += gated_units(index, counted) if is_any_gated else ()
        newest: dict[str, float] = {}
        for pod in counted if book.suspended else ():
            if not pod.is_admitted and pod.owner in book.suspended:
                newest[pod.owner] = max(pod.created_at, newest.get(pod.owner, 0.0))
        book.units += [
            unit
            for uid, job in book.suspended.items()
            for unit in units_held(index, job, newest.get(uid, 0.0))
        ]
        if book.place in index.strict:
            self._age_with_jobs(book)
        for owner, members in gangs.items():
            late = (
                None
                if owner in book.awaited
                else late_part(index, members, self.workloads.get(owner))
            )
            if late is not None and all(pod.is_admitted for pod in members):
                book.late.append(late)
                wanted.append(late)
        for job in book.awaited.values():
            coming = missing_part(index, [pod for pod in counted if pod.owner == job.uid], job)
            if any(coming):
                book.late.append(coming)
                wanted.append(coming)
        hopeful: list[Unit] = []
        for unit in book.units:
            hopeless = self._hopeless(unit)
            if hopeless is not None:
                book.hopeless.append((unit, *hopeless))
                continue
            hopeful.append(unit)
            if self.capped(unit) is None:
                wanted.append(unit.vector)
            for pod in unit.pods:
                if pod.deployment and (
                    not pod.waits_for_surge or book.latest.get(pod.deployment, 0) > pod.revision
                ):
                    self._wake(book, pod.created_at + self.settings.surge_wait_seconds)
        if hopeful:
            book.peak = tuple(map(max, zip(*(unit.vector for unit in hopeful), strict=True)))
        book.lines = lines_of(self.index, hopeful, is_placed=self.nodes is not None)
        live = tuple(map(sub, used, _sum_of(stopping, width)))
        self._enter(book, used, live, tuple(map(add, live, _sum_of(wanted, width))))

    def _age_with_jobs(self, book: LeafBook) -> None:
        """Units of a strict leaf are as old as their job.

        The pods of a resumed job are new, and would otherwise wait behind all units that came while
        the job was suspended.
        """
        for unit in book.units:
            job = self.workloads.get(unit.pods[0].owner) if unit.pods else None
            if job is not None and job.can_suspend:
                unit.age = min(unit.age, job.created_at)

    def _stopping(self, book: LeafBook, pod: QuotaPod) -> bool:
        """Whether the pod should have stopped long ago; if not yet, sets the leaf's `alarm`."""
        if is_lost(pod, self.now, self.settings):
            book.lost.append(pod)
            return True
        if pod.stopping_at is not None:
            self._wake(book, pod.stopping_at + self.settings.stuck_seconds)
        return False

    def unbound(self, book: LeafBook) -> list[QuotaPod]:
        """Admitted pods of a leaf without a node for too long, though kube-scheduler is active.

        It has been active since the last pod that it bound, and since it last rejected a pod
        admitted no later than this one.
        """
        if not book.unbound:
            return []
        refused = max(
            (
                pod.admitted_at
                for pod in self.pods.values()
                if pod.is_refused and pod.admitted_at < NEVER
            ),
            default=-NEVER,
        )
        answered = max(self.scheduled_at, refused)
        return [pod for pod in book.unbound if pod.admitted_at <= answered]

    def _unbound(self, book: LeafBook, pod: QuotaPod) -> None:
        """Note an admitted pod without a node, and when it will have waited too long."""
        if not pod.is_stopping and 0 < pod.admitted_at < NEVER:
            wait = self.settings.unbound_seconds * 2 ** min(self.returns.get(pod.owner, 0), 10)
            if self.now - pod.admitted_at >= wait:
                book.unbound.append(pod)
            else:
                self._wake(book, pod.admitted_at + wait)

    def _wake(self, book: LeafBook, at: float) -> None:
        if self.now < at < book.alarm:
            book.alarm = at

    def _enter(self, book: LeafBook, used: Vector, live: Vector, demand: Vector) -> None:
        """Store new sums of a leaf and carry them up."""
        if used != book.used:
            self.sums.add(
                book.place, tuple(new - old for new, old in zip(used, book.used, strict=True))
            )
        freed = tuple(a - b for a, b in zip(live, book.live, strict=True))
        if any(freed):
            self.after.add(book.place, freed)
        if (live, demand) != (book.live, book.demand):
            self._carry(
                book.place,
                freed,
                tuple(new - old for new, old in zip(demand, book.demand, strict=True)),
            )
        book.used, book.live, book.demand = used, live, demand

    def _carry(self, leaf: int, live: Vector, demand: Vector) -> None:
        """Demand at a node: each child's part is capped at the child's max, but is at least its use
        and its part of min that is not lent.
        """
        index = self.index

        def part(place: int, k: int) -> int:
            most, own = index.max[place][k], self.demand[place][k]
            return max(
                index.floor[place][k],
                own if most is None else max(min(own, most), self.live[place][k]),
            )

        for k, (moved, asked) in enumerate(zip(live, demand, strict=True)):
            delta = asked
            for place in index.up[leaf]:
                if not delta and not moved:
                    break
                most, own, before = index.max[place][k], self.demand[place], part(place, k)
                own[k] += delta
                self.live[place][k] += moved
                delta = part(place, k) - before
                if (most is not None and own[k] > most) != (k in self.full[place]):
                    self.full[place] ^= {k}
                    self.is_full_changed = True

    def _find_contested(self) -> None:
        """By leaf: resources of which some proper ancestor has more demand than its max.

        The demand of a unit is the same whether it runs or waits, so the result is valid for a
        whole plan.
        """
        index = self.index
        for place, book in self.books.items():
            found = {k for above in index.up[place][1:] for k in self.full[above]}
            now = tuple(sorted(found))
            if now != self.contested[place]:
                self.contested[place] = now
                book.needs, book.shares_at = None, -1
        self.is_full_changed = False

    def _follow_nodes(self) -> None:
        """Keep nodes from plan to plan; remove what the last plan laid out on them (`seats`)."""
        moved, self._moved = self._moved, {}
        rooms, self.rooms = self.rooms, None
        seats, self.seats = self.seats, {}
        if self.nodes is None:
            return
        if rooms is not None:
            for each in seats.values():
                rooms.unseat(each)
            if not rooms.follow(
                self.nodes, [(before, self.pods.get(uid)) for uid, before in moved.items()]
            ):
                rooms = None
        self.rooms = rooms or Rooms(self.nodes, self.pods.values())

    def _bind(self) -> None:
        """Limit the root to the cluster's capacity, and count each min as far as it is covered.

        No pod is read anew for it, except in leaves with a unit that alone exceeds the old or new
        capacity.
        """
        index, resources = self.index, self.index.resources
        capacity: Capacity = (None,) * len(resources)
        if self._given is not None:
            capacity = tuple([self._given.get(each) for each in resources])
        elif self.rooms is not None:
            capacity = self.rooms.capacity(
                resources, [pod for book in self.books.values() for pod in book.lost]
            )
        if capacity == index.capacity and not index.scarce:
            return
        firm = {place: tuple(book.firm) for place, book in self.books.items() if any(book.firm)}
        if capacity == index.capacity and firm == self._firm:
            return
        most, least, floor = index.max[0], index.min, index.floor
        is_capacity_named = bool(index.scarce) and capacity != index.capacity
        index.bind(capacity, firm)
        self._firm = firm
        if is_capacity_named:
            self._drop_scarce_sentences()
        if (index.max[0], index.min) == (most, least):
            return
        if index.floor != floor:
            self._sum_up()
        full = {
            k
            for k, limit in enumerate(index.max[0])
            if limit is not None and self.demand[0][k] > limit
        }
        if full != self.full[0]:
            self.full[0], self.is_full_changed = full, True
        is_unlimited = [each is None for each in index.max[0]] != [each is None for each in most]
        lowest = [
            min((each for each in pair if each is not None), default=NEVER)
            for pair in zip(most, index.max[0], strict=True)
        ]
        for place, book in self.books.items():
            self.after.version[place] += 1  # its share of the root's max is a different one
            fills = any(
                own + asked > low
                for own, asked, low in zip(self.sums.own[place], book.peak, lowest, strict=True)
            )
            # the sentences of its waiting units name the capacity
            is_min_changed = list(index.least[place]) != list(index.min[place])
            if is_unlimited or fills or is_min_changed or least[place] != index.min[place]:
                book.needs = None
            is_too_much = any(
                limit is not None and asked > limit
                for asked, limit in zip(book.peak, index.max[0], strict=True)
            )
            if is_too_much or any(reason is _NO_FIT for _, reason, _ in book.hopeless):
                self._read(book)
                self.reread.append(place)

    def _drop_scarce_sentences(self) -> None:
        """Drop kept sentences of lines that name the capacity of a scarce resource."""
        for book in self.books.values():
            if any(line.reason is _OVER_FIRM for line in book.lines):
                book.needs = None

    def _sum_up(self) -> None:
        """The part of each min that is not lent has changed: make the sums of its nodes anew."""
        index = self.index
        width = len(index.resources)
        version = self.after.version
        self.sums, self.after, self.claims = Sums(index), Sums(index), Sums(index)
        self.after.version = version  # turns of an old version must not count as newer
        self.live, self.demand = [[0] * width for _ in index.nodes], Sums(index).own
        self.full = [
            {k for k, most in enumerate(index.max[place]) if most is not None and own[k] > most}
            for place, own in enumerate(self.demand)
        ]
        self.is_full_changed = True
        for book in self.books.values():
            used, live, demand = book.used, book.live, book.demand
            book.used = book.live = book.demand = (0,) * width
            self._enter(book, used, live, demand)

    def _hopeless(self, unit: Unit) -> tuple[Reason, tuple[int, int]] | None:
        """Why the unit waits whatever others do, with node and resource.

        It adds nothing to the demand.
        """
        index, leaf = self.index, unit.leaf
        if unit.pods and is_gated(unit.pods[0]):
            return Reason.GATED_BY_OTHERS, (leaf, 0)
        asked = [(k, amount) for k, amount in enumerate(unit.vector) if amount]
        for place in index.up[leaf]:
            bounds = index.max[place] if place else index.root_max
            for k, amount in asked:
                most = bounds[k]
                if most is not None and amount > most:
                    return Reason.NEVER_FITS, (place, k)
        if not unit.is_preemptible:
            for k, amount in asked:
                if amount > index.least[leaf][k] and index.root_max[k] is not None:
                    return Reason.NEVER_FITS, (leaf, k)
        if unit.missing:
            return Reason.GANG_INCOMPLETE, (leaf, 0)
        for k, amount in asked:  # nodes may be added
            most = index.max[0][k]
            if most is not None and amount > most:
                return _NO_FIT, (0, k)
        return None

    def capped(self, unit: Unit) -> tuple[str, int, int] | None:
        """The resource in which its user reached a cap in the leaf, the user's use, and the cap."""
        user, leaf = unit.user, self.index.nodes[unit.leaf]
        if not user:
            return None
        cap = self.user_caps.get((leaf.name, user)) or leaf.cap_of(user)
        if not cap:
            return None
        mine = self.books[unit.leaf].users.get(user)
        for k, resource in enumerate(self.index.resources):
            used = mine[k] if mine else 0
            if resource in cap and unit.vector[k] and used + unit.vector[k] > cap[resource]:
                return resource, used, cap[resource]
        return None

    def user_uses(self) -> tuple[AdmittedUse, ...]:
        """What each user has admitted in each leaf: the sums by which caps are judged."""
        names = self.index.resources
        return tuple(
            AdmittedUse(
                self.index.names[place],
                user,
                {name: amount for name, amount in zip(names, vector, strict=True) if amount},
            )
            for place, book in self.books.items()
            for user, vector in sorted(book.users.items())
            if any(vector)
        )

    def jobs_at(self, place: int) -> int:
        """Jobs with admitted pods below a node."""
        return sum(
            len(book.owners) for leaf, book in self.books.items() if place in self.index.up[leaf]
        )


def _sum_of(vectors: list[Vector], width: int) -> Vector:
    """Their sum, by resource. A leaf may have thousands of pods: one loop in C for each resource.

    >>> _sum_of([(1, 2), (3, 4)], 2), _sum_of([], 2)
    ((4, 6), (0, 0))
    """
    return tuple(map(sum, zip(*vectors, strict=True))) if vectors else (0,) * width


def account_of(state: QuotaState, capacity: Amounts | None = None) -> QuotaAccount:
    """The account of a state. The order of its lists does not matter."""
    account = QuotaAccount(
        state.tree, state.settings, state.capacity if capacity is None else capacity
    )
    account.set_nodes(state.nodes)
    account.budgets, account.user_caps, account.violations = (
        state.budgets,
        state.user_caps,
        state.violations,
    )
    account.scheduled_at = state.scheduled_at
    fill(account, state.pods, state.workloads.values())
    return account


def fill(account: QuotaAccount, pods: Iterable[QuotaPod], workloads: Iterable[Workload]) -> None:
    for job in workloads:
        account.put_workload(job)
    for pod in pods:
        account.put(pod)
