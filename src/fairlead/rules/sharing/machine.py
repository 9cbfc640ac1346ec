"""The state machine of GPU sharing: what the cluster tells and kube-scheduler asks go in, actions come out.

Pure and synchronous: time is an argument, nothing is awaited, and all state is here. `apps/extender` drives
it on a real cluster, the laptop on a simulated one, storms on a clock that jumps. Whoever drives it carries
the steps out and hands back how each ended.
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
    """`feed` takes what the cluster tells, `bindings` what kube-scheduler binds.

    `adoption` and `hints` say what is to be done besides.
    """

    def __init__(self, policies: SharePolicies = DEFAULT_POLICIES, on_change: Callable[[], None] = lambda: None) -> None:
        self.feed = LedgerFeed(policies, on_change)
        self.bindings = Bindings(self.feed)
        self.adoption = Adoption(self.feed)
        self.hints = RetryHints(self.feed)

    @property
    def ledger(self) -> Ledger:
        return self.feed.ledger

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        """As `Ledger.filter`.

        A pod whose binding is under way or in doubt may be tried again on that node alone.
        """
        self.bindings.remember(pod)
        tenant = self.ledger.tenants.get(pod.uid)
        if tenant is None or tenant.state != RESERVED:
            return self.ledger.filter(pod, names)
        others = {name: f"pod is being bound to node {tenant.node}" for name in names if name != tenant.node}
        return Filtered([tenant.node] if tenant.node in names else [], others, {})
