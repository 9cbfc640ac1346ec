"""Why a pod finds no room on any shared GPU: one sentence over all nodes, counted as kube-scheduler counts.

kube-scheduler asks the extender only about nodes whose *sum* of units would do; of the others it says no
number. This says it for all that labels and taints leave to the pod; whether its cpu and memory fit there is
not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fairlead.model.node_choice import NodeChoice
from fairlead.model.pod import Pod
from fairlead.model.sharing import GpuNeed
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.nodes.choice import may_use
from fairlead.rules.sharing.ledger import Ledger


class ShareWhy:
    """`why_no_room` for the many pods of one moment.

    Equal needs have one answer, and the ledger is made for the first pod that asks.
    """

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._make = ledger
        self._ledger: Ledger | None = None
        self._told: dict[tuple[GpuNeed, int, NodeChoice], str] = {}

    def __call__(self, pod: Pod) -> str:
        need = gpu_need(pod)
        if need.is_nothing:
            return ""
        if self._ledger is None:
            self._ledger = self._make()
        key = (need, pod.priority, pod.node_choice)
        if pod.nominated_node:  # room that is promised to this very pod is free for it alone
            return why_no_room(self._ledger, pod)
        if key not in self._told:
            self._told[key] = why_no_room(self._ledger, pod)
        return self._told[key]


def usable_nodes(ledger: Ledger, pod: Pod) -> list[str]:
    """Nodes that selector, required affinity and taints leave to the pod, in the ledger's order."""
    return [name for name in ledger.nodes if may_use(pod.node_choice, ledger.node(name))]


def why_no_room(ledger: Ledger, pod: Pod) -> str:
    """The reasons of all nodes that the pod may use, the most frequent first.

    "" if one of them has room or nothing is asked.
    """
    if gpu_need(pod).is_nothing:
        return ""
    names = usable_nodes(ledger, pod)
    answer = ledger.filter(pod, names)
    if answer.passed:
        return ""
    if not names:
        return "none of the nodes suits its nodeSelector, affinity and tolerations" if ledger.nodes else "there is no node"
    counts = Counter([*answer.failed.values(), *answer.hopeless.values()])
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    which = "nodes" if len(names) == len(ledger.nodes) else f"of {len(ledger.nodes)} nodes that it may use"
    return f"0/{len(names)} {which} have room: {told}"
