"""XIDs from NVML's events: a thread waits for them, a queue keeps them until they are read.

Changes of a card's MIG instances arrive in the same way, from cards that report them.

An event names a card by its handle. The UUID is remembered from before, because a card that has
just fallen off the bus does not answer. Events while no thread waits (NVML is initialised again)
are lost.
"""

from __future__ import annotations

import ctypes
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Final, TypeVar

import pynvml
from msgspec import Struct
from pynvml import NVMLError

from fairlead.edge.nvml.cards import ShownCard
from fairlead.edge.nvml.library import SYSTEM, is_gone, is_silent, words
from fairlead.errors import OutsideError
from fairlead.model.devices.driver import DriverXid

WAIT_MILLISECONDS: Final = 200
END_SECONDS: Final = 3.0
WANTED: Final[int] = (
    pynvml.nvmlEventTypeXidCriticalError
    | pynvml.nvmlEventTypeDoubleBitEccError
    | pynvml.nvmlEventMigConfigChange
)
"""The wanted event types.

A double-bit error adds nothing to its XID; other programs register it too.
"""
_WHOLE_CARD: Final = 0xFFFFFFFF
Row = TypeVar("Row")
_log: Final = logging.getLogger(__name__)


class TimedXid(Struct, frozen=True, gc=False):
    """`uuid` None: the driver did not name the card; `gpu_instance` None: the whole card.

    `at`: seconds of the steady clock.
    """

    xid: int
    uuid: str | None
    at: float
    gpu_instance: int | None = None


class XidEvents:
    """`failure`: why the thread waits no longer, None = it waits, or has nothing to wait for.

    `watch` and `end` may be called while NVML is open, not concurrently. `monotonic` returns
    seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.failure: NVMLError | None = None
        self._monotonic = monotonic
        self._seen: SimpleQueue[TimedXid] = SimpleQueue()
        self._divided: SimpleQueue[str | None] = SimpleQueue()
        self._watched: Mapping[int, str] | None = None
        self._deaf: dict[str, str] = {}
        self._events: Any = None
        self._thread: Thread | None = None
        self._ending = Event()

    @property
    def deaf(self) -> Mapping[str, str]:
        """Why XIDs of a card are not received, by UUID.

        Cards that are too old for events are absent.
        """
        return self._deaf

    def drain(self) -> list[DriverXid]:
        """XIDs reported since the last call, in order."""
        return [DriverXid(each.xid, each.uuid) for each in self.drain_timed()]

    def drain_timed(self) -> list[TimedXid]:
        """The same, with the time of each and its MIG instance."""
        return _drained(self._seen)

    def drain_divided(self) -> list[str | None]:
        """UUIDs of cards whose MIG instances changed since the last call; None = card unknown.

        Callers must list the instances of such a card again. Changes while no thread waited are
        lost.
        """
        return list(dict.fromkeys(_drained(self._divided)))

    def watch(self, cards: Sequence[ShownCard], *, is_retry: bool = False) -> None:
        """Receives the XIDs of exactly these cards from now on.

        Cards that are too old for events are skipped, and so are those that cannot be registered,
        until `is_retry`. Raises OutsideError when the thread cannot be ended, NVMLError when there
        is no driver.
        """
        uuids = {_address(card.handle): card.uuid for card in cards}
        if uuids == self._watched and self.failure is None and not (is_retry and self._deaf):
            return
        self.end()
        self._watched, deaf = uuids, {}
        registered = 0
        for card in cards:
            why = self._register(card)
            registered += why is None
            if why:
                deaf[card.uuid] = why
                if self._deaf.get(card.uuid) != why:
                    _log.warning("XIDs of GPU %s are not received: %s", card.uuid, why)
        self._deaf = deaf
        if registered:
            self._thread = Thread(
                target=self._wait_until_ended,
                args=(self._events, uuids),
                name="xid-events",
                daemon=True,
            )
            self._thread.start()

    def end(self) -> None:
        """Ends the thread; queued XIDs can still be drained."""
        self._ending.set()
        self._watched = None
        if self._thread is not None:
            self._thread.join(END_SECONDS)
            if self._thread.is_alive():
                raise OutsideError(
                    SYSTEM,
                    "NVIDIA's driver hangs: it does not come back from waiting for XIDs",
                    "look at the kernel's log",
                )
        self._ending.clear()
        self._thread, self.failure = None, None
        events, self._events = self._events, None
        if events is not None:
            try:
                pynvml.nvmlEventSetFree(events)
            except NVMLError as error:
                _log.debug("an event set is not freed: %s", words(error))

    def _register(self, card: ShownCard) -> str | None:
        """Registers a card: None = its XIDs are received, else the reason.

        "" for a card or a driver without events.
        """
        try:
            if self._events is None:
                self._events = pynvml.nvmlEventSetCreate()
            types = _types(card)
            if not types:
                return ""
            pynvml.nvmlDeviceRegisterEvents(card.handle, types, self._events)
        except NVMLError as error:
            if is_gone(error):
                raise
            return "" if is_silent(error) else words(error)
        return None

    def _wait_until_ended(self, events: Any, uuids: Mapping[int, str]) -> None:
        while not self._ending.is_set():
            try:
                event = pynvml.nvmlEventSetWait_v2(events, WAIT_MILLISECONDS)
            except NVMLError as error:
                if error.value == pynvml.NVML_ERROR_TIMEOUT:
                    continue
                self.failure = error
                return
            uuid = uuids.get(_address(event.device))
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                part = None if event.gpuInstanceId == _WHOLE_CARD else int(event.gpuInstanceId)
                self._seen.put(TimedXid(event.eventData, uuid, self._monotonic(), part))
            elif event.eventType == pynvml.nvmlEventMigConfigChange:
                self._divided.put(uuid)


def _types(card: ShownCard) -> int:
    """The wanted event types that this card has; XIDs if the driver does not list its types."""
    try:
        return WANTED & int(pynvml.nvmlDeviceGetSupportedEventTypes(card.handle))
    except NVMLError as error:
        if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
        return int(pynvml.nvmlEventTypeXidCriticalError)


def _drained(queue: SimpleQueue[Row]) -> list[Row]:
    drained: list[Row] = []
    while True:
        try:
            drained.append(queue.get_nowait())
        except Empty:
            return drained


def _address(handle: Any) -> int:
    """The handle as a number; 0 = no card."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
