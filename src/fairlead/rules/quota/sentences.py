"""Why a unit waits, in one sentence with names and numbers: for the pod's condition, its Event, the console
and `quota why`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.model.quota.plan import Blocked, Borrower, QuotaWaiting, Reason
from fairlead.model.quota.state import QuotaState
from fairlead.model.resources import CPU, is_byte_resource
from fairlead.rules.quota.tree import Sums, TreeIndex
from fairlead.rules.quota.units import Unit, VictimGroup


class Sentences:
    """Of one plan."""

    def __init__(self, state: QuotaState, index: TreeIndex, now: Sums, claims: Sums) -> None:
        self._state = state
        self._index = index
        self._now = now
        self._claims = claims

    def never_fits(self, unit: Unit, at: tuple[int, int]) -> str:
        place, k = at
        most = self._index.max[place][k]
        asks = self._asks(unit, k)
        if most is not None and unit.vector[k] > most:
            return f"{asks}; {self._index.names[place]} max is {self._text(k, most)}; this pod can never run here"
        least = self._text(k, self._index.min[place][k])
        return f"{asks}, not preemptible; {self._index.names[place]} min is {least}; this pod can never run here"

    def over_cap(self, unit: Unit, k: int, used: int, cap: int) -> str:
        user, leaf = unit.pods[0].user, self._index.names[unit.leaf]
        return f"{self._asks(unit, k)}; {user} uses {self._text(k, used)} of {self._text(k, cap)} allowed in {leaf}"

    def over_firm_min(self, unit: Unit, k: int, firm: int) -> str:
        least, leaf = self._text(k, self._index.min[unit.leaf][k]), self._index.names[unit.leaf]
        told = f"non-preemptible pods use {self._text(k, firm)} of guaranteed {least} of {leaf}"
        return f"{self._asks(unit, k)}; {told}; label preemptible=true to borrow"

    def protected(self, unit: Unit, protected: Mapping[tuple[int, str], Sequence[VictimGroup]], allowed: Mapping[str, int]) -> str:
        (leaf, budget), groups = min(protected.items(), key=lambda each: (-len(each[1]), each[0]))
        count = sum(len(group.pods) for group in groups)
        are = f"{count} pods of {self._index.names[leaf]} are" if count > 1 else f"1 pod of {self._index.names[leaf]} is"
        by = f"PodDisruptionBudget {budget} (allows {allowed.get(budget, 0)})"
        return f"guaranteed by {self._index.names[unit.leaf]}; {are} protected by {by}"

    def behind(self, unit: Unit) -> str:
        pod = unit.pods[0]
        return f"gang {pod.gang} has its {pod.gang_size} pods first"

    def waiting(self, unit: Unit, reason: Reason, message: str, position: int, after: Sums, victims: Sequence[VictimGroup]) -> QuotaWaiting:
        blocked = self._blocked(unit)
        borrowers = self._borrowers(blocked, after)
        if not message:
            message = self._message(unit, reason, blocked, borrowers, victims)
        key = self._index.names[unit.leaf]
        return QuotaWaiting(unit.key, key, unit.pods, reason, message, position, blocked, borrowers)

    def _blocked(self, unit: Unit) -> tuple[Blocked, ...]:
        index = self._index
        return tuple(
            Blocked(
                index.names[place],
                index.resources[k],
                unit.vector[k],
                self._now.own[place][k] - self._claims.own[place][k],
                self._claims.own[place][k],
                index.max[place][k] or 0,
            )
            for place, k in self._now.blocks(unit.leaf, unit.vector)
        )

    def _borrowers(self, blocked: Sequence[Blocked], after: Sums) -> tuple[Borrower, ...]:
        index = self._index
        scarce = dict.fromkeys(index.resources.index(each.resource) for each in blocked)
        found = [
            Borrower(index.names[place], index.resources[k], over)
            for k in scarce
            for place, below in enumerate(index.children)
            if not below and (over := after.over(place, k)) > 0
        ]
        return tuple(sorted(found, key=lambda each: (-each.over, each.leaf)))

    def _message(
        self, unit: Unit, reason: Reason, blocked: Sequence[Blocked], borrowers: Sequence[Borrower], victims: Sequence[VictimGroup]
    ) -> str:
        leaf = self._index.names[unit.leaf]
        if not blocked:
            return f"{leaf} waits"
        first = blocked[0]
        k = self._index.resources.index(first.resource)
        own = self._text(k, self._now.own[unit.leaf][k] - self._claims.own[unit.leaf][k])
        least = self._text(k, self._index.min[unit.leaf][k])
        match reason:
            case Reason.OVER_MAX:
                return f"{self._asks(unit, k)}; {first.node} uses {self._text(k, first.used)} of max {self._text(k, first.max)}"
            case Reason.WAITING_FOR_EVICTIONS:
                gone = ", ".join(f"{pod.key} of {self._index.names[group.leaf]}" for group in victims for pod in group.pods)
                rest = f"; waiting for {gone} to stop" if gone else "; waiting for stopping pods to go"
                return f"guaranteed by {leaf} (uses {own} of {least} {first.resource}, asks {self._text(k, unit.vector[k])}){rest}"
            case _:
                told = ", ".join(f"{each.leaf} +{self._text(k, each.over)}" for each in borrowers if each.resource == first.resource)
                full = f"{first.node} {self._text(k, first.used)}/{self._text(k, first.max)} in use"
                who = f"biggest borrowers: {told}" if told else "nobody borrows"
                guaranteed = f"{leaf} uses {own} of guaranteed {least}, so it may only borrow idle quota"
                return f"{self._asks(unit, k)}; {full}; {guaranteed}; {who}"

    def _asks(self, unit: Unit, k: int) -> str:
        return f"{self._index.resources[k]} asks {self._text(k, unit.vector[k])}"

    def _text(self, k: int, amount: int) -> str:
        resource = self._index.resources[k]
        if resource == CPU:
            return f"{amount / 1000:g}"
        return f"{amount / (1 << 30):g}Gi" if is_byte_resource(resource) else str(amount)
