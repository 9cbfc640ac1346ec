"""What one card does not have: asked again now and then, for a driver may have been replaced under it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final

from pynvml import NVMLError

from fairlead.edge.nvml.library import is_down, is_gone, is_silent, is_unsupported, words

RETRY_SECONDS: Final = 600.0
_log: Final = logging.getLogger(__name__)


class Absences:
    """Of one card, told by its one worker. `name`: the card's, in the log; `monotonic` gives seconds."""

    def __init__(self, name: str, monotonic: Callable[[], float]) -> None:
        self._name = name
        self._monotonic = monotonic
        self._told: set[str] = set()
        self._until: dict[Hashable, float] = {}

    def has(self, what: Hashable) -> bool:
        """Whether it is known to be missing, so that it is not asked."""
        until = self._until.get(what)
        if until is not None and self._monotonic() >= until:
            del self._until[what]
            return False
        return until is not None

    def clear(self) -> None:
        """The card is another one now: everything is asked again."""
        self._until.clear()

    def keep(self, what: Hashable) -> None:
        self._until[what] = self._monotonic() + RETRY_SECONDS

    def tell(self, trouble: str) -> None:
        """In the log, once."""
        if trouble not in self._told:
            self._told.add(trouble)
            _log.warning("GPU %s: %s", self._name, trouble)

    def judge(self, what: Hashable, error: NVMLError) -> str:
        """Why the collector of a failed call failed; "" = there is no value and nothing is wrong.

        Raises the error when the card is lost or the driver is gone.
        """
        if is_gone(error) or is_down(error):
            raise error
        if is_unsupported(error):
            self.keep(what)
        return "" if is_silent(error) else words(error)


class Failures:
    """Why collectors failed in one turn. Which call it was is in the log, once for each trouble of a card."""

    def __init__(self, absences: Absences) -> None:
        self._absences = absences
        self._words: dict[str, str] = {}

    def add(self, collector: str, what: Hashable, why: str) -> None:
        """The first word of a collector stays; "" = nothing failed."""
        if why:
            self._words.setdefault(collector, why)
            self._absences.tell(f"{collector}: {what}: {why}")

    @contextmanager
    def caught(self, collector: str, what: Hashable) -> Iterator[None]:
        """A call that fails costs what it would have told, and nothing else. Raises as `Absences.judge`."""
        try:
            yield
        except NVMLError as error:
            self.add(collector, what, self._absences.judge(what, error))
        except UnicodeDecodeError:
            self.add(collector, what, "not text")

    def told(self) -> dict[str, str]:
        """In NVML's words, by collector."""
        return self._words
