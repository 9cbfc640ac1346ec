"""All events of a job whose page is open, read from the API server and kept for a few seconds.

What the console follows are warnings: all events of a large cluster would be too many to keep. So
those of one job are read on request, as the user who asks, at most once in `KEPT_SECONDS` for each
user.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fairlead.console.http.kept_answers import KeptAnswers
from fairlead.console.pages.envelope import Warning
from fairlead.errors import Forbidden, OutsideError
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.ports import JobFiles

KEPT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 3.0
"""A page waits no longer for its events; they are there for the next one that asks."""
KEPT_MAX: Final = 200
"""Number of jobs whose events are cached; the oldest answer is dropped first."""
SOURCE: Final = "events"

Answer = tuple[Event, ...] | Warning


class EventAnswers:
    """What was answered lately.

    `clock` is this machine's, however fast a simulated cluster's runs.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE_SECONDS
    ) -> None:
        self._answers: KeptAnswers[tuple[str, str, frozenset[str]], Answer] = KeptAnswers(
            KEPT_SECONDS, patience, KEPT_MAX, clock
        )

    async def of(self, files: JobFiles, each: JobInstances, account: str) -> Answer:
        """The events of the job and of its pods, or why they are not known. `account`: the user
        that asks the API server, "" = the server itself.
        """
        uids = frozenset({each.job.uid, *(pod.uid for pod in each.pods)} - {""})
        found = await self._answers.of(
            (account, each.job.namespace, uids),
            lambda: _read(files, each.job.namespace, uids, account),
        )
        if found is None:
            return unread_events(
                f"the API server has not answered for {self._answers.patience:g} s",
                "the page asks again by itself",
            )
        return found


async def _read(files: JobFiles, namespace: str, uids: frozenset[str], account: str) -> Answer:
    try:
        return await files.events(namespace, sorted(uids), account)
    except Forbidden as error:
        return Warning(
            "events-forbidden",
            SOURCE,
            error.what,
            error.hint,
            {"message": error.what, "namespace": namespace},
        )
    except OutsideError as error:
        return unread_events(error.what, error.hint)


def unread_events(what: str, hint: str) -> Warning:
    """Why a job's events are not known."""
    return Warning("events-unread", SOURCE, what, hint, {"message": what})
