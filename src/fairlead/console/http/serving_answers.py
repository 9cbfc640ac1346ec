"""Workloads and Services of serving jobs, read for an open page and kept for some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fairlead.console.http.kept_answers import KeptAnswers
from fairlead.errors import OutsideError
from fairlead.model.jobs.serving import ServingObjects
from fairlead.ports import ServingQuestions

KEPT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 5.0


class ServingAnswers:
    """`clock` is this machine's, however fast a simulated cluster's runs."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE_SECONDS
    ) -> None:
        self._answers: KeptAnswers[str, ServingObjects] = KeptAnswers(
            KEPT_SECONDS, patience, clock=clock
        )

    async def of(self, servings: ServingQuestions) -> ServingObjects:
        """What was read lately, or is now.

        Raises as `read` does, and OutsideError when it takes too long.
        """
        found = await self._answers.of("", servings.read)
        if found is None:
            what = f"serving jobs could not be read within {self._answers.patience:g} s"
            raise OutsideError("kubernetes", what, "the page asks again by itself")
        return found
