"""The GPUs of this node for its exporter: the port `Devices` on NVML (telemetry contract 1.14).

Each card has a thread of its own for calls, and the node one for what is of no card. A call that does not
come back holds up its own card only: nothing more is asked of that one until it does. A driver that goes away
is looked for with growing pauses; the cards stay with what they said last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pynvml
from msgspec import Struct, structs
from pynvml import NVMLError

from fairlead.edge.nvml.call_thread import CallThread
from fairlead.edge.nvml.cards import ShownCard, shown_card, slot
from fairlead.edge.nvml.kernel_log import KernelLog
from fairlead.edge.nvml.known_card import CardAsker, CardAtIndex, CardTurn, KnownCard, NvmlBeat
from fairlead.edge.nvml.library import LIBRARY, SYSTEM, close_library, is_down, is_gone, is_unloaded, open_library, said, words
from fairlead.edge.nvml.xid_events import XidEvents
from fairlead.errors import OutsideError
from fairlead.model.devices.device import CollectorRun, DeviceSnapshot
from fairlead.model.devices.xid import XidReport
from fairlead.wire.devices.kernel_xid import pci_bus

SLOWEST_RETRY_SECONDS: Final = 60.0
_PATIENCE: Final = 0.5
"""Part of a beat for which a snapshot waits for cards that have not answered yet."""
END_SECONDS: Final = 2.0
_KNOWN_SECONDS: Final = 60.0
"""So long an XID is remembered, lest its other teller be believed as well."""
_USUAL_BEAT: Final = NvmlBeat()
_log: Final = logging.getLogger(__name__)


Join = Callable[[Iterable[XidReport], Iterable[XidReport]], Iterable[XidReport]]
"""Of what was told, what is not yet known: the rule `fresh_reports`."""


class _Look(Struct, frozen=True):
    """What the driver shows. `session`: how often it was begun anew; handles are of one session.

    `kernel`: XIDs of the kernel's log, or why it cannot be read.
    """

    session: int
    cards: tuple[CardAtIndex, ...]
    cuda_version: str
    kernel: list[XidReport] | Exception


class NvmlDevices:
    """See `ports.Devices`. `make_asker` is called in the card's own thread.

    `kernel_log`: where XIDs stand that nobody heard; `join` says which of them are new. `monotonic` and
    `wall` give seconds; those of `wall` are told with XIDs. One in a process.
    """

    def __init__(
        self,
        node: str,
        make_asker: Callable[[ShownCard], CardAsker],
        beat: NvmlBeat = _USUAL_BEAT,
        library: str = LIBRARY,
        kernel_log: KernelLog | None = None,
        join: Join = lambda told, known: told,
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
        self._events = XidEvents()
        self._kernel_log = kernel_log
        self._join = join
        self._known_xids: tuple[XidReport, ...] = ()
        self._kernel_run = CollectorRun("kmsg")
        self._cards: dict[str, KnownCard] = {}
        self._session = 0
        self._is_open = False
        self._must_reopen = self._was_unloaded = False
        self._look_at = float("-inf")
        self._retry_seconds = 1.0
        self._driver_error = "the driver has not been asked yet"
        self._cuda_version = ""
        self._snapshot = DeviceSnapshot(at=monotonic(), is_driver_up=False, driver_error=self._driver_error)
        self._told: dict[str, str] = {}
        self._wanted = frozenset[str]()

    def latest(self) -> DeviceSnapshot:
        return self._snapshot

    def want(self, fields: frozenset[str]) -> None:
        self._wanted = fields

    async def run(self, told: Callable[[], None]) -> None:
        """When it is cancelled the library is ended, unless a call is under way."""
        try:
            while True:
                began = self._monotonic()
                await self.sample_once()
                told()
                await asyncio.sleep(max(0.0, self._beat.interval - (self._monotonic() - began)))
        finally:
            await self._end()

    async def sample_once(self) -> None:
        """Ask everybody who is free, wait for half a beat at most, and publish what is known then."""
        patience = self._beat.interval * _PATIENCE
        if self._monotonic() >= self._look_at and not self._thread.busy_seconds:
            looking = self._thread.call(self._look)
            looking.add_done_callback(self._looked)
            await asyncio.wait([looking], timeout=patience)
        self._hear_divisions()
        if not self._driver_error:
            turns = [turn for card in self._cards.values() if (turn := self._begin(card)) is not None]
            if turns:
                await asyncio.wait(turns, timeout=patience)
        await asyncio.sleep(0)  # what is done is taken over in the loop's next turn
        self._hear_xids([])
        self._publish()

    # --- the driver: in its own thread ----------------------------------------------------------------------

    def _look(self) -> _Look:
        """Raises OutsideError, NVMLError."""
        if self._must_reopen:
            if self._is_any_busy:
                raise OutsideError(SYSTEM, "the driver went away while a call of it hangs", "it is begun anew when the call comes back")
            self._close()
        if not self._is_open:
            open_library(self._library)
            self._is_open, self._must_reopen = True, False
            self._session += 1
        cards = tuple(self._seen(index) for index in range(pynvml.nvmlDeviceGetCount()))
        self._events.watch([card.shown for card in cards if card.shown is not None])
        return _Look(self._session, cards, _cuda_version(), self._read_kernel_log())

    def _seen(self, index: int) -> CardAtIndex:
        try:
            shown = shown_card(index)
            known = self._cards.get(shown.uuid)
            if known is not None and known.seen.slot is not None and known.seen.index == index:
                return structs.replace(known.seen, shown=shown, why="")
            return CardAtIndex(index, shown, slot(shown), said(lambda: str(pynvml.nvmlDeviceGetPciInfo(shown.handle).busId), ""))
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

    def _looked(self, future: asyncio.Future[_Look]) -> None:
        failure = None if future.cancelled() else future.exception()
        if failure is not None:
            self._lose_driver(failure)
        elif not future.cancelled():
            self._take(future.result())

    def _lose_driver(self, failure: BaseException) -> None:
        if not isinstance(failure, OutsideError | NVMLError):
            _log.error("the driver cannot be asked: a fault of ours", exc_info=failure)
        if self._must_reopen and self._monotonic() < self._look_at:
            return  # another card has said so in this turn
        self._must_reopen = self._is_open
        self._was_unloaded |= is_unloaded(failure)
        self._driver_error = words(failure) if isinstance(failure, NVMLError) else str(failure)
        self._tell("driver", f"NVIDIA's driver does not answer: {self._driver_error}")
        self._look_at = self._monotonic() + self._retry_seconds
        self._retry_seconds = min(2 * self._retry_seconds, SLOWEST_RETRY_SECONDS)

    def _take(self, look: _Look) -> None:
        """What is shown now. A card whose index cannot be read keeps its name; one of no index is gone."""
        self._driver_error, self._retry_seconds, self._cuda_version = "", 1.0, look.cuda_version
        self._tell("driver", "")
        was_unloaded, self._was_unloaded = self._was_unloaded, False
        unread = {card.index: card for card in look.cards if card.shown is None}
        shown = {card.shown.uuid: card for card in look.cards if card.shown is not None}
        for uuid, card in list(self._cards.items()):
            if uuid not in shown and card.seen.index not in unread:
                card.thread.end()
                del self._cards[uuid]
                continue
            if uuid not in shown:
                card.hide(is_down=unread[card.seen.index].is_down)
        for uuid, seen in shown.items():
            if uuid not in self._cards:
                self._cards[uuid] = KnownCard(uuid, self._make_asker, self._beat, self._monotonic, self._wall)
            self._cards[uuid].show(seen, look.session)
        for card in self._cards.values() if was_unloaded else ():
            card.was_reset()
        self._kernel_told(look.kernel)
        known = {card.seen.index for card in self._cards.values()}
        for index, lost in unread.items():
            self._tell(f"card {index}", f"GPU {index} cannot be read: {lost.why}" if index not in known else "")

    # --- cards ----------------------------------------------------------------------------------------------

    def _begin(self, card: KnownCard) -> asyncio.Future[CardTurn] | None:
        future = card.begin(self._wanted)
        if future is not None:
            future.add_done_callback(lambda done: self._answered(card, done))
        return future

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

    # --- what is told ---------------------------------------------------------------------------------------

    def _hear_divisions(self) -> None:
        for divided in self._events.drain_divided():
            for uuid, card in self._cards.items():
                if divided in (uuid, None):
                    card.divide()

    def _read_kernel_log(self) -> list[XidReport] | Exception:
        """In the driver's thread. Before a card is known nobody would know whose the XIDs are."""
        if self._kernel_log is None or not self._cards:
            return []
        try:
            return self._kernel_log.drain()
        except OutsideError as error:
            return error

    def _kernel_told(self, told: list[XidReport] | Exception) -> None:
        """A log that cannot be read is a collector that fails."""
        now, run = self._monotonic(), self._kernel_run
        if not isinstance(told, Exception):
            self._kernel_run = structs.replace(run, is_good=True, succeeded_at=now)
            self._hear_xids(told)
            self._tell("kmsg", "")
            return
        self._tell("kmsg", str(told))
        kind = type(told).__name__
        self._kernel_run = structs.replace(run, is_good=False, errors={**run.errors, kind: run.errors.get(kind, 0) + 1})

    def _hear_xids(self, told: Sequence[XidReport]) -> None:
        """What the events and the kernel's log tell, each once. An event of no card is of all."""
        now = self._wall()
        bus_of = {uuid: pci_bus(card.seen.pci_bus_id) for uuid, card in self._cards.items()}
        heard = [
            XidReport(bus, seen.xid, now) for seen in self._events.drain() for uuid, bus in bus_of.items() if seen.uuid in (uuid, None)
        ]
        fresh = tuple(self._join([*told, *heard], self._known_xids))
        self._known_xids = tuple(each for each in (*self._known_xids, *fresh) if now - each.at < _KNOWN_SECONDS)
        for report in fresh:
            for uuid, bus in bus_of.items():
                if bus == report.bus:
                    self._cards[uuid].hear(report.xid, report.at)

    def _publish(self) -> None:
        cards = sorted(self._cards.values(), key=lambda card: card.seen.index)
        for card in cards:
            card.look_at_watch()
        is_up = not self._driver_error
        samples = [card.sample(self._node, self._cuda_version, is_driver_up=is_up) for card in cards]
        self._snapshot = DeviceSnapshot(
            number=self._snapshot.number + 1,
            at=self._monotonic(),
            devices=tuple(sample for sample in samples if sample is not None),
            is_driver_up=is_up,
            driver_error=self._driver_error,
            collectors=() if self._kernel_log is None else (self._kernel_run,),
            stuck_calls=sum(card.is_stuck for card in cards) + (self._thread.busy_seconds > self._beat.call_timeout),
        )

    async def _end(self) -> None:
        for card in self._cards.values():
            card.thread.end()
        if not self._thread.busy_seconds:
            await asyncio.wait([self._thread.call(self._close)], timeout=END_SECONDS)
        self._thread.end()

    def _tell(self, subject: str, what: str) -> None:
        """In the log, once until it changes; "" = it is well."""
        if what and self._told.get(subject) != what:
            _log.warning("%s", what)
        self._told[subject] = what


def _cuda_version() -> str:
    """Of the driver, as `12.8`; "" where it does not say."""
    number = said(pynvml.nvmlSystemGetCudaDriverVersion_v2, 0)
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""
