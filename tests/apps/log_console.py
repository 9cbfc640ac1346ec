"""A console whose API server gives one answer to every request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web
from tests.apps.running_console import Page, console
from tests.console.clusters import EPOCH, cluster, gpu_node, pod, training_job
from tests.console.worlds import still_world

from fairlead.console.http.subjects import Subjects
from fairlead.console.pages.endpoints import BASE
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.queries.job_files import KubeJobFiles
from fairlead.model.pod import ContainerState, ContainerStatus

JOB = f"{BASE}/jobs/team-a/pytorchjob/bert"
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def page_over(answer: Answering, subjects: Subjects | None = None) -> AsyncIterator[Page]:
    """A console whose API server gives this answer."""
    job, status = (
        training_job(),
        ContainerStatus("main", state=ContainerState.RUNNING, started_at=EPOCH),
    )
    pods = [
        msgspec.structs.replace(
            pod(f"bert-worker-{n}", "gpu-1", {"nvidia.com/gpu": 1}, job=job), statuses=(status,)
        )
        for n in range(2)
    ]
    late = msgspec.structs.replace(
        pods[1],
        statuses=(
            ContainerStatus(
                "main", state=ContainerState.WAITING, reason="ErrImagePull", message="no"
            ),
        ),
    )
    foreign = pod("lonely", "gpu-1")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with KubeApi(
            Connection(
                f"http://127.0.0.1:{port}", Credentials(IssuedCredentials, is_renewable=False)
            )
        ) as api:
            snapshot = cluster([gpu_node()], [pods[0], late, foreign], [job])
            world = msgspec.structs.replace(still_world(snapshot), job_files=KubeJobFiles(api))
            async with console(world, subjects=subjects) as page:
                yield page
    finally:
        await runner.cleanup()


def refusing(status: int, reason: str, message: str) -> Answering:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(
            {"kind": "Status", "reason": reason, "message": message, "code": status}, status=status
        )

    return answer
