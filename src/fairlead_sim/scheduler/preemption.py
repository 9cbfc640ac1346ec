"""kube-scheduler's default preemption: lower priorities on one node, as few as will do.

Budgets are kept where that is possible, not at any price. Shares of cards are not looked at here:
the extender corrects the victims. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead_sim.objects.conditions import conditions_of, find_condition, status_of
from fairlead_sim.scheduler.affinity import AllowedTopologies
from fairlead_sim.scheduler.rooms import PodInRoom, Room, Shortfall
from fairlead_sim.schema.selector import selects
from fairlead_sim.schema.status import ApiStatus

Object = dict[str, Any]

PREEMPTED = "PreemptionByScheduler"
MOST_CANDIDATES = 100
NO_VICTIM_ON = "expected at least one victim pod on node "
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"


@dataclass(slots=True)
class Preemption:
    """The victims on one node, the most important first.

    Also how many of them a budget would have kept.
    """

    room: Room
    victims: list[PodInRoom]
    violations: int

    @staticmethod
    def of(room: Room, uids: Iterable[str], violations: int) -> Preemption:
        """Of those of the room's pods that are still there."""
        victims = [room.tenants[uid] for uid in uids if uid in room.tenants]
        return Preemption(room, sorted(victims, key=_importance), violations)

    @property
    def cost(self) -> tuple[int, int, int, int, str]:
        """Smaller is better: broken budgets, the most important victim, the sum of priorities, the
        number, the later start.
        """
        priorities = [victim.priority for victim in self.victims]
        oldest = min(
            _started(victim) for victim in self.victims if victim.priority == priorities[0]
        )
        return (
            self.violations,
            priorities[0],
            sum(priority + 2**31 for priority in priorities),
            len(priorities),
            _descending(oldest),
        )


def refused_to_preempt(asker: PodInRoom, promised_room: Room | None) -> str:
    """Why the pod may not preempt (again); "" if it may."""
    if asker.pod["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    if promised_room is not None and any(
        _is_leaving(victim, asker) for victim in promised_room.tenants.values()
    ):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def find_candidates(
    asker: PodInRoom,
    rooms: Mapping[str, Room],
    refused: Mapping[str, Shortfall],
    budgets: Sequence[Object],
    neighbours: Callable[[set[str]], AllowedTopologies],
) -> tuple[list[Preemption], dict[str, list[str]]]:
    """Preemptions that would help, and per node why none does.

    `neighbours` returns what other pods mean once those uids are gone.
    """
    found: list[Preemption] = []
    why: dict[str, list[str]] = {}
    for name, refusal in refused.items():
        if refusal.is_final or name not in rooms:
            why[name] = [_NOT_HELPFUL]
            continue
        answer = _victims_on(rooms[name], asker, budgets, neighbours)
        if isinstance(answer, Preemption):
            found.append(answer)
            if len(found) == MOST_CANDIDATES:
                break
        else:
            why[name] = answer
    return found, why


def _victims_on(
    room: Room,
    asker: PodInRoom,
    budgets: Sequence[Object],
    neighbours: Callable[[set[str]], AllowedTopologies],
) -> Preemption | list[str]:
    lower = sorted(
        (tenant for tenant in room.tenants.values() if tenant.priority < asker.priority),
        key=_importance,
    )
    if not lower:
        return [_NO_VICTIMS]
    gone = {tenant.uid for tenant in lower}
    emptied = room.without(lower)
    if refusal := emptied.refusal(asker, neighbours(gone)):
        return refusal.reasons
    kept_by_budget = _kept_by_budget(lower, budgets)
    victims, violations = [], 0
    # spare the protected ones first
    for tenant in sorted(lower, key=lambda tenant: tenant.uid not in kept_by_budget):
        emptied.admit(tenant)
        gone.discard(tenant.uid)
        if emptied.refusal(asker, neighbours(gone)):
            emptied.release(tenant)
            gone.add(tenant.uid)
            victims.append(tenant)
            violations += tenant.uid in kept_by_budget
    return (
        Preemption(room, sorted(victims, key=_importance), violations)
        if victims
        else [f'{NO_VICTIM_ON}"{room.name}"']
    )


def _kept_by_budget(tenants: Iterable[PodInRoom], budgets: Sequence[Object]) -> set[str]:
    """Those whose eviction would break a budget, were they evicted in this order."""
    left = [status_of(budget).get("disruptionsAllowed", 0) for budget in budgets]
    chosen = [_chooser(budget) for budget in budgets]
    kept = set()
    for tenant in tenants:
        metadata = tenant.pod["metadata"]
        for index, budget in enumerate(budgets):
            if budget["metadata"]["namespace"] != metadata["namespace"] or not chosen[index](
                tenant.pod
            ):
                continue
            if metadata["name"] not in (status_of(budget).get("disruptedPods") or {}):
                left[index] -= 1
                if left[index] < 0:
                    kept.add(tenant.uid)
    return kept


def _chooser(budget: Object) -> Callable[[Object], bool]:
    try:
        return selects((budget.get("spec") or {}).get("selector"))
    except (ApiStatus, KeyError, TypeError):  # an unreadable selector selects nothing
        return lambda pod: False


def _importance(tenant: PodInRoom) -> tuple[int, str, str]:
    """Sorts the more important first: higher priority, then the earlier start."""
    return -tenant.priority, _started(tenant), tenant.uid


def _started(tenant: PodInRoom) -> str:
    return str(status_of(tenant.pod).get("startTime") or "9999")


def _descending(time: str) -> str:
    """A text that sorts in reverse: of equal nodes, the one with the youngest victims is taken.

    The youngest are those that started last.
    """
    return "".join(chr(0x7E - ord(letter) + 0x20) for letter in time)


def _is_leaving(victim: PodInRoom, asker: PodInRoom) -> bool:
    if victim.priority >= asker.priority or "deletionTimestamp" not in victim.pod["metadata"]:
        return False
    target = find_condition(conditions_of(victim.pod), "DisruptionTarget")
    return target is not None and target.get("reason") == PREEMPTED
