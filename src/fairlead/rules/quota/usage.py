"""How much of each quota node is used, and how much waits for it: `node_uses` of a cluster as it is.

Boards and metrics show it. It needs no quota controller: without one no pod has the gate, so every unfinished
pod counts as used, bound or not.
"""

from __future__ import annotations

from fairlead.model.quota.state import QuotaState
from fairlead.model.quota.use import QuotaUse
from fairlead.model.resources import Amounts
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.quota.account import account_of
from fairlead.rules.quota.node_use import node_uses
from fairlead.rules.quota.sight import quota_state


def quota_usage(snapshot: ClusterSnapshot) -> tuple[QuotaUse, ...]:
    """Use of every quota node, parents before children in the order written; empty without a tree."""
    return usage_of(quota_state(snapshot, snapshot.taken_at)) if snapshot.quota else ()


def usage_of(state: QuotaState) -> tuple[QuotaUse, ...]:
    """The same of a state."""
    return tuple(QuotaUse(node, use) for node, use in zip(state.tree.walk(), node_uses(state), strict=True))


def node_limits(snapshot: ClusterSnapshot) -> Amounts:
    """What the cluster's nodes have, of each resource of which that is less than the max that root says."""
    account = account_of(quota_state(snapshot, snapshot.taken_at))
    account.settle(snapshot.taken_at)
    index = account.index
    pairs = zip(index.resources, index.capacity, index.root_max, strict=True)
    return {name: there for name, there, most in pairs if there is not None and most is not None and there < most}
