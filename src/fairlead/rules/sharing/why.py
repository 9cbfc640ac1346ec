"""Why a pod has no room on any shared GPU: one sentence over all nodes.

Reasons are counted as kube-scheduler does.

kube-scheduler asks the extender only about nodes whose *sum* of units is large enough, and reports
no numbers for the others. This covers all nodes that labels and taints leave to the pod. Its cpu
and memory are not checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from fairlead.model.node_choice import NodeChoice
from fairlead.model.pod import Pod
from fairlead.model.sharing import GpuNeed
from fairlead.rules.holding.need import gpu_need, units_for_bytes
from fairlead.rules.nodes.choice import may_use
from fairlead.rules.sharing.ledger import Ledger


class ShareShortage(Struct, frozen=True):
    """What a pod that shares GPUs lacks, in one sentence (`text`).

    `by_node` counts the reasons of all nodes.

    `kind`: `none` (no node exists), `barred` (selector, affinity and taints leave none), `unshared`
    (no node that it may use shares GPUs), `memory` (no GPU has enough memory left), `other` (see
    `by_node`). `nodes`: number of nodes that share GPUs; for `barred` and `unshared` of all nodes.
    `cards`: number of GPUs on each of which it needs `units`.
    """

    kind: str
    by_node: str
    units: int = 0
    unit: str = ""
    cards: int = 1
    nodes: int = 0
    best: str = ""
    free: int = 0

    @property
    def text(self) -> str:
        """
        >>> ShareShortage("memory", "", 8, "GiB", 1, 2, "n1", 4).text
        'needs 8 GiB on one GPU; the freest of 2 nodes that share GPUs, n1, has 4 GiB left on one'
        """
        match self.kind:
            case "none":
                return "there is no node"
            case "barred":
                return (
                    f"none of {self.nodes} nodes suits its nodeSelector, affinity and tolerations"
                )
            case "unshared":
                only = "the only node that it may use does not share GPUs"
                return (
                    only
                    if self.nodes == 1
                    else f"of {self.nodes} nodes that it may use none shares GPUs"
                )
            case "memory":
                need = (
                    f"needs {self.units} {self.unit} on "
                    f"{'one GPU' if self.cards == 1 else f'each of {self.cards} GPUs'}"
                )
                of = (
                    f"the freest of {self.nodes} nodes that share GPUs"
                    if self.nodes > 1
                    else "the only node that shares GPUs"
                )
                hint = units_for_bytes(self.units, self.unit)
                return (
                    f"{need}; {of}, {self.best}, has {self.free} {self.unit} left on "
                    f"one{hint and f'; {hint}'}"
                )
        return self.by_node


class ShareWhy:
    """`shortage` for many pods at one moment.

    Equal needs have one answer, and the ledger is made for the first pod that needs it.
    """

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._make = ledger
        self._ledger: Ledger | None = None
        self._shortages: dict[tuple[GpuNeed, int, NodeChoice], ShareShortage | None] = {}

    def __call__(self, pod: Pod) -> ShareShortage | None:
        need = gpu_need(pod)
        if need.is_nothing:
            return None
        if self._ledger is None:
            self._ledger = self._make()
        key = (need, pod.priority, pod.node_choice)
        if pod.nominated_node:  # room that is promised to this pod is free for it alone
            return shortage(self._ledger, pod)
        if key not in self._shortages:
            self._shortages[key] = shortage(self._ledger, pod)
        return self._shortages[key]


def usable_nodes(ledger: Ledger, pod: Pod) -> list[str]:
    """Nodes that selector, required affinity and taints leave to the pod, in the ledger's order."""
    return [name for name in ledger.nodes if may_use(pod.node_choice, ledger.node(name))]


def shortage(ledger: Ledger, pod: Pod) -> ShareShortage | None:
    """None if a node has room or the pod asks for no shared GPU."""
    by_node = why_no_room(ledger, pod)
    if not by_node:
        return None
    if not ledger.nodes:
        return ShareShortage("none", by_node)
    names, need = usable_nodes(ledger, pod), gpu_need(pod)
    if not names:
        return ShareShortage("barred", by_node, nodes=len(ledger.nodes))
    sharing = [
        account
        for name in names
        if (account := ledger.nodes[name]).mode.is_shared and account.usable()
    ]
    if not sharing and not any(ledger.nodes[name].mode.is_shared for name in names):
        return ShareShortage("unshared", by_node, nodes=len(names))
    best = max(sharing, key=lambda account: account.largest_free, default=None)
    if best is None or need.fault or need.is_split or best.largest_free >= need.units:
        return ShareShortage("other", by_node)
    return ShareShortage(
        "memory",
        by_node,
        need.units,
        str(best.unit),
        need.cards,
        len(sharing),
        best.name,
        max(0, best.largest_free),
    )


def why_no_room(ledger: Ledger, pod: Pod) -> str:
    """The reasons of all nodes that the pod may use, the most frequent first.

    "" if one of them has room or the pod asks for no shared GPU.
    """
    if gpu_need(pod).is_nothing:
        return ""
    names = usable_nodes(ledger, pod)
    answer = ledger.filter(pod, names)
    if answer.passed:
        return ""
    if not names:
        return (
            "none of the nodes suits its nodeSelector, affinity and tolerations"
            if ledger.nodes
            else "there is no node"
        )
    counts = Counter([*answer.failed.values(), *answer.hopeless.values()])
    reasons = ", ".join(
        f"{count} {reason}"
        for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
    which = (
        "nodes"
        if len(names) == len(ledger.nodes)
        else f"of {len(ledger.nodes)} nodes that it may use"
    )
    return f"0/{len(names)} {which} have room: {reasons}"
