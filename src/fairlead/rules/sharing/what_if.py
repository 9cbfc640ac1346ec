"""Where pods that share GPUs would go, and what would have to go for them to fit.

The scheduler's rules, on a ledger of one's own. Only shared GPUs are looked at, on nodes that labels and
taints leave to the pod; kube-scheduler also looks at cpu, memory, ports and other pods.
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


class Sacrifice(Struct, frozen=True, gc=False):
    """The pods of one node whose going makes room; the least important that suffice."""

    node: str
    pods: tuple[Pod, ...]


class PodPlan(Struct, frozen=True, gc=False):
    """What becomes of one pod: a node and grants, or a reason; then perhaps a `sacrifice` that would help."""

    pod: Pod
    node: str = ""
    unit: str = ""
    grants: GrantsByContainer = {}
    reason: str = ""
    sacrifice: Sacrifice | None = None


def place_pods(ledger: Ledger, pods: Iterable[Pod]) -> list[PodPlan]:
    """Each pod in turn, on the node that scores best, ties to the first name.

    The ledger keeps what they take.
    """
    planned: set[str] = set()
    outcomes = []
    for pod in pods:
        outcomes.append(_place(ledger, pod, planned))
        planned.add(pod.uid)
    return outcomes


def what_must_go(ledger: Ledger, pod: Pod, planned: Collection[str] = ()) -> Sacrifice | None:
    """The cheapest way to make room by ending other pods, whatever their priority; None if none does.

    Who is only `planned` stays.
    """
    asker = msgspec.structs.replace(pod, priority=_ABOVE_ALL)
    plans = plan_preemption(ledger, asker, {name: Victims(()) for name in usable_nodes(ledger, pod)}, planned)
    ways = [Sacrifice(node, tuple(ledger.tenants[uid].pod for uid in victims.uids)) for node, victims in plans.items()]
    return min(ways, key=_cost, default=None)


def _place(ledger: Ledger, pod: Pod, planned: Collection[str]) -> PodPlan:
    passed = ledger.filter(pod, usable_nodes(ledger, pod)).passed
    if not passed:
        return PodPlan(pod, reason=why_no_room(ledger, pod), sacrifice=what_must_go(ledger, pod, planned))
    scores = dict(ledger.prioritize(pod, passed))
    node = min(passed, key=lambda name: (-scores[name], name))
    grants = ledger.reserve(pod, node, is_plan=True)
    assert not isinstance(grants, Refusal), "the filter said yes"
    return PodPlan(pod, node, ledger.nodes[node].unit, grants)


def _cost(way: Sacrifice) -> tuple[int, int, str]:
    return max(pod.priority for pod in way.pods), len(way.pods), way.node
