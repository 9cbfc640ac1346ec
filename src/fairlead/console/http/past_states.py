"""Board states of moments of the past: `at=` of a route (docs/spec/usage.md#past).

The boards are made as those of the present are, for researchers too, from another snapshot. A
moment is read once for all routes of a page that ask for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import Final

from fairlead.collector import quiet_collector
from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.gpu_map_cells import KnownNode
from fairlead.console.boards.restricted.board import RestrictedBoard, SharedBoard
from fairlead.console.boards.usage.past import PastCluster, find_moment, read_past
from fairlead.console.boards.usage.past_map import KnownMap
from fairlead.console.http.answers import Packed, pack
from fairlead.console.http.board_states import prepared
from fairlead.console.http.pictures import is_kept, shared_by
from fairlead.model.people.reach import Reach
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import LedgerReading
from fairlead.rules.holding.occupancy import ClusterOccupancy, cluster_occupancy
from fairlead.rules.people.restricted import restricted
from fairlead.rules.usage.past import PastMoment
from fairlead.wire.usage.states import StateRows

_MAPS: Final = ("gpu_map", "nameless_map")
KEPT_MAX: Final = 3
"""Moments that are kept: of a large cluster each has some 100 MB."""


class PastStates:
    """`now_ms`: of the cluster's clock, in milliseconds."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._kept: OrderedDict[PastMoment, PastBoard] = OrderedDict()
        self._rows = StateRows()
        self._reading = asyncio.Lock()

    def of(self, ledger: LedgerReading, text: str, reach: Reach | None) -> PastPicture:
        """The board states of the moment in `text`, as this reach sees them; None: all."""
        return PastPicture(partial(self.board, ledger, text), reach)

    async def cluster(self, ledger: LedgerReading, text: str) -> PastCluster:
        """The cluster at the moment, unrestricted. Raises UserError and StoreDown."""
        return await read_past(ledger, *await find_moment(ledger, text, self._now_ms()))

    async def board(self, ledger: LedgerReading, text: str) -> SharedBoard:
        """The same as a board state."""
        moment, gap = await find_moment(ledger, text, self._now_ms())
        async with self._reading:  # one large cluster is made at a time
            board = self._kept.pop(moment, None)
            if board is None:
                found = await read_past(ledger, moment, gap, self._rows)
                board = PastBoard(found.snapshot, next(reversed(self._kept.values()), None))
                while len(self._kept) >= KEPT_MAX:
                    self._kept.popitem(last=False)
            self._kept[moment] = board
        return board


class PastBoard(SharedBoard):
    """The board state of a moment. `before`: of the moment that was shown before it, whose account
    and map of a node hold here, too, if nothing there has changed.
    """

    def __init__(self, snapshot: ClusterSnapshot, before: PastBoard | None = None) -> None:
        super().__init__(snapshot, snapshot.taken_at)
        self._before = before.accounted if before is not None else None
        self._maps_before = before.maps if before is not None else {}

    @property
    def accounted(self) -> tuple[ClusterSnapshot, ClusterOccupancy] | None:
        """The snapshot with its occupancy, once that is made."""
        made = vars(self).get("occupancy")
        return None if made is None else (self.snapshot, made)

    @property
    def maps(self) -> dict[str, KnownMap]:
        """The maps that are made."""
        made = vars(self)
        return {part: KnownMap(self.occupancy, made[part]) for part in _MAPS if part in made}

    @cached_property
    def occupancy(self) -> ClusterOccupancy:
        before, self._before = self._before, None
        return cluster_occupancy(self.snapshot, before)

    def known_nodes(self, part: str) -> KnownNode | None:
        found = self._maps_before.pop(part, None)
        return None if found is None else found.node


class PastPicture:
    """`pictures.States` of one moment and one reach."""

    def __init__(self, whole: Callable[[], Awaitable[SharedBoard]], reach: Reach | None) -> None:
        self._whole = whole
        self._reach = reach

    async def latest(self, *parts: str) -> BoardState:
        whole = await self._whole()
        with quiet_collector():
            return await asyncio.to_thread(self._made, whole, parts)

    async def packed(self, part: str) -> Packed:
        board = await self.latest(part)
        return await asyncio.to_thread(lambda: pack(getattr(board, part)))

    def _made(self, whole: SharedBoard, parts: tuple[str, ...]) -> BoardState:
        reach = self._reach
        if reach is None:
            return prepared(whole, parts)
        prepared(whole, shared_by(parts))
        own = RestrictedBoard(whole, restricted(whole.snapshot, reach), reach, whole.now)
        return prepared(own, filter(is_kept, parts))
