"""Why a unit waits, and why a pod is evicted, each in one sentence with names and numbers
(docs/spec/quota.md#conditions-and-sentences). The pod's condition, its Event, the console and
`fairlead quota why` show the same sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fairlead.model.quota.clauses import Clause, Clauses, clause, sentence_of
from fairlead.model.quota.plan import (
    Borrower,
    FullQuotaNode,
    MissingAmount,
    ProtectedPod,
    QuotaWaiting,
    Reason,
)
from fairlead.model.resources import CPU, amount_text, is_byte_resource
from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.reclaim import Reclaim
from fairlead.rules.quota.room import Rooms
from fairlead.rules.quota.units import Unit, VictimGroup

_LISTED_MAX = 3
_Alike = tuple[
    tuple[FullQuotaNode, ...], tuple[MissingAmount, ...], tuple[Borrower, ...], Clauses, str
]
"""Shared by units that ask for the same in the same leaf: where they have no room, how much more
they need, the borrowers, the clauses, and their sentence.
"""
_FOR_ROOM = (
    Reason.OVER_MAX,
    Reason.WAITING_FOR_IDLE_QUOTA,
    Reason.WAITING_FOR_EVICTIONS,
    Reason.PDB_BLOCKED,
)


class Sentences:
    """Sentences of one plan. They are valid while the account holds what the plan added to it."""

    def __init__(self, account: QuotaAccount, reclaim: Reclaim) -> None:
        self._account = account
        self._reclaim = reclaim
        self._index = account.index
        self._now = account.sums
        self._claims = account.claims
        self._borrowing: dict[int, tuple[Borrower, ...]] = {}
        self._leaves_below: defaultdict[int, list[int]] = defaultdict(list)
        self._alike: dict[tuple[object, ...], _Alike] = {}

    def invalid(self) -> Clauses:
        first = next(each.message for each in self._account.violations if each.stops)
        return (clause("tree-invalid", fault=first),)

    def why_victim(self, group: VictimGroup, unit: Unit, lacking: Sequence[tuple[int, int]]) -> str:
        """For a victim and its owner: which unit takes back what of which min, and why this pod.

        `lacking`: (node, resource) where the unit had no room. The sentence names the one that the
        victim frees most of. If it is empty, the unit had quota and no room on a cluster node.
        """
        index = self._index
        if not lacking:
            return self._for_victim_on_node(group, unit)
        k = next((k for _, k in lacking if group.vector[k]), lacking[0][1])
        resource, leaf = index.resources[k], index.names[unit.leaf]
        if group.leaf == unit.leaf:
            if group.priority >= unit.priority:
                return (
                    f"{unit.key} is a newer revision of its Deployment and {leaf} has no room for "
                    "both"
                )
            asks = f"{self._text(k, unit.vector[k])} {resource}"
            return (
                f"{unit.key} of priority {unit.priority} takes {asks} of {leaf}; this pod has "
                f"priority {group.priority}"
            )
        by = self._voucher(unit, k)
        by = unit.leaf if by is None else by
        least = f"{self._text(k, index.min[by][k])} {resource} guaranteed to {index.names[by]}"
        lender = index.names[group.leaf]
        used = self._text(k, self._used(group.leaf, k))
        takes = (
            f"{unit.key} takes back {self._text(k, unit.vector[k])} of the "
            f"{least}{self._as_counted(by, k)}"
        )
        has = (
            f"{lender} uses {used} of guaranteed "
            f"{self._text(k, index.min[group.leaf][k])}{self._as_counted(group.leaf, k)}"
        )
        return (
            f"{takes}; {has}; of its pods the least important go first: lower priority, then not "
            "ready, then newer"
        )

    def _for_victim_on_node(self, group: VictimGroup, unit: Unit) -> str:
        index, leaf = self._index, group.leaf
        k = max(
            range(len(index.resources)),
            key=lambda k: (
                group.vector[k] > 0,
                (self._used(leaf, k) - index.min[leaf][k]) * index.weight[k],
                -k,
            ),
        )
        nodes = ", ".join(sorted({pod.node for pod in group.pods}))
        used, least = self._text(k, self._used(leaf, k)), self._text(k, index.min[leaf][k])
        takes = f"{unit.key} is guaranteed by {index.names[unit.leaf]} and needs room on {nodes}"
        has = (
            f"{index.names[leaf]} uses {used} of guaranteed {least} "
            f"{index.resources[k]}{self._as_counted(leaf, k)}"
        )
        return f"{takes}; {has}, and the fewest have to go there"

    def drained(self, place: int, k: int) -> str:
        bounds = self._index.max[place] if place else self._index.root_max
        most, resource = self._text(k, bounds[k] or 0), self._index.resources[k]
        return (
            f"{self._index.names[place]} gives up what it uses above its max of {most} {resource}"
        )

    def admitted(self, unit: Unit) -> str:
        """For an admitted unit: the one of its resources of which its leaf is most over its min."""
        leaf, least, resources = unit.leaf, self._index.min[unit.leaf], self._index.resources
        asked = [k for k, amount in enumerate(unit.vector) if amount]
        if not asked:
            return f"{self._index.names[leaf]} limits nothing that it asks for"
        weight = self._index.weight
        k = max(asked, key=lambda k: ((self._used(leaf, k) - least[k]) * weight[k], -k))
        used, borrowed = self._used(leaf, k), max(0, self._used(leaf, k) - least[k])
        guaranteed = f"{self._text(k, used)} of guaranteed {self._text(k, least[k])} {resources[k]}"
        return (
            f"{self._index.names[leaf]} uses {guaranteed}, borrows "
            f"{self._text(k, borrowed)}{self._as_counted(leaf, k)}"
        )

    def _as_counted(self, place: int, k: int) -> str:
        """Why a min counts as less than is written; "" where it does not."""
        counts = self._counts(place, k)
        return f" ({counts[0].text})" if counts else ""

    def _counts(self, place: int, k: int) -> list[Clause]:
        index = self._index
        written, counts = index.least[place][k], index.min[place][k]
        if written == counts:
            return []
        amounts = index.promised(k), index.capacity[k] or 0, written, counts
        configured, there, least, counted = (self._text(k, amount) for amount in amounts)
        return [clause("counts", configured=configured, there=there, least=least, counts=counted)]

    def _voucher(self, unit: Unit, k: int, asks: int = 0) -> int | None:
        """The lowest node whose min covers the unit in a resource; None = none.

        `asks`: what the unit asks for, if it is not among the claims.
        """
        path = self._index.up[unit.leaf][:-1] if self._reclaim.is_by_subtree else ()
        return next(
            (
                place
                for place in path or (unit.leaf,)
                if self._account.after.over(place, k) + asks <= 0
            ),
            None,
        )

    def why_no_victims(self, unit: Unit) -> tuple[Reason, Clauses]:
        """For a guaranteed unit for which no pod can be evicted."""
        if self.own_ceiling(unit) is not None:
            return Reason.WAITING_FOR_IDLE_QUOTA, ()
        protected = self._protected(unit)
        if not protected:
            return Reason.WAITING_FOR_IDLE_QUOTA, ()
        return Reason.PDB_BLOCKED, self.protected(unit, protected, self._reclaim.budgets)

    def own_ceiling(self, unit: Unit) -> tuple[int, int] | None:
        """The node and resource whose max the leaf's own use would exceed with the unit."""
        own, bounds = self._now.own[unit.leaf], self._index.max
        for place in self._index.up[unit.leaf]:
            for k, amount in enumerate(unit.vector):
                most = bounds[place][k]
                if amount and most is not None and own[k] + amount > most:
                    return place, k
        return None

    def _protected(self, unit: Unit) -> dict[tuple[int, str], list[VictimGroup]]:
        """By leaf and PodDisruptionBudget: groups that would make room and may not be evicted."""
        found: defaultdict[tuple[int, str], list[VictimGroup]] = defaultdict(list)
        _, k = self._account.after.blocks(unit.leaf, unit.vector)[0]
        for leaf in self._account.books:
            if leaf != unit.leaf and self._account.after.over(leaf, k) > 0:
                for group in self._account.groups(leaf):
                    budgets = {budget for pod in group.pods for budget in pod.budgets}
                    if group.vector[k] and budgets and self._reclaim.why_not(group):
                        found[leaf, min(budgets)].append(group)
        return found

    def _spared(self, unit: Unit, blocked: Sequence[FullQuotaNode]) -> tuple[ProtectedPod, ...]:
        """Pods above min that use what the unit lacks, and that may not be evicted."""
        found: dict[str, ProtectedPod] = {}
        index = self._index
        for k in dict.fromkeys(index.resources.index(each.resource) for each in blocked):
            for leaf in self._account.books:
                if leaf == unit.leaf or self._account.after.over(leaf, k) <= 0:
                    continue
                for group in self._account.groups(leaf):
                    if group.vector[k] and (why := self._reclaim.why_not(group)):
                        found |= {pod.key: ProtectedPod(pod.key, why) for pod in group.pods}
                for pod in self._account.books[leaf].pods.values():
                    if (
                        pod.is_admitted
                        and not pod.is_stopping
                        and not pod.is_preemptible
                        and index.vector(pod.request)[k]
                    ):
                        found[pod.key] = ProtectedPod(pod.key, "it is not preemptible")
        return tuple(found[key] for key in sorted(found))

    def _used(self, place: int, k: int) -> int:
        """What the leaves below use, as the table shows it: without promises and unlent amounts."""
        return sum(
            self._now.own[leaf][k] - self._claims.own[leaf][k] for leaf in self._leaves(place)
        )

    def _leaves(self, place: int) -> list[int]:
        """The leaves below a node, found for the first sentence.

        Most plans of a large tree write none.
        """
        if not self._leaves_below:
            for leaf in self._account.books:
                for above in self._index.up[leaf]:
                    self._leaves_below[above].append(leaf)
        return self._leaves_below[place]

    def _claimed(self, place: int, k: int) -> int:
        return sum(self._claims.own[leaf][k] for leaf in self._leaves(place))

    def _kept(self, place: int, k: int) -> int:
        """What lend limits keep back below a node: it is charged, and not in use."""
        return self._now.own[place][k] - self._used(place, k) - self._claimed(place, k)

    def hopeless(self, unit: Unit, reason: Reason, at: tuple[int, int]) -> Clauses:
        """For a unit that waits whatever others do."""
        if reason is Reason.GANG_INCOMPLETE:
            return unit.missing
        if reason is Reason.GATED_BY_OTHERS:
            return (clause("gated", gate=unit.pods[0].gated_by),)
        place, k = at
        asks, node = self._asks(unit, k), self._index.names[place]
        if reason is Reason.NO_FIT_ON_NODES:
            return (asks, clause("in-all", there=self._text(k, self._index.max[0][k] or 0)))
        most = self._index.max[place][k] if place else self._index.root_max[k]
        if most is not None and unit.vector[k] > most:
            return (asks, clause("max-is", node=node, max=self._text(k, most)), clause("never"))
        firmly = clause(
            "asks-firmly", resource=self._index.resources[k], asks=self._text(k, unit.vector[k])
        )
        return (
            firmly,
            clause("min-is", node=node, min=self._text(k, self._index.least[place][k])),
            clause("never"),
        )

    def no_fit(self, unit: Unit, rooms: Rooms | None) -> Clauses:
        """No node has room for the unit, or for one of its pods, or not for all of them."""
        pod = unit.pods[0]
        if rooms is None:
            return ()
        pod = next((each for each in unit.pods if not rooms.fits([each])), pod)
        if len(unit.pods) > 1 and rooms.fits([pod]):
            return self._no_joint_fit(unit, rooms)
        freest = rooms.freest(pod)
        if freest is None:
            return (clause("no-node"),)
        resource, node, free, count = freest
        asks = clause(
            "asks-on-one",
            resource=resource,
            asks=amount_text(resource, pod.request.get(resource, 1)),
        )
        return (
            asks,
            clause(
                "freest" if count > 1 else "only-node",
                nodes=count,
                node=node,
                free=amount_text(resource, free),
            ),
        )

    def kept_from(self, unit: Unit, node: str, claimant: str) -> Clauses:
        """For a unit that has room, but may be bound where room is being made for another unit."""
        return (clause("kept", unit=unit.key, node=node, claimant=claimant),)

    def _no_joint_fit(self, unit: Unit, rooms: Rooms) -> Clauses:
        """Each of the unit's pods alone would fit."""
        there = next(
            count for count in range(len(unit.pods) - 1, 0, -1) if rooms.fits(unit.pods[:count])
        )
        asked = unit.pods[0].request
        rare = next(
            (name for name in sorted(asked) if name != CPU and not is_byte_resource(name)), CPU
        )
        asks = clause(
            "asks-together",
            resource=rare,
            asks=amount_text(rare, asked.get(rare, 0)),
            pods=len(unit.pods),
        )
        return (asks, clause("room-for", there=there))

    def over_cap(self, unit: Unit, resource: str, used: int, cap: int) -> Clauses:
        k, leaf = self._index.resources.index(resource), self._index.names[unit.leaf]
        return (
            self._asks(unit, k),
            clause(
                "cap", user=unit.user, used=self._text(k, used), cap=self._text(k, cap), leaf=leaf
            ),
        )

    def over_firm_min(self, unit: Unit, k: int, firm: int) -> Clauses:
        least, leaf = self._text(k, self._index.min[unit.leaf][k]), self._index.names[unit.leaf]
        firmly = clause("firm", used=self._text(k, firm), min=least, leaf=leaf)
        return (self._asks(unit, k), firmly, *self._counts(unit.leaf, k), clause("label"))

    def protected(
        self,
        unit: Unit,
        protected: Mapping[tuple[int, str], Sequence[VictimGroup]],
        allowed: Mapping[str, int],
    ) -> Clauses:
        (leaf, budget), groups = min(protected.items(), key=lambda each: (-len(each[1]), each[0]))
        count = sum(len(group.pods) for group in groups)
        code, names = "protected" if count > 1 else "protected-one", self._index.names
        protecting = clause(
            code, count=count, leaf=names[leaf], budget=budget, allowed=allowed.get(budget, 0)
        )
        return (clause("owed", leaf=names[unit.leaf]), protecting)

    def behind(self, unit: Unit) -> Clauses:
        pod = unit.pods[0]
        return (clause("gang-first", gang=pod.gang, pods=pod.gang_size),)

    def queued(self, holder: Unit) -> Clauses:
        """Why a later unit of a strict leaf waits: `holder` is before it."""
        return (clause("queued", unit=holder.key, leaf=self._index.names[holder.leaf]),)

    def waiting(
        self,
        unit: Unit,
        leaf: str,
        reason: Reason,
        clauses: Clauses,
        places: tuple[int, int],
        victims: Sequence[VictimGroup],
        is_guaranteed: bool,
    ) -> QuotaWaiting:
        """The row of a waiting unit.

        Units that ask for the same in the same leaf share one sentence.

        `places`: in its leaf, and over all leaves.
        """
        alike = unit.leaf, unit.vector, reason, is_guaranteed
        known = self._alike.get(alike)
        if known is None:
            blocked, lacks = self._blocked(unit, reason) if reason in _FOR_ROOM else ((), ())
            known = self._alike[alike] = blocked, lacks, self._borrowers(blocked), (), ""
        blocked, lacks, borrowers, known_clauses, message = known
        spared = (
            self._spared(unit, blocked)
            if is_guaranteed and reason is not Reason.WAITING_FOR_EVICTIONS
            else ()
        )
        if not clauses and not victims:
            if not known_clauses:
                known_clauses = self._clauses(unit, reason, blocked, borrowers, (), is_guaranteed)
                message = sentence_of(known_clauses)
                self._alike[alike] = blocked, lacks, borrowers, known_clauses, message
            clauses = known_clauses
        else:
            clauses = clauses or self._clauses(
                unit, reason, blocked, borrowers, victims, is_guaranteed
            )
            message = sentence_of(clauses)
        position, overall = places
        return QuotaWaiting(
            unit.key,
            leaf,
            unit.pods,
            reason,
            message,
            position,
            blocked,
            borrowers,
            spared,
            unit.workload,
            overall,
            lacks,
            clauses,
        )

    def _blocked(
        self, unit: Unit, reason: Reason
    ) -> tuple[tuple[FullQuotaNode, ...], tuple[MissingAmount, ...]]:
        """Where the unit has no room, and how much more it needs there.

        A claimant's own claim does not count against it.
        """
        own = (self._now, self._claims) if reason is Reason.WAITING_FOR_EVICTIONS else ()
        for sums in own:
            sums.add(unit.leaf, unit.vector, -1)
        found = self._found_blocked(unit)
        for sums in own:
            sums.add(unit.leaf, unit.vector)
        return found

    def _found_blocked(
        self, unit: Unit
    ) -> tuple[tuple[FullQuotaNode, ...], tuple[MissingAmount, ...]]:
        index, spots = self._index, self._now.blocks(unit.leaf, unit.vector)
        blocked = tuple(
            FullQuotaNode(
                index.names[place],
                index.resources[k],
                unit.vector[k],
                self._used(place, k),
                self._claimed(place, k),
                index.max[place][k] or 0,
            )
            for place, k in spots
        )
        lacks = [
            (place, k, self._now.lacks(unit.leaf, unit.vector, place, k)) for place, k in spots
        ]
        return blocked, tuple(
            MissingAmount("max", index.names[place], index.resources[k], more)
            for place, k, more in lacks
        )

    def _borrowers(self, blocked: Sequence[FullQuotaNode]) -> tuple[Borrower, ...]:
        """Leaves that use more than their min of a lacking resource, the one most above it first.

        Pods that stop still count as use.
        """
        found: tuple[Borrower, ...] = ()
        for k in dict.fromkeys(self._index.resources.index(each.resource) for each in blocked):
            found += self._borrowing_of(k)
        return found

    def _borrowing_of(self, k: int) -> tuple[Borrower, ...]:
        if k not in self._borrowing:
            index = self._index
            overs = (
                (leaf, self._used(leaf, k) - index.min[leaf][k]) for leaf in self._account.books
            )
            found = [
                Borrower(index.names[leaf], index.resources[k], over)
                for leaf, over in overs
                if over > 0
            ]
            self._borrowing[k] = tuple(sorted(found, key=lambda each: (-each.over, each.leaf)))
        return self._borrowing[k]

    def _clauses(
        self,
        unit: Unit,
        reason: Reason,
        blocked: Sequence[FullQuotaNode],
        borrowers: Sequence[Borrower],
        victims: Sequence[VictimGroup],
        is_guaranteed: bool,
    ) -> Clauses:
        leaf = self._index.names[unit.leaf]
        k = (
            self._index.resources.index(blocked[0].resource)
            if blocked
            else next((k for k, amount in enumerate(unit.vector) if amount), 0)
        )
        resource = self._index.resources[k]
        if reason is Reason.WAITING_FOR_EVICTIONS:
            gone = ", ".join(
                f"{pod.key} of {self._index.names[group.leaf]}"
                for group in victims
                for pod in group.pods
            )
            rest = clause("until-gone", victims=gone) if gone else clause("until-stopped")
            return (*self._claiming(unit, k), rest)
        if not blocked:
            return (self._asks(unit, k), clause("room-again", leaf=leaf))
        first = blocked[0]
        if reason is Reason.OVER_MAX and (ceiling := self.own_ceiling(unit)) is not None:
            place, k = ceiling
            return (self._asks(unit, k), *self._at_ceiling(place, k))
        listed = ", ".join(
            f"{each.leaf} +{self._text(k, each.over)}"
            for each in borrowers[:_LISTED_MAX]
            if each.resource == resource
        )
        there = self._there(0, k) if first.node == self._index.names[0] else None
        code = (
            "in-use"
            + ("-there" if there is not None else "")
            + ("-promised" if first.claimed else "")
        )
        used, most, claimed = (
            self._text(k, amount) for amount in (first.used, first.max, first.claimed)
        )
        full = clause(code, node=first.node, used=used, max=most, there=there, claimed=claimed)
        place = self._index.names.index(first.node)
        right = self._covered_by_min(unit, k) if is_guaranteed else self._may_borrow(unit, k)
        who = clause("borrowers", leaves=listed) if listed else clause("nobody-borrows")
        return (self._asks(unit, k), full, *self._not_lent(place, k), *right, who)

    def _claiming(self, unit: Unit, k: int) -> list[Clause]:
        """Which claimant's min is restored first; in its own leaf, that room is being made."""
        by = self._voucher(unit, k)
        place = unit.leaf if by is None else by
        code = "room-made" if by is None else "claims"
        used, least = self._text(k, self._used(place, k)), self._text(k, self._index.min[place][k])
        asks, resource = self._text(k, unit.vector[k]), self._index.resources[k]
        return [
            clause(
                code,
                leaf=self._index.names[place],
                used=used,
                min=least,
                resource=resource,
                asks=asks,
            ),
            *self._counts(place, k),
        ]

    def _at_ceiling(self, place: int, k: int) -> list[Clause]:
        """A node whose max the unit's leaf reaches alone."""
        node, used, claimed = (
            self._index.names[place],
            self._text(k, self._used(place, k)),
            self._claimed(place, k),
        )
        promised = "-promised" if claimed else ""
        if (there := self._there(place, k)) is not None:
            first = clause(
                f"at-nodes{promised}",
                node=node,
                used=used,
                there=there,
                claimed=self._text(k, claimed),
            )
        else:
            most = self._text(k, self._index.max[place][k] or 0)
            first = clause(
                f"at-max{promised}", node=node, used=used, max=most, claimed=self._text(k, claimed)
            )
        return [first, *self._not_lent(place, k)]

    def _not_lent(self, place: int, k: int) -> list[Clause]:
        kept = self._kept(place, k)
        return (
            [clause("not-lent", kept=self._text(k, kept), resource=self._index.resources[k])]
            if kept > 0
            else []
        )

    def _covered_by_min(self, unit: Unit, k: int) -> list[Clause]:
        """For a unit that a min covers, and for which no pod may be evicted."""
        by = self._voucher(unit, k, unit.vector[k])
        place = unit.leaf if by is None else by
        index, used, stopping = (
            self._index,
            self._used(place, k),
            self._now.own[place][k] - self._account.after.own[place][k],
        )
        least = index.min[place][k]
        code = (
            "below-min-stopping" if stopping > 0 and used + unit.vector[k] > least else "below-min"
        )
        texts = {
            "used": self._text(k, used),
            "min": self._text(k, least),
            "stopping": self._text(k, stopping),
        }
        return [clause(code, leaf=index.names[place], **texts), *self._counts(place, k)]

    def _may_borrow(self, unit: Unit, k: int) -> list[Clause]:
        """Why no min covers the unit: its leaf's min is in use, or promised, or too small."""
        index, place = self._index, unit.leaf
        asked = [each for each in self._account.contested[place] if unit.vector[each]]
        asked = asked or [each for each, amount in enumerate(unit.vector) if amount]
        scarce = [
            each for each in asked if self._account.after.over(place, each) + unit.vector[each] > 0
        ]
        other = "" if k in scarce or not scarce else "-of"
        k = scarce[0] if other else k
        used, claimed, least = self._used(place, k), self._claimed(place, k), index.min[place][k]
        texts = {
            "used": self._text(k, used),
            "min": self._text(k, least),
            "claimed": self._text(k, claimed),
        }
        code = (
            f"may-borrow{other}"
            if used >= least
            else "may-borrow-promised"
            if used + unit.vector[k] <= least
            else "may-borrow-asks"
        )
        borrow = clause(
            code,
            leaf=index.names[place],
            resource=index.resources[k],
            asks=self._text(k, unit.vector[k]),
            **texts,
        )
        return [borrow, *self._counts(place, k)]

    def _there(self, place: int, k: int) -> str | None:
        """What the cluster has of a resource, if that limits the node before its own max does."""
        index = self._index
        there, most = index.capacity[k], index.root_max[k]
        return (
            self._text(k, there)
            if not place and there is not None and (most is None or there < most)
            else None
        )

    def _asks(self, unit: Unit, k: int) -> Clause:
        return clause("asks", resource=self._index.resources[k], asks=self._text(k, unit.vector[k]))

    def _text(self, k: int, amount: int) -> str:
        return amount_text(self._index.resources[k], amount)


class NoSentences(Sentences):
    """For a caller that reads no text of a plan, such as a replay: what is decided is the same.

    To look for the node that lacks least takes longer than all the rest of a plan.
    """

    def why_victim(self, group: VictimGroup, unit: Unit, lacking: Sequence[tuple[int, int]]) -> str:
        return ""

    def drained(self, place: int, k: int) -> str:
        return ""

    def admitted(self, unit: Unit) -> str:
        return ""

    def no_fit(self, unit: Unit, rooms: Rooms | None) -> Clauses:
        return ()

    def kept_from(self, unit: Unit, node: str, claimant: str) -> Clauses:
        return ()

    def over_cap(self, unit: Unit, resource: str, used: int, cap: int) -> Clauses:
        return ()

    def over_firm_min(self, unit: Unit, k: int, firm: int) -> Clauses:
        return ()
