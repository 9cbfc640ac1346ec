"""The replay of the past that an administrator asks for: one at a time, beside the requests.

It outlives the request and the page that asked for it, and ends with the console's process.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from fairlead.console.boards.usage.replay import DOING, Progress
from fairlead.console.http.answers import Refused
from fairlead.console.pages.envelope import exact_timestamp
from fairlead.console.pages.usage.replay import QuotaReplay, QuotaReplayState, ReplayOrder
from fairlead.errors import OutsideError, UserError

_log = logging.getLogger(__name__)


class ReplayDesk:
    """`state`: of the last replay. `now`: seconds of the cluster's clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.state = QuotaReplayState("none")
        self._now = now
        self._task: asyncio.Task[None] | None = None

    def begin(
        self, order: ReplayOrder, by: str, run: Callable[[Progress], Awaitable[QuotaReplay]]
    ) -> QuotaReplayState:
        """`by`: the name of the user. Raises Refused, 409, while one is running."""
        if self.state.state == "running":
            raise Refused(
                409,
                f"a replay of `{self.state.period}` is running, which {self.state.asked_by} asked "
                "for",
                "wait for its end, or cancel it",
                code="blocked",
            )
        self.state = QuotaReplayState(
            "running",
            secrets.token_hex(4),
            by,
            exact_timestamp(self._now()),
            order.period,
            order.nodes,
            order.changes,
            bool(order.tree),
            "reading",
        )
        self._task = asyncio.create_task(self._run(run))
        return self.state

    def cancel(self) -> QuotaReplayState:
        """Nothing happens if none is running."""
        if self.state.state == "running":
            self.state = replace(self.state, state="cancelled")
            self.close()
        return self.state

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, run: Callable[[Progress], Awaitable[QuotaReplay]]) -> None:
        own = self.state.id

        def note(**change: object) -> None:
            if self.state.id == own and self.state.state == "running":
                self.state = replace(self.state, **change)

        try:
            found = await run(lambda what, part: note(doing=DOING[what], part=round(part, 3)))
        except (UserError, OutsideError) as error:
            note(state="failed", error=error.what, hint=error.hint)
        except Exception:  # noqa: BLE001 - logged; the page shows that it failed
            _log.exception("a replay of the past failed")
            note(state="failed", error="the replay failed", hint="look at the console's log")
        else:
            note(state="done", part=1.0, result=found)
