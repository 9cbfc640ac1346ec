"""Where pods that share GPUs would be placed, and which pods would have to stop for them to fit.

These are the scheduler's rules on a separate ledger. Only shared GPUs are checked, on nodes that
labels and taints leave to the pod; kube-scheduler also checks cpu, memory, ports and other pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec import Struct

from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.refusal import Refusal
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.rules.sharing.why import usable_nodes, why_no_room

_ABOVE_ALL = 2**31


class RequiredEvictions(Struct, frozen=True, gc=False):
    """The pods of one node that would have to stop: the least important that make enough room."""

    node: str
    pods: tuple[Pod, ...]


class PodPlan(Struct, frozen=True, gc=False):
    """The result for one pod: a node and grants, or a reason and perhaps a helpful `sacrifice`."""

    pod: Pod
    node: str = ""
    unit: str = ""
    grants: GrantsByContainer = {}
    reason: str = ""
    sacrifice: RequiredEvictions | None = None


def place_pods(ledger: Ledger, pods: Iterable[Pod]) -> list[PodPlan]:
    """Place each pod in turn on the node with the best score, ties to the first name.

    The ledger keeps what they take.
    """
    planned: set[str] = set()
    outcomes = []
    for pod in pods:
        outcomes.append(_place(ledger, pod, planned))
        planned.add(pod.uid)
    return outcomes


def what_must_go(
    ledger: Ledger, pod: Pod, planned: Collection[str] = ()
) -> RequiredEvictions | None:
    """The cheapest set of pods to stop, whatever their priority; None if none makes room.

    Pods in `planned` stay.
    """
    asker = msgspec.structs.replace(pod, priority=_ABOVE_ALL)
    plans = plan_preemption(
        ledger, asker, {name: Victims(()) for name in usable_nodes(ledger, pod)}, planned
    )
    ways = [
        RequiredEvictions(node, tuple(ledger.tenants[uid].pod for uid in victims.uids))
        for node, victims in plans.items()
    ]
    return min(ways, key=_cost, default=None)


def _place(ledger: Ledger, pod: Pod, planned: Collection[str]) -> PodPlan:
    passed = ledger.filter(pod, usable_nodes(ledger, pod)).passed
    if not passed:
        return PodPlan(
            pod, reason=why_no_room(ledger, pod), sacrifice=what_must_go(ledger, pod, planned)
        )
    scores = dict(ledger.prioritize(pod, passed))
    node = min(passed, key=lambda name: (-scores[name], name))
    grants = ledger.reserve(pod, node, is_plan=True)
    assert not isinstance(grants, Refusal), "the filter has passed the node"
    return PodPlan(pod, node, ledger.nodes[node].unit, grants)


def _cost(way: RequiredEvictions) -> tuple[int, int, str]:
    return max(pod.priority for pod in way.pods), len(way.pods), way.node
