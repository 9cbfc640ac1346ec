"""Simulated devices at an interval: the port `Devices` over a function, some cards at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fairlead.model.devices.device import CollectorRun, DeviceSample, DeviceSnapshot

_log: Final = logging.getLogger(__name__)


class SampledDevices:
    """See `ports.Devices`. `read` gives all cards, in parts between which others have the loop.

    `now` gives seconds of the world's clock; the beat is real time. `stuck_calls`: how many cards
    hang.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[Sequence[DeviceSample]]],
        now: Callable[[], float],
        interval_seconds: float,
        stuck_calls: Callable[[], int] = int,
    ) -> None:
        self._read = read
        self._stuck_calls = stuck_calls
        self._now = now
        self._interval_seconds = interval_seconds
        self._snapshot = DeviceSnapshot(at=now())
        self._failures: dict[str, int] = {}

    async def run(self, on_snapshot: Callable[[], None]) -> None:
        """A late turn is not caught up."""
        while True:
            began = time.monotonic()
            await self.sample_once()
            on_snapshot()
            await asyncio.sleep(max(0.0, self._interval_seconds - (time.monotonic() - began)))

    def latest(self) -> DeviceSnapshot:
        return self._snapshot

    def want(self, fields: frozenset[str]) -> None:
        """Nothing costs much here."""

    async def sample_once(self) -> None:
        """Take one sample.

        An exception in here is a bug of the simulation: the cards keep their last values, which
        become stale.
        """
        found: list[DeviceSample] = []
        devices, number, began = self._snapshot.devices, self._snapshot.number + 1, time.monotonic()
        try:
            for part in self._read():
                found += part
                await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001 - a bug costs values, never the page
            self._fail(error)
            run = CollectorRun(
                "device",
                "",
                False,
                time.monotonic() - began,
                self._succeeded_at(),
                dict(self._failures),
            )
        else:
            run = CollectorRun(
                "device", "", True, time.monotonic() - began, self._now(), dict(self._failures)
            )
            devices = tuple(found)
        self._snapshot = DeviceSnapshot(
            number,
            self._now(),
            devices,
            collectors=(run,),
            stuck_calls=self._stuck_calls(),
            cycle_seconds=run.seconds,
        )

    def _succeeded_at(self) -> float | None:
        return next((run.succeeded_at for run in self._snapshot.collectors), None)

    def _fail(self, error: Exception) -> None:
        kind = type(error).__name__
        self._failures[kind] = self._failures.get(kind, 0) + 1
        if self._failures[kind] == 1:
            _log.error("simulated devices cannot be read", exc_info=error)
