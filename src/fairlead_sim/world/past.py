"""The last while of a world: kept at intervals while the world lives, read when someone asks.

To keep a moment is cheap: stored objects are never changed in place, so references to them are
enough, and the values of a card follow from what runs on it. To make snapshots of moments takes
seconds, so they are made only when a page asks. Another thread may do that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from fairlead.model.snapshot import ClusterSnapshot
from fairlead_sim.gpus.card import Card
from fairlead_sim.gpus.readings import read_card
from fairlead_sim.objects.resources import NODES
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.time.timers import Timer
from fairlead_sim.world.snapshot import WorldReader, snapshot_of
from fairlead_sim.world.world import World

NODES_KEPT: Final = 200
"""`NODES_KEPT`: nodes of the largest world whose past is kept, as many as the console's built-in
series keep (decision 9).
"""
PastMoment = tuple[float, Callable[[], ClusterSnapshot]]
"""Epoch seconds, and what makes the snapshot of this moment."""


class _Moment(Struct, frozen=True):
    """What a snapshot is made of. Fills `ReadObjects`."""

    at: float
    stored: Mapping[ResourceKind, Sequence[dict[str, Any]]]
    cards: Sequence[Card]

    def kinds(self) -> Sequence[ResourceKind]:
        return tuple(self.stored)

    def scan(self, ref: ResourceKind, /) -> Sequence[dict[str, Any]]:
        return self.stored[ref]


class WorldPast:
    """The last `seconds` of a world, a moment every `step` seconds: at multiples of it.

    Nothing of a world with more than `NODES_KEPT` nodes.
    """

    def __init__(self, seconds: float, step: float) -> None:
        self.seconds = seconds
        self._step = step
        self._moments: deque[_Moment] = deque(maxlen=int(seconds / step))
        self._next: Timer | None = None

    def begin(self, world: World, since: float) -> None:
        """Keep moments from `since` (epoch seconds) on, until `end`."""
        if len(world.cluster.list(NODES)) > NODES_KEPT:
            return
        first = math.ceil(max(since, world.clock.now()) / self._step) * self._step
        self._next = world.timers.at(first, partial(self._keep, world))

    def end(self) -> None:
        """Keep no more."""
        if self._next is not None:
            self._next.cancel()

    def moments(self) -> Sequence[PastMoment]:
        """The kept moments, the oldest first. Their snapshots are made one at a time, in order."""
        reader = WorldReader(_Moment(0.0, {}, ()))
        return [(moment.at, partial(_snapshot, reader, moment)) for moment in self._moments]

    def _keep(self, world: World) -> None:
        now, cluster = world.clock.now(), world.cluster
        stored = {ref: tuple(cluster.scan(ref)) for ref in cluster.kinds()}
        self._moments.append(_Moment(now, stored, world.devices.as_they_are()))
        self._next = world.timers.at(now + self._step, partial(self._keep, world))


def _snapshot(reader: WorldReader, moment: _Moment) -> ClusterSnapshot:
    reader.objects = moment
    samples = [read_card(card, moment.at, is_brief=True) for card in moment.cards]
    return snapshot_of(reader, samples, moment.at)
