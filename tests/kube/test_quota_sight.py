"""What quota reads from pods and owners that real controllers made, compared with what kubectl
shows of the same objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.quota_line import big_node, deployment, install_crd, tree
from tests.waiting import wait_until

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.rules.quota.sight import quota_state

SPACE = "team"
ROOT = {"name": "root", "min": {"cpu": "40"}, "max": {"cpu": "40"}}
LEAF = {"name": "root.team", "min": {"cpu": "40"}, "max": {"cpu": "40"}, "namespaces": [SPACE]}


def of(kind: str, name: str, api_version: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": SPACE},
        "spec": spec,
    }


def job(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "2"}}}
    return of(
        "Job",
        name,
        "batch/v1",
        {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}, **spec},
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install_crd(made)
        made.admin.create([big_node("only", 56)])
        made.admin.create(
            [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
                tree({**ROOT, "children": [LEAF]}),
            ]
        )
        web = deployment("web", SPACE, 3, "1")
        pods = web["spec"]["template"]
        daemons = of(
            "DaemonSet", "agent", "apps/v1", {"selector": web["spec"]["selector"], "template": pods}
        )
        sets = of(
            "StatefulSet",
            "db",
            "apps/v1",
            {
                "replicas": 1,
                "serviceName": "db",
                "selector": web["spec"]["selector"],
                "template": pods,
            },
        )
        budget = of(
            "PodDisruptionBudget",
            "web",
            "policy/v1",
            {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        )
        made.admin.create(
            [
                web,
                daemons,
                sets,
                budget,
                job("runs", parallelism=2, completions=2),
                job("waits", suspend=True, parallelism=3),
            ]
        )
        made.admin.create(
            [
                {
                    **of("Pod", "bare", "v1", pods["spec"]),
                    "metadata": {"name": "bare", "namespace": SPACE},
                }
            ]
        )
        wait_until(
            "all its pods run",
            lambda: (
                sum(
                    each["status"]["phase"] == "Running"
                    for each in made.admin.get("pods", "-n", SPACE)
                )
                >= 8
            ),
        )
        yield made


def state_of(cluster: ControlPlane) -> QuotaState:
    """The state as `fairlead quota plan` reads it, once the budget's controller has counted all
    pods.
    """

    async def read() -> QuotaState:
        connection = find_connection(str(cluster.kubeconfig), env={})
        assert connection is not None
        async with KubeApi(connection) as api:
            seen = KubeCluster(api, WallClock())
            reading = asyncio.create_task(seen.run())
            try:
                async with asyncio.timeout(30):
                    while True:
                        snapshot = seen.snapshot()
                        ready = [
                            snapshot.sources.get(name)
                            for name in (
                                "nodes",
                                "pods",
                                "replicasets",
                                "jobs.batch",
                                "poddisruptionbudgets",
                                "deployments",
                            )
                        ]
                        if all(each is not None and each.is_ok for each in ready) and any(
                            each.allowed for each in snapshot.budgets
                        ):
                            return quota_state(snapshot, snapshot.taken_at)
                        await seen.wait_changed(seen.version, 0.2)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    return asyncio.run(read())


def test_owners_that_real_controllers_made_are_known(cluster: ControlPlane) -> None:
    state = state_of(cluster)
    uids = {
        (kind, each["metadata"]["name"]): each["metadata"]["uid"]
        for kind in ("deployment", "job", "statefulset")
        for each in cluster.admin.get(f"{kind}s", "-n", SPACE)
    }
    by_owner: dict[str, list[QuotaPod]] = {}
    for pod in state.pods:
        by_owner.setdefault(pod.owner, []).append(pod)
    web = by_owner[uids["deployment", "web"]]
    assert len(web) == 3
    assert {(pod.deployment, pod.revision, pod.is_preemptible) for pod in web} == {
        (uids["deployment", "web"], 1, True)
    }
    assert {pod.request["cpu"] for pod in web} == {1000}
    assert [pod.name for pod in by_owner[uids["statefulset", "db"]]] == ["db-0"]
    assert len(by_owner[uids["job", "runs"]]) == 2
    bare = by_owner[""]
    assert [(pod.name, pod.is_preemptible) for pod in bare] == [("bare", False)]
    assert not any(pod.name.startswith("agent") for pod in state.pods), (
        "a DaemonSet's pods are exempt"
    )
    waits = state.workloads[uids["job", "waits"]]
    assert (waits.is_suspended, waits.suspended_for, waits.pods, waits.request["cpu"]) == (
        True,
        "",
        3,
        6000,
    )


def test_a_real_budget_allows_what_kubectl_reports(cluster: ControlPlane) -> None:
    state = state_of(cluster)
    (reported,) = cluster.admin.get("poddisruptionbudgets", "-n", SPACE)
    assert state.budgets == {"team/web": reported["status"]["disruptionsAllowed"]}
    selected = {
        each["metadata"]["name"] for each in cluster.admin.get("pods", "-n", SPACE, "-l", "app=web")
    }
    assert {pod.name for pod in state.pods if pod.budgets} == {
        name for name in selected if not name.startswith("agent")
    }


def test_the_room_of_a_real_node_is_what_exempt_pods_leave(cluster: ControlPlane) -> None:
    state = state_of(cluster)
    assert state.nodes is not None
    (room,) = state.nodes
    assert (room.name, room.allocatable["cpu"], room.taken["cpu"], room.is_schedulable) == (
        "only",
        56_000,
        1_000,
        True,
    )
