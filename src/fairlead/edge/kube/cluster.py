"""The real cluster behind `ports.Cluster`: a reflector per resource, and a snapshot of all mirrors.

A resource that is forbidden, not served or failing is a state in the snapshot's `sources`, never an
exception and never an empty list without a word. Nodes are read before pods, so that a pod may be
missing, but not its node. ConfigMaps by which an operator takes shared GPUs out are followed from
the moment that a node shares its GPUs. Owners of pods, disruption budgets and namespaces, which
quota reads, are followed from the moment that there is a quota tree.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_discovery import Discovery, check_version
from fairlead.edge.kube.follow.followed_kind import (
    BUDGET_SUBJECT,
    EVENT_SUBJECT,
    NAMESPACE_SUBJECT,
    NODE_SUBJECT,
    POD_SUBJECT,
    QUOTA_SUBJECT,
    WITHHELD_SUBJECT,
    job_subject,
    workload_subject,
)
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.followed import Followed
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import Resource
from fairlead.edge.kube.writer import KubeWriter
from fairlead.errors import FairleadError, Forbidden
from fairlead.kinds.registry import KINDS, one_per_resource
from fairlead.kinds.workloads import OWNER_KINDS, workload_of
from fairlead.model.actions import Action, Outcome
from fairlead.model.changes import Changes
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.resources import GPU_MEMORY, counted
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot
from fairlead.model.source import Source, SourceState
from fairlead.ports import Clock
from fairlead.wire import names

log = logging.getLogger("fairlead.kubernetes")

DISCOVERY_SECONDS = 60.0  # a CRD installed later is picked up within this time
# a controller's; client-go's defaults, 5 and 10, are known to be too small for one
WRITES_PER_SECOND, WRITES_BURST = 50, 100
_TREE_HINT = "`fairlead quota validate FILE` names every fault of a tree"
FRESH_SECONDS = 1.0  # an unchanged snapshot is handed out again without new source times


class KubeCluster:
    """A real cluster that keeps itself current while `run` runs. It does not close its API."""

    def __init__(
        self,
        api: KubeApi,
        clock: Clock,
        *,
        with_events: bool = True,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._writer = KubeWriter(api, RateLimit(WRITES_PER_SECOND, WRITES_BURST))
        self._clock = clock
        self._follower = Follower(api, self._observe, now=clock.now, rng=rng, sleep=sleep)
        self._nodes = Followed(NODE_SUBJECT)
        self._pods = Followed(POD_SUBJECT)
        self._jobs = [Followed(job_subject(kind)) for kind in one_per_resource(KINDS)]
        self._quota = Followed(QUOTA_SUBJECT)
        self._events = Followed(EVENT_SUBJECT) if with_events else None
        self._withheld = Followed(WITHHELD_SUBJECT)
        self._shares_gpus = asyncio.Event()
        self._namespaces = Followed(NAMESPACE_SUBJECT)
        self._budgets = Followed(BUDGET_SUBJECT)
        self._owners = [Followed(workload_subject(kind)) for kind in OWNER_KINDS]
        self._has_tree = asyncio.Event()
        self._by_kind = {
            each.subject.name: each for each in (*self._all, self._withheld, *self._of_quota)
        }
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._discovery: Discovery | None = None
        self._trouble: FairleadError | None = None
        self._version = 0
        self._was_ready = False
        self._changed = asyncio.Event()
        self._snapshot = ClusterSnapshot(version=-1)

    # ports.Cluster

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self._follower.repeat(
                    partial(self._discover, group), self._note_trouble, DISCOVERY_SECONDS
                )
            )
            self._start(group, self._nodes)
            while not self._nodes.is_settled:
                await self._changed.wait()
            self._start(group, self._pods)
            if self._events is not None:
                self._start(group, self._events)
            group.create_task(self._start_after(group, self._shares_gpus, self._withheld))
            await self._start_after(
                group, self._has_tree, self._namespaces, self._budgets, *self._owners
            )

    async def _start_after(
        self, group: asyncio.TaskGroup, wanted: asyncio.Event, *all_followed: Followed[Any]
    ) -> None:
        """Those that the server does not serve yet are begun when it does (`_follow`)."""
        await wanted.wait()
        for followed in all_followed:
            if followed.resource is not None and followed.reflector is None:
                self._start(group, followed)

    @property
    def version(self) -> int:
        return self._version

    @property
    def is_ready(self) -> bool:
        """Once ready, a cluster stays so: a kind that is served later is `syncing` for a moment,
        and that must not take away the pages of all others.
        """
        return self._was_ready or self._has_read_all()

    def _has_read_all(self) -> bool:
        if self._discovery is None:
            return False
        served = [each for each in self._extensions if each.resource is not None]
        return (
            self._nodes.is_settled
            and self._pods.is_settled
            and all(each.is_settled for each in served)
        )

    def snapshot(self) -> ClusterSnapshot:
        now, last = self._clock.now(), self._snapshot
        if last.version == self._version:
            if 0 <= now - last.taken_at < FRESH_SECONDS:
                return last
            fresh = last.as_of(now, self._sources())
        else:
            fresh = self._build(now)
        self._snapshot = fresh
        return fresh

    async def wait_changed(self, since: int, seconds: float) -> int:
        try:
            async with asyncio.timeout(seconds):
                while self._version == since:
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self._version

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        return await self._writer.apply(action, left)

    # state

    @property
    def _extensions(self) -> list[Followed[Any]]:
        """What only some clusters serve."""
        return [*self._jobs, self._quota]

    @property
    def _of_quota(self) -> list[Followed[Any]]:
        """What is read where there is a quota tree."""
        return [self._namespaces, self._budgets, *self._owners]

    @property
    def _all(self) -> list[Followed[Any]]:
        return [
            self._nodes,
            self._pods,
            *self._extensions,
            *([self._events] if self._events is not None else []),
        ]

    def _build(self, now: float) -> ClusterSnapshot:
        nodes = self._nodes.mirror.rows()
        if not self._shares_gpus.is_set() and any(
            counted(node.capacity, GPU_MEMORY) > 0 for node in nodes
        ):
            self._shares_gpus.set()
        tree = self._tree
        if tree is not None:
            self._has_tree.set()
        return build_snapshot(
            nodes=nodes,
            pods=self._pods.mirror.rows(),
            jobs=(job for each in self._jobs for job in each.mirror.rows()),
            quota_tree=tree,
            workloads=self._workloads() if tree else (),
            budgets=self._budgets.mirror.rows() if tree else (),
            namespaces=self._namespaces.mirror.rows() if tree else (),
            events=self._events.mirror.rows() if self._events is not None else (),
            withheld=((row.node, row.indexes) for row in self._withheld.mirror.rows()),
            sources=self._sources(),
            taken_at=now,
            version=self._version,
        )

    def _sources(self) -> list[Source]:
        followed = (
            [*self._all, self._withheld] if self._withheld.reflector is not None else self._all
        )
        return [self._source(each) for each in (*followed, *(self._of_quota if self._tree else ()))]

    def _workloads(self) -> Iterator[Workload]:
        for owners in self._owners:
            yield from owners.mirror.rows()
        for jobs in self._jobs:
            yield from map(workload_of, jobs.mirror.rows())

    def _source(self, followed: Followed[Any]) -> Source:
        if self._discovery is not None and followed.resource is None:
            return msgspec.structs.replace(
                followed.missing_source(), is_optional=followed.subject.is_optional
            )
        source = msgspec.structs.replace(
            followed.source(self._trouble), is_optional=followed.subject.is_optional
        )
        if followed is not self._quota or not source.is_ok:
            return source
        tree = self._tree
        wrong = tree.faults[0].message if tree and tree.faults else source.message
        # there is one tree: left out, or not to be read, it is the whole source
        return (
            msgspec.structs.replace(
                source, state=SourceState.FAILING, message=wrong, hint=source.hint or _TREE_HINT
            )
            if wrong
            else source
        )

    @property
    def _tree(self) -> QuotaTree | None:
        return next(
            (tree for tree in self._quota.mirror.rows() if tree.name == names.QUOTA_TREE_NAME), None
        )

    def _observe(self, changes: Changes[Any]) -> None:
        self._by_kind[changes.kind].mirror.observe(changes)

    def _note_change(self) -> None:
        self._version += 1
        self._was_ready = self._was_ready or self._has_read_all()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # discovery

    async def _discover(self, group: asyncio.TaskGroup) -> None:
        if self._discovery is None:
            await self._check_version()
        offered = [*self._extensions, *self._owners]
        groups = {each.subject.resource.group for each in offered}
        found = await self._api.discovery(groups)
        is_first = self._discovery is None
        self._discovery, self._trouble = found, None
        moved = [self._follow(group, each, each.subject.served(found)) for each in offered]
        if is_first or any(moved):
            self._note_change()

    async def _check_version(self) -> None:
        try:
            check_version(self._api.connection.server, await self._api.version())
        except Forbidden:
            log.info(
                "this user may not ask for the API server's version; it is taken to be new enough"
            )

    def _follow(
        self, group: asyncio.TaskGroup, followed: Followed[Any], resource: Resource | None
    ) -> bool:
        """Start, stop or restart following as the server's offer changed. Whether it did."""
        if resource == followed.resource:
            return False
        self._stop(followed)
        followed.resource = resource
        if resource is None:
            log.info("%s is no longer served", followed.subject.resource.label)
            followed.mirror.clear()
        elif followed not in self._owners or self._has_tree.is_set():
            self._start(group, followed)
        return True

    def _start(self, group: asyncio.TaskGroup, followed: Followed[Any]) -> None:
        subject = followed.subject
        assert followed.resource is not None
        followed.reflector = self._follower.reflector(subject, followed.resource, self._note_change)
        self._tasks[subject.name] = group.create_task(
            followed.reflector.run(), name=f"reflector of {subject.name}"
        )

    def _stop(self, followed: Followed[Any]) -> None:
        followed.reflector = None
        task = self._tasks.pop(followed.subject.name, None)
        if task is not None:
            task.cancel()

    def _note_trouble(self, error: FairleadError) -> None:
        if self._trouble is None or self._trouble.what != error.what:
            log.warning("discovery failed: %s", error.log_line)
            self._trouble = error
            self._note_change()
