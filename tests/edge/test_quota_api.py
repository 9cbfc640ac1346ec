"""What the quota controller follows: what is there, what is not served or forbidden and therefore empty, and CRDs that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Collection
from typing import Any, Generic, TypeVar

from tests.waiting import until

from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.quota_api import DISCOVERY_SECONDS, KubeQuotaApi
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.tree import QuotaTree

from .scripted import Reply, ScriptedServer, Stream, event, page, pod, status
from .test_world import HOLD, MPI, MPI_SERVED, NODES, PODS, TREES, groups, mpi_job, node, tree
from .twins import connection_to

Row = TypeVar("Row")
NAMESPACES, BUDGETS = "/api/v1/namespaces", "/apis/policy/v1/poddisruptionbudgets"
REPLICA_SETS = "/apis/apps/v1/replicasets"
SERVED = ("apps", "v1", "replicasets")
FORBIDDEN = status(403, "Forbidden", "not for you")
NOT_FOUND = Reply(b"404 page not found", 404, {"Content-Type": "text/plain"})


class Sink(Generic[Row]):
    """`rows` is None before the first list."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] | None = None

    def replace(self, rows: dict[str, Row], unreadable: Collection[str]) -> None:
        self.rows = rows

    def upsert(self, key: str, row: Row) -> None:
        assert self.rows is not None
        self.rows[key] = row

    def remove(self, key: str) -> None:
        assert self.rows is not None
        self.rows.pop(key)

    @property
    def names(self) -> list[str] | None:
        return None if self.rows is None else sorted(row.name for row in self.rows.values())  # type: ignore[attr-defined]


class Sinks:
    def __init__(self) -> None:
        self.pods: Sink[Pod] = Sink()
        self.nodes: Sink[Node] = Sink()
        self.trees: Sink[QuotaTree] = Sink()
        self.namespaces: Sink[Namespace] = Sink()
        self.budgets: Sink[Budget] = Sink()
        self.by_kind: dict[str, Sink[Workload]] = {}

    def workloads(self, kind: str) -> Sink[Workload]:
        return self.by_kind.setdefault(kind, Sink())

    @property
    def all(self) -> list[Sink[Any]]:
        return [self.pods, self.nodes, self.trees, self.namespaces, self.budgets, *self.by_kind.values()]


class Following:
    """`discover`: the wait for the next discovery lasts until it is set."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.sinks = Sinks()
        self.discover = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds == DISCOVERY_SECONDS:
            await self.discover.wait()
            self.discover.clear()
        else:
            await asyncio.sleep(min(seconds, 0.01))

    async def listed(self) -> None:
        await until(lambda: all(each.rows is not None for each in self.sinks.all))


def script(**changes: list[Reply | Stream]) -> dict[str, list[Reply | Stream]]:
    lists: dict[str, list[Reply | Stream]] = {
        "/apis": [groups(SERVED, MPI_SERVED)],
        NODES: [page([node("n1")])],
        PODS: [page([pod("a")])],
        NAMESPACES: [page([{"metadata": {"name": "team", "uid": "t"}}])],
        BUDGETS: [page([{"metadata": {"name": "web", "namespace": "team", "uid": "b"}, "status": {"disruptionsAllowed": 1}}])],
        REPLICA_SETS: [page([{"metadata": {"name": "web-1", "namespace": "team", "uid": "r"}}])],
        MPI: [page([mpi_job("train")])],
        TREES: [page([tree({"name": "root"})])],
    }
    paths = {"APIS": "/apis", "PODS": PODS, "BUDGETS": BUDGETS, "MPI": MPI, "TREES": TREES}
    watches: dict[str, list[Reply | Stream]] = {f"watch {path}": [HOLD] for path in lists if path != "/apis"}
    return (
        lists
        | watches
        | {(f"watch {paths[name[6:]]}" if name.startswith("WATCH_") else paths[name]): steps for name, steps in changes.items()}
    )


@contextlib.asynccontextmanager
async def following(steps: dict[str, list[Reply | Stream]]) -> AsyncIterator[Following]:
    with ScriptedServer(steps) as server:
        made = Following(server)
        async with KubeApi(connection_to(server.url), rng=random.Random(1), sleep=made.sleep) as api:
            quota = KubeQuotaApi(api, ("ns", "lease"), rng=random.Random(1), sleep=made.sleep)
            task = asyncio.create_task(quota.follow(made.sinks))
            try:
                yield made
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


def test_every_kind_is_listed_and_what_is_not_served_is_empty() -> None:
    async def story() -> None:
        async with following(script()) as world:
            await world.listed()
            sinks = world.sinks
            assert [each.names for each in (sinks.pods, sinks.nodes, sinks.namespaces)] == [["a"], ["n1"], ["team"]]
            assert (sinks.trees.names, sinks.budgets.names) == (["elasticquotatree"], ["web"])
            filled = {kind: sink.names for kind, sink in sinks.by_kind.items() if sink.names}
            assert filled == {"replicasets": ["web-1"], "mpijobs": ["train"]}
            assert {"tfjobs", "pytorchjobs", "rayjobs", "jobs.batch"} <= sinks.by_kind.keys()

    asyncio.run(story())


def test_what_may_not_be_read_counts_as_empty_where_it_is_optional_alone() -> None:
    async def story() -> None:
        async with following(script(BUDGETS=[FORBIDDEN], MPI=[FORBIDDEN], TREES=[NOT_FOUND], PODS=[FORBIDDEN])) as world:
            sinks = world.sinks
            await until(lambda: [sinks.budgets.names, sinks.workloads("mpijobs").names, sinks.trees.names] == [[], [], []])
            await until(lambda: len(world.server.requests_of(PODS)) > 2)
            assert sinks.pods.rows is None

    asyncio.run(story())


def test_the_tree_is_gone_with_its_crd_and_comes_back_with_it() -> None:
    steps = script(
        TREES=[page([tree({"name": "root"})]), NOT_FOUND, page([tree({"name": "root"})])],
        WATCH_TREES=[Stream(), NOT_FOUND, HOLD],
    )

    async def story() -> None:
        async with following(steps) as world:
            seen: list[list[str] | None] = []
            replace = world.sinks.trees.replace

            def note(rows: dict[str, QuotaTree], unreadable: Collection[str]) -> None:
                replace(rows, unreadable)
                seen.append(world.sinks.trees.names)

            world.sinks.trees.replace = note  # type: ignore[method-assign]
            await until(lambda: seen == [["elasticquotatree"], [], ["elasticquotatree"]])

    asyncio.run(story())


def test_a_kind_that_is_installed_later_is_followed_from_then_on() -> None:
    late = {**mpi_job("late"), "metadata": {"name": "late", "namespace": "team", "uid": "late", "resourceVersion": "9"}}
    steps = script(
        APIS=[groups(SERVED), groups(SERVED, MPI_SERVED)],
        WATCH_MPI=[Stream([event("ADDED", late)], then="hold")],
        MPI=[page([mpi_job("train")])],
    )

    async def story() -> None:
        async with following(steps) as world:
            await world.listed()
            assert world.sinks.workloads("mpijobs").names == []
            world.discover.set()
            await until(lambda: world.sinks.workloads("mpijobs").names == ["late", "train"])

    asyncio.run(story())


def test_what_discovery_forgets_for_a_moment_is_followed_on() -> None:
    """An API server that has just begun may not know a CRD yet; its jobs are there all the same."""
    steps = script(APIS=[groups(SERVED, MPI_SERVED), groups(SERVED), groups(SERVED)])

    async def story() -> None:
        async with following(steps) as world:
            await world.listed()
            for count in (2, 3):
                world.discover.set()
                await until(lambda count=count: len(world.server.requests_of("/apis")) >= count)  # type: ignore[misc]
            assert world.sinks.workloads("mpijobs").names == ["train"]

    asyncio.run(story())
