"""Follows kinds of one API server for one observer.

Each kind has a reflector. Kinds that only some clusters serve are looked for by discovery, again
and again, so that a CRD installed later is followed from then on. An optional kind that is not
served or may not be read counts as empty: the observer gets one empty list, and no second one
before the kind was read again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final

from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.kube.follow.followed_kind import FollowedKind
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import Resource
from fairlead.errors import FairleadError, Forbidden, NotFound
from fairlead.model.changes import Observe, listed

DISCOVERY_SECONDS: Final = 30.0
"""Seconds between two discoveries: a kind that is installed later is followed within this time."""
Sleep = Callable[[float], Awaitable[Any]]
_log = logging.getLogger("fairlead.kubernetes")


class Follower:
    """Reports to `observe` what the API server lists and watches.

    `now` gives the epoch seconds of `Reflector.good_at`; `sleep` and `rng` are for waits.
    """

    def __init__(
        self,
        api: KubeApi,
        observe: Observe,
        *,
        now: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._api = api
        self._observe = observe
        self._now = now
        self._rng = rng
        self._sleep = sleep

    async def run(self, kinds: Iterable[FollowedKind[Any]]) -> None:
        """List each kind anew, then watch it, until cancelled.

        A kind without `versions` begins at once, the others when discovery has found them.
        """
        async with asyncio.TaskGroup() as group:
            offered = []
            for kind in kinds:
                followed = _Following(self, group, kind)
                if kind.versions is None:
                    followed.start(kind.resource)
                else:
                    offered.append(followed)
            if offered:
                group.create_task(
                    self.repeat(partial(self._discover, offered), _log_failure, DISCOVERY_SECONDS)
                )

    async def repeat(
        self,
        discover: Callable[[], Awaitable[None]],
        failed: Callable[[FairleadError], None],
        seconds: float,
    ) -> None:
        """Call `discover` again and again, until cancelled.

        The wait is `seconds` after a success, and that of a back-off after a failure, which
        `failed` gets.
        """
        backoff = Backoff(self._rng)
        while True:
            try:
                await discover()
            except FairleadError as error:
                failed(error)
                await self._sleep(backoff.next_delay())
            else:
                backoff.reset()
                await self._sleep(seconds)

    def reflector(
        self, kind: FollowedKind[Any], resource: Resource, on_change: Callable[[], None]
    ) -> Reflector[Any]:
        """What keeps the observer current of one kind."""
        most, sleep = kind.retry_seconds, self._sleep
        return Reflector(
            self._api,
            kind.reader(resource),
            kind.name,
            self._observe,
            selection=kind.selection,
            now=self._now,
            rng=self._rng,
            sleep=sleep if most is None else lambda seconds: sleep(min(seconds, most)),
            on_change=on_change,
        )

    def empty(self, kind: FollowedKind[Any]) -> None:
        """Report that there is nothing of a kind."""
        self._observe(listed(kind.name, {}))

    async def _discover(self, offered: list[_Following]) -> None:
        found = await self._api.discovery({each.kind.resource.group for each in offered})
        for each in offered:
            each.offer(each.kind.served(found))


def _log_failure(error: FairleadError) -> None:
    _log.warning("discovery failed: %s", error.log_line)


class _Following:
    """One kind and, while the server serves it, its reflector."""

    def __init__(
        self, follower: Follower, group: asyncio.TaskGroup, kind: FollowedKind[Any]
    ) -> None:
        self.kind = kind
        self._follower = follower
        self._group = group
        self._resource: Resource | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_empty = False

    def start(self, resource: Resource) -> None:
        reflector = self._follower.reflector(
            self.kind, resource, lambda: self._empty_if_missing(reflector)
        )
        self._resource = resource
        self._task = self._group.create_task(reflector.run(), name=f"reflector of {self.kind.name}")

    def offer(self, resource: Resource | None) -> None:
        """What discovery found.

        A kind that is followed and not found any more stays with its reflector: an API server that
        has just started may not know every CRD yet, and a kind that is really gone answers 404
        there.
        """
        if resource is None:
            if self._task is None and self.kind.is_optional:
                self._empty()
        elif resource != self._resource:
            if self._task is not None:
                self._task.cancel()
            self.start(resource)

    def _empty_if_missing(self, reflector: Reflector[Any]) -> None:
        if reflector.last_error is None:
            self._is_empty = False
        elif self.kind.is_optional and isinstance(reflector.last_error, Forbidden | NotFound):
            self._empty()

    def _empty(self) -> None:
        """Once, until there is something again."""
        if not self._is_empty:
            self._is_empty = True
            self._follower.empty(self.kind)
