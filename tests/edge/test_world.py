"""The real cluster as a snapshot: the state of each source, CRDs that come and go, and no wrong
zero after a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.edge.scripted import Reply, ScriptedServer, Stream, event, page, pod, status
from tests.edge.twins import connection_to
from tests.edge.world_objects import (
    EVENTS,
    HOLD,
    MPI,
    MPI_SERVED,
    NODES,
    PODS,
    TREES,
    TREES_SERVED,
    groups,
    mpi_job,
    node,
    tree,
)
from tests.waiting import HANG_SECONDS

from fairlead.edge.kube.cluster import DISCOVERY_SECONDS, KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.model.snapshot import ClusterSnapshot

BUDGETS, NAMESPACES = "/apis/policy/v1/poddisruptionbudgets", "/api/v1/namespaces"
Script = dict[str, list[Reply | Stream]]


def small_cluster(**changes: list[Reply | Stream]) -> Script:
    """One node, two pods, one job, a tree. `changes` replace the steps of a path, by the name of
    its constant.
    """
    script: Script = {
        "/version": [Reply({"major": "1", "minor": "30", "gitVersion": "v1.30.0"})],
        "/apis": [groups(MPI_SERVED, TREES_SERVED)],
        NODES: [page([node("n1")])],
        PODS: [page([pod("b"), pod("a")])],
        EVENTS: [page([])],
        MPI: [page([mpi_job("train")])],
        TREES: [page([tree({"name": "root"})])],
        NAMESPACES: [page([])],
        BUDGETS: [page([])],
        **{
            f"watch {path}": [HOLD]
            for path in (NODES, PODS, EVENTS, MPI, TREES, NAMESPACES, BUDGETS)
        },
    }
    paths = {
        "VERSION": "/version",
        "APIS": "/apis",
        "NODES": NODES,
        "PODS": PODS,
        "EVENTS": EVENTS,
        "MPI": MPI,
        "TREES": TREES,
    }
    return script | {
        paths[name.removeprefix("WATCH_")].join(
            ("watch " if name.startswith("WATCH_") else "", "")
        ): steps
        for name, steps in changes.items()
    }


class HandClock:
    def __init__(self) -> None:
        self.at = 1_767_600_000.0

    def now(self) -> float:
        return self.at


class Living:
    """A running cluster: sleeps are short, and the wait for the next discovery lasts until
    `discover` is set.
    """

    def __init__(self, url: str) -> None:
        self.clock = HandClock()
        self.discover = asyncio.Event()
        self.api = KubeApi(connection_to(url), rng=random.Random(1), sleep=self._sleep)
        self.cluster = KubeCluster(self.api, self.clock, rng=random.Random(1), sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        if seconds == DISCOVERY_SECONDS:
            await self.discover.wait()
            self.discover.clear()
        else:
            await asyncio.sleep(min(seconds, 0.01))

    async def until(self, is_true: Callable[[ClusterSnapshot], object]) -> ClusterSnapshot:
        async with asyncio.timeout(HANG_SECONDS):
            while not is_true(snapshot := self.cluster.snapshot()):
                # later than the time during which an unchanged snapshot is returned again
                self.clock.at += 2
                await self.cluster.wait_changed(self.cluster.version, 0.02)
        return snapshot


@contextlib.asynccontextmanager
async def living(script: Script) -> AsyncIterator[tuple[Living, ScriptedServer]]:
    with ScriptedServer(script) as server:
        world = Living(server.url)
        task = asyncio.create_task(world.cluster.run())
        try:
            yield world, server
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await world.api.close()


def is_all_ok(snapshot: ClusterSnapshot) -> bool:
    return all(
        snapshot.sources[name].state == "ok"
        for name in ("nodes", "pods", "events", "mpijobs", "elasticquotatrees")
    )


async def test_a_cluster_becomes_a_snapshot() -> None:
    async with living(small_cluster()) as (world, server):
        assert not world.cluster.is_ready
        snapshot = await world.until(is_all_ok)
        await world.until(lambda _: world.cluster.is_ready)
        assert [each.name for each in snapshot.nodes] == ["n1"]
        assert [each.name for each in snapshot.pods] == ["a", "b"]
        assert [(each.name, each.type, each.api_version) for each in snapshot.jobs] == [
            ("train", "mpijob", "kubeflow.org/v2beta1")
        ]
        assert snapshot.quota is not None
        assert snapshot.quota.name == "root"
        assert snapshot.sources["tfjobs"].state == "missing"
        assert "tfjobs.kubeflow.org" in snapshot.sources["tfjobs"].message
        assert server.requests_of(EVENTS)[0].query["fieldSelector"] == "type=Warning"


async def test_pods_are_not_asked_for_before_the_nodes_are_known() -> None:
    ill = status(500, "InternalError", "etcd is unhealthy")
    async with living(small_cluster(NODES=[ill, ill, page([node("n1")])])) as (world, server):
        await world.until(is_all_ok)
        paths = [seen.path for seen in server.seen if "watch" not in seen.query]
        assert paths.count(NODES) == 3
        assert paths.index(PODS) > len(paths) - 1 - paths[::-1].index(NODES)


async def test_an_unchanged_cluster_hands_out_the_same_snapshot_with_its_indexes() -> None:
    async with living(small_cluster()) as (world, _):
        await world.until(is_all_ok)
        while await world.cluster.wait_changed(version := world.cluster.version, 0.2) != version:
            pass  # the watches open after the lists
        first = world.cluster.snapshot()
        assert world.cluster.snapshot() is first
        index = first.node_by_name
        world.clock.at += 30
        later = world.cluster.snapshot()
        assert later is not first
        assert (later.version, later.taken_at) == (first.version, world.clock.at)
        assert later.sources["pods"].good_at == world.clock.at
        assert later.node_by_name is index


async def test_a_change_makes_a_new_version_and_wakes_the_waiting() -> None:
    later = Stream([event("DELETED", pod("a", 11))], "hold", pause=0.2)
    async with living(small_cluster(WATCH_PODS=[Stream(), later])) as (world, _):
        first = await world.until(lambda snapshot: len(snapshot.pods) == 2)
        second = await world.until(lambda snapshot: len(snapshot.pods) == 1)
        assert second.version > first.version
        assert first.nodes is second.nodes
        assert await world.cluster.wait_changed(-5, 10) == world.cluster.version
        assert (
            await world.cluster.wait_changed(world.cluster.version, 0.01) == world.cluster.version
        )


async def test_forbidden_pods_are_a_source_state_and_the_rest_goes_on() -> None:
    words = 'pods is forbidden: User "viewer" cannot list resource "pods"'
    async with living(small_cluster(PODS=[status(403, "Forbidden", words)])) as (world, _):
        snapshot = await world.until(
            lambda snapshot: (
                snapshot.sources["pods"].state == "forbidden" and world.cluster.is_ready
            )
        )
        assert snapshot.sources["pods"].message == words
        assert snapshot.sources["pods"].hint
        assert snapshot.sources["pods"].good_at is None
        assert len(snapshot.nodes) == 1


async def test_a_right_granted_later_is_noticed() -> None:
    async with living(
        small_cluster(
            PODS=[status(403, "Forbidden", "no"), status(403, "Forbidden", "no"), page([pod("a")])]
        )
    ) as (world, _):
        assert len((await world.until(is_all_ok)).pods) == 1


async def test_a_crd_installed_later_is_picked_up_and_one_removed_is_dropped() -> None:
    script = small_cluster(
        APIS=[groups(TREES_SERVED), groups(MPI_SERVED, TREES_SERVED), groups(TREES_SERVED)]
    )
    async with living(script) as (world, _):
        before = await world.until(
            lambda snapshot: (
                snapshot.sources["mpijobs"].state == "missing"
                and snapshot.sources["pods"].state == "ok"
            )
        )
        assert before.jobs == ()
        world.discover.set()
        during = await world.until(lambda snapshot: snapshot.sources["mpijobs"].state == "ok")
        assert [job.name for job in during.jobs] == ["train"]
        world.discover.set()
        after = await world.until(lambda snapshot: snapshot.sources["mpijobs"].state == "missing")
        assert after.jobs == ()


async def test_a_kind_served_later_does_not_hide_the_others_while_it_is_read() -> None:
    """The pages of a console that is ready stay: the new kind alone is being read."""
    script = small_cluster(
        APIS=[groups(TREES_SERVED), groups(MPI_SERVED, TREES_SERVED)], MPI=[HOLD]
    )
    async with living(script) as (world, _):
        await world.until(lambda _: world.cluster.is_ready)
        world.discover.set()
        during = await world.until(lambda snapshot: snapshot.sources["mpijobs"].state == "syncing")
        assert len(during.pods) == 2
        assert world.cluster.is_ready


async def test_an_api_server_that_goes_away_leaves_the_last_state_marked_old() -> None:
    async with living(small_cluster()) as (world, server):
        known = await world.until(
            lambda snapshot: (
                is_all_ok(snapshot) and snapshot.sources["pods"].good_at == snapshot.taken_at
            )
        )
        server.stop()
        snapshot = await world.until(
            lambda snapshot: all(
                snapshot.sources[name].state == "failing" for name in ("nodes", "pods", "mpijobs")
            )
        )
        world.clock.at += 600
        snapshot = world.cluster.snapshot()
        assert (len(snapshot.nodes), len(snapshot.pods), len(snapshot.jobs)) == (1, 2, 1)
        await world.until(
            lambda snapshot: "refused the connection" in snapshot.sources["pods"].message
        )
        assert snapshot.sources["pods"].good_at is not None
        assert known.taken_at <= snapshot.sources["pods"].good_at < world.clock.at - 500
        with ScriptedServer(small_cluster(), port=server.port):
            await world.until(is_all_ok)


async def test_no_server_at_the_start_is_not_an_empty_cluster() -> None:
    script = small_cluster()
    async with living(script) as (world, server):
        server.stop()
        snapshot = await world.until(lambda snapshot: snapshot.sources["nodes"].state == "failing")
        assert not world.cluster.is_ready
        assert snapshot.sources["mpijobs"].state in ("failing", "syncing")
        snapshot = await world.until(
            lambda snapshot: snapshot.sources["mpijobs"].state == "failing"
        )
        assert server.url in snapshot.sources["mpijobs"].message


async def test_a_server_that_is_too_old_is_reported() -> None:
    async with living(
        small_cluster(VERSION=[Reply({"major": "1", "minor": "16", "gitVersion": "v1.16.15"})])
    ) as (world, _):
        snapshot = await world.until(
            lambda snapshot: snapshot.sources["mpijobs"].state == "failing"
        )
        assert "v1.16.15" in snapshot.sources["mpijobs"].message
        assert not world.cluster.is_ready


async def test_a_broken_tree_is_a_sentence_and_not_an_empty_quota() -> None:
    broken = tree({"name": "root", "children": [{"name": "root.a", "min": {"cpu": "lots"}}]})
    async with living(
        small_cluster(TREES=[page([tree({"name": "other"}, "another-name"), broken])])
    ) as (world, _):
        snapshot = await world.until(
            lambda snapshot: snapshot.sources["elasticquotatrees"].state == "failing"
        )
        assert snapshot.sources["elasticquotatrees"].message == (
            "root.a: min of cpu is `lots`, which is not a quantity of Kubernetes"
        )
        assert snapshot.quota is None
        assert snapshot.quota_tree is not None
        assert [fault.path for fault in snapshot.quota_tree.faults] == ["root.a"]
        await world.until(lambda _: world.cluster.is_ready)


@pytest.mark.parametrize("levels", [200, 2000])
@pytest.mark.parametrize("is_reported_by_the_watch", [False, True])
async def test_a_tree_of_any_depth_is_read_and_one_that_is_too_deep_is_reported(
    levels: int, is_reported_by_the_watch: bool
) -> None:
    root = b'{"name":"root"}'
    for level in range(levels - 1):
        root = b'{"name":"l%d","children":[%s]}' % (level, root)
    deep = json.dumps(tree({})).encode().replace(b'"root": {}', b'"root": ' + root)
    listed = (
        page([tree({"name": "small"})])
        if is_reported_by_the_watch
        else Reply(b'{"metadata":{"resourceVersion":"1"},"items":[%s]}' % deep)
    )
    watched = Stream(
        [b'{"type":"MODIFIED","object":%s}\n' % deep] if is_reported_by_the_watch else [], "hold"
    )
    async with living(small_cluster(TREES=[listed], WATCH_TREES=[watched])) as (world, _):
        snapshot = await world.until(
            lambda now: (
                now.quota_tree and now.quota_tree.root and now.quota_tree.root.name != "small"
            )
        )
        assert snapshot.quota_tree is not None
        reported = [fault.message for fault in snapshot.quota_tree.faults]
        assert reported == (
            []
            if levels == 200
            else ["l1748: lies deeper than 250 levels, which is as deep as a tree may be"]
        )
        assert snapshot.sources["elasticquotatrees"].state == ("ok" if levels == 200 else "failing")


async def test_pods_left_out_are_reported_while_the_rest_is_shown() -> None:
    async with living(small_cluster(PODS=[page([pod("a"), pod("strange") | {"spec": 5}])])) as (
        world,
        _,
    ):
        snapshot = await world.until(is_all_ok)
        assert [each.name for each in snapshot.pods] == ["a"]
        assert snapshot.sources["pods"].message.startswith(
            "1 left out that cannot be read, such as pods default/strange"
        )


CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"


def config_map(name: str, gpus: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "kube-system", "uid": name, "resourceVersion": "1"},
        "data": {"gpus": gpus},
    }


async def test_cards_that_an_operator_takes_out_are_known_where_cards_are_shared() -> None:
    shared = {**node("n1"), "status": {"capacity": {"aliyun.com/gpu-mem": "30"}}}
    later = event("ADDED", config_map("unhealthy-gpu-n2", "3,x"))
    script = small_cluster(NODES=[page([shared])]) | {
        CONFIG_MAPS: [page([config_map("unhealthy-gpu-n1", "1,0"), config_map("other", "3")])],
        f"watch {CONFIG_MAPS}": [Stream(lines=[later], then="hold")],
    }
    async with living(script) as (world, _):
        snapshot = await world.until(lambda snapshot: len(snapshot.withheld) == 2)
        assert snapshot.withheld == {"n1": (0, 1), "n2": (3,)}
        assert snapshot.sources["gpu-withheld"].state == "ok"
        assert "gpu-withheld" not in snapshot.main_sources, "no page is incomplete without"


async def test_a_user_that_may_not_read_them_or_shares_nothing_misses_nothing() -> None:
    shared = {**node("n1"), "status": {"capacity": {"aliyun.com/gpu-mem": "30"}}}
    async with living(
        small_cluster(NODES=[page([shared])]) | {CONFIG_MAPS: [status(403, "Forbidden", "no")]}
    ) as (world, server):
        snapshot = await world.until(
            lambda snapshot: (
                is_all_ok(snapshot) and snapshot.sources["gpu-withheld"].state == "forbidden"
            )
        )
        assert not snapshot.withheld
    async with living(small_cluster()) as (world, server):
        snapshot = await world.until(is_all_ok)
        assert (snapshot.sources["gpu-withheld"].state, server.requests_of(CONFIG_MAPS)) == (
            "off",
            [],
        )


REPLICA_SETS = "/apis/apps/v1/replicasets"
REPLICA_SETS_SERVED = ("apps", "v1", "replicasets")


def replica_set(name: str) -> dict[str, Any]:
    owner = {"kind": "Deployment", "name": "web", "uid": "uid-web", "controller": True}
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "ownerReferences": [owner],
    }
    return {
        "metadata": {**meta, "annotations": {"deployment.kubernetes.io/revision": "7"}},
        "spec": {},
    }


def with_quota(**changes: list[Reply | Stream]) -> Script:
    """The small cluster, and the objects that quota reads beside the tree."""
    budget = {
        "metadata": {"name": "b", "namespace": "default", "uid": "ub", "generation": 1},
        "spec": {"selector": {}},
    }
    script: Script = {
        REPLICA_SETS: [page([replica_set("web-1")])],
        BUDGETS: [page([{**budget, "status": {"disruptionsAllowed": 2, "observedGeneration": 1}}])],
        NAMESPACES: [
            page(
                [
                    {
                        "metadata": {
                            "name": "default",
                            "uid": "ud",
                            "labels": {"fairlead.io/quota": "enforced"},
                        }
                    }
                ]
            )
        ],
        f"watch {REPLICA_SETS}": [HOLD],
    }
    return (
        small_cluster(APIS=[groups(MPI_SERVED, TREES_SERVED, REPLICA_SETS_SERVED)])
        | script
        | changes
    )


async def test_where_there_is_a_tree_owners_budgets_and_namespaces_are_read() -> None:
    async with living(with_quota()) as (world, _):
        snapshot = await world.until(
            lambda each: (
                is_all_ok(each) and each.namespaces and each.budgets and len(each.workloads) == 2
            )
        )
        assert [
            (each.kind, each.name, each.owner, each.revision) for each in snapshot.workloads
        ] == [
            ("MPIJob", "train", "", 0),
            ("ReplicaSet", "web-1", "uid-web", 7),
        ], "a training job is read once, and is a workload too"
        assert [(each.key, each.allowed) for each in snapshot.budgets] == [("default/b", 2)]
        assert [(each.name, each.labels) for each in snapshot.namespaces] == [
            ("default", {"fairlead.io/quota": "enforced"})
        ]
        states = {
            name: snapshot.sources[name].state
            for name in ("replicasets", "poddisruptionbudgets", "namespaces", "rayclusters")
        }
        assert states == {
            "replicasets": "ok",
            "poddisruptionbudgets": "ok",
            "namespaces": "ok",
            "rayclusters": "missing",
        }
        assert not states.keys() & snapshot.main_sources.keys(), "no page is incomplete without"


async def test_without_a_tree_no_client_asks_for_them() -> None:
    async with living(with_quota() | {TREES: [page([])]}) as (world, server):
        snapshot = await world.until(is_all_ok)
        await world.until(lambda _: world.cluster.is_ready)
        assert "replicasets" not in snapshot.sources
        assert [
            *server.requests_of(REPLICA_SETS),
            *server.requests_of(NAMESPACES),
            *server.requests_of(BUDGETS),
        ] == []


async def test_a_tree_that_comes_later_begins_it() -> None:
    comes = Stream(lines=[event("ADDED", tree({"name": "root"}))], then="hold")
    async with living(with_quota() | {TREES: [page([])], f"watch {TREES}": [comes]}) as (world, _):
        snapshot = await world.until(
            lambda each: (
                each.quota_tree is not None and each.namespaces and len(each.workloads) == 2
            )
        )
        assert snapshot.sources["replicasets"].state == "ok"


async def test_a_user_that_may_not_read_them_gets_the_reason_and_sees_the_rest() -> None:
    script = with_quota() | {BUDGETS: [status(403, "Forbidden", "no")]}
    async with living(script) as (world, _):
        snapshot = await world.until(
            lambda each: (
                len(each.workloads) == 2
                and each.sources["poddisruptionbudgets"].state == "forbidden"
            )
        )
        assert (snapshot.budgets, snapshot.sources["replicasets"].state) == ((), "ok")
