"""Who is admitted, who is evicted for whom, and who waits: the plan of quota contract 2, from one state,
without memory.

One predicate (`is_guaranteed`) says both who goes first and who may have others evicted. Whoever has victims
chosen for him holds a claim on what they leave, so that nobody else takes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Final

from fairlead.model.quota.plan import QuotaAdmission, QuotaEviction, QuotaPlan, QuotaWaiting, Reason
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.rules.quota.sentences import Sentences
from fairlead.rules.quota.tree import Sums, TreeIndex, Vector
from fairlead.rules.quota.units import Unit, VictimGroup, group_of, groups_of, waiting_units

RECLAIM_SCOPE: Final = "fairlead.io/reclaim-scope"
PREEMPT_POLICY: Final = "preempt-policy"


def plan_quota(state: QuotaState) -> QuotaPlan:
    """The plan for this state; the order of its lists does not matter. Total for every tree, valid or not."""
    return _Planner(state).run()


class _Planner:
    """One plan in the making. `now`: charged today, claims included; `after`: when who stops has stopped."""

    def __init__(self, state: QuotaState) -> None:
        self.state = state
        self.order: list[Unit] = []
        self.done: set[Unit] = set()
        self.index = index = TreeIndex(state.tree, state.capacity)
        self.pods = sorted((pod for pod in state.pods if pod.namespace in index.leaf_of), key=lambda pod: (pod.key, pod.uid))
        self.now, self.after, self.claims = Sums(index), Sums(index), Sums(index)
        self.budgets = dict(state.budgets)
        self.is_by_subtree = state.tree.attributes.get(RECLAIM_SCOPE) == "subtree"
        self.firm = [[0] * len(index.resources) for _ in index.nodes]
        by_leaf: defaultdict[int, list[QuotaPod]] = defaultdict(list)
        for pod in self.pods:
            leaf = index.leaf_of[pod.namespace]
            by_leaf[leaf].append(pod)
            if pod.is_admitted:
                self._charge(leaf, pod)
        self.groups = {leaf: groups_of(index, leaf, pods) for leaf, pods in by_leaf.items()}
        self.fresh: dict[int, list[VictimGroup]] = defaultdict(list)
        self.user_use = self._use_of_users()
        self.units = waiting_units(index, self.pods)
        self.contested = self._contested()
        self.set_aside: dict[Unit, tuple[Reason, str]] = {}
        self.evicted: list[tuple[VictimGroup, Unit]] = []
        self.victims_of: dict[Unit, list[VictimGroup]] = {}
        self.admitted: list[tuple[Unit, bool]] = []
        self.sentences = Sentences(state, index, self.now, self.claims)

    def run(self) -> QuotaPlan:
        waiting = self._hopeful()
        while ready := [unit for unit in waiting if unit.behind is None or unit.behind in self.done]:
            unit = min(ready, key=self._turn)
            waiting.remove(unit)
            for displaced in self._decide(unit):
                self.set_aside.pop(displaced, None)
                waiting.append(displaced)
            if unit not in self.done:
                self.order.append(unit)
        for unit in waiting:
            self.set_aside[unit] = (Reason.WAITING_FOR_IDLE_QUOTA, self.sentences.behind(unit))
        return self._plan()

    # --- what there is --------------------------------------------------------------------------------------

    def _charge(self, leaf: int, pod: QuotaPod) -> None:
        vector = self.index.vector(pod.request)
        self.now.add(leaf, vector)
        if not pod.is_stopping:
            self.after.add(leaf, vector)
        if not pod.is_preemptible:
            self._add_firm(leaf, vector)

    def _add_firm(self, leaf: int, vector: Vector, sign: int = 1) -> None:
        for k, amount in enumerate(vector):
            self.firm[leaf][k] += sign * amount

    def _use_of_users(self) -> dict[tuple[int, str], list[int]]:
        use: dict[tuple[int, str], list[int]] = {}
        for pod in self.pods:
            if pod.is_admitted and pod.user:
                key = self.index.leaf_of[pod.namespace], pod.user
                mine = use.setdefault(key, [0] * len(self.index.resources))
                for k, amount in enumerate(self.index.vector(pod.request)):
                    mine[k] += amount
        return use

    def _contested(self) -> list[tuple[int, ...]]:
        """By node: resources of which some proper ancestor has more demand than its max.

        Moves between running and waiting keep it, so it holds for the whole plan.
        """
        index = self.index
        width = range(len(index.resources))
        used = [[0] * len(index.resources) for _ in index.nodes]
        asked = [[0] * len(index.resources) for _ in index.nodes]
        for pod in self.pods:
            if pod.is_admitted and not pod.is_stopping:
                _add(used[index.leaf_of[pod.namespace]], index.vector(pod.request))
        for unit in self.units:
            if not unit.missing and self._never_fits(unit) is None and self._capped(unit) is None:
                _add(asked[unit.leaf], unit.vector)
        demand = [list(map(sum, zip(*pair, strict=True))) for pair in zip(used, asked, strict=True)]
        for place in reversed(range(len(index.nodes))):
            parent = index.parent[place]
            if parent < 0:
                continue
            for k in width:
                most = index.max[place][k]
                capped = demand[place][k] if most is None else max(min(demand[place][k], most), used[place][k])
                demand[parent][k] += capped
                used[parent][k] += used[place][k]
        self.full = full = [
            {k for k in width if (most := index.max[place][k]) is not None and demand[place][k] > most} for place in range(len(index.nodes))
        ]
        return [tuple(k for k in width if any(k in full[above] for above in path[1:])) for path in index.up]

    # --- whose turn it is -----------------------------------------------------------------------------------

    def _turn(self, unit: Unit) -> tuple[object, ...]:
        key = unit.pods[0].namespace, unit.pods[0].name
        if unit.claim_since is not None:
            return 0, unit.claim_since, key
        return 1, not self.is_guaranteed(unit), -unit.priority, self._shares(unit.leaf), self._user_order(unit), unit.age, key

    def is_guaranteed(self, unit: Unit) -> bool:
        """Whether its leaf's min covers it in all that is scarce for it (quota contract 2.4)."""
        asked = [k for k in self.contested[unit.leaf] if unit.vector[k]] or [k for k, amount in enumerate(unit.vector) if amount]
        return all(any(self.after.is_within(node, unit.vector, [k]) for node in self._vouchers(unit, k)) for k in asked)

    def _vouchers(self, unit: Unit, k: int) -> Sequence[int]:
        """Whose min may speak for it: the leaf's.

        By subtree also its ancestors' below the node at stake, never root's.
        """
        path = self.index.up[unit.leaf]
        if not self.is_by_subtree:
            return path[:1]
        stake = next((place for place, each in self.now.blocks(unit.leaf, unit.vector) if each == k), None)
        if stake is None:
            over = [place for place in path[1:] if k in self.full[place]]
            stake = over[-1] if over else path[-1]
        return [place for place in path[: max(1, path.index(stake))] if self.index.parent[place] >= 0 or place == unit.leaf]

    def _shares(self, leaf: int) -> tuple[Fraction, ...]:
        """What each level borrows, from root's child down, as a part of root's max: the least borrowed goes
        first.
        """
        index = self.index
        return tuple(
            max((Fraction(self.after.over(place, k), most) for k in self.contested[leaf] if (most := index.max[0][k])), default=Fraction(0))
            for place in reversed(index.up[leaf][:-1])
        )

    def _user_order(self, unit: Unit) -> Fraction:
        if self.index.nodes[unit.leaf].attributes.get("fairlead.io/user-order") != "fair":
            return Fraction(0)
        mine = self.user_use.get((unit.leaf, unit.pods[0].user), [0] * len(self.index.resources))
        return max((Fraction(mine[k], most) for k in range(len(mine)) if (most := self.index.max[0][k])), default=Fraction(0))

    # --- one unit -------------------------------------------------------------------------------------------

    def _hopeful(self) -> list[Unit]:
        """Those that may proceed in this plan; the others are set aside with their reason."""
        hopeful: list[Unit] = []
        for unit in self.units:
            never = self._never_fits(unit)
            if never is not None:
                self.set_aside[unit] = (Reason.NEVER_FITS, self.sentences.never_fits(unit, never))
            elif unit.missing:
                self.set_aside[unit] = (Reason.GANG_INCOMPLETE, unit.missing)
            else:
                hopeful.append(unit)
        return hopeful

    def _never_fits(self, unit: Unit) -> tuple[int, int] | None:
        """The node and resource whose ceiling it exceeds by itself."""
        index = self.index
        for place in index.up[unit.leaf]:
            for k, amount in enumerate(unit.vector):
                most = index.max[place][k]
                if amount and most is not None and amount > most:
                    return place, k
        if not unit.is_preemptible:
            for k, amount in enumerate(unit.vector):
                if amount > index.min[unit.leaf][k] and index.max[0][k] is not None:
                    return unit.leaf, k
        return None

    def _capped(self, unit: Unit) -> int | None:
        """The resource in which its user's cap in the leaf is reached."""
        user = unit.pods[0].user
        cap = self.state.user_caps.get((self.index.names[unit.leaf], user)) if user else None
        if cap is None:
            return None
        mine = self.user_use.get((unit.leaf, user), [0] * len(unit.vector))
        pairs = enumerate(self.index.resources)
        return next((k for k, each in pairs if each in cap and unit.vector[k] and mine[k] + unit.vector[k] > cap[each]), None)

    def _decide(self, unit: Unit) -> list[Unit]:
        """Admit it, claim for it, or set it aside; the units of this plan that it displaced."""
        if (k := self._capped(unit)) is not None:
            used = self.user_use.get((unit.leaf, unit.pods[0].user), [0] * len(unit.vector))[k]
            cap = self.state.user_caps[self.index.names[unit.leaf], unit.pods[0].user][self.index.resources[k]]
            self.set_aside[unit] = (Reason.USER_CAP, self.sentences.over_cap(unit, k, used, cap))
            return []
        if not unit.is_preemptible and (k := self._exceeds_firm_min(unit)) is not None:
            told = self.sentences.over_firm_min(unit, k, self.firm[unit.leaf][k])
            self.set_aside[unit] = (Reason.NON_PREEMPTIBLE_OVER_MIN, told)
            return []
        if not self.now.blocks(unit.leaf, unit.vector):
            self._admit(unit)
            return []
        is_guaranteed = self.is_guaranteed(unit)
        if not self.after.blocks(unit.leaf, unit.vector):
            if is_guaranteed or unit.claim_since is not None:
                self._claim(unit)
            else:
                self.set_aside[unit] = (Reason.WAITING_FOR_IDLE_QUOTA, "")
            return []
        chosen = self._reclaim(unit) if is_guaranteed else None
        if chosen is None:
            chosen = self._preempt_in_leaf(unit)
        if chosen is None:
            self.set_aside[unit] = self._why_blocked(unit, is_guaranteed)
            return []
        displaced = [group.unit for group in chosen if group.unit is not None]
        for each in displaced:
            self._take_back(each)
        for group in chosen:
            if group.unit is None:
                self.evicted.append((group, unit))
                self.victims_of.setdefault(unit, []).append(group)
                self.groups[group.leaf].remove(group)
        if self.now.blocks(unit.leaf, unit.vector):
            self._claim(unit)
        else:
            self._admit(unit)
        return displaced

    def _exceeds_firm_min(self, unit: Unit) -> int | None:
        least, firm = self.index.min[unit.leaf], self.firm[unit.leaf]
        return next((k for k, amount in enumerate(unit.vector) if amount and firm[k] + amount > least[k]), None)

    def _why_blocked(self, unit: Unit, is_guaranteed: bool) -> tuple[Reason, str]:
        if self._exceeds_own_max(unit):
            return Reason.OVER_MAX, ""
        protected = self._protected(unit) if is_guaranteed else {}
        if not protected:
            return Reason.WAITING_FOR_IDLE_QUOTA, ""
        return Reason.PDB_BLOCKED, self.sentences.protected(unit, protected, self.budgets)

    def _protected(self, unit: Unit) -> dict[tuple[int, str], list[VictimGroup]]:
        """By leaf and PodDisruptionBudget: who would make room and may not be evicted."""
        found: defaultdict[tuple[int, str], list[VictimGroup]] = defaultdict(list)
        _, k = self.after.blocks(unit.leaf, unit.vector)[0]
        for leaf, groups in self.groups.items():
            if leaf != unit.leaf and self.after.over(leaf, k) > 0:
                for group in groups:
                    budgets = {budget for pod in group.pods for budget in pod.budgets}
                    if group.vector[k] and budgets and not self._may_go(group):
                        found[leaf, min(budgets)].append(group)
        return found

    def _exceeds_own_max(self, unit: Unit) -> bool:
        """Whether its leaf's own use reaches the ceiling in its way, whatever others do."""
        blocked = self.now.blocks(unit.leaf, unit.vector)
        if not blocked:
            return False
        place, k = blocked[0]
        return self.now.own[unit.leaf][k] + unit.vector[k] > (self.index.max[place][k] or 0)

    def _admit(self, unit: Unit) -> None:
        is_guaranteed = self.is_guaranteed(unit)
        self.now.add(unit.leaf, unit.vector)
        self.after.add(unit.leaf, unit.vector)
        self._count(unit, 1)
        self.admitted.append((unit, is_guaranteed))
        self.done.add(unit)
        if unit.claim_since is None and not unit.was_displaced and unit.is_preemptible:
            is_gang = len(unit.pods) > 1
            self.fresh[unit.leaf].append(group_of(self.index, unit.leaf, unit.pods, is_gang=is_gang, unit=unit))

    def _take_back(self, unit: Unit) -> None:
        """Of what this plan admitted. Its sums in `after` have gone with the choice of victims."""
        self.now.add(unit.leaf, unit.vector, -1)
        self._count(unit, -1)
        self.admitted = [pair for pair in self.admitted if pair[0] is not unit]
        self.done.discard(unit)
        self.fresh[unit.leaf] = [group for group in self.fresh[unit.leaf] if group.unit is not unit]
        unit.was_displaced = True

    def _count(self, unit: Unit, sign: int) -> None:
        if not unit.is_preemptible:
            self._add_firm(unit.leaf, unit.vector, sign)
        if unit.pods[0].user:
            mine = self.user_use.setdefault((unit.leaf, unit.pods[0].user), [0] * len(unit.vector))
            for k, amount in enumerate(unit.vector):
                mine[k] += sign * amount

    def _claim(self, unit: Unit) -> None:
        self.now.add(unit.leaf, unit.vector)
        self.after.add(unit.leaf, unit.vector)
        self.claims.add(unit.leaf, unit.vector)
        if not unit.is_preemptible:
            self._add_firm(unit.leaf, unit.vector)
        self.set_aside[unit] = (Reason.WAITING_FOR_EVICTIONS, "")

    # --- making room ----------------------------------------------------------------------------------------

    def _reclaim(self, unit: Unit) -> list[VictimGroup] | None:
        """Victims in other leaves (quota contract 2.7): complete, or None.

        What this plan admitted is tried alone first.
        """
        return self._choose(unit, lambda taken: self._from_others(unit, self._fresh_groups, taken)) or self._choose(
            unit, lambda taken: self._from_others(unit, self._all_groups, taken)
        )

    def _preempt_in_leaf(self, unit: Unit) -> list[VictimGroup] | None:
        """Victims of lower priority in its own leaf (quota contract 2.8)."""
        if self.index.nodes[unit.leaf].attributes.get(PREEMPT_POLICY) == "Never":
            return None

        def first(source: Callable[[int], Iterable[VictimGroup]]) -> Callable[[list[VictimGroup]], VictimGroup | None]:
            def choose(taken: list[VictimGroup]) -> VictimGroup | None:
                _, k = self.after.blocks(unit.leaf, unit.vector)[0]
                return next((group for group in self._free(source(unit.leaf), taken, k) if self._gives_way(group, unit)), None)

            return choose

        return self._choose(unit, first(self._fresh_groups)) or self._choose(unit, first(self._all_groups))

    def _gives_way(self, group: VictimGroup, unit: Unit) -> bool:
        """Lower priority.

        Or an older revision of the same Deployment, once the newer pod has waited a while.
        """
        if max(pod.priority for pod in group.pods) < unit.priority:
            return True
        new, old = unit.pods[0], group.pods[0]
        is_older = bool(new.deployment) and new.deployment == old.deployment and old.revision < new.revision
        has_waited = self.state.now - new.created_at >= self.state.settings.surge_wait_seconds
        return is_older and len(group.pods) == 1 and not new.waits_for_surge and has_waited and old.priority <= new.priority

    def _fresh_groups(self, leaf: int) -> list[VictimGroup]:
        return sorted(self.fresh.get(leaf, ()), key=lambda group: group.rank)

    def _all_groups(self, leaf: int) -> list[VictimGroup]:
        return sorted([*self.groups.get(leaf, ()), *self.fresh.get(leaf, ())], key=lambda group: group.rank)

    def _choose(self, unit: Unit, choose: Callable[[list[VictimGroup]], VictimGroup | None]) -> list[VictimGroup] | None:
        """Take one victim after the other until it fits, then spare each that is not needed, the most
        important first.

        None, and nothing taken, when it cannot fit completely.
        """
        taken: list[VictimGroup] = []
        while self.after.blocks(unit.leaf, unit.vector):
            group = choose(taken)
            if group is None:
                for each in taken:
                    self._spare(each)
                return None
            self._take(group)
            taken.append(group)
        for group in sorted(taken, key=lambda each: each.rank, reverse=True):
            if group.gang is not None and not group.is_whole and any(each.is_whole and each.gang == group.gang for each in taken):
                continue  # its gang goes
            self._spare(group)
            if self.after.blocks(unit.leaf, unit.vector):
                self._take(group)
            else:
                taken.remove(group)
        return taken or None

    def _take(self, group: VictimGroup) -> None:
        self.after.add(group.leaf, group.vector, -1)
        self._count_budgets(group, -1)

    def _spare(self, group: VictimGroup) -> None:
        self.after.add(group.leaf, group.vector)
        self._count_budgets(group, 1)

    def _count_budgets(self, group: VictimGroup, sign: int) -> None:
        if group.unit is None:
            for pod in group.pods:
                for budget in pod.budgets:
                    self.budgets[budget] = self.budgets.get(budget, 0) + sign

    def _free(self, groups: Iterable[VictimGroup], taken: list[VictimGroup], k: int) -> Iterable[VictimGroup]:
        """Of those, in their order, who asks for the resource, is not taken yet, and may be evicted."""
        return (group for group in groups if group.vector[k] and group not in taken and self._may_go(group))

    def _may_go(self, group: VictimGroup) -> bool:
        if group.unit is not None:
            return True
        needs: defaultdict[str, int] = defaultdict(int)
        for pod in group.pods:
            if len(pod.budgets) > 1:  # the eviction API refuses it
                return False
            if pod.refused_at is not None and self.state.now - pod.refused_at < self.state.settings.refusal_seconds:
                return False
            for budget in pod.budgets:
                needs[budget] += 1
        return all(self.budgets.get(budget, 0) >= count for budget, count in needs.items())

    def _from_others(self, unit: Unit, source: Callable[[int], list[VictimGroup]], taken: list[VictimGroup]) -> VictimGroup | None:
        place, k = self.after.blocks(unit.leaf, unit.vector)[0]
        vouchers = [node for node in self._vouchers(unit, k) if self.after.is_within(node, unit.vector, [k])]
        fence = vouchers[-1] if self.is_by_subtree and vouchers else unit.leaf
        return self._descend(place, k, unit, fence, source, taken)

    def _descend(
        self, place: int, k: int, unit: Unit, fence: int, source: Callable[[int], list[VictimGroup]], taken: list[VictimGroup]
    ) -> VictimGroup | None:
        """The first victim below the node: from the child that is most above its min, and so on down.

        Who is at or under its min is protected as a whole, unless the way to the unit leads through it;
        `fence` is never entered.
        """
        if place == fence:
            return None
        if not self.index.children[place]:
            return next(iter(self._free(source(place), taken, k)), None)
        by_over: defaultdict[int, list[int]] = defaultdict(list)
        for child in self.index.children[place]:
            over = self.after.over(child, k)
            if over > 0 or child in self.index.up[unit.leaf]:
                by_over[over].append(child)
        for over in sorted(by_over, reverse=True):
            found = [(self._descend(child, k, unit, fence, source, taken), self.index.names[child]) for child in by_over[over]]
            groups = [(-group.newest, name, group) for group, name in found if group is not None]
            if groups:
                return min(groups, key=lambda each: each[:2])[2]
        return None

    # --- what came of it ------------------------------------------------------------------------------------

    def _plan(self) -> QuotaPlan:
        names = self.index.names
        admit = [QuotaAdmission(pod, names[unit.leaf], is_guaranteed) for unit, is_guaranteed in self.admitted for pod in unit.pods]
        evict = [QuotaEviction(pod, names[group.leaf], unit.key) for group, unit in self.evicted for pod in group.pods]
        tried = {unit: place for place, unit in enumerate(self.order)}
        waits = sorted((unit for unit in self.units if unit not in self.done), key=lambda unit: (tried.get(unit, len(tried)), unit.key))
        positions: defaultdict[int, int] = defaultdict(int)
        waiting: list[QuotaWaiting] = []
        for unit in waits:
            positions[unit.leaf] += 1
            reason, message = self.set_aside[unit]
            victims = self.victims_of.get(unit, ())
            waiting.append(self.sentences.waiting(unit, reason, message, positions[unit.leaf], self.after, victims))
        return QuotaPlan(tuple(admit), tuple(evict), tuple(waiting))


def _add(sums: list[int], vector: Vector) -> None:
    for k, amount in enumerate(vector):
        sums[k] += amount
