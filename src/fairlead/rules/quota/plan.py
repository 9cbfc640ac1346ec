"""The quota plan: which units are admitted, which pods are evicted, and why the others wait.

Specification: docs/spec/quota.md#the-plan. It is a pure function of the account: it remembers
nothing between plans.

The problem. Leaves of the tree share a cluster. Each has a guaranteed part (min) and a ceiling
(max), and borrows what others do not use. A plan gives quota to waiting units, a single pod or a
whole gang each, and takes it back from borrowers when a guaranteed unit needs it.

The states of a unit within a plan. It waits for its turn (in a heap, smallest turn first). When its
turn comes, `_decide` does one of three things:

- admit: the tree has room (`sums`) and the cluster's nodes have room (`seats`);
- claim: room will come from pods that are stopping or that this plan evicts. The claim is charged
  like use, so that no other unit takes the room meanwhile;
- set aside: the unit waits, with a `Reason`, until its leaf loses a victim.

The invariants:

- One predicate, `is_guaranteed`, gives a unit the earlier turn and the right to have pods evicted
  in other leaves. With two different predicates, two units could evict each other in turn.
- Victims are chosen for a unit only if they make enough room; otherwise no pod is evicted.
- `sums` is what is charged now, `after` what is charged when all victims have stopped. A unit is
  admitted by `sums`, and victims are chosen by `after`.
- A unit that this plan admitted is chosen as a victim at most once (`was_displaced`), so a plan
  comes to an end.

Why this order: claims first, because their victims have lost their work already; then guaranteed
units, so that a right never waits for a borrower; then priority; then the leaf that borrows least.

Units of a leaf that differ only in age share a line (`units.Line`): if its first unit cannot
proceed, no other can, and the line is set aside as a whole. Later plans look at a line again only
when something that it depends on has changed. This keeps a plan after one event cheap. In a strict
leaf (`turns/strict`) the lines are tried one after the other, and the first unit that lacks room
holds the later ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from fairlead.model.keys import RECLAIM_SCOPE, USER_ORDER
from fairlead.model.quota.clauses import Clauses, clause
from fairlead.model.quota.plan import (
    EvictionMethod,
    QuotaAdmission,
    QuotaClaim,
    QuotaEviction,
    QuotaPlan,
    QuotaResume,
    QuotaReturn,
    QuotaWaiting,
    Reason,
)
from fairlead.model.quota.state import QuotaState
from fairlead.rules.quota.account import LeafBook, QuotaAccount, account_of
from fairlead.rules.quota.node_use import node_uses, promised_by_leaf
from fairlead.rules.quota.reclaim import Reclaim
from fairlead.rules.quota.seating.node_victims import NodeVictims
from fairlead.rules.quota.seating.seats import Seats
from fairlead.rules.quota.sentences import NoSentences, Sentences
from fairlead.rules.quota.tree import Vector
from fairlead.rules.quota.turns.strict import StrictQueue
from fairlead.rules.quota.units import Line, Unit, VictimGroup, group_of

_IDLE = Reason.WAITING_FOR_IDLE_QUOTA
_CLAIMS = Reason.WAITING_FOR_EVICTIONS
_QUEUED = Reason.QUEUED_BEHIND
_USUAL, _LAST = 2, 3
"""First part of a turn: of units that wait for no eviction, and of units that wait anyway."""
_NOT_ASKED: Mapping[Unit, int] = {}
_Turn = tuple[tuple[object, ...], Unit, Reason, Clauses]


def plan_quota(state: QuotaState) -> QuotaPlan:
    """The plan for this state.

    The order of its lists does not matter. Total for every tree, valid or not.
    """
    account = account_of(state)
    planned = plan_account(account, state.now)
    plan = planned.plan()
    units: defaultdict[str, int] = defaultdict(int)
    for row in plan.waiting:
        units[row.leaf] += 1
    nodes = node_uses(
        state, promised_by_leaf(plan.claims, account.kept()), units, account.index.counted()
    )
    return QuotaPlan(
        plan.admit,
        plan.evict,
        plan.waiting,
        plan.claims,
        plan.returned,
        plan.resume,
        nodes=nodes,
        violations=state.violations,
    )


def plan_account(account: QuotaAccount, now: float, *, has_text: bool = True) -> Planned:
    """The plan for what the account holds now. The result is valid until the account changes.

    Not `has_text`: it decides the same, and some of its sentences are empty.
    """
    account.settle(now)
    planner = _Planner(account, Sentences if has_text else NoSentences)
    planner.run()
    return Planned(planner)


class Planned:
    """The result of a plan. The rows of waiting units are made when they are asked for."""

    def __init__(self, planner: _Planner) -> None:
        self._planner = planner
        names = planner.index.names
        why_victim = planner.sentences.why_victim
        self.admit = tuple(
            QuotaAdmission(pod, names[unit.leaf], sure, planner.sentences.admitted(unit))
            for unit, sure in planner.admitted
            for pod in unit.pods
        )
        self.resume = _resumes(planner)
        self.evict = tuple(
            each
            for group, unit, key, why in planner.evicted
            for each in _evictions(
                planner,
                group,
                key,
                why if unit is None else why_victim(group, unit, planner.lacking[unit]),
                is_drain=unit is None,
            )
        )
        self.claims = tuple(
            QuotaClaim(
                unit.key,
                names[unit.leaf],
                planner.index.amounts(unit.vector),
                unit.pods,
                any(pod.claim_since is None for pod in unit.pods),
            )
            for unit in planner.claimed
        )
        self.returned = tuple(
            QuotaReturn(pod, names[book.place], is_event_only=not pod.owner)
            for book in planner.account.books.values()
            if book.unbound and not planner.is_stopped
            for pod in sorted(planner.account.unbound(book), key=lambda pod: pod.key)
        )

    def waiting(self) -> tuple[QuotaWaiting, ...]:
        """All waiting units, by leaf, in the order of trial, with their places over all leaves."""
        overall = self._planner.overall()
        return tuple(
            row
            for book in self._planner.account.books.values()
            for row in self._planner.rows(book, overall)
        )

    def waiting_in(self, place: int) -> tuple[QuotaWaiting, ...]:
        return self._planner.rows(self._planner.account.books[place])

    def reasons(self) -> dict[str, Reason]:
        """Reason by unit, of the leaves that were looked at.

        Units of other leaves keep their reasons.
        """
        return {
            unit.key: reason
            for place in self.looked_at()
            for unit, reason, _ in self._planner.verdicts(place)
        }

    def looked_at(self) -> list[int]:
        """Leaves with at least one line that this plan tried, or whose pods changed."""
        planner = self._planner
        return sorted(
            planner.seen | planner.woken | (planner.account.dirty & planner.account.books.keys())
        )

    def waiting_units_in(self, place: int) -> int:
        """Number of units that wait in a leaf."""
        return self._planner.count(self._planner.account.books[place])

    def plan(self) -> QuotaPlan:
        return QuotaPlan(
            self.admit,
            self.evict,
            self.waiting(),
            self.claims,
            self.returned,
            self.resume,
            violations=self._planner.account.violations,
        )


class _Planner:
    """One plan in the making.

    `admitted`: units and whether each is guaranteed, in the order decided; a unit that is taken
    back leaves the list. `evicted`: group, the unit that it makes room for (None = a lowered max),
    name, sentence. `victims_of` and `lacking`: by claimant; what it lacked before its victims were
    chosen. `claimed`: units whose claims are charged in `sums` and `after`. `broken`: gangs evicted
    as a whole; no member joins one. `seen`: leaves that were looked at; `woken`: leaves whose
    `needs` are made anew at the end. `_done`: admitted units that have not been taken back.
    `_behind`: lines that wait for another unit of their gang. `_displaced`: lines of units that
    were taken back, or that claim beside others of their line. `_kept`: claimants that gave way to
    another claimant on a node, tried once more at the end.
    """

    def __init__(self, account: QuotaAccount, sentences: type[Sentences]) -> None:
        self.account = account
        self.index = account.index
        self.is_by_subtree = account.tree.attributes.get(RECLAIM_SCOPE) == "subtree"
        self.is_stopped = any(each.stops for each in account.violations)
        self.reclaim = Reclaim(account, self.vouchers, is_by_subtree=self.is_by_subtree)
        self.seats = Seats(account.rooms, account.seats, account.stopping)
        self.node_victims = NodeVictims(account, self.reclaim, self.seats)
        self.sentences = sentences(account, self.reclaim)
        self.admitted: list[tuple[Unit, bool]] = []
        self.evicted: list[tuple[VictimGroup, Unit | None, str, str]] = []
        self.victims_of: dict[Unit, list[VictimGroup]] = {}
        self.lacking: dict[Unit, Sequence[tuple[int, int]]] = {}
        self.claimed: list[Unit] = []
        self.broken: set[tuple[str, str]] = set()
        self.seen: set[int] = set(account.reread)
        self.woken: set[int] = set()
        self._standings: dict[tuple[int, Vector], tuple[bool, bool]] = {}
        self._roomy: list[
            tuple[tuple[int, int], int, list[tuple[tuple[object, ...], int, Line]]]
        ] = []
        self._done: set[Unit] = set()
        self._heap: list[tuple[tuple[object, ...], int, Line]] = []
        self._count = 0
        self._behind: defaultdict[Unit, list[Line]] = defaultdict(list)
        self._displaced: defaultdict[int, list[Line]] = defaultdict(list)
        self._kept: list[Line] = []
        self._queues = {
            place: StrictQueue(self._place) for place in self.index.strict & account.books.keys()
        }

    def run(self) -> None:
        if self.is_stopped:
            return
        account = self.account
        for place, book in account.books.items():
            for late in book.late:
                account.add(place, late, claim=True)
        self._drain()
        self._wake()
        self.seats.reserve([line.first for _, _, line in self._heap if _has_claim(line.first)])
        while (line := self._next()) is not None:
            before, unit = len(account.undo), line.first
            self._decide(line)
            if unit.leaf in self._queues:
                self._follow(line, unit)
            elif line.reason is None and line.next < len(line.units):
                self._push(line)
            if self.is_by_subtree and len(account.undo) > before:
                self._improved(())
        for line in self._kept:
            self._admit_late(line)
        self.seats.rooms_now()
        for place in self.woken:
            account.books[place].needs = self._needs(account.books[place])

    # --- which lines are looked at ----------------------------------------------------------------

    def _wake(self) -> None:
        """Wake all lines of leaves that changed.

        Of other leaves, those for which there is room now.
        """
        account, own, most = self.account, self.account.sums.own, self.index.max
        roomy: defaultdict[tuple[int, int], list[tuple[tuple[object, ...], int, Line]]] = (
            defaultdict(list)
        )
        rooms: dict[tuple[int, int], int] = {}
        lowest: dict[tuple[int, int], int] = {}
        for leaf, book in account.books.items():
            if not book.lines:
                continue
            if book.needs is None:
                self._wake_leaf(book)
                continue
            for ceiling, need in book.needs.items():
                room = rooms.get(ceiling)
                if room is None:
                    place, k = ceiling
                    room = rooms[ceiling] = (most[place][k] or 0) - own[place][k]
                if need <= room:
                    break
            else:
                continue
            if leaf in self._queues:
                self._wake_leaf(book)
                continue
            at = self._version(leaf)
            for line in book.lines:
                spot = line.ceiling
                if spot is not None and (need := line.need) <= rooms.setdefault(
                    spot, (most[spot[0]][spot[1]] or 0) - own[spot[0]][spot[1]]
                ):
                    self._count += 1
                    roomy[spot].append(
                        (line.turn if line.turn_at == at else self._turn(line), self._count, line)
                    )
                    if need < lowest.get(spot, need + 1):
                        lowest[spot] = need
        for ceiling, lines in roomy.items():
            heapify(lines)
            self._roomy.append((ceiling, lowest[ceiling], lines))

    def _wake_leaf(self, book: LeafBook) -> None:
        self.seen.add(book.place)
        self.woken.add(book.place)
        book.holder = None
        for line in book.lines:
            self._restart(line)

    def _next(self) -> Line | None:
        """The line whose turn it is.

        A line that lacks room again, after another took it, stays as it was.
        """
        own, most = self.account.sums.own, self.index.max
        while True:
            heap = self._heap
            for (place, k), need, lines in self._roomy:
                if own[place][k] + need > (most[place][k] or 0):
                    lines.clear()
                elif lines and (not heap or lines[0] < heap[0]):
                    heap = lines
            if not heap:
                return None
            turn, _, line = heappop(heap)
            if heap is not self._heap:
                if line.ceiling is None:  # it is in the common heap by now
                    continue
                place, k = line.ceiling
                if own[place][k] + line.units[0].vector[k] > (most[place][k] or 0):
                    continue
                line.reason = None
                self.woken.add(line.units[0].leaf)
            elif line.reason is not None or line.next >= len(line.units):
                continue
            queue = self._queue_of(line)
            if queue is not None and queue.first() is not line:
                continue
            if self._turn(line) == turn:
                if queue is not None:
                    queue.take()
                return line
            self._enter(line)

    def _needs(self, book: LeafBook) -> dict[tuple[int, int], int] | None:
        """What the leaf's lines lack, if all lack only room: the least per (node, resource)."""
        if book.place in self.account.dirty:
            return None
        needs: dict[tuple[int, int], int] = {}
        for line in book.lines:
            if line.ceiling is not None:
                needs[line.ceiling] = min(line.need, needs.get(line.ceiling, line.need))
            elif line.reason not in (Reason.USER_CAP, Reason.NON_PREEMPTIBLE_OVER_MIN, _QUEUED):
                return None
        return needs

    # --- the order of turns -----------------------------------------------------------------------

    def _restart(self, line: Line) -> None:
        line.reason, line.clauses, line.ceiling, line.next, line.turn_at = None, (), None, 0, -1
        behind = line.units[0].behind
        if behind is not None and behind not in self._done:
            line.reason = _IDLE
            self._behind[behind].append(line)
        else:
            self._push(line)

    def _push(self, line: Line) -> None:
        """Queue the line for its turn; in a strict leaf after all lines before it."""
        queue = self._queue_of(line)
        if queue is None:
            self._enter(line)
        elif self.account.books[line.first.leaf].holder is not None:
            line.reason = _QUEUED
        else:
            queue.put(line)
            self._lead(queue)

    def _enter(self, line: Line) -> None:
        self._count += 1
        heappush(self._heap, (self._turn(line), self._count, line))

    def _queue_of(self, line: Line) -> StrictQueue | None:
        """The queue of the line's strict leaf; None otherwise.

        A claimant is in no queue.
        """
        if not self._queues:
            return None
        return self._queues.get(line.first.leaf) if line.first.claim_since is None else None

    def _lead(self, queue: StrictQueue) -> None:
        if (line := queue.lead()) is not None:
            self._enter(line)

    def _follow(self, line: Line, unit: Unit) -> None:
        """After a unit of a strict leaf was tried: try the next one, or hold all later ones."""
        book, queue = self.account.books[unit.leaf], self._queues[unit.leaf]
        if book.holder is None and self._lacks_room(line, unit):
            book.holder = unit
            queue.close()
        else:
            self._lead(queue)

    def _lacks_room(self, line: Line, unit: Unit) -> bool:
        """Whether the unit was set aside for lack of room that may become free."""
        if unit.gang in self.broken or (unit.behind is not None and unit.behind not in self._done):
            return False
        if line.reason is Reason.NO_FIT_ON_NODES:
            return self.seats.may_ever_hold(unit)
        return line.reason in (_IDLE, Reason.PDB_BLOCKED)

    def _turn(self, line: Line) -> tuple[object, ...]:
        """The turn of the line's first unit; the smaller, the sooner.

        It changes only with its leaf's sums or those of a neighbour.
        """
        unit = line.first
        if unit.claim_since is not None:
            return int(unit.is_partial), unit.claim_since, unit.name
        leaf = unit.leaf
        at = self._version(leaf)
        if line.turn_at != at or self.is_by_subtree:
            order = self._user_order(unit)
            line.turn = (
                2,
                not self.is_guaranteed(unit),
                -unit.priority,
                self._shares(leaf, at),
                order,
                unit.age,
                unit.name,
            )
            line.turn_at = at
        return line.turn

    def _version(self, leaf: int) -> int:
        """Grows with every change of the sums of the leaf and of
        its ancestors, the root excepted.
        """
        version, at = self.account.after.version, 0
        for place in self.index.up[leaf][:-1]:
            at += version[place]
        return at

    def is_guaranteed(self, unit: Unit) -> bool:
        """Whether the min of the unit's leaf covers it in all resources that are contested.

        See docs/spec/quota.md#contested-resources-and-guaranteed-units.
        """
        leaf, vector = unit.leaf, unit.vector
        asked = [k for k in self.account.contested[leaf] if vector[k]] or [
            k for k, amount in enumerate(vector) if amount
        ]
        after = self.account.after
        if not self.is_by_subtree:
            own, least = after.own[leaf], self.index.min[leaf]
            for k in asked:  # noqa: SIM110 - asked of every unit at every turn, and all() takes twice as long
                if own[k] + vector[k] > least[k]:
                    return False
            return True
        return all(
            any(after.is_within(node, vector, [k]) for node in self.vouchers(unit, k))
            for k in asked
        )

    def vouchers(self, unit: Unit, k: int) -> Sequence[int]:
        """Nodes whose min may cover the unit: its leaf.

        With reclaim scope `subtree` also its ancestors below the contested node, never the root.
        """
        path = self.index.up[unit.leaf]
        if not self.is_by_subtree:
            return path[:1]
        stake = next(
            (
                place
                for place, each in self.account.sums.blocks(unit.leaf, unit.vector)
                if each == k
            ),
            None,
        )
        if stake is None:
            over = [place for place in path[1:] if k in self.account.full[place]]
            stake = over[-1] if over else path[-1]
        return [
            place
            for place in path[: max(1, path.index(stake))]
            if self.index.parent[place] >= 0 or place == unit.leaf
        ]

    def _shares(self, leaf: int, at: int) -> tuple[int, ...]:
        """What each level borrows, from the root's child down, as a share of the root's max: the
        smallest goes first. `at`: the version of those levels' sums.
        """
        index, book = self.index, self.account.books[leaf]
        if book.shares_at != at:
            scarce = [(k, index.weight[k]) for k in self.account.contested[leaf] if index.weight[k]]
            own, least = self.account.after.own, index.min
            levels = reversed(index.up[leaf][:-1])
            book.shares = tuple(
                [
                    max([(own[n][k] - least[n][k]) * weight for k, weight in scarce], default=0)
                    for n in levels
                ]
            )
            book.shares_at = at
        return book.shares

    def _place(self, unit: Unit) -> tuple[object, ...]:
        """The unit's place in the queue of a strict leaf."""
        return -unit.priority, self._user_order(unit), unit.age, unit.name

    def _user_order(self, unit: Unit) -> int:
        if self.index.nodes[unit.leaf].attributes.get(USER_ORDER) != "fair":
            return 0
        mine = self.account.books[unit.leaf].users.get(unit.user, ())
        return max((amount * self.index.weight[k] for k, amount in enumerate(mine)), default=0)

    # --- one unit ---------------------------------------------------------------------------------

    def _decide(self, line: Line) -> None:
        """Admit the line's first unit, claim room for it, or set the line aside."""
        account, unit = self.account, line.first
        line.ceiling = None
        is_broken = bool(self.broken) and unit.gang in self.broken
        if is_broken or (unit.behind is not None and unit.behind not in self._done):
            # it would join a gang that this plan has evicted, or one that waits again
            line.reason = _IDLE
            if not is_broken and unit.behind is not None:
                self._behind[unit.behind].append(line)
            return
        if (why := self._not_now(unit)) is not None:
            line.reason, line.clauses = why
            self.seats.leave(unit)
            return
        blocked = account.sums.blocks(unit.leaf, unit.vector)
        if not blocked:
            if self.seats.admit(unit):
                self._admit(line)
                return
            is_kept = self.seats.kept is not None
            if unit.claim_since is not None and self.seats.hold(unit):
                self._claim(line)  # pods that stop for another claimant leave room for both
                if is_kept:
                    self._kept.append(line)
            else:
                self._clear_nodes(line)
            return
        is_guaranteed = self.is_guaranteed(unit)
        lacking = account.after.blocks(unit.leaf, unit.vector)
        if not lacking:
            if is_guaranteed or unit.claim_since is not None:
                if self.seats.hold(unit) or unit.claim_since is not None:
                    self._claim(line)
                else:
                    self._clear_nodes(line)
            else:
                self._set_aside(line, blocked)
            return
        chosen = self.reclaim.from_others(unit) if is_guaranteed else None
        if chosen is None:
            chosen = self.reclaim.in_leaf(unit)
        if chosen is None:
            if is_guaranteed:
                line.reason, line.clauses = self.sentences.why_no_victims(unit)
            else:
                self._set_aside(line, blocked)
            return
        if not self.seats.hold(unit, chosen):
            for group in chosen:
                self.reclaim.spare(group)
            self._clear_nodes(line)
            return
        self.lacking[unit] = lacking
        self._make_room(line, chosen)

    def _clear_nodes(self, line: Line) -> None:
        """No node has room: evict borrowers from one node, if that makes enough room.

        Specification: docs/spec/quota.md#room-made-on-a-cluster-node.

        Not for a unit that asks for nothing that quota counts: no min guarantees it anything.
        """
        unit, kept = line.first, self.seats.kept
        if any(unit.vector) and self.is_guaranteed(unit):
            lacking = self.account.after.blocks(unit.leaf, unit.vector)
            if kept is None and not lacking and self.seats.hold(unit):
                self._claim(line)  # enough stops already
                return
            chosen = self.node_victims.choose(unit)
            if chosen and self.seats.hold(unit, chosen):
                self.lacking[unit] = lacking
                self._make_room(line, chosen)
                return
            for group in chosen or ():
                self.reclaim.spare(group)
        clauses = (
            self.sentences.no_fit(unit, self.seats.rooms_now())
            if kept is None
            else self.sentences.kept_from(unit, *kept)
        )
        line.reason, line.clauses = Reason.NO_FIT_ON_NODES, clauses

    def _set_aside(self, line: Line, blocked: Sequence[tuple[int, int]]) -> None:
        """The unit waits for idle quota.

        If it lacks nothing but room, `ceiling` is where it lacks it.
        """
        index, unit = self.index, line.first
        line.reason = _IDLE
        if (
            self.is_by_subtree
            or index.max_jobs
            or unit.behind is not None
            or unit.claim_since is not None
        ):
            return
        place, k = blocked[0]
        if not any(
            index.floor[node][k] for node in index.up[unit.leaf]
        ) and not self.reclaim.has_lower(unit):
            line.ceiling, line.need = (place, k), unit.vector[k]

    def _not_now(self, unit: Unit) -> tuple[Reason, Clauses] | None:
        """Caps and counts for which no pod is evicted.

        Specification: docs/spec/quota.md#non-preemptible-pods-and-caps.
        """
        account = self.account
        if (cap := account.capped(unit)) is not None:
            return Reason.USER_CAP, self.sentences.over_cap(unit, *cap)
        book = account.books[unit.leaf]
        if not unit.is_preemptible:
            least = self.index.min[unit.leaf]
            for k, amount in enumerate(unit.vector):
                if amount and book.firm[k] + amount > least[k] and self.index.max[0][k] is not None:
                    return Reason.NON_PREEMPTIBLE_OVER_MIN, self.sentences.over_firm_min(
                        unit, k, book.firm[k]
                    )
        if self.index.max_jobs and unit.owner not in book.owners:
            for place in self.index.up[unit.leaf]:
                most = self.index.max_jobs.get(place)
                if most is not None and (jobs := account.jobs_at(place)) >= most:
                    node = self.index.names[place]
                    return Reason.OVER_MAX, (clause("max-jobs", node=node, jobs=jobs, max=most),)
        return None

    def _admit(self, line: Line) -> None:
        unit = line.first
        self.admitted.append((unit, self.is_guaranteed(unit)))
        # a resumed job has no pods yet
        self.account.add(unit.leaf, unit.vector, claim=not unit.pods)
        self._tally(unit, 1)
        self._done.add(unit)
        line.next += 1
        if unit.leaf in self._queues and unit.claim_since is None:
            self._queues[unit.leaf].admitted.append(unit)
        if (
            unit.claim_since is None
            and not unit.was_displaced
            and unit.is_preemptible
            and unit.pods
        ):
            is_gang = len(unit.pods) > 1
            self.reclaim.fresh[unit.leaf].append(
                group_of(self.index, unit.leaf, unit.pods, is_gang=is_gang, unit=unit)
            )
        elif unit.is_partial:
            self.reclaim.joined[unit.leaf].append(
                group_of(self.index, unit.leaf, unit.pods, is_gang=False, unit=unit)
            )
        for waiting in self._behind.pop(unit, ()):
            waiting.reason = None
            self._push(waiting)

    def _claim(self, line: Line) -> None:
        unit = line.first
        if unit.workload is not None:  # its pods claim their room once it is resumed
            self.admitted.append((unit, self.is_guaranteed(unit)))
            self._done.add(unit)
            self.account.add(unit.leaf, unit.vector, claim=True)
            line.next += 1
            return
        self.claimed.append(unit)
        self.account.add(unit.leaf, unit.vector, claim=True)
        if not unit.is_preemptible:
            for k, amount in enumerate(unit.vector):
                self.account.books[unit.leaf].firm[k] += amount
        if len(line.units) == 1:
            line.reason = _CLAIMS
            return
        self._displaced[unit.leaf].append(Line([unit], reason=_CLAIMS))
        line.next += 1

    def _admit_late(self, line: Line) -> None:
        """A claimant that left a node to another claimant, which
        may have a seat elsewhere by now.
        """
        unit = line.first
        self.account.add(unit.leaf, unit.vector, -1, claim=True)
        if self.account.sums.blocks(unit.leaf, unit.vector) or not self.seats.admit(unit):
            self.account.add(unit.leaf, unit.vector, claim=True)
            return
        self.claimed.remove(unit)
        if not unit.is_preemptible:
            for k, amount in enumerate(unit.vector):
                self.account.books[unit.leaf].firm[k] -= amount
        line.reason = None
        self._admit(line)

    def _make_room(self, line: Line, chosen: Sequence[VictimGroup]) -> None:
        account, unit = self.account, line.first
        undo = account.undo
        losing = {group.leaf for group in chosen}
        if unit.workload is not None and any(group.unit is None for group in chosen):
            # evict nothing for a suspended job; its pods have rights once it is resumed
            for group in chosen:
                self.reclaim.spare(group)
            self._claim(line)
            return
        fresh = {group.unit for group in chosen if group.unit is not None}
        for group in chosen:
            undo.append((account.after, group.leaf, group.vector, -1))
            account.dirty.add(group.leaf)
            if group.unit is not None:
                self._take_back(group.unit, fresh)
            else:
                self.evicted.append((group, unit, unit.key, ""))
                if group.is_whole and group.gang is not None:
                    self.broken.add(group.gang)
                self.victims_of.setdefault(unit, []).append(group)
        if account.sums.blocks(unit.leaf, unit.vector) or not self.seats.admit(unit):
            self._claim(line)
        else:
            self._admit(line)
        self._improved(losing)

    def _take_back(self, unit: Unit, chosen: Container[Unit]) -> None:
        """Make a unit that this plan admitted wait again, in a strict leaf also later ones.

        `chosen`: all units that are taken back for one claimant. They have left `after` already.
        """
        if unit in self._done:  # otherwise it was taken back with an earlier unit of its queue
            self._put_back(unit, is_gone=True)
        for later in self._queues[unit.leaf].after(unit) if unit.leaf in self._queues else ():
            self._put_back(later, is_gone=later in chosen)

    def _put_back(self, unit: Unit, *, is_gone: bool) -> None:
        """`is_gone`: the unit has left the sums in `after` already."""
        self.account.add(unit.leaf, unit.vector, -1, after=not is_gone, claim=not unit.pods)
        self._tally(unit, -1)
        self.seats.leave(unit)
        self.admitted = [pair for pair in self.admitted if pair[0] is not unit]
        self._done.discard(unit)
        for there in (self.reclaim.fresh, self.reclaim.joined):
            there[unit.leaf] = [group for group in there[unit.leaf] if group.unit is not unit]
        unit.was_displaced = True
        again = Line([unit])
        self._displaced[unit.leaf].append(again)
        self._push(again)

    def _improved(self, leaves: Iterable[int]) -> None:
        """These leaves lost a pod or unit: try their lines again.

        Neighbours of them may have sooner turns.
        """
        up = self.index.up
        nearest = {up[leaf][-2] if len(up[leaf]) > 1 else leaf for leaf in leaves}
        for place, book in self.account.books.items():
            if place in leaves:
                book.needs = book.holder = None
                if place in self._queues:
                    self._queues[place].clear()
                for line in [*book.lines, *self._displaced[place]]:
                    if (
                        line.reason is not None
                        and line.reason is not _CLAIMS
                        and line.next < len(line.units)
                    ):
                        if (
                            line.units[0].behind is not None
                            and line.units[0].behind not in self._done
                        ):
                            continue
                        line.reason, line.clauses, line.ceiling = None, (), None
                        self._push(line)
                    elif line.reason is None and line.next < len(line.units):
                        self._push(line)
                self.seen.add(place)
            elif self.is_by_subtree or (len(up[place]) > 1 and up[place][-2] in nearest):
                if place in self._queues:
                    self._queues[place].take()
                    self._lead(self._queues[place])
                    continue
                for line in [*book.lines, *self._displaced[place]]:
                    if line.reason is None and line.next < len(line.units):
                        self._push(line)

    def _tally(self, unit: Unit, sign: int) -> None:
        book = self.account.books[unit.leaf]
        if not unit.is_preemptible:
            for k, amount in enumerate(unit.vector):
                book.firm[k] += sign * amount
        if unit.user:
            mine = book.users.setdefault(unit.user, [0] * len(unit.vector))
            for k, amount in enumerate(unit.vector):
                mine[k] += sign * amount
        count = book.owners.get(unit.owner, 0) + sign
        if count:
            book.owners[unit.owner] = count
        else:
            del book.owners[unit.owner]

    def _drain(self) -> None:
        """Where a max was lowered below the use and the tree asks for it: evict down to the max.

        Specification: docs/spec/quota.md#changes-to-the-tree.
        """
        for place in self.index.drained:
            name = self.index.names[place]
            for k in range(len(self.index.resources)):
                for group in self.reclaim.over_max(place, k):
                    self.account.undo.append((self.account.after, group.leaf, group.vector, -1))
                    self.account.dirty.add(group.leaf)
                    self.account.books[group.leaf].needs = None
                    if group.is_whole and group.gang is not None:
                        self.broken.add(group.gang)
                    self.evicted.append((group, None, name, self.sentences.drained(place, k)))

    # --- the result -------------------------------------------------------------------------------

    def verdicts(self, place: int) -> list[tuple[Unit, Reason, Clauses]]:
        """Waiting units of a leaf in the order in which they are tried, the hopeless last.

        With the clauses if they exist already, else ().
        """
        return [each[1:] for each in self._turns(place)]

    def overall(self) -> dict[Unit, int]:
        """Places from 1 of all waiting units, in one order over all leaves.

        It keeps the order of each leaf.
        """
        turns = [
            (turn, place, at, unit)
            for place in self.account.books
            for at, (turn, unit, _, _) in enumerate(self._turns(place))
        ]
        turns.sort(key=lambda each: each[:3])
        return {unit: number for number, (*_, unit) in enumerate(turns, 1)}

    def _turns(self, place: int) -> list[_Turn]:
        """Of the units that wait in a leaf: the turn (smaller = sooner, over all leaves), the
        reason, and the clauses if they exist already.
        """
        book, found = self.account.books[place], list[_Turn]()
        if self.is_stopped:
            clauses = self.sentences.invalid()
            eldest = sorted(book.units, key=lambda unit: (unit.age, unit.name))
            return [
                ((_LAST, unit.age, unit.name), unit, Reason.TREE_INVALID, clauses)
                for unit in eldest
            ]
        shares = self._shares(place, self._version(place))
        for line in [*book.lines, *self._displaced[place]]:
            for unit in line.units[line.next :]:
                clauses, reason = line.clauses, line.reason or _IDLE
                if book.holder is not None and self._is_kept_back(line, unit, book.holder):
                    reason, clauses = _QUEUED, self.sentences.queued(book.holder)
                if reason is _CLAIMS or unit.claim_since is not None:
                    is_last = unit.is_partial and reason is not _CLAIMS
                    turn: tuple[object, ...] = (
                        int(is_last),
                        self.account.now if unit.claim_since is None else unit.claim_since,
                        unit.name,
                    )
                else:
                    is_late = place not in self._queues and not self._standing(unit)[0]
                    turn = (
                        _USUAL,
                        is_late,
                        -unit.priority,
                        shares,
                        self._user_order(unit),
                        unit.age,
                        unit.name,
                    )
                if reason is _IDLE and unit.behind is not None and unit.behind not in self._done:
                    clauses = self.sentences.behind(unit)
                elif reason is _IDLE and self._standing(unit)[1]:
                    reason = Reason.OVER_MAX
                found.append((turn, unit, reason, clauses))
        found.sort(key=lambda each: each[0])
        if place in self._queues:
            found = self._in_line(found)
        for unit, reason, at in sorted(book.hopeless, key=lambda each: (each[0].age, each[0].name)):
            found.append(
                (
                    (_LAST, unit.age, unit.name),
                    unit,
                    reason,
                    self.sentences.hopeless(unit, reason, at),
                )
            )
        return found

    def _in_line(self, found: Iterable[_Turn]) -> list[_Turn]:
        """The turns in a strict leaf.

        No unit behind one that is not guaranteed has a sooner turn than that unit.
        """
        kept, is_late = list[_Turn](), False
        for turn, unit, reason, clauses in found:
            if turn[0] == _USUAL:
                is_late = is_late or not self._standing(unit)[0]
                turn = _USUAL, is_late, *turn[2:]
            kept.append((turn, unit, reason, clauses))
        return kept

    def _is_kept_back(self, line: Line, unit: Unit, holder: Unit) -> bool:
        return line.reason is _QUEUED or (line.first is holder and unit is not holder)

    def _standing(self, unit: Unit) -> tuple[bool, bool]:
        """Whether the unit is guaranteed, and whether its leaf's own use blocks it, in the end."""
        alike = unit.leaf, unit.vector
        known = self._standings.get(alike)
        if known is None:
            known = self._standings[alike] = (
                self.is_guaranteed(unit),
                self.sentences.own_ceiling(unit) is not None,
            )
        return known

    def count(self, book: LeafBook) -> int:
        if self.is_stopped:
            return len(book.units)
        return sum(
            len(line.units) - line.next for line in [*book.lines, *self._displaced[book.place]]
        ) + len(book.hopeless)

    def rows(
        self, book: LeafBook, overall: Mapping[Unit, int] = _NOT_ASKED
    ) -> tuple[QuotaWaiting, ...]:
        leaf = self.index.names[book.place]
        return tuple(
            self.sentences.waiting(
                unit,
                leaf,
                reason,
                clauses,
                (position, overall.get(unit, 0)),
                self.victims_of.get(unit, ()),
                self._standing(unit)[0],
            )
            for position, (unit, reason, clauses) in enumerate(self.verdicts(book.place), 1)
        )


def _has_claim(unit: Unit) -> bool:
    """Whether pods may have been evicted for it."""
    return unit.claim_since is not None and not unit.is_partial


def _evictions(
    planner: _Planner, group: VictimGroup, key: str, sentence: str, *, is_drain: bool
) -> Iterable[QuotaEviction]:
    index, longest = planner.index, planner.account.settings.longest_grace_seconds
    method = (
        EvictionMethod.EVICT
        if group.workload is None
        else EvictionMethod.SUSPEND
        if group.is_whole
        else EvictionMethod.LOWER
    )
    for pod in group.pods:
        frees = {
            name: amount
            for name, amount in zip(index.resources, index.vector(pod.request), strict=True)
            if amount
        }
        grace = longest if pod.grace_seconds is not None and pod.grace_seconds > longest else None
        yield QuotaEviction(
            pod,
            index.names[group.leaf],
            key,
            method,
            group.workload,
            frees,
            grace,
            sentence,
            is_drain,
        )


def _resumes(planner: _Planner) -> tuple[QuotaResume, ...]:
    """Jobs that are resumed, each once, in the order in which they were admitted."""
    found: dict[str, QuotaResume] = {}
    for unit, _ in planner.admitted:
        job = unit.workload
        if job is None:
            continue
        before = found.get(job.uid)
        more = (
            (before.pods if before is not None else 0) + 1
            if job.gives_singly or not job.is_suspended
            else 0
        )
        found[job.uid] = QuotaResume(job, planner.index.names[unit.leaf], more)
    return tuple(found.values())
