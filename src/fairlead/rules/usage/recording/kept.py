"""States of objects as tables show them, from change to change (docs/spec/usage.md#past)."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct

from fairlead.model.usage.ledger import KeptState, StateEnd, StateKind
from fairlead.rules.usage.recording.pending import Pending


class _Open(Struct, frozen=True, gc=False):
    started_at: int
    digest: bytes


class KeptStates:
    """The open state of each object; of its body only a digest is kept."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self._open: dict[StateKind, dict[str, _Open]] = {kind: {} for kind in StateKind}

    def begin(self, states: Iterable[KeptState]) -> None:
        """Take the open states of the ledger."""
        self._open = {kind: {} for kind in StateKind}
        for each in states:
            self._open[each.kind][each.uid] = _Open(each.started_at, _digest(each.body))

    def ids(self, kind: StateKind) -> list[str]:
        """Uids of the objects of a kind."""
        return [*self._open[kind]]

    def put(self, kind: StateKind, uid: str, name: tuple[str, str], body: bytes, at: int) -> None:
        """The object `name` (namespace and name) is shown with this body from `at` on."""
        found, digest = self._open[kind].get(uid), _digest(body)
        if found is not None:
            if found.digest == digest:
                return
            at = max(at, found.started_at)
            if at > found.started_at:
                self._pending.end_state(StateEnd(kind, (uid, found.started_at), at))
        self._open[kind][uid] = _Open(at, digest)
        self._pending.put_state(KeptState(kind, uid, at, *name, body))

    def drop(self, kind: StateKind, uid: str, at: int) -> None:
        """The object is gone."""
        found = self._open[kind].pop(uid, None)
        if found is not None:
            end = max(at, found.started_at)
            self._pending.end_state(StateEnd(kind, (uid, found.started_at), end))


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=12).digest()
