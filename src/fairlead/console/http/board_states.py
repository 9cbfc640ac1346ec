"""The newest board state, which pages get.

A thread rebuilds it when the cluster or its readings changed.

It is also renewed when nothing changes, because durations grow and sources grow stale. On a large
cluster no request waits for the next board state while the present one is seconds old: it is made
in the background. Its parts (jobs, quota, overview, …) are made when a page asks for them, and with
each next board state while a page asks for them again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.change_hints import TopicVersions
from fairlead.console.boards.idle_cards import IdleHours
from fairlead.console.boards.restricted.board import SharedBoard
from fairlead.console.charts.idle import IdleTimes, with_longer_idle
from fairlead.console.http.answers import Packed, Refused, pack
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.source import SourceState
from fairlead.ports import Ports

Board = TypeVar("Board", bound=BoardState)

RENEWED_AFTER_SECONDS: Final = 5.0
RENEWED_AFTER_SECONDS_MAX: Final = 15.0
"""Without any change; the larger the cluster, the later."""
WAITED_FOR_AFTER_SECONDS: Final = 20.0
"""Older board states are not shown while the next is made."""
WATCHED_SECONDS: Final = 60.0
"""How long after the last request the board state is kept new."""
QUICK_BUILD_SECONDS: Final = 0.1
CPU_SHARE: Final = 0.2
"""Rebuilding takes at most this share of a core while the cluster changes without pause."""
PAUSE_MAX_SECONDS: Final = 2.0
_EVERY_PAGE: Final = ("series_missing",)
"""Parts of every answer's envelope."""


class BoardStates:
    """The current board state of a world. `speed` returns the speed of its clock.

    `on_built` receives the build time of each board state, in seconds. `versions` are shared with
    the hints of changes, so that a client can decide whether its answer or a hint is newer.
    `idle_times` of cards and `idle_hours` of their holders are those of the series, which go back
    further than the readings. `asked` is set by the first question of a page.
    """

    def __init__(
        self,
        world: Ports,
        versions: TopicVersions,
        speed: Callable[[], float],
        on_built: Callable[[float], None],
    ) -> None:
        self.idle_times = IdleTimes()
        self.idle_hours = IdleHours()
        self.asked = asyncio.Event()
        self._world = world
        self._versions = versions
        self._speed = speed
        self._on_built = on_built
        self._board_state: SharedBoard | None = None
        self._version = -1
        self._moved = 0
        self._gpus: tuple[GpuReading, ...] = ()
        self._built_at = 0.0
        self._build_seconds = 0.0
        self._asked_at = 0.0
        self._parts_asked_at: dict[str, float] = {}
        self._building = asyncio.Lock()
        self._deriving = asyncio.Lock()
        self._packed: dict[str, tuple[SharedBoard, Packed]] = {}

    async def latest(self, *parts: str) -> SharedBoard:
        """The board state to answer from.

        Raises Refused while the caches are not filled, because half a cluster looks like a small
        one. `parts`: what this answer is made of. They are made before it returns, in a thread, and
        with the next board states until no request has named them for `WATCHED_SECONDS`.
        """
        self.require_ready()
        self._asked_at = time.monotonic()
        self.asked.set()
        self._parts_asked_at |= dict.fromkeys(parts, self._asked_at)
        is_late = self.is_overdue and (self._is_quick or self._age > WAITED_FOR_AFTER_SECONDS)
        if self._board_state is None or is_late:
            await self.renew()
        assert self._board_state is not None
        return await self.prepare(self._board_state, *parts)

    async def prepare(self, board_state: SharedBoard, *parts: str) -> SharedBoard:
        """The same board state with these parts made, in a thread."""
        if any(part not in vars(board_state) for part in parts):
            async with self._deriving:
                await asyncio.to_thread(prepared, board_state, parts)
        return board_state

    async def packed(self, part: str) -> Packed:
        """The answer of one large part. Of a board state that was made for who asks it is ready."""
        board_state = await self.latest(part)
        of, packed = self._packed.get(part, (None, None))
        if of is not board_state or packed is None:
            packed = await asyncio.to_thread(lambda: pack(getattr(board_state, part)))
            self._packed[part] = board_state, packed
        return packed

    async def renew(self) -> SharedBoard:
        """The newest board state, waited for."""
        async with self._building:
            if self._board_state is None or self.is_overdue:
                self._board_state = await self._build()
            return self._board_state

    @property
    def made(self) -> SharedBoard | None:
        """The newest one that has been made; None before the first."""
        return self._board_state

    @property
    def readings(self) -> tuple[GpuReading, ...]:
        """Those in the newest board state, as they were read."""
        return self._gpus

    @property
    def is_watched(self) -> bool:
        """Whether a request came recently.

        The server's loop then builds the next board state before a request waits for it.
        """
        return time.monotonic() - self._asked_at < WATCHED_SECONDS

    def require_ready(self) -> None:
        """Raises Refused (503) while some source has never been read."""
        refused = self.unready()
        if refused is not None:
            raise refused

    def unready(self) -> Refused | None:
        """Refused (503) with the sources that have never been read; None if there are none."""
        if self._world.cluster.is_ready:
            return None
        sources = self._world.cluster.snapshot().main_sources.values()
        waiting = ", ".join(
            f"`{source.name}`" for source in sources if source.state == SourceState.SYNCING
        )
        failing = next(
            (source for source in sources if source.has_failed and source.good_at is None), None
        )
        what = (
            f"the cluster is still being read: {waiting}"
            if waiting
            else "the cluster is still being read"
        )
        if failing is not None:
            what = f"the cluster cannot be read: {failing.message or failing.name}"
        return Refused(
            503,
            what,
            (failing.hint if failing else "") or "wait a moment and ask again",
            {"Retry-After": "1"},
        )

    @property
    def _age(self) -> float:
        return time.monotonic() - self._built_at

    @property
    def _is_quick(self) -> bool:
        return self._build_seconds < QUICK_BUILD_SECONDS

    @property
    def is_overdue(self) -> bool:
        """Whether the next one should be made.

        The cluster changed (and the pause since the last build is over), or this one is simply old.
        """
        pause = self._build_seconds / CPU_SHARE
        renewed_after = min(RENEWED_AFTER_SECONDS_MAX, max(RENEWED_AFTER_SECONDS, 3 * pause))
        return self._age > renewed_after or (
            self._age >= min(PAUSE_MAX_SECONDS, pause) and self.is_behind
        )

    @property
    def is_behind(self) -> bool:
        """Whether the cluster or its readings changed since the
        board state, or its time was moved.
        """
        world = self._world
        return (
            world.cluster.version != self._version
            or world.gpus.latest() is not self._gpus
            or self._times_moved() != self._moved
        )

    def _times_moved(self) -> int:
        return 0 if self._world.timekeeper is None else self._world.timekeeper.version

    async def _build(self) -> SharedBoard:
        """A new board state with the parts that pages asked for
        lately, made beside the event loop.
        """
        started = time.perf_counter()
        version, gpus, moved = (
            self._world.cluster.version,
            self._world.gpus.latest(),
            self._times_moved(),
        )
        snapshot, source = self._world.cluster.snapshot(), self._world.gpus.source()
        now, speed = self._world.clock.now(), self._speed()
        self._versions.update(snapshot, gpus)
        versions = self._versions.as_text()
        since = time.monotonic() - WATCHED_SECONDS
        parts = (*_EVERY_PAGE, *(part for part, at in self._parts_asked_at.items() if at > since))
        idle, hours = self.idle_times, self.idle_hours
        packing = [part for part in parts if part in self._packed]

        def make() -> tuple[SharedBoard, dict[str, Packed]]:
            read = snapshot.with_gpus(with_longer_idle(gpus, idle), source)
            made = prepared(SharedBoard(read, now, speed, versions, hours), parts)
            return made, {part: pack(getattr(made, part)) for part in packing}

        board_state, packed = await asyncio.to_thread(make)
        self._packed = {part: (board_state, answer) for part, answer in packed.items()}
        self._version, self._gpus, self._moved, self._built_at = (
            version,
            gpus,
            moved,
            time.monotonic(),
        )
        self._build_seconds = time.perf_counter() - started
        self._on_built(self._build_seconds)
        return board_state


def prepared(board_state: Board, parts: Iterable[str]) -> Board:
    """The board state with these parts already derived."""
    for part in parts:
        getattr(board_state, part)
    return board_state
