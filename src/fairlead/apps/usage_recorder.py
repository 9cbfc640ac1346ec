"""The usage recorder as a process: its decider, driven on a real cluster, and the ledger.

`apps/controller` drives it; `rules/usage/recording` decides. Unlike other controllers it writes to
the store and not to the API server. The Lease keeps two recorders from working side by side, and
the number of the claim in each transaction keeps a paused one from writing later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from socket import socket
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from fairlead.apps.controller import Controller, ControllerHooks, ControllerPace
from fairlead.apps.leader import PATIENT_LEASE_TIMES, Leader, LeaseTimes
from fairlead.apps.metrics_page import process_metrics
from fairlead.apps.service import Probes, ServedApp, pages_app, together
from fairlead.errors import FairleadError, LedgerTaken, OutsideError
from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import Observe
from fairlead.model.metric import MetricName
from fairlead.model.usage.actions import (
    ClaimLedger,
    FoldDay,
    ForgetLedger,
    UsageAction,
    WriteLedger,
)
from fairlead.ports import GpuReadings, LeaseApi, LedgerReading, LedgerWriting, UsageLedger
from fairlead.rules.usage.recording.recorder import UsageRecorder
from fairlead.settings import USAGE_READING_SECONDS
from fairlead.wire.metrics.prom_text import CONTENT_TYPE

LAG: Final = MetricName(
    "fairlead_usage_recorder_lag_seconds", "gauge", (), "Age of the oldest record not yet stored."
)
OPEN_INTERVALS: Final = MetricName(
    "fairlead_usage_recorder_open_intervals", "gauge", (), "Pods that are charged now."
)
INFERRED: Final = MetricName(
    "fairlead_usage_recorder_inferred_intervals_total",
    "counter",
    (),
    "Records that ended while no recorder ran.",
)
PENDING: Final = MetricName(
    "fairlead_usage_recorder_pending_records", "gauge", (), "Records that wait for the store."
)
HEARTBEAT: Final = MetricName(
    "fairlead_usage_recorder_heartbeat_timestamp_seconds",
    "gauge",
    (),
    "Until when the stored records are known to be true.",
)
NAMES: Final = (LAG, OPEN_INTERVALS, INFERRED, PENDING, HEARTBEAT)
PACE: Final = ControllerPace(coalesce_seconds=0.5, full_look_seconds=1.0, width=4)
"""A pod is stored within two seconds of its bind, so changes gather for half a second only. A look
without changes costs nothing, and a write that failed is repeated by one.
"""
NOT_CLAIMED: Final = "the usage ledger is not claimed yet"
LAST_WRITE_SECONDS: Final = 5.0
STILL_SECONDS: Final = 30.0
"""A recorder is gone when its heartbeat has stood still for this time: three heartbeats."""
_LOOKS: Final = 6
"""How often the heartbeat is read in that time."""
_log = logging.getLogger(__name__)

disable_created_metrics()  # type: ignore[no-untyped-call]


async def write_action(
    ledger: LedgerWriting, epoch: int, action: WriteLedger | FoldDay | ForgetLedger
) -> None:
    """What a recorder asks of the ledger after its claim. Raises LedgerTaken, StoreDown."""
    if isinstance(action, WriteLedger):
        await ledger.write_ledger(epoch, action.batch)
    elif isinstance(action, FoldDay):
        await ledger.fold_day(epoch, action.day, action.end)
    else:
        await ledger.forget_ledger(epoch, action.records_before, action.days_before)


class UsageRecorderProcess:
    """Records the cluster that `follow` reports into `ledger`.

    `gpus`: readings of its cards, current while its own `run` runs. `zone`: of billing days.
    `monotonic`: seconds of a clock that nothing sets, for the Lease; `now` gives epoch seconds.
    """

    def __init__(
        self,
        recorder: UsageRecorder,
        ledger: UsageLedger,
        follow: Callable[[Observe], Awaitable[None]],
        lease: LeaseApi,
        identity: str,
        gpus: GpuReadings,
        *,
        zone: str = "UTC",
        times: LeaseTimes = PATIENT_LEASE_TIMES,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.recorder = recorder
        self._ledger = ledger
        self._identity = identity
        self._gpus = gpus
        self._zone = zone
        self._now = now
        self._trouble = ""
        self._over: asyncio.Queue[FairleadError] = asyncio.Queue()
        self._controller = Controller(
            recorder,
            follow,
            self._apply,
            lease,
            identity,
            times=times,
            pace=PACE,
            hooks=ControllerHooks(finish=self._finish),
            monotonic=monotonic,
            now=now,
        )
        self.leader = self._controller.leader
        self._page = _Page(recorder, self.leader, now)

    @property
    def unready(self) -> str:
        if (waits := self._controller.unready) or not self.leader.is_held:
            return waits
        return self._trouble or ("" if self.recorder.is_claimed else NOT_CLAIMED)

    def service(self, sock: socket) -> ServedApp:
        """This recorder as a server on a bound socket: probes and metrics."""
        probes = Probes(unready=lambda: self.unready)
        return ServedApp(
            app=pages_app("usage recorder", probes, self._page.answer),
            sock=sock,
            loops=(self.run, self._gpus.run),
            probes=probes,
        )

    async def run(self) -> None:
        """Until cancelled; then the last records are stored and the Lease is released.

        Raises LedgerTaken when another recorder has claimed the ledger, and UserError for a ledger
        with other billing days.
        """
        await together(self._controller.run(), self._read_cards(), self._end_if_over())

    async def _end_if_over(self) -> None:
        raise await self._over.get()

    async def _read_cards(self) -> None:
        while True:
            await asyncio.sleep(USAGE_READING_SECONDS)
            if self.leader.is_held:
                self.recorder.readings(self._gpus.latest(), self._now())

    async def _apply(self, action: UsageAction, left: Callable[[], float] | None = None) -> Outcome:
        try:
            await self._carry_out(action)
        except LedgerTaken as error:
            self._over.put_nowait(error)
            return Outcome(Result.REFUSED, error.what)
        except OutsideError as error:
            if not self._trouble:
                _log.error("usage is not stored: %s", error.log_line)
            self._trouble = error.what
            return Outcome(Result.UNKNOWN, error.what)
        except FairleadError as error:
            self._over.put_nowait(error)
            return Outcome(Result.REFUSED, error.what)
        if self._trouble:
            _log.info("usage is stored again")
        self._trouble = ""
        return Outcome()

    async def _carry_out(self, action: UsageAction) -> None:
        recorder, ledger = self.recorder, self._ledger
        if isinstance(action, ClaimLedger):
            claim = await ledger.claim_ledger(self._identity, action.at, self._zone)
            bounds = await ledger.ledger_bounds()
            recorder.begin(claim, bounds.fold_from, self._now())
        else:
            await write_action(ledger, recorder.epoch, action)

    async def _finish(self) -> None:
        """Store what is left, and the hour so far, while the Lease is still held."""
        if not self.leader.is_held:
            return
        with suppress(OutsideError, TimeoutError):
            async with asyncio.timeout(LAST_WRITE_SECONDS):
                for action in self.recorder.finish(self._now()):
                    await self._ledger.write_ledger(self.recorder.epoch, action.batch)


async def record_in_turn(
    make: Callable[[], UsageRecorderProcess],
    ledger: LedgerReading,
    still_seconds: float = STILL_SECONDS,
) -> None:
    """Record until cancelled, but for the times in which another recorder does. `make`: a new one.

    The Lease does that within a cluster. Recorders with other Leases, such as consoles of two
    installations on one store, only find each other in the ledger: the newest claim counts. The
    older one reads the heartbeat then, and records again after it has stood still.

    Raises UserError for a ledger with other billing days.
    """
    while True:
        try:
            await make().run()
        except LedgerTaken as error:
            _log.warning("usage: this recorder stands by: %s", error.log_line)
        holder = await _until_still(ledger, still_seconds)
        _log.info("usage: %s records no more, so this recorder does", holder)


async def _until_still(ledger: LedgerReading, still_seconds: float) -> str:
    """Who recorded last. While the store does not answer, it is not known whether it is written."""
    seen, since = (0, 0), time.monotonic()
    while True:
        try:
            bounds = await ledger.ledger_bounds()
        except OutsideError:
            seen = (0, 0)
        else:
            now = bounds.epoch, bounds.heartbeat
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since >= still_seconds:
                return bounds.holder
        await asyncio.sleep(still_seconds / _LOOKS)


class _Inferred(Collector):
    """A counter that the recorder itself counts."""

    def __init__(self, recorder: UsageRecorder) -> None:
        self._recorder = recorder

    def collect(self) -> list[CounterMetricFamily]:
        name = INFERRED.name.removesuffix("_total")
        return [CounterMetricFamily(name, INFERRED.help, self._recorder.intervals.inferred)]


class _Page:
    """Metrics of the recorder (docs/spec/usage.md#metrics-of-the-recorder). A process that lost the
    Lease still has its last records, which another one writes now: it counts none.
    """

    def __init__(self, recorder: UsageRecorder, leader: Leader, now: Callable[[], float]) -> None:
        registry = self._registry = CollectorRegistry()

        def lag() -> float:
            since = recorder.waiting_since
            return max(0.0, now() - since / 1000) if since else 0.0

        def while_held(figure: Callable[[], float]) -> Callable[[], float]:
            return lambda: figure() if leader.is_held else 0.0

        figures: tuple[tuple[MetricName, Callable[[], float]], ...] = (
            (LAG, while_held(lag)),
            (OPEN_INTERVALS, while_held(lambda: float(len(recorder.intervals.pods)))),
            (PENDING, while_held(lambda: float(len(recorder.pending)))),
            (HEARTBEAT, lambda: recorder.heartbeat / 1000),
        )
        for name, figure in figures:
            Gauge(name.name, name.help, registry=registry).set_function(figure)
        registry.register(_Inferred(recorder))

    async def answer(self, request: Request) -> Response:
        return Response(
            generate_latest(self._registry) + process_metrics(),
            headers={"content-type": CONTENT_TYPE},
        )
