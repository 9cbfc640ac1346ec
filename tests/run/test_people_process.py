"""The people controller as a client of the laptop's API server, under the shipped ServiceAccount
and with its rights alone: from two objects to a user's rights, and back.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import yaml
from tests.run.quota_process import SPEED, TOKEN, TOKEN_REQUEST, connection
from tests.waiting import until

from fairlead.apps.people.people_controller import PeopleController
from fairlead.apps.server import bind_socket, serve
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.people.people_api import KubePeopleApi
from fairlead.model.access import AccessRequest, Identity, account_groups, account_name
from fairlead.run.quota_demo import SPACES, demo_tree
from fairlead_sim.api.server import ApiServer
from fairlead_sim.objects.resources import ROLE_BINDINGS, SERVICE_ACCOUNTS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.world.driver import Driver
from fairlead_sim.world.world import World

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SYSTEM = "fairlead-system"
ACCOUNT = "fairlead-people-controller"
USERS = "/apis/fairlead.io/v1/namespaces/kube-ai/users"
GROUPS = "/apis/fairlead.io/v1/namespaces/kube-ai/usergroups"
TEAM = {
    "apiVersion": "fairlead.io/v1",
    "kind": "UserGroup",
    "metadata": {"name": "team-a", "namespace": "kube-ai"},
    "spec": {"groupName": "teamA", "quotaNames": ["root.a.1"]},
}
BOB = {
    "apiVersion": "fairlead.io/v1",
    "kind": "User",
    "metadata": {"name": "bob", "namespace": "kube-ai"},
    "spec": {
        "userName": "Bob",
        "userId": "bob",
        "apiRoles": ["researcher"],
        "groups": ["team-a"],
    },
}


def installed(world: World) -> None:
    cluster = world.cluster
    for name in (SYSTEM, *SPACES):
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for file in ("people.yaml", "people-controller.yaml"):
        for obj in yaml.safe_load_all((DEPLOY / file).read_text(encoding="utf-8")):
            if obj["kind"] not in ("Deployment", "PodDisruptionBudget", "NetworkPolicy"):
                cluster.create(obj)
    cluster.create(demo_tree("leaf"))


def has_binding(cluster: StoredCluster, namespace: str, name: str) -> bool:
    return cluster.get(ROLE_BINDINGS, namespace, name) is not None


async def send(admin: KubeApi, verb: str, path: str, obj: Any = None) -> Any:
    method = {"create": "POST", "get": "GET", "delete": "DELETE", "patch": "PATCH"}[verb]
    body = b"" if obj is None else json.dumps(obj).encode()
    return json.loads((await admin.send(ApiRequest(verb, method, path, body))).body)  # type: ignore[arg-type]


def test_users_on_the_laptops_api() -> None:
    asyncio.run(_story())


async def _story() -> None:
    world = World(load_scenario("documents-004"), 0, 1_767_600_000.0)
    cluster, driver = world.cluster, Driver(world, SPEED)
    installed(world)
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
        path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{ACCOUNT}/token"
        answer = await admin.send(ApiRequest("create", "POST", path, TOKEN_REQUEST))
        token = json.loads(answer.body)["status"]["token"]
        api = await leaving.enter_async_context(KubeApi(connection(url, token)))
        people = KubePeopleApi(api, (SYSTEM, "fairlead-people"))
        controller = PeopleController(people, "me", now=world.clock.now)
        tasks.append(group.create_task(controller.run()))
        await send(admin, "create", GROUPS, TEAM)
        await send(admin, "create", USERS, BOB)
        bound = ("namespace1", "bob:namespace1:fairlead-researcher")
        await until(lambda: has_binding(cluster, *bound), 60)

        def status() -> Any:
            kind = cluster.kind_of(BOB)
            return (cluster.get(kind, "kube-ai", "bob") or {}).get("status")

        await until(lambda: bool(status()), 60)
        assert status()["conditions"][0]["reason"] == "Bound"
        assert status()["serviceAccount"] == {"name": "bob", "namespace": "kube-ai"}
        assert status()["namespaces"] == ["namespace1"]
        found = await send(admin, "get", f"{USERS}/bob")
        assert found["metadata"]["finalizers"] == ["fairlead.io/user"]
        who = Identity(account_name("kube-ai", "bob"), groups=account_groups("kube-ai"))
        assert await may(
            admin, who, AccessRequest("create", resource="pods", namespace="namespace1")
        )
        assert not await may(
            admin, who, AccessRequest("create", resource="pods", namespace="namespace2")
        )
        await send(admin, "delete", f"{USERS}/bob")
        await until(lambda: cluster.get(SERVICE_ACCOUNTS, "kube-ai", "bob") is None, 60)
        assert not has_binding(cluster, *bound)
        for task in tasks:
            task.cancel()


async def may(admin: KubeApi, who: Identity, asked: AccessRequest) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": who.name,
            "groups": list(who.groups),
            "resourceAttributes": {
                "verb": asked.verb,
                "resource": asked.resource,
                "namespace": asked.namespace,
            },
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool((await send(admin, "create", path, review))["status"]["allowed"])
