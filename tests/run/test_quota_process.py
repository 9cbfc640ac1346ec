"""The quota controller for real clusters as a client of the simulated API server: the demo of
document 004.

The world here has the admission rules, but no quota controller of its own. The process uses the
shipped ServiceAccount and has only its permissions.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import yaml
from tests.run.quota_process import SPEED, TOKEN, TOKEN_REQUEST, connection
from tests.waiting import until

from fairlead.apps.quota_controller import QuotaController
from fairlead.apps.server import bind_socket, serve
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.quota_api import KubeQuotaApi
from fairlead.model.keys import LABEL_QUOTA
from fairlead.run.hooks.sharing_hooks import sharing_hooks
from fairlead.run.quota_demo import SPACES, demo_deployment, demo_tree
from fairlead_sim.api.server import ApiServer
from fairlead_sim.objects.resources import NAMESPACES, PODS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.scheduler.hooks import Hooks
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.world.driver import Driver
from fairlead_sim.world.world import World

INSTALLED = Path(__file__).resolve().parents[2] / "deploy" / "quota-controller.yaml"
TOKEN_PATH = "/api/v1/namespaces/fairlead-system/serviceaccounts/fairlead-quota-controller/token"


def without_controller(cluster: StoredCluster, recorder: Recorder) -> Hooks:
    hooks = sharing_hooks(cluster, recorder)
    return Hooks(hooks.extender, hooks.admission, hooks.shares)


def test_the_demo_over_http() -> None:
    asyncio.run(_play())


async def _play() -> None:
    world = World(load_scenario("documents-004"), 0, 1_767_600_000.0, without_controller)
    cluster, driver = world.cluster, Driver(world, SPEED)
    for name in ("fairlead-system", *SPACES):
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for obj in yaml.safe_load_all(INSTALLED.read_text(encoding="utf-8")):
        if obj["kind"] != "Deployment":
            cluster.create(obj)
    cluster.create(demo_tree("leaf"))
    gone: list[str] = []
    cluster.subscribe(PODS, lambda change: _note(change, gone))
    sock = bind_socket("127.0.0.1", 0)
    app = ApiServer(cluster, world.clock, [TOKEN], catch_up=driver.catch_up)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    async with (
        AsyncExitStack() as leaving,
        asyncio.TaskGroup() as group,
        KubeApi(connection(url, TOKEN)) as admin,
    ):
        tasks = [
            group.create_task(each)
            for each in (serve(app, sock=sock, stopping=app.stop), driver.run())
        ]
        answer = await admin.send(ApiRequest("create", "POST", TOKEN_PATH, TOKEN_REQUEST))
        api = await leaving.enter_async_context(
            KubeApi(connection(url, json.loads(answer.body)["status"]["token"]))
        )
        controller = QuotaController(
            KubeQuotaApi(api, ("fairlead-system", "fairlead-quota")), "demo", now=world.clock.now
        )
        tasks.append(group.create_task(controller.run()))
        await until(lambda: all(_is_enforced(cluster, name) for name in SPACES), 60)

        def has_come_to(counts: tuple[int, ...], evicted: int) -> bool:
            expected = dict(zip(SPACES, counts, strict=False))
            return _admitted(cluster) == expected and len(gone) == evicted

        for number, expected in enumerate(
            [((4,), 0), ((4, 4), 0), ((3, 3, 2), 2), ((2, 2, 2, 2), 4)], start=1
        ):
            cluster.create(demo_deployment(f"nginx{number}", SPACES[number - 1]))
            await until(partial(has_come_to, *expected), 60)
        for task in tasks:
            task.cancel()
    assert len(gone) == 4


def _is_enforced(cluster: StoredCluster, name: str) -> bool:
    space = cluster.get(NAMESPACES, None, name) or {"metadata": {}}
    return (space["metadata"].get("labels") or {}).get(LABEL_QUOTA) == "enforced"


def _admitted(cluster: StoredCluster) -> dict[str, int]:
    pods = [pod for name in SPACES for pod in cluster.scan(PODS, name)]
    return dict(
        Counter(
            pod["metadata"]["namespace"] for pod in pods if not pod["spec"].get("schedulingGates")
        )
    )


def _note(change: LoggedChange, gone: list[str]) -> None:
    if change.type == DELETED and change.object["metadata"]["namespace"] in SPACES:
        gone.append(change.object["metadata"]["name"])
