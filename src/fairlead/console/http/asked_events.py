"""All events of a job whose page is open, read from the API server and kept for a few seconds.

What the console follows are warnings: all events of a large cluster would be too many to keep. So those of
one job are asked for when somebody looks, however many look and however often, once in `KEPT_SECONDS`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from fairlead.console.pages.envelope import Warning
from fairlead.errors import Forbidden, OutsideError
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.ports import JobFiles

KEPT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 3.0
"""A page waits no longer for its events; they are there for the next one that asks."""
KEPT_MAX: Final = 200
"""So many jobs are remembered; the oldest answer goes first."""
SOURCE: Final = "events"

Answer = tuple[Event, ...] | Warning


class AskedEvents:
    """What was answered lately. `clock` is this machine's, however fast a simulated cluster's runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE_SECONDS) -> None:
        self._clock = clock
        self._patience = patience
        self._asked: dict[tuple[str, frozenset[str]], tuple[float, asyncio.Task[Answer]]] = {}

    async def of(self, files: JobFiles, each: JobInstances) -> Answer:
        """The events of the job and of its pods, or why they are not known."""
        uids = frozenset({each.job.uid, *(pod.uid for pod in each.pods)} - {""})
        key = (each.job.namespace, uids)
        at, task = self._asked.get(key, (0.0, None))
        if task is None or (task.done() and self._clock() - at >= KEPT_SECONDS):
            self._asked.pop(key, None)
            while len(self._asked) >= KEPT_MAX:
                self._asked.pop(next(iter(self._asked)))[1].cancel()
            task = asyncio.create_task(_read(files, each.job.namespace, uids))
            self._asked[key] = (self._clock(), task)
        await asyncio.wait({task}, timeout=self._patience)
        if not task.done() or task.cancelled():
            return _unread(f"the API server has not answered for {self._patience:g} s", "the page asks again by itself")
        return task.result()


async def _read(files: JobFiles, namespace: str, uids: frozenset[str]) -> Answer:
    try:
        return await files.events(namespace, sorted(uids))
    except Forbidden as error:
        return Warning("events-forbidden", SOURCE, error.what, error.hint, {"message": error.what, "namespace": namespace})
    except OutsideError as error:
        return _unread(error.what, error.hint)


def _unread(what: str, hint: str) -> Warning:
    return Warning("events-unread", SOURCE, what, hint, {"message": what})
