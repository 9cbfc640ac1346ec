"""Features that a card lacks.

They are tried again now and then, because a driver may have been replaced.
"""

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
    """Absent features of one card, used by its thread.

    `name`: the card's, for the log; `monotonic` returns seconds.
    """

    def __init__(self, name: str, monotonic: Callable[[], float]) -> None:
        self._name = name
        self._monotonic = monotonic
        self._reported: set[str] = set()
        self._until: dict[Hashable, float] = {}

    def has(self, what: Hashable) -> bool:
        """Whether the feature is known to be absent, so that it is not asked for."""
        until = self._until.get(what)
        if until is not None and self._monotonic() >= until:
            del self._until[what]
            return False
        return until is not None

    def clear(self) -> None:
        """Forgets all absences, because the card is another one now."""
        self._until.clear()

    def keep(self, what: Hashable) -> None:
        self._until[what] = self._monotonic() + RETRY_SECONDS

    def report(self, trouble: str) -> None:
        """Logs the fault once."""
        if trouble not in self._reported:
            self._reported.add(trouble)
            _log.warning("GPU %s: %s", self._name, trouble)

    def judge(self, what: Hashable, error: NVMLError) -> str:
        """Why the collector of a failed call failed; "" = there is no value, and nothing is wrong.

        Raises the error when the card is lost or the driver is gone.
        """
        if is_gone(error) or is_down(error):
            raise error
        if is_unsupported(error):
            self.keep(what)
        return "" if is_silent(error) else words(error)


class Failures:
    """Failures of collectors in one turn.

    The log has the failed call, once for each fault of a card.
    """

    def __init__(self, absences: Absences) -> None:
        self._absences = absences
        self._words: dict[str, str] = {}

    def add(self, collector: str, what: Hashable, why: str) -> None:
        """Adds a failure, if the collector has none yet; "" = nothing failed."""
        if why:
            self._words.setdefault(collector, why)
            self._absences.report(f"{collector}: {what}: {why}")

    @contextmanager
    def caught(self, collector: str, what: Hashable) -> Iterator[None]:
        """Runs a call whose failure costs only its own values. Raises as `Absences.judge`."""
        try:
            yield
        except NVMLError as error:
            self.add(collector, what, self._absences.judge(what, error))
        except UnicodeDecodeError:
            self.add(collector, what, "not text")

    def by_collector(self) -> dict[str, str]:
        """The failures in NVML's words, by collector."""
        return self._words
