"""Which picture of the cluster do pages get? The newest, rebuilt when the cluster or its GPU readings changed, in a thread.

What a newcomer gets wrong: a picture is also renewed when nothing changes, because durations grow and sources grow stale.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from fairlead.console.http_answers import Refused
from fairlead.console.picture import Picture
from fairlead.model.gpu import GpuReading
from fairlead.ports import World

AGE_MAX_SECONDS: Final = 5.0
CPU_SHARE: Final = 0.2
"""Rebuilding takes at most this share of a core while the cluster changes without pause."""
SLOWEST_REBUILD_SECONDS: Final = 2.0


class Pictures:
    """The present picture of a world. `speed` tells how fast its clock runs."""

    def __init__(self, world: World, speed: Callable[[], float], on_built: Callable[[float], None]) -> None:
        self._world = world
        self._speed = speed
        self._on_built = on_built
        self._picture: Picture | None = None
        self._version = -1
        self._gpus: tuple[GpuReading, ...] = ()
        self._built_at = 0.0
        self._build_seconds = 0.0
        self._building = asyncio.Lock()

    async def latest(self) -> Picture:
        """The picture to answer from; refuses while the caches are not filled, because half a cluster looks like a small one."""
        self.require_ready()
        if self._picture is None or self._is_overdue():
            async with self._building:
                if self._picture is None or self._is_overdue():
                    await self._build()
        assert self._picture is not None
        return self._picture

    def require_ready(self) -> None:
        """Refuse while some source has never been read, and say which."""
        if self._world.cluster.is_ready:
            return
        sources = self._world.cluster.snapshot().sources
        waiting = ", ".join(f"`{name}`" for name, source in sorted(sources.items()) if source.good_at is None and source.state == "syncing")
        failing = next((source for source in sources.values() if source.state in ("failing", "forbidden") and source.good_at is None), None)
        what = f"the cluster is still being read: {waiting}" if waiting else "the cluster is still being read"
        if failing is not None:
            what = f"the cluster cannot be read: {failing.message or failing.name}"
        raise Refused(503, what, (failing.hint if failing else "") or "wait a moment and ask again", {"Retry-After": "1"})

    def _is_overdue(self) -> bool:
        """Changed (and the pause since the last build is over), or simply old."""
        age = time.monotonic() - self._built_at
        if age > AGE_MAX_SECONDS:
            return True
        return age >= self._pause and self._has_changed()

    @property
    def _pause(self) -> float:
        return min(SLOWEST_REBUILD_SECONDS, self._build_seconds / CPU_SHARE)

    def _has_changed(self) -> bool:
        return self._world.cluster.version != self._version or self._world.gpus.latest() is not self._gpus

    async def _build(self) -> None:
        """A new picture with every list ready, made beside the event loop."""
        self._version, self._gpus = self._world.cluster.version, self._world.gpus.latest()
        snapshot, source = self._world.cluster.snapshot(), self._world.gpus.source()
        started = time.perf_counter()
        picture = await asyncio.to_thread(
            lambda: _prepared(Picture(snapshot.with_gpus(self._gpus, source), self._world.clock.now(), self._speed()))
        )
        self._picture = picture
        self._build_seconds = time.perf_counter() - started
        self._built_at = time.monotonic()
        self._on_built(self._build_seconds)


def _prepared(picture: Picture) -> Picture:
    """The picture with what every board shows already derived."""
    for part in (picture.nodes, picture.jobs, picture.quota, picture.overview):
        del part
    return picture
