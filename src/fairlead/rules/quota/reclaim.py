"""Victims in the tree: which pods make room for a unit (docs/spec/quota.md#victims).

The problem. A guaranteed unit lacks room because other leaves borrow, or because less important
pods of its own leaf run. Enough of them must stop, as few as possible, and never pods whose leaf
has a right to them.

Two sources, tried in this order by the plan:

- other leaves, from the child that is most above its min, and so on down
  (docs/spec/quota.md#reclaim-from-other-leaves). A node at or under its min is protected as a
  whole, and so is the node whose min covers the unit (`fence`);
- the unit's own leaf, pods of lower priority (docs/spec/quota.md#preemption-inside-a-leaf).

The invariants:

- All or nothing: `_choose` returns victims only if the unit fits without them; otherwise it spares
  each one that it had taken.
- A chosen group leaves `account.after` at once, and `spare` puts it back. So the next choice sees a
  tree in which those pods have stopped, and a group is never chosen twice (`may_go`).
- At the end each victim that is not needed is spared, the most important first (`_reprieve`).

Why this order: units that this very plan admitted cost nothing and go first. Then single pods and
the surplus of gangs, since a gang that loses a needed member loses all its work. Pods of several
sizes can be taken in an order that leaves a leaf at its min with too little freed, so other sets of
single pods are tried (`SETS_MAX`) before a gang is broken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.units import Unit, VictimGroup

PREEMPT_POLICY = "preempt-policy"
Source = Callable[[int], list[VictimGroup]]
First = Callable[[int], VictimGroup | None]
Vouchers = Callable[[Unit, int], Sequence[int]]
SETS_MAX: Final = 400
"""`SETS_MAX`: sets of single pods tried before a gang is broken."""


def _any_group(_: VictimGroup) -> bool:
    return True


class Reclaim:
    """The choice of victims of one plan. A chosen group leaves `account.after` at once.

    `fresh`: by leaf, the units that this plan admitted and that may be taken back. `joined`: by
    leaf, members that this plan admitted to gangs that run already; they go only together with
    their gang.
    """

    def __init__(self, account: QuotaAccount, vouchers: Vouchers, *, is_by_subtree: bool) -> None:
        self.account = account
        self.budgets = dict(account.budgets)
        self.fresh: defaultdict[int, list[VictimGroup]] = defaultdict(list)
        self.joined: defaultdict[int, list[VictimGroup]] = defaultdict(list)
        self._gone: set[VictimGroup] = set()
        self.is_by_subtree = is_by_subtree
        self._vouchers = vouchers

    def from_others(self, unit: Unit, *, breaks_gangs: bool = True) -> list[VictimGroup] | None:
        """Victims in other leaves. Units that this plan admitted are tried alone first.

        Not `breaks_gangs`: only single pods and the surplus of gangs are taken.
        """
        found = self._choose(unit, lambda: self._lending(unit, self._fresh))
        if found:
            return found
        return self._fewest(
            unit,
            lambda with_gangs: self._lending(unit, self.groups, with_gangs=with_gangs),
            lambda: self._lenders(unit),
            breaks_gangs=breaks_gangs,
        )

    def in_leaf(self, unit: Unit) -> list[VictimGroup] | None:
        """Victims of lower priority in the unit's own leaf."""
        leaf = unit.leaf
        if self._stays_in_leaf(unit):
            return None
        if self.fresh.get(leaf):
            found = self._choose(
                unit,
                lambda: self._yielding(unit, self._in_turn(unit, self._fresh(leaf))),
                is_now=True,
            )
            if found:
                return found
        if not self.has_lower(unit):
            return None
        return self._fewest(
            unit,
            lambda with_gangs: self._yielding(
                unit, self._in_turn(unit, self.groups(leaf)), with_gangs=with_gangs
            ),
            lambda: [(leaf, k) for _, k in self.account.after.blocks(leaf, unit.vector)],
            lambda group: self._gives_way(group, unit),
        )

    def has_lower(self, unit: Unit) -> bool:
        """Whether a pod of its leaf may have to give way to it, now or later."""
        book = self.account.books[unit.leaf]
        if self._stays_in_leaf(unit):
            return False
        if book.lowest < unit.priority:
            return True
        return self._has_predecessor(unit)

    def _has_predecessor(self, unit: Unit) -> bool:
        """Whether a pod of an older revision of its Deployment, which it may replace, runs here."""
        pod = unit.pods[0] if len(unit.pods) == 1 else None
        if pod is None or pod.waits_for_surge:
            return False
        return (
            self.account.books[unit.leaf].revisions.get(pod.deployment, pod.revision) < pod.revision
        )

    def _stays_in_leaf(self, unit: Unit) -> bool:
        """Whether no pod of its leaf may be evicted for it: the leaf or the pod's own
        `preemptionPolicy` forbids it, or the pod will be replaced soon.
        """
        if (
            unit.never_preempts
            or self.account.index.nodes[unit.leaf].attributes.get(PREEMPT_POLICY) == "Never"
        ):
            return True
        return self._is_outdated(unit)

    def _is_outdated(self, unit: Unit) -> bool:
        """Whether its Deployment has a newer revision and will soon delete the pod.

        A predecessor that has just made room comes back so, and must not take the place of others.
        """
        pod = unit.pods[0] if len(unit.pods) == 1 else None
        if (
            pod is None
            or self.account.books[unit.leaf].latest.get(pod.deployment, pod.revision)
            <= pod.revision
        ):
            return False
        return self.account.now - pod.created_at < self.account.settings.surge_wait_seconds

    def over_max(self, place: int, k: int) -> list[VictimGroup]:
        """Victims below a node until it is within its written max, or no more are found.

        `drain-over-max` asks for it.
        """
        account = self.account
        taken: list[VictimGroup] = []
        most = account.index.max[place][k] if place else account.index.root_max[k]
        while most is not None and account.after.own[place][k] > most:
            group = self._next_over(place, k, account.after.own[place][k] - most)
            if group is None:
                break
            for each in self.with_surplus(group):
                self.take(each)
                taken.append(each)
        for group in sorted(taken, key=lambda each: each.rank, reverse=True):
            self.spare(group)
            if most is not None and account.after.own[place][k] > most:
                self.take(group)
            else:
                taken.remove(group)
        return taken

    def _next_over(self, place: int, k: int, need: int) -> VictimGroup | None:
        """A single pod of a leaf above its min, else a gang; then the same of any leaf below."""
        for find in (self._descend_below, self._any_below):
            for gangs in (0, need):
                if (group := find(place, k, gangs)) is not None:
                    return group
        return None

    def _descend_below(self, place: int, k: int, need: int) -> VictimGroup | None:
        return self._descend(
            place, k, None, -1, lambda leaf: self._first(self.groups(leaf), k, need)
        )

    def take(self, group: VictimGroup) -> None:
        self.account.after.add(group.leaf, group.vector, -1)
        self._gone.add(group)
        self._count(group, -1)

    def spare(self, group: VictimGroup) -> None:
        self.account.after.add(group.leaf, group.vector)
        self._gone.discard(group)
        self._count(group, 1)

    def why_not(self, group: VictimGroup) -> str:
        """Why the group may not be evicted; "" = it may."""
        if group.unit is not None:
            return ""
        needs: defaultdict[str, int] = defaultdict(int)
        for pod in group.pods:
            if len(pod.budgets) > 1:
                return (
                    f"{len(pod.budgets)} PodDisruptionBudgets select it, with which it cannot be "
                    "evicted"
                )
            for budget in pod.budgets:
                needs[budget] += 1
        for budget, count in sorted(needs.items()):
            allowed = self.budgets.get(budget, 0)
            if allowed < count:
                return f"PodDisruptionBudget {budget} allows {allowed}"
        account = self.account
        for pod in group.pods:
            if (
                pod.refused_at is not None
                and account.now - pod.refused_at < account.settings.refusal_seconds
            ):
                return "its eviction was refused a moment ago"
        return ""

    def _count(self, group: VictimGroup, sign: int) -> None:
        if group.unit is None:
            for pod in group.pods:
                for budget in pod.budgets:
                    self.budgets[budget] = self.budgets.get(budget, 0) + sign

    def _fresh(self, leaf: int) -> list[VictimGroup]:
        return sorted(self.fresh.get(leaf, ()), key=lambda group: group.rank)

    def groups(self, leaf: int) -> list[VictimGroup]:
        """Groups that may be evicted, the first victim first,
        with units that this plan admitted.
        """
        fresh = self.fresh.get(leaf)
        groups = self.account.groups(leaf)
        return sorted([*groups, *fresh], key=lambda group: group.rank) if fresh else groups

    def _first(
        self,
        groups: Iterable[VictimGroup],
        k: int,
        need: int,
        rest: Callable[[VictimGroup], bool] = _any_group,
    ) -> VictimGroup | None:
        """The first single pod or surplus of a gang.

        Else, where `need` is not 0, a gang: the one that frees least beyond `need`, or most where
        none frees all; of equal ones the one with the fewest pods. Units that this plan admitted
        cost nothing and count as no gang.
        """
        best: tuple[tuple[object, ...], VictimGroup] | None = None
        for group in groups:
            if (
                not group.vector[k]
                or (is_gang(group) and not need)
                or not self.may_go(group)
                or not rest(group)
            ):
                continue
            if not is_gang(group):
                return group
            going = self.with_surplus(group)
            freed = sum(each.vector[k] for each in going)
            key = freed < need, abs(freed - need), sum(len(each.pods) for each in going), group.rank
            if best is None or key < best[0]:
                best = key, group
        return best[1] if best is not None else None

    def may_go(self, group: VictimGroup) -> bool:
        """Whether the group is not taken yet and may be evicted."""
        if group.after is not None and group.after not in self._gone:
            return False  # its Job's controller would remove `after` first
        return group not in self._gone and not any(
            self.why_not(each) for each in self.with_surplus(group)
        )

    def with_surplus(self, group: VictimGroup) -> list[VictimGroup]:
        """With a whole gang its surplus goes, too, and the
        members that this plan admitted to it.
        """
        return [group, *self._surplus(group)]

    def _surplus(self, group: VictimGroup) -> list[VictimGroup]:
        if not group.is_whole or group.gang is None:
            return []
        leaf = group.leaf
        there = (
            *(self.account.groups(leaf) if group.unit is None else ()),
            *self.fresh.get(leaf, ()),
            *self.joined.get(leaf, ()),
        )
        return [
            each
            for each in there
            if each.gang == group.gang and each is not group and each not in self._gone
        ]

    def _fewest(
        self,
        unit: Unit,
        choose: Callable[[bool], VictimGroup | None],
        lenders: Callable[[], Iterable[tuple[int, int]]],
        rest: Callable[[VictimGroup], bool] = _any_group,
        *,
        breaks_gangs: bool = True,
    ) -> list[VictimGroup] | None:
        """Without gangs, if the unit fits then; else with them.

        Pods of several sizes may be taken in an order that leaves a leaf with none to give. So
        before a gang is broken, other sets of them are tried. `lenders`: returns leaves and
        resources of which pods may be taken now.
        """
        found = self._choose(unit, lambda: choose(False))
        if found or not breaks_gangs:
            return found
        found = self._choose(unit, lambda: choose(True))
        if found is None or not any(is_gang(group) for group in found):
            return found
        for group in found:
            self.spare(group)
        singles = self._singles(unit, lenders, rest)
        if singles is not None:
            return self._reprieve(unit, singles)
        for group in found:
            self.take(group)
        return found

    def _singles(
        self,
        unit: Unit,
        lenders: Callable[[], Iterable[tuple[int, int]]],
        rest: Callable[[VictimGroup], bool],
    ) -> list[VictimGroup] | None:
        """Take any single pods and surplus that make enough room; None after too many tries."""
        taken: list[VictimGroup] = []
        seen: set[frozenset[VictimGroup]] = set()

        def is_enough() -> bool:
            if not self.account.after.blocks(unit.leaf, unit.vector):
                return True
            state = frozenset(taken)
            if state in seen or len(seen) >= SETS_MAX:
                return False
            seen.add(state)
            for group in self._kinds(lenders(), rest):
                self.take(group)
                taken.append(group)
                if is_enough():
                    return True
                self.spare(taken.pop())
            return False

        return taken if is_enough() else None

    def _kinds(
        self, lenders: Iterable[tuple[int, int]], rest: Callable[[VictimGroup], bool]
    ) -> list[VictimGroup]:
        """Of pods that count alike the first one; those that free most come first."""
        found: dict[tuple[object, ...], VictimGroup] = {}
        for leaf, k in lenders:
            for group in self.groups(leaf):
                kind = leaf, group.vector, group.pods[0].budgets
                if (
                    group.vector[k]
                    and kind not in found
                    and not is_gang(group)
                    and self.may_go(group)
                    and rest(group)
                ):
                    found[kind] = group
        return sorted(
            found.values(),
            key=lambda group: (tuple(-amount for amount in group.vector), group.rank),
        )

    def _lenders(self, unit: Unit) -> list[tuple[int, int]]:
        """Leaves that the descent can reach, each with a resource that the unit lacks."""
        index, after, path = (
            self.account.index,
            self.account.after,
            self.account.index.up[unit.leaf],
        )
        found: dict[tuple[int, int], None] = {}
        for place, k in after.blocks(unit.leaf, unit.vector):
            fence = self._fence(unit, k)
            for leaf in self.account.books:
                up = index.up[leaf]
                if place not in up or fence in up:
                    continue
                if all(node in path or after.over(node, k) > 0 for node in up[: up.index(place)]):
                    found[leaf, k] = None
        return list(found)

    def _choose(
        self, unit: Unit, choose: Callable[[], VictimGroup | None], *, is_now: bool = False
    ) -> list[VictimGroup] | None:
        """Take one victim after the other until the unit fits, then spare each that is not needed,
        the most important first.

        None, with no group taken, if the unit cannot fit completely. `is_now`: it must fit at once.
        """
        blocks = self.account.after.blocks
        taken: list[VictimGroup] = []
        while blocks(unit.leaf, unit.vector):
            group = choose()
            if group is None:
                for each in taken:
                    self.spare(each)
                return None
            for each in self.with_surplus(group):
                self.take(each)
                taken.append(each)
        self._reprieve(unit, taken)
        if taken and is_now and not self._fits_without(unit, taken):
            for each in taken:
                self.spare(each)
            return None
        return taken or None

    def _reprieve(self, unit: Unit, taken: list[VictimGroup]) -> list[VictimGroup]:
        """Spare each that is not needed, the most important first."""
        blocks = self.account.after.blocks
        gangs = {group.gang for group in taken if group.is_whole}
        later = [group for group in taken if not group.is_whole and group.gang in gangs]
        for group in (
            *sorted((each for each in taken if each not in later), key=_rank, reverse=True),
            *sorted(later, key=_rank, reverse=True),
        ):
            if group in later and any(each.is_whole and each.gang == group.gang for each in taken):
                continue  # its gang is evicted as a whole
            self.spare(group)
            if blocks(unit.leaf, unit.vector):
                self.take(group)
            else:
                taken.remove(group)
        return taken

    def _fits_without(self, unit: Unit, fresh: Sequence[VictimGroup]) -> bool:
        """Whether it fits at once when these admissions are taken back."""
        sums = self.account.sums
        for group in fresh:
            sums.add(group.leaf, group.vector, -1)
        fits = not sums.blocks(unit.leaf, unit.vector)
        for group in fresh:
            sums.add(group.leaf, group.vector)
        return fits

    def _yielding(
        self, unit: Unit, groups: Iterable[VictimGroup], *, with_gangs: bool = True
    ) -> VictimGroup | None:
        place, k = self.account.after.blocks(unit.leaf, unit.vector)[0]
        need = self.account.after.lacks(unit.leaf, unit.vector, place, k) if with_gangs else 0
        return self._first(groups, k, need, lambda group: self._gives_way(group, unit))

    def _in_turn(self, unit: Unit, groups: list[VictimGroup]) -> list[VictimGroup]:
        """Pods that the unit itself replaces go before others."""
        if not self._has_predecessor(unit):
            return groups
        return sorted(groups, key=lambda group: not _precedes(group, unit))  # the sort is stable

    def _gives_way(self, group: VictimGroup, unit: Unit) -> bool:
        """Whether the group has lower priority than the unit.

        Or is an older revision of the same Deployment, if the newer pod has waited a while, or if a
        pod of another workload would be evicted otherwise.
        """
        if group.is_whole and group.gang is not None and group.gang == unit.gang:
            return False  # it would be alone in its gang
        if group.priority < unit.priority:
            return True
        if not _precedes(group, unit):
            return False
        waited = self.account.now - unit.pods[0].created_at
        return waited >= self.account.settings.surge_wait_seconds or self._has_lower_pod(unit)

    def _has_lower_pod(self, unit: Unit) -> bool:
        """Whether a pod of lower priority in its leaf could make room for it now."""
        lacking = {k for _, k in self.account.after.blocks(unit.leaf, unit.vector)}
        return any(
            group.priority < unit.priority
            and any(group.vector[k] for k in lacking)
            and self.may_go(group)
            for group in self.groups(unit.leaf)
        )

    def _lending(
        self, unit: Unit, source: Source, *, with_gangs: bool = True
    ) -> VictimGroup | None:
        place, k = self.account.after.blocks(unit.leaf, unit.vector)[0]
        need = self.account.after.lacks(unit.leaf, unit.vector, place, k) if with_gangs else 0
        return self._descend(
            place, k, unit, self._fence(unit, k), lambda leaf: self._first(source(leaf), k, need)
        )

    def _fence(self, unit: Unit, k: int) -> int:
        """The lowest node whose min covers the unit: no pod below it is a victim.

        A victim that is allowed for a higher such node is allowed for this one, too.
        """
        if not self.is_by_subtree:
            return unit.leaf
        after = self.account.after
        return next(
            (node for node in self._vouchers(unit, k) if after.is_within(node, unit.vector, [k])),
            unit.leaf,
        )

    def fences(self, unit: Unit) -> set[int]:
        """The fences of all resources that the unit asks for."""
        return {
            unit.leaf,
            *(self._fence(unit, k) for k, amount in enumerate(unit.vector) if amount),
        }

    def _descend(
        self, place: int, k: int, unit: Unit | None, fence: int, first: First
    ) -> VictimGroup | None:
        """The first victim below the node, by descending to the child that is most above its min.

        A child at or under its min is protected as a whole, unless the way to the unit leads
        through it; `fence` is never entered.
        """
        if place == fence:
            return None
        index, after = self.account.index, self.account.after
        if not index.children[place]:
            return first(place)
        path = index.up[unit.leaf] if unit is not None else ()
        by_over: defaultdict[int, list[int]] = defaultdict(list)
        for child in index.children[place]:
            over = after.over(child, k)
            if over > 0 or child in path:
                by_over[over].append(child)
        for over in sorted(by_over, reverse=True):
            found = [
                (self._descend(child, k, unit, fence, first), index.names[child])
                for child in by_over[over]
            ]
            groups = [(-group.newest, name, group) for group, name in found if group is not None]
            if groups:
                return min(groups, key=lambda each: each[:2])[2]
        return None

    def _any_below(self, place: int, k: int, need: int) -> VictimGroup | None:
        """If no child is above its min: the first victim of all leaves below."""
        index = self.account.index
        leaves = [leaf for leaf in self.account.books if place in index.up[leaf]]
        groups = [group for leaf in leaves for group in self.groups(leaf)]
        return self._first(sorted(groups, key=_rank), k, need)


def _precedes(group: VictimGroup, unit: Unit) -> bool:
    """Whether it is a pod of an older revision of the same
    Deployment, which the unit may replace.
    """
    if len(unit.pods) != 1 or len(group.pods) != 1:
        return False
    new, old = unit.pods[0], group.pods[0]
    if not new.deployment or new.deployment != old.deployment or new.waits_for_surge:
        return False
    return old.revision < new.revision and old.priority <= new.priority


def _rank(group: VictimGroup) -> tuple[object, ...]:
    return group.rank


def is_gang(group: VictimGroup) -> bool:
    """Whether evicting the group breaks a gang. A unit that this plan admitted has not started."""
    return group.is_whole and group.unit is None
