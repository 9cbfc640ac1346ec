"""Why does a pod find no room on any shared GPU? One sentence over all nodes, counted as kube-scheduler counts.

kube-scheduler asks the extender only about nodes whose *sum* of units would do; of the others it says no number. This says it for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairlead.model.pod import Pod
from fairlead.rules.gpu_need import gpu_need
from fairlead.rules.share_ledger import Ledger


def why_no_room(ledger: Ledger, pod: Pod, nodes: Iterable[str] | None = None) -> str:
    """The reasons of these nodes (all that are known), the most frequent first; "" if one of them has room or nothing is asked."""
    if gpu_need(pod).is_nothing:
        return ""
    names = list(ledger.nodes if nodes is None else nodes)
    answer = ledger.filter(pod, names)
    if answer.passed:
        return ""
    counts = Counter([*answer.failed.values(), *answer.hopeless.values()])
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return f"0/{len(names)} nodes have room: {told}" if names else "there is no node"
