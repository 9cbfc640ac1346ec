"""Components for their page: read when it is opened, and kept for a few seconds.

A reading asks for all workloads of the cluster and, by the program `helm`, for all releases: it
must not be made for each client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from fairlead.model.installed.component_facts import ComponentFacts
from fairlead.ports import ComponentQuestions
from fairlead.rules.components.catalogue import CATALOGUE

KEPT_SECONDS: Final = 5.0


class ReadComponents:
    """`questions`: new ones for each use (`ports.Ports`). `monotonic`: this machine's clock.
    `charts`: folder of charts in a registry, "" = none.
    """

    def __init__(
        self,
        questions: Callable[[], ComponentQuestions],
        monotonic: Callable[[], float] = time.monotonic,
        charts: str = "",
    ) -> None:
        self.questions = questions
        self.charts = charts
        self._monotonic = monotonic
        self._found: ComponentFacts | None = None
        self._until = 0.0
        self._reading = asyncio.Lock()

    def wrote(self) -> None:
        """Something was written: the next page waits for a new reading."""
        self._until = 0.0

    async def facts(self) -> ComponentFacts:
        """Without operations that run. Raises OutsideError if nothing can be read."""
        async with self._reading:
            if self._found is None or self._monotonic() >= self._until:
                self._until = self._monotonic() + KEPT_SECONDS  # `wrote` meanwhile counts
                self._found = await asyncio.to_thread(self.questions().facts, CATALOGUE)
        return self._found
