"""The decider of GPU sharing: reports of the cluster and questions of kube-scheduler go in, actions
come out.

It is pure and synchronous: time is an argument, nothing is awaited, and all state is here.
`apps/extender` drives it on a real cluster, `run/hooks` on a simulated one, and tests on a clock
that jumps. The driver carries the steps out and hands back the outcome of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.model.pod import Pod
from fairlead.rules.holding.account import RESERVED
from fairlead.rules.sharing.adoption import Adoption
from fairlead.rules.sharing.bindings import Bindings
from fairlead.rules.sharing.feed import LedgerFeed
from fairlead.rules.sharing.ledger import Filtered, Ledger
from fairlead.rules.sharing.placement import DEFAULT_POLICIES, SharePolicies
from fairlead.rules.sharing.retry_hints import RetryHints


class SharingMachine:
    """`feed` takes reports of the cluster, `bindings` the bindings that kube-scheduler asks for.

    `adoption` and `hints` return the actions that follow from changes of the cluster.
    """

    def __init__(
        self,
        policies: SharePolicies = DEFAULT_POLICIES,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.feed = LedgerFeed(policies, on_change)
        self.bindings = Bindings(self.feed)
        self.adoption = Adoption(self.feed)
        self.hints = RetryHints(self.feed)

    @property
    def ledger(self) -> Ledger:
        return self.feed.ledger

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        """As `Ledger.filter`.

        A pod whose binding is under way or in doubt fits only the node of that binding.
        """
        self.bindings.remember(pod)
        tenant = self.ledger.tenants.get(pod.uid)
        if tenant is None or tenant.state != RESERVED:
            return self.ledger.filter(pod, names)
        others = {
            name: (f"pod is being bound to node {tenant.node}")
            for name in names
            if name != tenant.node
        }
        return Filtered([tenant.node] if tenant.node in names else [], others, {})
