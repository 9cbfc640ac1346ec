"""The page of serving jobs over an API server on a socket: many readers cause one request, and
objects that may not be read cause a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from tests.apps.running_console import Page, console
from tests.cli.serving_objects import deployment, inference_service, service
from tests.console.clusters import cluster, gpu_node
from tests.console.worlds import still_world

from fairlead.console.pages.endpoints import BASE
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.queries.page_reads import KubeServings

PATHS = {
    "/apis/apps/v1/deployments": [deployment("fast", "v1", replicas=2)],
    "/apis/serving.kserve.io/v1beta1/inferenceservices": [
        inference_service("iris", "v1", "http://iris.example")
    ],
    "/api/v1/services": [service("fast", "v1", {"http-serving": 5000})],
}


class Api:
    """Answers with `PATHS`; the kinds in `refused` get that status."""

    def __init__(self, **refused: int) -> None:
        self.refused = refused
        self.asked: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        kind = request.path.rpartition("/")[2]
        self.asked[kind] += 1
        assert request.query["labelSelector"] == "servingType", (
            "every Deployment of the cluster would be read"
        )
        if status := self.refused.get(kind):
            reason = {403: "Forbidden", 404: "NotFound"}.get(status, "InternalError")
            body: dict[str, Any] = {
                "kind": "Status",
                "reason": reason,
                "message": f"{kind}: no",
                "code": status,
            }
            return web.json_response(body, status=status)
        return web.json_response(
            {"kind": "List", "metadata": {"resourceVersion": "9"}, "items": PATHS[request.path]}
        )


@asynccontextmanager
async def page_over(api: Api) -> AsyncIterator[Page]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with KubeApi(
            Connection(url, Credentials(IssuedCredentials, is_renewable=False))
        ) as kube:
            world = msgspec.structs.replace(
                still_world(cluster([gpu_node()])), servings=KubeServings(kube)
            )
            async with console(world) as page:
                yield page
    finally:
        await runner.cleanup()


async def test_all_kinds_are_read_once_however_many_look() -> None:
    api = Api()
    async with page_over(api) as page:
        for _ in range(4):
            answer = await page.json("/serving")
    assert [
        (row["name"], row["type"], row["address"], row["available"], row["desired"])
        for row in answer["items"]
    ] == [
        ("fast", "Custom", "10.96.0.7", 0, 2),
        ("iris", "KServe", "http://iris.example", 0, 0),
    ]
    assert answer["warnings"] == []
    assert api.asked == {"deployments": 1, "inferenceservices": 1, "services": 1}


async def test_what_the_cluster_does_not_serve_is_no_warning_and_what_may_not_be_read_is_one() -> (
    None
):
    async with page_over(Api(inferenceservices=404, services=403)) as page:
        answer = await page.json("/serving")
    assert [(each["code"], each["source"]) for each in answer["warnings"]] == [
        ("forbidden", "services")
    ]
    assert [(row["name"], row["address"]) for row in answer["items"]] == [("fast", "")]


async def test_without_the_right_to_list_deployments_the_page_names_it() -> None:
    async with page_over(Api(deployments=403)) as page:
        status, _, body = await page.get(f"{BASE}/serving")
    reported = msgspec.json.decode(body)
    assert (status, reported["error"]) == (403, "deployments: no")
    assert reported["hint"] == (
        "the console's account needs the right `list` of `deployments.apps` in all namespaces"
    )


async def test_a_saved_snapshot_states_that_it_has_none() -> None:
    async with console(msgspec.structs.replace(still_world(cluster()), servings=None)) as page:
        status, _, body = await page.get(f"{BASE}/serving")
    assert (status, msgspec.json.decode(body)["error"]) == (
        404,
        "test-cluster has no API server: serving jobs are not kept",
    )
