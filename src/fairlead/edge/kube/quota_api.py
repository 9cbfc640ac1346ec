"""The API server as the quota controller needs it (`ports.QuotaApi`): follow what quota reads, carry actions
out, keep a Lease.

Training jobs are kinds that only some clusters serve: discovery is asked again and again, and what is not
served counts as empty. So does the tree while its CRD is away.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.followed import (
    BUDGET_SUBJECT,
    NAMESPACE_SUBJECT,
    NODE_SUBJECT,
    QUOTA_SUBJECT,
    FollowedKind,
    by_namespace_and_name,
    workload_subject,
)
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import PODS, Resource
from fairlead.edge.kube.writer import KubeWriter
from fairlead.errors import FairleadError, Forbidden, NotFound
from fairlead.kinds.workloads import WORKLOAD_KINDS
from fairlead.model.actions import Action, Outcome
from fairlead.model.pod import Pod, without_report
from fairlead.ports import LeaseRecord, QuotaSinks, RowSink
from fairlead.wire.kube.objects import WirePod, parse_pod

DISCOVERY_SECONDS: Final = 30.0
"""A kind of job installed later is picked up within this time."""
TREE_SECONDS: Final = 5.0
"""So long at most between tries to read the tree, whose CRD may come later."""
_Begin = Callable[..., Reflector[Any]]
_log = logging.getLogger("fairlead.kubernetes")


LEAN_POD_SUBJECT: FollowedKind[Pod] = FollowedKind("pods", PODS, WirePod, parse_pod, by_namespace_and_name, keep=without_report)
"""A list of all pods is in memory at once, so each is made lean when it is read."""
WORKLOAD_SUBJECTS: Final = tuple(map(workload_subject, WORKLOAD_KINDS))


class KubeQuotaApi:
    """`lease`: namespace and name. The rate bounds all writes; Events have a smaller one of their own."""

    def __init__(
        self,
        api: KubeApi,
        lease: tuple[str, str],
        per_second: float = 300,
        burst: int = 500,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._writer = KubeWriter(api, RateLimit(per_second, burst))
        self._lease = KubeLease(api, *lease)
        self._rng = rng
        self._sleep = sleep

    async def follow(self, sinks: QuotaSinks) -> None:
        begin: _Begin = partial(Reflector, self._api, rng=self._rng, sleep=self._sleep)
        begin_soon: _Begin = partial(Reflector, self._api, rng=self._rng, sleep=lambda seconds: self._sleep(min(seconds, TREE_SECONDS)))
        fixed = (
            _Follow(begin, NODE_SUBJECT, sinks.nodes),
            _Follow(begin, NAMESPACE_SUBJECT, sinks.namespaces),
            _Follow(begin, LEAN_POD_SUBJECT, sinks.pods),
            _Follow(begin_soon, QUOTA_SUBJECT, sinks.trees, is_optional=True),
            _Follow(begin, BUDGET_SUBJECT, sinks.budgets, is_optional=True),
        )
        offered = [_Follow(begin, each, sinks.workloads(each.name), is_optional=True) for each in WORKLOAD_SUBJECTS]
        async with asyncio.TaskGroup() as group:
            for each in fixed:
                each.start(group, each.subject.resource)
            group.create_task(self._discover_for_ever(group, offered))

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        return await self._writer.apply(action, left)

    async def get_lease(self) -> LeaseRecord | None:
        return await self._lease.get_lease()

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        return await self._lease.put_lease(record)

    async def _discover_for_ever(self, group: asyncio.TaskGroup, offered: list[_Follow]) -> None:
        backoff = Backoff(self._rng)
        groups = {each.subject.resource.group for each in offered}
        while True:
            try:
                found = await self._api.discovery(groups)
            except FairleadError as error:
                _log.warning("discovery failed: %s", error.log_line)
                await self._sleep(backoff.next_delay())
                continue
            backoff.reset()
            for each in offered:
                subject = each.subject
                each.offer(group, found.find(subject.resource.group, subject.resource.plural, subject.versions))
            await self._sleep(DISCOVERY_SECONDS)


class _Follow:
    """One kind, its sink and, while the server serves it, its reflector.

    `is_optional`: where it may not be read or is not served, it counts as empty.
    """

    def __init__(self, begin: _Begin, subject: FollowedKind[Any], sink: RowSink[Any], *, is_optional: bool = False) -> None:
        self.subject = subject
        self._begin = begin
        self._sink = sink
        self._is_optional = is_optional
        self._resource: Resource | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_empty = False

    def start(self, group: asyncio.TaskGroup, resource: Resource) -> None:
        reader, selection = self.subject.reader(resource), self.subject.selection
        reflector: Reflector[Any] = self._begin(
            reader, self._sink, selection=selection, on_change=lambda: self._empty_if_missing(reflector)
        )
        self._resource = resource
        self._task = group.create_task(reflector.run(), name=f"reflector of {self.subject.name}")

    def offer(self, group: asyncio.TaskGroup, resource: Resource | None) -> None:
        """What discovery found. One that is followed and not offered any more is left to its reflector: the
        server may only have begun, and what is really gone answers 404 there.
        """
        if resource is None:
            if self._task is None:
                self._empty()
        elif resource != self._resource:
            if self._task is not None:
                self._task.cancel()
            self.start(group, resource)

    def _empty_if_missing(self, reflector: Reflector[Any]) -> None:
        if reflector.last_error is None:
            self._is_empty = False
        elif self._is_optional and isinstance(reflector.last_error, Forbidden | NotFound):
            self._empty()

    def _empty(self) -> None:
        """Once, until there is something again."""
        if not self._is_empty:
            self._is_empty = True
            self._sink.replace({}, ())
