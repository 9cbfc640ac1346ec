"""What each quota node uses, has borrowed and has promised, and what waits below it.

The plan returns it; the status of the tree, the board and the metrics show it
(docs/spec/quota.md#status-of-the-tree, docs/spec/quota.md#pods-that-are-counted). It is computed
from pods alone. Amounts of managed resources only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fairlead.model.moment import Moment
from fairlead.model.quota.plan import QuotaClaim, QuotaNodeUse
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode, QuotaSettings
from fairlead.model.resources import NOTHING, Amounts
from fairlead.rules.quota.managed import managed_resources

Sum = dict[str, int]


def node_uses(
    state: QuotaState,
    promised: Mapping[str, Amounts] | None = None,
    units: Mapping[str, int] | None = None,
    counted: Mapping[str, Amounts] | None = None,
) -> tuple[QuotaNodeUse, ...]:
    """Every node, parents before children in the order written.

    `promised`: by leaf; None = what the conditions of waiting pods contain. `units`: number of
    waiting units by leaf; None = not counted. `counted`: by node, mins that count as less than is
    written.
    """
    managed = frozenset(managed_resources(state.tree))
    leaves = list(state.tree.leaves())
    # names may occur twice in a tree that breaks its rules
    sums = {id(leaf): _LeafSums(leaf) for leaf in leaves}
    of_namespace = {name: sums[id(leaf)] for leaf in leaves for name in leaf.namespaces}
    of_leaf = {leaf.name: sums[id(leaf)] for leaf in leaves}
    for pod in state.pods:
        if (own := of_namespace.get(pod.namespace)) is not None:
            own.count(
                pod,
                managed,
                is_lost=is_lost(pod, state.now, state.settings),
                is_claim_listed=promised is None,
            )
    for name, amounts in (promised or {}).items():
        _add(of_leaf[name].claimed, amounts, managed)
    for name, count in (units or {}).items():
        of_leaf[name].waiting_units += count
    return tuple(_gather(state.tree, sums, counted or {})[1])


def promised_by_leaf(
    claims: Iterable[QuotaClaim], kept: Mapping[str, Amounts]
) -> dict[str, Amounts]:
    """What a plan promises, and what is kept for pods that are created only after others run."""
    found = {leaf: dict(amounts) for leaf, amounts in kept.items()}
    for claim in claims:
        _add(found.setdefault(claim.leaf, {}), claim.request)
    return dict(found)


class NodeUses:
    """The same, kept between calls: only changed leaves are counted again, with their ancestors."""

    def __init__(self, tree: QuotaNode, settings: QuotaSettings) -> None:
        self._settings = settings
        self._managed = frozenset(managed_resources(tree))
        self._nodes = list(tree.walk())
        self._leaves = {leaf.name: leaf for leaf in tree.leaves()}
        self._above: dict[int, QuotaNode] = {
            id(child): node for node in self._nodes for child in node.children
        }
        self._units: dict[str, int] = {}
        self._counted: Mapping[str, Amounts] = {}
        self._sums = {id(leaf): _LeafSums(leaf) for leaf in self._leaves.values()}
        self._rows: dict[int, QuotaNodeUse] = {}
        self._claimed: frozenset[str] = frozenset()
        self._changed = set(self._leaves)

    def read(self, leaf: str, pods: Iterable[QuotaPod], now: Moment) -> None:
        """Read a leaf as a whole."""
        node = self._leaves[leaf]
        sums = _LeafSums(node)
        sums.waiting_units = self._units.get(leaf, 0)
        for pod in pods:
            sums.count(
                pod, self._managed, is_lost=is_lost(pod, now, self._settings), is_claim_listed=False
            )
        self._sums[id(node)] = sums
        self._changed.add(leaf)

    def wait_in(self, leaf: str, units: int) -> None:
        """Set the number of units that wait in a leaf."""
        if units != self._units.get(leaf, 0):
            self._units[leaf] = units
            self._sums[id(self._leaves[leaf])].waiting_units = units
            self._changed.add(leaf)

    def rows(
        self, promised: Mapping[str, Amounts], counted: Mapping[str, Amounts] | None = None
    ) -> tuple[QuotaNodeUse, ...]:
        """Every node, parents before children in the order written; every leaf has been read.

        `promised`: by leaf. `counted`: by node, mins that count as less than is written.
        """
        counted = counted or {}
        is_counted_anew, self._counted = counted != self._counted, counted
        claimed: dict[str, Sum] = {leaf: {} for leaf in promised}
        for leaf, amounts in promised.items():
            _add(claimed[leaf], amounts, self._managed)
        above: set[int] = set()
        for leaf in self._changed | self._claimed | claimed.keys():
            node: QuotaNode | None = self._leaves[leaf]
            self._sums[id(node)].claimed = claimed.get(leaf, {})
            while node is not None and id(node) not in above:
                above.add(id(node))
                node = self._above.get(id(node))
        self._changed, self._claimed = set(), frozenset(claimed)
        for node in reversed(self._nodes):  # children before parents
            if is_counted_anew or id(node) in above:
                if not node.is_leaf:
                    own = self._sums[id(node)] = _LeafSums(node)
                    for child in node.children:
                        own.add(self._sums[id(child)])
                self._rows[id(node)] = _row(
                    node, self._sums[id(node)], counted.get(node.name, NOTHING)
                )
        return tuple(self._rows[id(node)] for node in self._nodes)


def is_lost(pod: QuotaPod, now: Moment, settings: QuotaSettings) -> bool:
    """Whether the pod should have stopped long ago: it is shown, but no longer charged.

    Specification: docs/spec/quota.md#pods-that-are-counted.
    """
    return (
        pod.is_stopping
        and pod.stopping_at is not None
        and now - pod.stopping_at >= settings.stuck_seconds
    )


class _LeafSums:
    """The sums of one leaf in the making, or of all leaves below an inner node."""

    def __init__(self, node: QuotaNode) -> None:
        self.used: Sum = {}
        self.waiting: Sum = {}
        self.claimed: Sum = {}
        self.lost: Sum = {}
        self.firm_used: Sum = {}
        self.firm_waiting: Sum = {}
        self.waiting_units = 0
        self.pods = 0
        self.waiting_pods: Counter[str] = Counter()
        self.waiting_for: Sum = {}
        self.by_namespace: dict[str, Sum] = {name: {} for name in node.namespaces}
        self.by_user: dict[str, Sum] = {}

    def count(
        self, pod: QuotaPod, managed: frozenset[str], *, is_lost: bool, is_claim_listed: bool
    ) -> None:
        if not pod.is_admitted:
            self.waiting_pods[pod.condition_reason] += 1
            if pod.gated_by:
                return  # it asks for nothing
            for name, amount in pod.request.items():
                if amount and name in managed:
                    self.waiting_for[name] = self.waiting_for.get(name, 0) + 1
            _add(self.waiting, pod.request, managed)
            if not pod.is_preemptible:
                _add(self.firm_waiting, pod.request, managed)
            if is_claim_listed and pod.claim_since is not None:
                _add(self.claimed, pod.request, managed)
        elif is_lost:
            _add(self.lost, pod.request, managed)
        else:
            self.pods += 1
            for total in (
                self.used,
                self.by_namespace[pod.namespace],
                self.by_user.setdefault(pod.user, {}),
            ):
                _add(total, pod.request, managed)
            if not pod.is_preemptible:
                _add(self.firm_used, pod.request, managed)

    def add(self, below: _LeafSums) -> None:
        """Add what is below an inner node; namespaces and users are listed at leaves alone."""
        pairs = (
            (self.used, below.used),
            (self.waiting, below.waiting),
            (self.claimed, below.claimed),
            (self.lost, below.lost),
            (self.firm_used, below.firm_used),
            (self.firm_waiting, below.firm_waiting),
            (self.waiting_for, below.waiting_for),
        )
        for mine, theirs in pairs:
            _add(mine, theirs)
        self.waiting_units += below.waiting_units
        self.pods += below.pods
        self.waiting_pods.update(below.waiting_pods)


def _gather(
    node: QuotaNode, sums: Mapping[int, _LeafSums], counted: Mapping[str, Amounts]
) -> tuple[_LeafSums, list[QuotaNodeUse]]:
    """The sums of the node, and the rows of the node and of all nodes below it."""
    if node.is_leaf:
        return sums[id(node)], [_row(node, sums[id(node)], counted.get(node.name, NOTHING))]
    own = _LeafSums(node)
    rows: list[QuotaNodeUse] = []
    for child in node.children:
        below, its = _gather(child, sums, counted)
        own.add(below)
        rows += its
    return own, [_row(node, own, counted.get(node.name, NOTHING)), *rows]


def _row(node: QuotaNode, own: _LeafSums, counted: Amounts) -> QuotaNodeUse:
    mins = {**node.min, **counted} if counted else node.min
    return QuotaNodeUse(
        node.name,
        node.namespaces,
        tuple(child.name for child in node.children),
        used=own.used,
        request=_sum(own.used, own.waiting),
        guaranteed={
            name: least
            for name, amount in own.used.items()
            if (least := min(amount, mins.get(name, 0)))
        },
        borrowed={
            name: over
            for name, amount in own.used.items()
            if (over := amount - mins.get(name, 0)) > 0
        },
        claimed=own.claimed,
        lost=own.lost,
        firm_used=own.firm_used,
        firm_request=_sum(own.firm_used, own.firm_waiting),
        waiting_units=own.waiting_units,
        waiting_pods=own.waiting_pods.total(),
        pods=own.pods,
        waiting_by_reason=own.waiting_pods,
        waiting_by_resource=own.waiting_for,
        counted_min=counted,
        over_max={
            name: own.used[name] - most
            for name, most in node.max.items()
            if own.used.get(name, 0) > most
        },
        used_by_namespace=own.by_namespace if node.is_leaf else {},
        used_by_user=own.by_user,
    )


def _add(total: Sum, amounts: Amounts, managed: frozenset[str] | None = None) -> None:
    for name, amount in amounts.items():
        if managed is None or name in managed:
            total[name] = total.get(name, 0) + amount


def _sum(one: Sum, other: Sum) -> Amounts:
    if not other:
        return one or NOTHING
    total = dict(one)
    _add(total, other)
    return total
