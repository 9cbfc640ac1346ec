"""The board state of each subject: the whole one for administrators, for researchers their picture.

A picture is made once for all researchers with the same reach. Its versions, and the time that it
names, depend on what its researchers see, not on when the whole board state was made: otherwise
they would reveal that another tenant changed something.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property, lru_cache
from typing import Any, Final, Protocol

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.change_hints import TOPICS, ChangeHints, TopicVersions
from fairlead.console.boards.restricted.board import RestrictedBoard, SharedBoard
from fairlead.console.http.answers import Packed, pack
from fairlead.console.http.board_states import RENEWED_AFTER_SECONDS, BoardStates, prepared
from fairlead.console.http.data.read_data import DataView
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.people.reach import Reach, reach_of
from fairlead.model.people.subject import Subject
from fairlead.ports import Ports
from fairlead.rules.people.restricted import restricted

PICTURES_MAX: Final = 256
"""Pictures that are kept; those with an open stream are kept beyond."""
MADE_AT_ONCE_PODS: Final = 5_000
"""A picture with at most this number of own pods takes a few milliseconds. That is less than a
thread waits for its turn while the next board state is made, so it is made in the event loop.
"""
_JOBS: Final = (
    *("job_places", "instances_by_namespace", "plain_instances", "ids_of_instances", "held_since"),
    *("share_why", "rooms", "quota"),
)
_SHARED_PARTS: Final = {
    "": ("pod_counts",),
    "nodes": ("nodes", "nodes_sentence"),
    "gpus": ("nameless_gpus", "places_of_gpus", "totals"),
    "gpu_map": ("nameless_map",),
    "overview": (
        *("totals", "idle", "hardware_lines", "pools", "faulty_gpus", "job_by_pod"),
        *("gpu_pods_by_namespace", "troubled_pods_by_namespace", "held_by_namespace"),
        *_JOBS,
    ),
    "instances": ("instances_by_namespace", "plain_instances"),
    "jobs": _JOBS,
    "explainer": ("share_why", "rooms", "quota"),
    "holders": ("holder_places", "idle"),
    "places": _JOBS,
    "job_by_pod": ("job_by_pod",),
    "idle": ("idle",),
    "quota": ("quota", "violations"),
    "waiting": ("quota_plan",),
    "offers": ("offers", "borrowable", "quota"),
}
"""Part of a picture -> parts of the whole that it is made of; "" = of every picture. They are made
beforehand in a thread, and kept new.
"""


class States(Protocol):
    """Where answers get their board state from."""

    async def latest(self, *parts: str) -> BoardState:
        """As `BoardStates.latest`."""
        ...

    async def packed(self, part: str) -> Packed:
        """As `BoardStates.packed`."""
        ...


class SeenReadings:
    """The readings of cards as all see them: without the pods that hold a card."""

    def __init__(self) -> None:
        self._last: tuple[GpuReading, ...] = ()
        self._kept: tuple[GpuReading, ...] = ()
        self._values: list[object] = []
        self._looking = threading.Lock()

    def of(self, readings: tuple[GpuReading, ...]) -> tuple[GpuReading, ...]:
        """The same object while nothing but holders has changed."""
        with self._looking:
            if readings is not self._last:
                values: list[object] = [
                    (
                        *(each.node, each.index, each.uuid, each.healthy, each.last_xid),
                        *(each.memory_used_mib, each.utilization_ratio, each.idle_since),
                        *(each.temperature_celsius, each.power_watts),
                    )
                    for each in readings
                ]
                if values != self._values:
                    self._values, self._kept = values, readings
                self._last = readings
            return self._kept


class Picture:
    """The board states of one reach, one after the other."""

    def __init__(
        self,
        reach: Reach,
        board_states: BoardStates,
        world: Ports,
        readings: SeenReadings,
        monotonic: Callable[[], float],
    ) -> None:
        self.reach = reach
        self._readings = readings
        self._monotonic = monotonic
        self._board_states = board_states
        self._world = world
        self.versions = TopicVersions(int(world.clock.now()), TOPICS)
        self.hints = ChangeHints(self.versions)
        self._whole: SharedBoard | None = None
        self._board: RestrictedBoard | None = None
        self._now = 0.0
        self._made_at = 0.0
        self._making = asyncio.Lock()

    async def latest(self, *parts: str) -> BoardState:
        """The board state to answer from, with these parts made."""
        return await self.of(await self._board_states.latest(*shared_by(parts)), *parts)

    async def packed(self, part: str) -> Packed:
        board = await self.latest(part)
        return await asyncio.to_thread(lambda: pack(getattr(board, part)))

    async def of(self, whole: SharedBoard, *parts: str) -> RestrictedBoard:
        """The board state that belongs to this one of the whole cluster."""
        await self._board_states.prepare(whole, *shared_by(parts))
        async with self._making:
            board = self._board if self._whole is whole else None
            if board is None or any(part not in vars(board) for part in parts if is_kept(part)):
                large = whole.pods_within(self.reach.namespaces) > MADE_AT_ONCE_PODS
                board = await (asyncio.to_thread if large else _at_once)(
                    self._prepared, whole, board, parts
                )
                self._whole, self._board = whole, board
        return board

    def _prepared(
        self, whole: SharedBoard, board: RestrictedBoard | None, parts: Iterable[str]
    ) -> RestrictedBoard:
        return prepared(board or self._made(whole), filter(is_kept, parts))

    def _made(self, whole: SharedBoard) -> RestrictedBoard:
        snapshot = restricted(whole.snapshot, self.reach)
        before = self.versions.count
        self.versions.update(snapshot, self._readings.of(self._board_states.readings))
        if self._world.timekeeper is not None:
            self.versions.note_time(self._world.timekeeper.version)
        age = self._monotonic() - self._made_at
        if before != self.versions.count or age >= RENEWED_AFTER_SECONDS:
            self._now, self._made_at = self._world.clock.now(), self._monotonic()
        return RestrictedBoard(whole, snapshot, self.reach, self._now, self.versions.as_text())

    def forget(self, whole: BoardState) -> None:
        """Lets go of the board state of an older whole, which may be large."""
        if self._whole is not whole:
            self._whole = self._board = None


def shared_by(parts: Iterable[str]) -> Iterable[str]:
    """The parts of the whole of which these parts of a picture are made."""
    return dict.fromkeys(each for part in ("", *parts) for each in _SHARED_PARTS.get(part, ()))


@lru_cache
def is_kept(part: str) -> bool:
    """Whether a picture keeps this part. The others are the whole's, or made for each request."""
    return isinstance(inspect.getattr_static(RestrictedBoard, part, None), cached_property)


async def _at_once(make: Callable[..., RestrictedBoard], *given: Any) -> RestrictedBoard:
    return make(*given)


class Pictures:
    """The pictures of all researchers who asked lately. `monotonic`: this machine's clock."""

    def __init__(
        self,
        board_states: BoardStates,
        world: Ports,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._board_states = board_states
        self._world = world
        self._pictures: OrderedDict[Reach, Picture] = OrderedDict()
        self._readings = SeenReadings()
        self._followed: SharedBoard | None = None

    def of(self, subject: Subject) -> States:
        reach = reach_of(subject)
        return self._board_states if reach is None else self.picture(reach)

    def picture(self, reach: Reach) -> Picture:
        found = self._pictures.pop(reach, None)
        if found is None:
            found = Picture(reach, self._board_states, self._world, self._readings, self._monotonic)
            self._make_room()
        self._pictures[reach] = found
        return found

    def _make_room(self) -> None:
        idle = [reach for reach, each in self._pictures.items() if not each.hints.stream_count]
        for reach in idle[: max(0, len(self._pictures) - PICTURES_MAX + 1)]:
            del self._pictures[reach]

    @property
    def stream_count(self) -> int:
        return sum(each.hints.stream_count for each in self._pictures.values())

    def close(self) -> None:
        """Ends all streams of hints."""
        for each in self._pictures.values():
            each.hints.close()

    async def note_data(self, view_of: Callable[[Reach], Awaitable[DataView]]) -> None:
        """Sends hints of data sets that changed in pictures with open streams."""
        for each in tuple(self._pictures.values()):
            if each.hints.stream_count:
                each.versions.note_data((await view_of(each.reach)).content)
                each.hints.announce(each.hints.unannounced & {"datasets"})

    async def follow(self) -> None:
        """After a new board state: lets go of what belongs to older ones, and sends hints of what
        changed in pictures with open streams.
        """
        whole = self._board_states.made
        if whole is None or whole is self._followed:
            return
        self._followed = whole
        for each in tuple(self._pictures.values()):
            each.forget(whole)
            if each.hints.stream_count:
                await each.of(whole)
                each.hints.announce(each.hints.unannounced)
