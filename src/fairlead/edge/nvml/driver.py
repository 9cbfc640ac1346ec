"""The driver of this node's NVIDIA GPUs: the port `CardDriver` on NVML.

One that goes away is looked for at every call, and nothing of the former one is kept. A card without a handle
is left out; one that has a handle, but cannot be read, stays as it was read last. While a card is ill NVML is
begun anew now and then: it does not see by itself that a card was reset. A card that is added is seen by the
next process. NVML holds the cards' devices open: stop the agent before `nvidia-smi --gpu-reset`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

import pynvml
from pynvml import NVMLError

from fairlead.edge.nvml import mps
from fairlead.edge.nvml.cards import ShownCard, ask, has_mig, shown_card, slot, used_mib_by_pid
from fairlead.edge.nvml.library import LIBRARY, close_library, failure, is_down, is_gone, open_library, said, words
from fairlead.edge.nvml.xid_events import XidEvents
from fairlead.model.devices.driver import CardAnswer, DriverXid, IsolationMeans, ProcessMemory
from fairlead.model.devices.gpu import GpuSlot

REOPEN_SECONDS: Final = 300.0
"""So often NVML is begun anew while a card is ill. XIDs of that moment are not heard."""
CGROUPS: Final = Path("/sys/fs/cgroup")
_log: Final = logging.getLogger(__name__)


class NvmlDriver:
    """See `ports.CardDriver`. One in a process. `close` ends its thread and the library.

    `library`: a name that the loader finds, or a path. `monotonic` gives seconds.
    """

    def __init__(
        self,
        library: str = LIBRARY,
        cgroups: Path = CGROUPS,
        pipes: Path = mps.PIPES,
        processes: Path = Path("/proc"),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library = library
        self._cgroups = cgroups
        self._pipes = pipes
        self._processes = processes
        self._monotonic = monotonic
        self._turn = Lock()
        self._is_open = False
        self._opened_at = 0.0
        self._is_any_ill = False
        self._events = XidEvents()
        self._slots: dict[tuple[int, str], GpuSlot] = {}
        self._has_mig: dict[str, bool] = {}
        self._told: dict[str, str] = {}

    def cards(self) -> Sequence[GpuSlot]:
        with self._asking():
            self._tell("events", "")
            slots = [self._slot(card) for card in self._look(is_retry=True)]
            return [each for each in slots if each is not None]

    def xids(self) -> Sequence[DriverXid]:
        """Those of before stay there when the driver goes away."""
        seen = self._events.drain()
        if seen:
            return seen
        with self._asking():
            if self._events.failure is not None:
                if is_gone(self._events.failure):
                    raise self._events.failure
                self._tell("events", f"waiting for XIDs begins anew: {words(self._events.failure)}")
                self._look()
            return self._events.drain()

    def probe(self, uuid: str) -> CardAnswer:
        with self._asking():
            answers: list[CardAnswer] = []
            for card in self._look():
                if card.uuid != uuid:
                    continue
                try:
                    answers.append(ask(card))
                except NVMLError as error:
                    self._raise_if_gone(error)
                    self._is_any_ill = True
                    return CardAnswer(words(error), is_down=is_down(error))
            return answers[0] if answers else CardAnswer("the driver does not show this GPU")

    def processes(self) -> Sequence[ProcessMemory]:
        """Those whose memory NVML does not tell (some virtual cards) are left out: nobody can watch them."""
        with self._asking():
            cards = self._look()
            failed: list[NVMLError] = []
            found: list[ProcessMemory] = []
            for card in cards:
                try:
                    used = used_mib_by_pid(card)
                except NVMLError as error:
                    self._raise_if_gone(error)
                    if not is_down(error):
                        failed.append(error)
                        self._tell(f"processes {card.uuid}", f"processes of GPU {card.uuid} are not known: {words(error)}")
                    continue
                unknown = sum(mib is None for mib in used.values())
                self._tell(f"memory {card.uuid}", f"NVML does not say how much memory processes of GPU {card.uuid} use" if unknown else "")
                found += [ProcessMemory(pid, card.uuid, mib) for pid, mib in sorted(used.items()) if mib is not None]
            if failed and len(failed) == len(cards):
                raise failed[0]
            return found

    def means(self) -> IsolationMeans:
        with self._asking():
            cards = self._look()
            cuda = said(pynvml.nvmlSystemGetCudaDriverVersion_v2, 0)
            return IsolationMeans(
                driver=_major(said(pynvml.nvmlSystemGetDriverVersion, "")),
                cuda=(cuda // 1000, cuda % 1000 // 10),
                has_cgroup_v2=(self._cgroups / "cgroup.controllers").exists(),
                has_mig=bool(cards) and all(self._is_divided(card) for card in cards),
                has_mps=bool(cards) and all(mps.has_daemon(card.uuid, self._pipes, self._processes) for card in cards),
            )

    def close(self) -> None:
        """Ends what there is; a later call would begin anew."""
        with self._turn:
            self._end()

    # --- one session ----------------------------------------------------------------------------------------

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """NVML is open inside. What it refuses comes out as OutsideError; without a driver it ends."""
        with self._turn:
            if self._is_open and self._is_any_ill and self._monotonic() - self._opened_at >= REOPEN_SECONDS:
                self._end()
            try:
                if not self._is_open:
                    self._begin()
                yield
            except NVMLError as error:
                if is_gone(error) and self._is_open:
                    self._end()
                raise failure(error) from error

    def _begin(self) -> None:
        open_library(self._library)
        self._is_open, self._is_any_ill, self._opened_at = True, False, self._monotonic()
        self._look()

    def _end(self) -> None:
        if self._is_open:
            self._events.end()
            close_library()
            self._is_open = False

    def _look(self, *, is_retry: bool = False) -> list[ShownCard]:
        """Every card that NVML gives a handle of now; the thread listens to these."""
        shown: list[ShownCard] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                shown.append(shown_card(index))
                self._tell(f"card {index}", "")
            except NVMLError as error:
                self._raise_if_gone(error)
                self._is_any_ill = True
                self._tell(f"card {index}", f"GPU {index} is left out: {words(error)}")
        self._events.watch(shown, is_retry=is_retry)
        return shown

    def _slot(self, card: ShownCard) -> GpuSlot | None:
        try:
            known = self._slots[card.index, card.uuid] = slot(card)
            self._tell(f"slot {card.uuid}", "")
        except NVMLError as error:
            self._raise_if_gone(error)
            self._is_any_ill = True
            self._tell(f"slot {card.uuid}", f"GPU {card.uuid} cannot be read: {words(error)}")
            return self._slots.get((card.index, card.uuid))
        return known

    def _is_divided(self, card: ShownCard) -> bool:
        try:
            self._has_mig[card.uuid] = has_mig(card)
        except NVMLError as error:
            self._raise_if_gone(error)
            self._tell(f"mig {card.uuid}", f"whether GPU {card.uuid} is divided is not known: {words(error)}")
        return self._has_mig.get(card.uuid, False)

    def _raise_if_gone(self, error: NVMLError) -> None:
        if is_gone(error):
            raise error

    def _tell(self, subject: str, what: str) -> None:
        """In the log, once until it changes; "" = it is well."""
        if what and self._told.get(subject) != what:
            _log.warning("%s", what)
        self._told[subject] = what


def _major(version: str) -> int:
    """
    >>> _major("615.71.05"), _major("beta")
    (615, 0)
    """
    match = re.match(r"\d{1,9}", version)
    return int(match[0]) if match else 0
