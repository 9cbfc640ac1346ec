"""Keeps the states of snapshots in a ledger, as a recorder does that looks now and then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlead.model.sharing import Withheld
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.usage.ledger import KeptState, LedgerBatch, StateEnd, StateKind
from fairlead.ports import LedgerWriting
from fairlead.rules.usage.past import kept_cards
from fairlead.wire.usage.states import state_body


def kept_rows(snapshot: ClusterSnapshot) -> Iterator[tuple[StateKind, str, str, str, Any]]:
    """Kind, uid, namespace, name and row of all that is kept of the snapshot.

    Objects of hand-made snapshots may have no uid.
    """
    jobs = {job.uid for job in snapshot.jobs}  # they are workloads, too
    cards = kept_cards(snapshot.gpus).values()
    withheld = (Withheld(name, frozenset(found)) for name, found in snapshot.withheld.items())
    of_kinds: tuple[tuple[StateKind, Any], ...] = (
        (StateKind.NODE, snapshot.nodes),
        (StateKind.POD, snapshot.pods),
        (StateKind.JOB, snapshot.jobs),
        (StateKind.TREE, (snapshot.quota_tree,) if snapshot.quota_tree else ()),
        (StateKind.WORKLOAD, [each for each in snapshot.workloads if each.uid not in jobs]),
        (StateKind.BUDGET, snapshot.budgets),
        (StateKind.NAMESPACE, snapshot.namespaces),
        (StateKind.CARDS, cards),
        (StateKind.WITHHELD, withheld),
    )
    for kind, rows in of_kinds:
        for row in rows:
            name = row.node if kind in (StateKind.CARDS, StateKind.WITHHELD) else row.name
            namespace = getattr(row, "namespace", "")
            types = (getattr(row, "type", ""), getattr(row, "kind", ""))
            uid = getattr(row, "uid", "") or "/".join((namespace, *map(str, types), name))
            yield kind, uid, namespace, name, row


class StateKeeper:
    """Writes what changed since the last look."""

    def __init__(self, ledger: LedgerWriting) -> None:
        self._ledger = ledger
        self.epoch = 0
        self._open: dict[tuple[StateKind, str], tuple[int, bytes]] = {}
        self.count = 0

    async def claim(self, at: int) -> None:
        """As a recorder that begins."""
        self.epoch = (await self._ledger.claim_ledger("keeper", at)).epoch

    async def look(self, snapshot: ClusterSnapshot, at: int) -> None:
        """`at`: milliseconds UTC."""
        if not self.epoch:
            await self.claim(at)
        begun, seen = [], set()
        for kind, uid, namespace, name, row in kept_rows(snapshot):
            body = state_body(row)
            seen.add((kind, uid))
            if self._open.get((kind, uid), (0, b""))[1] != body:
                begun.append(KeptState(kind, uid, at, namespace, name, body))
        changed = {(each.kind, each.uid) for each in begun}
        ends = [
            StateEnd(kind, (uid, start), at)
            for (kind, uid), (start, _) in self._open.items()
            if (kind, uid) in changed or (kind, uid) not in seen
        ]
        for end in ends:
            del self._open[end.kind, end.key[0]]
        self._open |= {(each.kind, each.uid): (at, each.body) for each in begun}
        self.count += len(begun)
        batch = LedgerBatch(at, states=tuple(begun), state_ends=tuple(ends))
        await self._ledger.write_ledger(self.epoch, batch)
