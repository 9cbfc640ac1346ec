"""Which objects the quota controller follows: existing ones, ones that are not served or forbidden
and therefore empty, and CRDs that come and go.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

from tests.edge.quota_reports import ALL, Reported
from tests.edge.scripted import Reply, ScriptedServer, Stream, event, page, pod, status
from tests.edge.twins import connection_to
from tests.edge.world_objects import (
    HOLD,
    MPI,
    MPI_SERVED,
    NODES,
    PODS,
    TREES,
    groups,
    mpi_job,
    node,
    tree,
)
from tests.waiting import until

from fairlead.edge.kube.follow.follower import DISCOVERY_SECONDS
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.quota_api import KubeQuotaApi
from fairlead.model.changes import Changes

NAMESPACES, BUDGETS = "/api/v1/namespaces", "/apis/policy/v1/poddisruptionbudgets"
REPLICA_SETS = "/apis/apps/v1/replicasets"
SERVED = ("apps", "v1", "replicasets")
FORBIDDEN = status(403, "Forbidden", "not for you")
NOT_FOUND = Reply(b"404 page not found", 404, {"Content-Type": "text/plain"})


class Following:
    """`discover`: the wait for the next discovery lasts until it is set."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.reported = Reported()
        self.discover = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds == DISCOVERY_SECONDS:
            await self.discover.wait()
            self.discover.clear()
        else:
            await asyncio.sleep(min(seconds, 0.01))

    async def listed(self) -> None:
        await until(lambda: self.reported.rows.keys() == ALL)


def script(**changes: list[Reply | Stream]) -> dict[str, list[Reply | Stream]]:
    lists: dict[str, list[Reply | Stream]] = {
        "/apis": [groups(SERVED, MPI_SERVED)],
        NODES: [page([node("n1")])],
        PODS: [page([pod("a")])],
        NAMESPACES: [page([{"metadata": {"name": "team", "uid": "t"}}])],
        BUDGETS: [
            page(
                [
                    {
                        "metadata": {"name": "web", "namespace": "team", "uid": "b"},
                        "status": {"disruptionsAllowed": 1},
                    }
                ]
            )
        ],
        REPLICA_SETS: [page([{"metadata": {"name": "web-1", "namespace": "team", "uid": "r"}}])],
        MPI: [page([mpi_job("train")])],
        TREES: [page([tree({"name": "root"})])],
    }
    paths = {"APIS": "/apis", "PODS": PODS, "BUDGETS": BUDGETS, "MPI": MPI, "TREES": TREES}
    watches: dict[str, list[Reply | Stream]] = {
        f"watch {path}": [HOLD] for path in lists if path != "/apis"
    }
    return (
        lists
        | watches
        | {
            (f"watch {paths[name[6:]]}" if name.startswith("WATCH_") else paths[name]): steps
            for name, steps in changes.items()
        }
    )


@contextlib.asynccontextmanager
async def following(steps: dict[str, list[Reply | Stream]]) -> AsyncIterator[Following]:
    with ScriptedServer(steps) as server:
        made = Following(server)
        async with KubeApi(
            connection_to(server.url), rng=random.Random(1), sleep=made.sleep
        ) as api:
            quota = KubeQuotaApi(api, ("ns", "lease"), rng=random.Random(1), sleep=made.sleep)
            task = asyncio.create_task(quota.follow(lambda changes: made.reported.observe(changes)))
            try:
                yield made
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


def test_every_kind_is_listed_and_what_is_not_served_is_empty() -> None:
    async def story() -> None:
        async with following(script()) as world:
            await world.listed()
            reported = world.reported
            filled = {kind: names for kind in reported.rows if (names := reported.names(kind))}
            core = {"pods": ["a"], "nodes": ["n1"], "namespaces": ["team"]}
            quota = {"elasticquotatrees": ["elasticquotatree"], "poddisruptionbudgets": ["web"]}
            assert filled == core | quota | {"replicasets": ["web-1"], "mpijobs": ["train"]}
            assert {"tfjobs", "pytorchjobs", "rayjobs", "jobs.batch"} <= reported.rows.keys()
            assert len(reported.lists) == len(ALL)

    asyncio.run(story())


def test_what_may_not_be_read_counts_as_empty_where_it_is_optional_alone() -> None:
    async def story() -> None:
        async with following(
            script(BUDGETS=[FORBIDDEN], MPI=[FORBIDDEN], TREES=[NOT_FOUND], PODS=[FORBIDDEN])
        ) as world:
            names = world.reported.names
            await until(
                lambda: (
                    [names("poddisruptionbudgets"), names("mpijobs"), names("elasticquotatrees")]
                    == [[], [], []]
                )
            )
            await until(
                lambda: (
                    len(world.server.requests_of(PODS)) > 2
                    and len(world.server.requests_of(BUDGETS)) > 2
                )
            )
            assert names("pods") is None
            assert world.reported.lists.count("poddisruptionbudgets") == 1, (
                "it is reported once that there are none"
            )

    asyncio.run(story())


def test_the_tree_is_gone_with_its_crd_and_comes_back_with_it() -> None:
    steps = script(
        TREES=[page([tree({"name": "root"})]), NOT_FOUND, page([tree({"name": "root"})])],
        WATCH_TREES=[Stream(), NOT_FOUND, HOLD],
    )

    async def story() -> None:
        async with following(steps) as world:
            seen: list[list[str]] = []
            observe = world.reported.observe

            def note(changes: Changes[Any]) -> None:
                observe(changes)
                if changes.kind == "elasticquotatrees":
                    seen.append(sorted(row.name for row in changes.all_rows().values()))

            world.reported.observe = note  # type: ignore[method-assign]
            await until(lambda: seen == [["elasticquotatree"], [], ["elasticquotatree"]])

    asyncio.run(story())


def test_a_kind_that_is_installed_later_is_followed_from_then_on() -> None:
    late = {
        **mpi_job("late"),
        "metadata": {"name": "late", "namespace": "team", "uid": "late", "resourceVersion": "9"},
    }
    steps = script(
        APIS=[groups(SERVED), groups(SERVED, MPI_SERVED)],
        WATCH_MPI=[Stream([event("ADDED", late)], then="hold")],
        MPI=[page([mpi_job("train")])],
    )

    async def story() -> None:
        async with following(steps) as world:
            await world.listed()
            assert world.reported.names("mpijobs") == []
            world.discover.set()
            await until(lambda: world.reported.names("mpijobs") == ["late", "train"])

    asyncio.run(story())


def test_what_discovery_forgets_for_a_moment_is_followed_on() -> None:
    """An API server that has just started may not know a CRD yet; its jobs exist all the same."""
    steps = script(APIS=[groups(SERVED, MPI_SERVED), groups(SERVED), groups(SERVED)])

    async def story() -> None:
        async with following(steps) as world:
            await world.listed()
            for count in (2, 3):
                world.discover.set()
                await until(lambda count=count: len(world.server.requests_of("/apis")) >= count)  # type: ignore[misc]
            assert world.reported.names("mpijobs") == ["train"]

    asyncio.run(story())
