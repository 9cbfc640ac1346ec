"""Who makes room for a unit: in other leaves, from who is above its min; in its own leaf, from who is less
important (quota contract 2.7, 2.8, 2.9). All that is needed, or nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.units import Unit, VictimGroup

PREEMPT_POLICY = "preempt-policy"
Source = Callable[[int], list[VictimGroup]]
Vouchers = Callable[[Unit, int], Sequence[int]]


class Reclaim:
    """The choice of victims of one plan. Who is chosen leaves `account.after` at once.

    `fresh`: what this plan itself admitted, by leaf.
    """

    def __init__(self, account: QuotaAccount, vouchers: Vouchers, *, is_by_subtree: bool) -> None:
        self.account = account
        self.budgets = dict(account.budgets)
        self.fresh: defaultdict[int, list[VictimGroup]] = defaultdict(list)
        self._gone: set[VictimGroup] = set()
        self.is_by_subtree = is_by_subtree
        self._vouchers = vouchers

    def from_others(self, unit: Unit) -> list[VictimGroup] | None:
        """In other leaves. What this plan admitted is tried alone first."""
        for source in (self._fresh, self.groups):
            found = self._choose(unit, lambda source=source: self._lending(unit, source))  # type: ignore[misc]
            if found:
                return found
        return None

    def in_leaf(self, unit: Unit) -> list[VictimGroup] | None:
        """Of lower priority, in its own leaf."""
        leaf = unit.leaf
        if self.account.index.nodes[leaf].attributes.get(PREEMPT_POLICY) == "Never":
            return None
        if self.fresh.get(leaf):
            found = self._choose(unit, lambda: self._yielding(unit, self._fresh(leaf)), is_now=True)
            if found:
                return found
        if not self.has_lower(unit):
            return None
        return self._choose(unit, lambda: self._yielding(unit, self.groups(leaf)))

    def has_lower(self, unit: Unit) -> bool:
        """Whether somebody in its leaf may have to give way to it, now or later."""
        book = self.account.books[unit.leaf]
        if self.account.index.nodes[unit.leaf].attributes.get(PREEMPT_POLICY) == "Never":
            return False
        if book.lowest < unit.priority:
            return True
        pod = unit.pods[0] if len(unit.pods) == 1 else None
        return pod is not None and not pod.waits_for_surge and book.revisions.get(pod.deployment, pod.revision) < pod.revision

    def over_max(self, place: int, k: int) -> list[VictimGroup]:
        """Victims below a node until it is within the max that is written, or as many as there are
        (`drain-over-max`).
        """
        account = self.account
        taken: list[VictimGroup] = []
        most = account.index.max[place][k] if place else account.index.root_max[k]
        while most is not None and account.after.own[place][k] > most:
            group = self._descend(place, k, None, -1, self.groups) or self._any_below(place, k)
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

    def take(self, group: VictimGroup) -> None:
        self.account.after.add(group.leaf, group.vector, -1)
        self._gone.add(group)
        self._count(group, -1)

    def spare(self, group: VictimGroup) -> None:
        self.account.after.add(group.leaf, group.vector)
        self._gone.discard(group)
        self._count(group, 1)

    def why_not(self, group: VictimGroup) -> str:
        """Why it may not be evicted; "" = it may."""
        if group.unit is not None:
            return ""
        needs: defaultdict[str, int] = defaultdict(int)
        for pod in group.pods:
            if len(pod.budgets) > 1:
                return f"{len(pod.budgets)} PodDisruptionBudgets select it, with which it cannot be evicted"
            for budget in pod.budgets:
                needs[budget] += 1
        for budget, count in sorted(needs.items()):
            allowed = self.budgets.get(budget, 0)
            if allowed < count:
                return f"PodDisruptionBudget {budget} allows {allowed}"
        account = self.account
        for pod in group.pods:
            if pod.refused_at is not None and account.now - pod.refused_at < account.settings.refusal_seconds:
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
        """Who might be evicted, the first to go first, with what this plan admitted."""
        fresh = self.fresh.get(leaf)
        groups = self.account.groups(leaf)
        return sorted([*groups, *fresh], key=lambda group: group.rank) if fresh else groups

    def _free(self, groups: Iterable[VictimGroup], k: int) -> Iterable[VictimGroup]:
        """Of those, in their order, who asks for the resource, is not taken yet, and may be evicted."""
        return (group for group in groups if group.vector[k] and self.may_go(group))

    def may_go(self, group: VictimGroup) -> bool:
        """Whether it is not taken yet, and may be evicted."""
        if group.after is not None and group.after not in self._gone:
            return False  # its Job's controller would take that one first
        return group not in self._gone and not any(self.why_not(each) for each in self.with_surplus(group))

    def with_surplus(self, group: VictimGroup) -> list[VictimGroup]:
        """What is left of a gang beside its whole goes, too."""
        return [group, *self._surplus(group)]

    def _surplus(self, group: VictimGroup) -> list[VictimGroup]:
        if not group.is_whole or group.gang is None or group.unit is not None:
            return []
        return [
            each for each in self.account.groups(group.leaf) if each.gang == group.gang and each is not group and each not in self._gone
        ]

    def _choose(self, unit: Unit, choose: Callable[[], VictimGroup | None], *, is_now: bool = False) -> list[VictimGroup] | None:
        """One victim after the other until it fits, then spare each that is not needed, the most important
        first.

        None, and nobody taken, when it cannot fit completely. `is_now`: it must fit at once.
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
        gangs = {group.gang for group in taken if group.is_whole}
        later = [group for group in taken if not group.is_whole and group.gang in gangs]
        for group in (
            *sorted((each for each in taken if each not in later), key=_rank, reverse=True),
            *sorted(later, key=_rank, reverse=True),
        ):
            if group in later and any(each.is_whole and each.gang == group.gang for each in taken):
                continue  # its gang goes
            self.spare(group)
            if blocks(unit.leaf, unit.vector):
                self.take(group)
            else:
                taken.remove(group)
        if taken and is_now and not self._fits_without(unit, taken):
            for each in taken:
                self.spare(each)
            return None
        return taken or None

    def _fits_without(self, unit: Unit, fresh: Sequence[VictimGroup]) -> bool:
        """Whether it fits at once when these admissions are taken back."""
        sums = self.account.sums
        for group in fresh:
            sums.add(group.leaf, group.vector, -1)
        fits = not sums.blocks(unit.leaf, unit.vector)
        for group in fresh:
            sums.add(group.leaf, group.vector)
        return fits

    def _yielding(self, unit: Unit, groups: Iterable[VictimGroup]) -> VictimGroup | None:
        _, k = self.account.after.blocks(unit.leaf, unit.vector)[0]
        return next((group for group in self._free(groups, k) if self._gives_way(group, unit)), None)

    def _gives_way(self, group: VictimGroup, unit: Unit) -> bool:
        """Lower priority.

        Or an older revision of the same Deployment, once the newer pod has waited a while.
        """
        if group.priority < unit.priority:
            return True
        if not unit.pods or len(group.pods) != 1:
            return False
        new, old = unit.pods[0], group.pods[0]
        if not new.deployment or new.deployment != old.deployment or old.revision >= new.revision or new.waits_for_surge:
            return False
        return old.priority <= new.priority and self.account.now - new.created_at >= self.account.settings.surge_wait_seconds

    def _lending(self, unit: Unit, source: Source) -> VictimGroup | None:
        place, k = self.account.after.blocks(unit.leaf, unit.vector)[0]
        return self._descend(place, k, unit, self._fence(unit, k), source)

    def _fence(self, unit: Unit, k: int) -> int:
        """The node that vouches for the unit: nobody below it is a victim."""
        if not self.is_by_subtree:
            return unit.leaf
        vouchers = [node for node in self._vouchers(unit, k) if self.account.after.is_within(node, unit.vector, [k])]
        return vouchers[-1] if vouchers else unit.leaf

    def fences(self, unit: Unit) -> set[int]:
        """The same for all that it asks."""
        return {unit.leaf, *(self._fence(unit, k) for k, amount in enumerate(unit.vector) if amount)}

    def _descend(self, place: int, k: int, unit: Unit | None, fence: int, source: Source) -> VictimGroup | None:
        """The first victim below the node: from the child that is most above its min, and so on down.

        Who is at or under its min is protected as a whole, unless the way to the unit leads through it;
        `fence` is never entered.
        """
        if place == fence:
            return None
        index, after = self.account.index, self.account.after
        if not index.children[place]:
            return next(iter(self._free(source(place), k)), None)
        path = index.up[unit.leaf] if unit is not None else ()
        by_over: defaultdict[int, list[int]] = defaultdict(list)
        for child in index.children[place]:
            over = after.over(child, k)
            if over > 0 or child in path:
                by_over[over].append(child)
        for over in sorted(by_over, reverse=True):
            found = [(self._descend(child, k, unit, fence, source), index.names[child]) for child in by_over[over]]
            groups = [(-group.newest, name, group) for group, name in found if group is not None]
            if groups:
                return min(groups, key=lambda each: each[:2])[2]
        return None

    def _any_below(self, place: int, k: int) -> VictimGroup | None:
        """Where no child is above its min: the first victim of all leaves below."""
        index = self.account.index
        leaves = [leaf for leaf in self.account.books if place in index.up[leaf]]
        groups = [group for leaf in leaves for group in self._free(self.groups(leaf), k)]
        return min(groups, key=lambda group: group.rank, default=None)


def _rank(group: VictimGroup) -> tuple[object, ...]:
    return group.rank
