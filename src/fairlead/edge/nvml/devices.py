"""The port `Devices` with NVML: the GPUs of this node for its exporter.

Specification: docs/spec/telemetry.md#sampling-and-fault-isolation.

Each card has its own thread for calls, and the node has one for calls that concern no card. A call
that does not return blocks only its own card, which is not asked again until it does. When the
driver goes away, it is looked for with growing pauses; the cards keep their last values.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pynvml
from msgspec import Struct, structs
from pynvml import NVMLError

from fairlead.edge.nvml.call_thread import CallThread
from fairlead.edge.nvml.cards import ShownCard, shown_card, slot
from fairlead.edge.nvml.kernel_log import KernelLog
from fairlead.edge.nvml.known_card import (
    DEVICE,
    CardAsker,
    CardAtIndex,
    CardTurn,
    KnownCard,
    NvmlBeat,
)
from fairlead.edge.nvml.library import (
    LIBRARY,
    SYSTEM,
    close_library,
    is_down,
    is_gone,
    is_unloaded,
    open_library,
    value_or,
    words,
)
from fairlead.edge.nvml.xid_events import XidEvents
from fairlead.edge.nvml.xid_tally import XidTally
from fairlead.errors import NotFound, OutsideError
from fairlead.model.devices.device import CollectorRun, DeviceSample, DeviceSnapshot, UnnamedCard
from fairlead.model.devices.xid import JoinedXids, XidReport
from fairlead.wire.devices.kernel_xid import pci_bus

SLOWEST_RETRY_SECONDS: Final = 60.0
EVENTS, KERNEL_LOG = "events", "kmsg"
_PATIENCE: Final = 0.5
"""Part of an interval for which a snapshot waits for cards that have not answered yet."""
END_SECONDS: Final = 2.0
_KNOWN_SECONDS: Final = 60.0
"""Seconds for which an XID is remembered, so that the other source's report does not count too."""
_USUAL_BEAT: Final = NvmlBeat()
_log: Final = logging.getLogger(__name__)


Join = Callable[[Iterable[XidReport], Iterable[XidReport]], JoinedXids]
"""Joins reports with those that had no pair before; the rule is `joined_reports`."""


def _all(reports: Iterable[XidReport], _: Iterable[XidReport]) -> JoinedXids:
    return JoinedXids(tuple(reports), ())


class _DriverCards(Struct, frozen=True):
    """The cards that the driver lists.

    `session`: number of the NVML session; handles are of one session.

    `kernel`: XIDs of the kernel log, or why it cannot be read. `deafness`: why events are not
    received, or were not since the last look; "" = they are.
    """

    session: int
    cards: tuple[CardAtIndex, ...]
    cuda_version: str
    kernel: list[XidReport] | Exception
    deafness: str


class _UnreadableCard(Struct, frozen=True):
    """An index whose card was never readable.

    `since`: steady seconds; `failures`: their number by cause.
    """

    since: float
    why: str = ""
    failures: Mapping[str, int] = {}

    def again(self, why: str) -> _UnreadableCard:
        kind = why.lower().replace(" ", "_")
        return structs.replace(
            self, why=why, failures={**self.failures, kind: self.failures.get(kind, 0) + 1}
        )

    def sample(self, node: str, index: int) -> DeviceSample:
        """A sample of a card that is down and whose identity is unknown."""
        run = CollectorRun(DEVICE, str(index), is_good=False, errors=self.failures)
        identity = DeviceSample(node, index, -1, "", "", "", "", None, {})
        return structs.replace(
            identity, up=False, sampled_at=self.since, mig_mode="", collectors=(run,)
        )


class NvmlDevices:
    """See `ports.Devices`. `make_asker` is called in the card's thread.

    `kernel_log`: has XIDs of the time without events; `join` decides which are new. `monotonic` and
    `wall` return seconds; XIDs have times of `wall`. One per process.
    """

    def __init__(
        self,
        node: str,
        make_asker: Callable[[ShownCard], CardAsker],
        beat: NvmlBeat = _USUAL_BEAT,
        library: str = LIBRARY,
        kernel_log: KernelLog | None = None,
        join: Join = _all,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._node = node
        self._make_asker = make_asker
        self._beat = beat
        self._library = library
        self._monotonic = monotonic
        self._wall = wall
        self._thread = CallThread("gpu-driver", monotonic)
        self._events = XidEvents(monotonic)
        self._registered_at = monotonic()
        self._kernel_log = kernel_log
        self._join = join
        self._known_xids: tuple[XidReport, ...] = ()
        self._runs = {name: CollectorRun(name) for name in (EVENTS, KERNEL_LOG)}
        self._unread: dict[int, _UnreadableCard] = {}
        self._unnamed: dict[str, XidTally] = {}
        self._buses: dict[str, str] = {}
        self._cards: dict[str, KnownCard] = {}
        self._session = 0
        self._is_open = False
        self._must_reopen = self._was_unloaded = False
        self._look_at = float("-inf")
        self._retry_seconds = 1.0
        self._driver_error = "the driver has not been asked yet"
        self._cuda_version = ""
        self._snapshot = DeviceSnapshot(
            at=monotonic(),
            is_driver_up=False,
            driver_error=self._driver_error,
            collectors=self._node_runs,
        )
        self._reported: dict[str, str] = {}
        self._under_way: set[asyncio.Future[Any]] = set()
        self._wanted = frozenset[str]()

    def latest(self) -> DeviceSnapshot:
        return self._snapshot

    def want(self, fields: frozenset[str]) -> None:
        self._wanted = fields

    async def run(self, on_snapshot: Callable[[], None]) -> None:
        """On cancellation the library is closed, unless a call is under way."""
        try:
            while True:
                began = self._monotonic()
                await self.sample_once()
                on_snapshot()
                await asyncio.sleep(max(0.0, self._beat.interval - (self._monotonic() - began)))
        finally:
            await self._end()

    async def sample_once(self) -> None:
        """Asks all free cards, waits for at most half an interval, and publishes what is known."""
        patience, began = self._beat.interval * _PATIENCE, self._monotonic()
        if self._monotonic() >= self._look_at and not self._thread.busy_seconds:
            looking = self._thread.call(self._look)
            looking.add_done_callback(self._note_look)
            self._wait_at_end_for(looking)
            await asyncio.wait([looking], timeout=patience)
        self._apply_divisions()
        if not self._driver_error:
            turns = [
                turn for card in self._cards.values() if (turn := self._begin(card)) is not None
            ]
            if turns:
                await asyncio.wait(turns, timeout=patience)
        await asyncio.sleep(0)  # results are taken over in the loop's next turn
        self._note_xids([])
        self._publish(self._monotonic() - began)

    # --- the driver, in its own thread ----------------------------------------------------------

    def _look(self) -> _DriverCards:
        """Raises OutsideError, NVMLError."""
        if self._must_reopen:
            if self._is_any_busy:
                raise OutsideError(
                    SYSTEM,
                    "the driver went away while a call of it hangs",
                    "it is begun anew when the call comes back",
                )
            self._close()
        if not self._is_open:
            open_library(self._library)
            self._is_open, self._must_reopen = True, False
            self._session += 1
        cards = tuple(self._seen(index) for index in range(pynvml.nvmlDeviceGetCount()))
        deafness = self._listen([card.shown for card in cards if card.shown is not None])
        return _DriverCards(
            self._session, cards, _cuda_version(), self._read_kernel_log(), deafness
        )

    def _listen(self, cards: Sequence[ShownCard]) -> str:
        """Receives XIDs of these cards.

        Cards that cannot be registered are tried again at the slow interval.
        """
        failure = self._events.failure
        is_retry = self._monotonic() - self._registered_at >= self._beat.slow_interval
        if is_retry:
            self._registered_at = self._monotonic()
        self._events.watch(cards, is_retry=is_retry)
        return words(failure) if failure is not None else next(iter(self._events.deaf.values()), "")

    def _seen(self, index: int) -> CardAtIndex:
        try:
            shown = shown_card(index)
            known = self._cards.get(shown.uuid)
            if known is not None and known.seen.slot is not None and known.seen.index == index:
                return structs.replace(known.seen, shown=shown, why="")
            return CardAtIndex(
                index,
                shown,
                slot(shown),
                value_or(lambda: str(pynvml.nvmlDeviceGetPciInfo(shown.handle).busId), ""),
            )
        except NVMLError as error:
            if is_gone(error):
                raise
            return CardAtIndex(index, why=words(error), is_down=is_down(error))

    def _close(self) -> None:
        """The library stays while a card's call is in it."""
        if self._is_open:
            self._events.end()
            if not self._is_any_busy:
                for card in self._cards.values():
                    card.release()
                close_library()
                self._is_open = False

    @property
    def _is_any_busy(self) -> bool:
        return any(card.thread.busy_seconds for card in self._cards.values())

    def _note_look(self, future: asyncio.Future[_DriverCards]) -> None:
        failure = None if future.cancelled() else future.exception()
        if failure is not None:
            self._lose_driver(failure)
        elif not future.cancelled():
            self._take(future.result())

    def _lose_driver(self, failure: BaseException) -> None:
        if not isinstance(failure, OutsideError | NVMLError):
            _log.error("the driver cannot be asked: a fault of Fairlead", exc_info=failure)
        if self._must_reopen and self._monotonic() < self._look_at:
            return  # another card has reported it in this turn
        self._must_reopen = self._is_open
        self._was_unloaded |= is_unloaded(failure)
        self._driver_error = words(failure) if isinstance(failure, NVMLError) else str(failure)
        self._report("driver", f"NVIDIA's driver does not answer: {self._driver_error}")
        self._look_at = self._monotonic() + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, SLOWEST_RETRY_SECONDS)

    def _take(self, look: _DriverCards) -> None:
        """Takes over the listed cards.

        One with an unreadable index keeps its identity; one without index is gone.
        """
        self._driver_error, self._retry_seconds, self._cuda_version = "", 1.0, look.cuda_version
        self._report("driver", "")
        was_unloaded, self._was_unloaded = self._was_unloaded, False
        unread: dict[int, CardAtIndex] = {}
        shown: dict[str, CardAtIndex] = {}
        for card in look.cards:
            if card.shown is None:
                unread[card.index] = card
            elif (first := shown.setdefault(card.shown.uuid, card)) is not card:
                unread[card.index] = structs.replace(
                    card, shown=None, why=f"same UUID as GPU {first.index}"
                )
        for uuid, known in list(self._cards.items()):
            if uuid not in shown and known.seen.index not in unread:
                known.thread.end()
                del self._cards[uuid]
                if known.xids.events:
                    self._unnamed[self._buses[uuid]] = known.xids
                continue
            if uuid not in shown:
                known.hide(is_down=unread[known.seen.index].is_down)
        self._unread = {
            index: self._unread.get(index, _UnreadableCard(self._monotonic())).again(seen.why)
            for index, seen in unread.items()
            if index not in {card.seen.index for card in self._cards.values()}
        }
        for uuid, seen in shown.items():
            if uuid not in self._cards:
                self._cards[uuid] = KnownCard(
                    uuid, self._make_asker, self._beat, self._monotonic, self._wall
                )
                self._buses[uuid] = pci_bus(seen.pci_bus_id) or uuid
                if (tally := self._unnamed.pop(self._buses[uuid], None)) is not None:
                    self._cards[uuid].xids = tally
            self._cards[uuid].show(seen, look.session)
        for known in self._cards.values() if was_unloaded else ():
            known.was_reset()
        self._count(EVENTS, look.deafness)
        self._note_kernel_log(look.kernel)
        for index in range(len(look.cards)):
            self._report(
                f"card {index}",
                f"GPU {index} cannot be read: {self._unread[index].why}"
                if index in self._unread
                else "",
            )

    # --- cards ----------------------------------------------------------------------------------

    def _begin(self, card: KnownCard) -> asyncio.Future[CardTurn] | None:
        future = card.begin(self._wanted)
        if future is not None:
            future.add_done_callback(lambda done: self._answered(card, done))
            self._wait_at_end_for(future)
        return future

    def _wait_at_end_for(self, call: asyncio.Future[Any]) -> None:
        self._under_way.add(call)
        call.add_done_callback(self._under_way.discard)

    def _answered(self, card: KnownCard, future: asyncio.Future[CardTurn]) -> None:
        if future.cancelled():
            return
        failure = future.exception()
        if failure is None:
            card.keep(future.result())
        elif isinstance(failure, NVMLError) and is_gone(failure):
            self._lose_driver(failure)
        else:
            card.fail(failure)

    # --- results --------------------------------------------------------------------------------

    def _apply_divisions(self) -> None:
        for divided in self._events.drain_divided():
            for uuid, card in self._cards.items():
                if divided in (uuid, None):
                    card.divide()

    def _read_kernel_log(self) -> list[XidReport] | Exception:
        """Runs in the driver's thread."""
        if self._kernel_log is None:
            return []
        try:
            return self._kernel_log.drain()
        except OutsideError as error:
            return error

    def _note_kernel_log(self, records: list[XidReport] | Exception) -> None:
        """Notes a kernel log that cannot be read as a failed collector.

        Without a log there is no such collector.
        """
        if not isinstance(records, Exception):
            self._note_xids(records)
        elif isinstance(records, NotFound):
            self._kernel_log = None
        else:
            self._report(
                KERNEL_LOG, records.log_line if isinstance(records, OutsideError) else str(records)
            )
            self._count(KERNEL_LOG, type(records).__name__)
            return
        self._report(KERNEL_LOG, records.log_line if isinstance(records, NotFound) else "")
        self._count(KERNEL_LOG, "")

    @property
    def _node_runs(self) -> tuple[CollectorRun, ...]:
        return tuple(
            run
            for name, run in self._runs.items()
            if name != KERNEL_LOG or self._kernel_log is not None
        )

    def _count(self, collector: str, error: str) -> None:
        run = self._runs[collector]
        if error:
            kind = error.lower().replace(" ", "_")
            self._runs[collector] = structs.replace(
                run, is_good=False, errors={**run.errors, kind: run.errors.get(kind, 0) + 1}
            )
        else:
            self._runs[collector] = structs.replace(
                run, is_good=True, succeeded_at=self._monotonic()
            )

    def _note_xids(self, logged: Sequence[XidReport]) -> None:
        """Counts XIDs of events and of the kernel log; one that both report counts once.

        One without card counts for all.

        Times are of the steady clock, because the wall clock may be set between the two reports. A
        card that the driver has not listed yet, or that was removed, is identified by its PCI
        address.
        """
        now = self._monotonic()
        booted_at = self._wall() - now
        by_bus = {self._buses[uuid]: card.xids for uuid, card in self._cards.items()}
        events = [
            XidReport(bus, seen.xid, seen.at, None, seen.gpu_instance, "nvml")
            for seen in self._events.drain_timed()
            for bus in (
                by_bus
                if seen.uuid is None
                else [self._buses[seen.uuid]]
                if seen.uuid in self._buses
                else []
            )
        ]
        joined = self._join([*events, *logged], self._known_xids)
        self._known_xids = tuple(each for each in joined.alone if now - each.at < _KNOWN_SECONDS)
        for report in joined.fresh:
            tally = by_bus.get(report.bus) or self._unnamed.setdefault(report.bus, XidTally())
            tally.receive(report.xid, booted_at + report.at, report.gpu_instance)

    def _publish(self, cycle_seconds: float) -> None:
        cards = sorted(self._cards.values(), key=lambda card: card.seen.index)
        for card in cards:
            card.look_at_watch()
        is_up = not self._driver_error
        known = [card.sample(self._node, self._cuda_version, is_driver_up=is_up) for card in cards]
        samples = [sample for sample in known if sample is not None]
        samples += [unread.sample(self._node, index) for index, unread in self._unread.items()]
        self._snapshot = DeviceSnapshot(
            number=self._snapshot.number + 1,
            at=self._monotonic(),
            devices=tuple(sorted(samples, key=lambda sample: sample.index)),
            is_driver_up=is_up,
            driver_error=self._driver_error,
            collectors=self._node_runs,
            stuck_calls=sum(card.is_stuck for card in cards)
            + (self._thread.busy_seconds > self._beat.call_timeout),
            unnamed=tuple(
                UnnamedCard(self._node, bus, self._unnamed[bus].events)
                for bus in sorted(self._unnamed)
            ),
            cycle_seconds=cycle_seconds,
        )

    async def _end(self) -> None:
        """Waits for running calls that do not hang.

        The library must not be unloaded during a call.
        """
        for card in self._cards.values():
            card.thread.end()
        under_way = [call for call in self._under_way if not call.done()]
        if under_way:
            await asyncio.wait(under_way, timeout=END_SECONDS)
            await asyncio.sleep(0)
        if not self._thread.busy_seconds:
            await asyncio.wait([self._thread.call(self._close)], timeout=END_SECONDS)
        self._thread.end()

    def _report(self, subject: str, what: str) -> None:
        """Logs a fault once until it changes; "" = the fault has ended."""
        if what and self._reported.get(subject) != what:
            _log.warning("%s", what)
        self._reported[subject] = what


def _cuda_version() -> str:
    """The driver's CUDA version, as `12.8`; "" = unknown."""
    number = value_or(pynvml.nvmlSystemGetCudaDriverVersion_v2, 0)
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""
