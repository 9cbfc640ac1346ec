"""The ledger from the API server's lists and watches: nodes, pods and ConfigMaps, one by one.

A list that lacks a pod whose binding is on its way does not mean that the pod is gone: such a
reservation is handed to `on_doubt`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from fairlead.model.changes import KIND_NODES, KIND_PODS, Changes
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import GPU_WITHHELD
from fairlead.rules.holding.account import RESERVED
from fairlead.rules.holding.need import asks_share
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.placement import SharePolicies


class LedgerFeed:
    """`pods`: those that name a resource of shared GPUs, by uid.

    `is_rebuilt`: all was listed since the last `rebuild`. `touched`: nodes whose tenants are to be
    looked at; `news`: pods that changed; both in the order of happening, emptied by `Adoption`.
    `on_change` is called after each change.
    """

    def __init__(self, policies: SharePolicies, on_change: Callable[[], None]) -> None:
        self.ledger = Ledger(policies)
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.touched: dict[str, None] = {}
        self.news: dict[str, Pod] = {}
        self.is_rebuilt = False
        self.on_change = on_change
        self.on_doubt: Callable[[Pod, str], None] = lambda _pod, _node: None
        self._withheld = _WithheldCards(self)
        self._kinds: dict[str, _Kept] = {
            KIND_NODES: _Nodes(self),
            KIND_PODS: _Pods(self),
            GPU_WITHHELD: self._withheld,
        }
        self._missing: set[str] | None = None

    def rebuild(self) -> None:
        """Doubt all that is known: it may be old, and so may lists that are on their way.

        None of them counts before `begin`.
        """
        self.is_rebuilt = False
        self._missing = None

    def begin(self) -> None:
        """Lists that come from now on count; `is_rebuilt` when all have come."""
        self._missing = set(self._kinds)

    def observe(self, changes: Changes[Any]) -> None:
        """Take what the API server reported of one kind.

        ValueError for a kind that is not followed.
        """
        kept = self._kinds.get(changes.kind)
        if kept is None:
            raise ValueError(
                f"the ledger does not follow `{changes.kind}`, only {', '.join(self._kinds)}"
            )
        if changes.is_list:
            kept.replace(changes.all_rows(), changes.unreadable)
            self._listed(changes.kind)
            return
        for uid, row in changes.rows.items():
            if row is None:
                kept.drop(uid)
            else:
                kept.put(uid, row)

    def is_known(self, uid: str) -> bool:
        """Whether changes of this pod matter though it may not name a shared GPU any more."""
        return uid in self.pods or uid in self.ledger.tenants

    def drop_pod(self, uid: str) -> None:
        """The pod is gone: its cards are free."""
        self._kinds[KIND_PODS].drop(uid)

    def withheld_on(self, node: str) -> frozenset[int]:
        """Indexes of cards that an operator took out."""
        return self._withheld.on(node)

    def _listed(self, kind: str) -> None:
        if self._missing is None:
            return
        self._missing.discard(kind)
        if not self._missing and not self.is_rebuilt:
            self.touched.update(dict.fromkeys(self.ledger.nodes))
            self.is_rebuilt = True
        self.on_change()

    def touch(self, node: str) -> None:
        """Note that the tenants of this node are to be looked at."""
        self.touched[node] = None
        self.on_change()


class _Kept(Protocol):
    """The rows of one kind."""

    def put(self, key: str, row: Any) -> None: ...

    def drop(self, key: str) -> None: ...

    def replace(self, rows: dict[str, Any], unreadable: Collection[str]) -> None: ...


class _Nodes:
    """Nodes; heartbeats, which change nothing that the ledger reads, touch none."""

    def __init__(self, feed: LedgerFeed) -> None:
        self._feed = feed
        self._names: dict[str, str] = {}

    def replace(self, rows: dict[str, Node], unreadable: Collection[str]) -> None:
        for key in [key for key in self._names if key not in rows and key not in unreadable]:
            self.drop(key)
        for key, node in rows.items():
            self.put(key, node)

    def put(self, key: str, row: Node) -> None:
        feed, known = self._feed, self._feed.nodes.get(row.name)
        self._names[key] = row.name
        feed.nodes[row.name] = row
        if known is None or _read_fields(known) != _read_fields(row):
            feed.ledger.set_node(row, feed.withheld_on(row.name))
            feed.touch(row.name)

    def drop(self, key: str) -> None:
        name = self._names.pop(key, None)
        # a namesake may have come already
        if name is not None and name not in self._names.values():
            self._feed.nodes.pop(name, None)
            self._feed.ledger.remove_node(name)


class _Pods:
    """Pods; those that name no resource of shared GPUs are left out."""

    def __init__(self, feed: LedgerFeed) -> None:
        self._feed = feed

    def replace(self, rows: dict[str, Pod], unreadable: Collection[str]) -> None:
        ledger = self._feed.ledger
        for uid in [
            uid
            for uid in {**self._feed.pods, **ledger.tenants}
            if uid not in rows and uid not in unreadable
        ]:
            tenant = ledger.tenants.get(uid)
            if tenant is not None and tenant.state == RESERVED:
                self._feed.on_doubt(tenant.pod, tenant.node)
            else:
                self.drop(uid)
        for uid, pod in rows.items():
            self.put(uid, pod)

    def put(self, key: str, row: Pod) -> None:
        feed, ledger = self._feed, self._feed.ledger
        if not feed.is_known(key) and not asks_share(row):
            return
        feed.pods[key] = feed.news[key] = row
        before = ledger.tenants.get(key)
        ledger.set_pod(row)
        after = ledger.tenants.get(key)
        if (
            before is None
            or after is None
            or before.booked != after.booked
            or not after.grants
            or after.is_misread
        ):
            for tenant in (before, after):
                if tenant is not None:
                    feed.touch(tenant.node)
        elif (
            before.is_starting and not after.is_starting and ledger.is_guarded(after.node)
        ):  # who waits there may be given cards
            feed.touch(after.node)
        feed.on_change()

    def drop(self, key: str) -> None:
        feed = self._feed
        feed.pods.pop(key, None)
        feed.news.pop(key, None)
        tenant = feed.ledger.tenants.get(key)
        feed.ledger.remove_pod(key)
        if tenant is not None:
            feed.touch(tenant.node)


class _WithheldCards:
    """ConfigMaps by which operators take cards out."""

    def __init__(self, feed: LedgerFeed) -> None:
        self._feed = feed
        self._rows: dict[str, Withheld] = {}

    def on(self, node: str) -> frozenset[int]:
        return next((row.indexes for row in self._rows.values() if row.node == node), frozenset())

    def replace(self, rows: dict[str, Withheld], unreadable: Collection[str]) -> None:
        for key in [key for key in self._rows if key not in rows and key not in unreadable]:
            self.drop(key)
        for key, row in rows.items():
            self.put(key, row)

    def put(self, key: str, row: Withheld) -> None:
        if row.node:
            self._rows[key] = row
            self._feed.ledger.withhold(row.node, row.indexes)
            self._feed.touch(row.node)

    def drop(self, key: str) -> None:
        row = self._rows.pop(key, None)
        if row is not None:
            self._feed.ledger.withhold(row.node, ())
            self._feed.touch(row.node)


def _read_fields(node: Node) -> tuple[object, ...]:
    """The parts of a node that the ledger reads; most changes are heartbeats and touch none."""
    return (
        node.labels,
        node.annotations,
        node.capacity,
        node.allocatable,
        node.gpus,
        node.card_memory_mib,
    )
