"""An API server in memory for the people controller: it lists nothing and carries out nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.model.actions import Outcome
from fairlead.model.changes import Observe, listed
from fairlead.model.people.actions import PeopleAction
from fairlead.ports import LeaseRecord
from fairlead.rules.people.feed import ALWAYS_FOLLOWED


class FakePeopleApi:
    """An empty cluster."""

    work_kinds: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._lease = LeaseRecord(version="0")

    async def follow(self, observe: Observe) -> None:
        for kind in ALWAYS_FOLLOWED:
            observe(listed(kind, {}))
        await asyncio.Event().wait()

    async def apply(self, action: PeopleAction, left: Callable[[], float] | None = None) -> Outcome:
        raise AssertionError(f"there is nothing to do, and yet: {action}")

    async def get_lease(self) -> LeaseRecord | None:
        return self._lease

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        self._lease = record
        return record
