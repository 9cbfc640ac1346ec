"""Cluster exporters as clients of the simulated API server, with the shipped ServiceAccount: only
one at a time prints the cluster.

Two run, as in a rolling update; the active one ends; another loses its connection to the Lease. The
pages are read all the while.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import yaml
from tests.waiting import until

from fairlead.apps.cluster_exporter import ClusterExporter, ClusterExporterSettings
from fairlead.apps.leader import Leader, LeaseTimes
from fairlead.apps.server import bind_socket, serve
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials, bearer
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.errors import OutsideError
from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.ports import LeaseRecord
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.run.wiring import NoReadings
from fairlead.settings import CLUSTER_EXPORTER_LEASE
from fairlead_sim.api.server import ApiServer
from fairlead_sim.objects.resources import LEASES
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.driver import Driver

TOKEN = "t"
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
TOKEN_PATH = (
    f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts/fairlead-cluster-exporter/token"
)
TOKEN_REQUEST = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
TIMES = LeaseTimes(length=10, safe=7.0, renew=1.0, patience=5.0, fence=5.0)
"""Five sevenths of the shipped times: a busy machine may stand still for two seconds."""


class Cuttable(KubeLease):
    """The Lease over HTTP, until the connection is cut."""

    is_cut = False

    async def get_lease(self) -> LeaseRecord | None:
        if self.is_cut:
            raise OutsideError("kubernetes", "no route to host")
        return await super().get_lease()


class Replica:
    def __init__(self, api: KubeApi, name: str) -> None:
        cluster = KubeCluster(api, WallClock())
        self.lease = Cuttable(api, SYSTEM_NAMESPACE, CLUSTER_EXPORTER_LEASE)
        self.leader = Leader(self.lease, name, times=TIMES)
        self.exporter = ClusterExporter(
            cluster, NoReadings(), WallClock(), ClusterExporterSettings(node=name), self.leader
        )
        self._tasks = [
            asyncio.ensure_future(cluster.run()),
            asyncio.ensure_future(self.exporter.run()),
        ]

    @property
    def page(self) -> str:
        return b"".join(self.exporter.page.pieces).decode()

    @property
    def prints_the_cluster(self) -> bool:
        return "\nfairlead_cluster_gpus " in self.page

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[tuple[str, Callable[[], str]]]:
    """A world with the shipped objects: its URL, and a function that returns the holder of the
    Lease there.
    """
    world = sharing_world(load_scenario("documents-004"), 0, time.time())
    cluster, driver = world.cluster, Driver(world, 1.0)
    for name in ("namespace.yaml", "reader.yaml", "cluster-exporter.yaml"):
        for obj in yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")):
            if obj["kind"] not in ("Deployment", "Service"):
                cluster.create(obj)

    def holder() -> str:
        lease = cluster.get(LEASES, SYSTEM_NAMESPACE, CLUSTER_EXPORTER_LEASE)
        return str(lease["spec"]["holderIdentity"]) if lease else ""

    sock = bind_socket("127.0.0.1", 0)
    app = ApiServer(cluster, world.clock, [TOKEN], catch_up=driver.catch_up)
    tasks = [
        asyncio.ensure_future(each)
        for each in (serve(app, sock=sock, stopping=app.stop), driver.run())
    ]
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}", holder
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def connection(url: str, token: str) -> Connection:
    issued = IssuedCredentials(authorization=bearer(token))
    return Connection(url, Credentials(lambda: issued, is_renewable=False))


async def seen(is_so: Callable[[], bool], replicas: list[Replica]) -> None:
    """Waits until the condition holds; two replicas never print at the same time."""

    def look() -> bool:
        assert sum(each.prints_the_cluster for each in replicas) <= 1
        return is_so()

    await until(look)


async def test_one_prints_the_others_wait() -> None:
    async with served() as (url, holder), KubeApi(connection(url, TOKEN)) as admin:
        answer = await admin.send(ApiRequest("create", "POST", TOKEN_PATH, TOKEN_REQUEST))
        token = json.loads(answer.body)["status"]["token"]
        async with (
            KubeApi(connection(url, token)) as one,
            KubeApi(connection(url, token)) as two,
            KubeApi(connection(url, token)) as three,
        ):
            first = Replica(one, "first")
            replicas = [first]
            await seen(lambda: first.prints_the_cluster, replicas)
            second = Replica(two, "second")
            replicas.append(second)
            # all at once: a machine that stands still for a while costs "first" its Lease
            await seen(
                lambda: (
                    second.exporter.probes.unready() == ""
                    and "fairlead_exporter_synced" in second.page
                    and 'fairlead_exporter_leader{node_name="second"} 0\n' in second.page
                    and first.prints_the_cluster
                    and holder() == "first"
                ),
                replicas,
            )

            await first.end()
            assert not first.prints_the_cluster
            assert holder() in ("", "second"), "it was given back: no process waits for its end"
            await seen(lambda: second.prints_the_cluster and holder() == "second", replicas)

            third = Replica(three, "third")
            replicas.append(third)
            await seen(
                lambda: (
                    "fairlead_exporter_leader" in third.page
                    and third.exporter.probes.unready() == ""
                ),
                replicas,
            )
            second.lease.is_cut = True
            await seen(lambda: not second.prints_the_cluster, replicas)
            await seen(lambda: third.prints_the_cluster and holder() == "third", replicas)
            second.lease.is_cut = False
            await seen(lambda: second.leader.holder == "third", replicas)
            assert not second.prints_the_cluster
            for each in (second, third):
                await each.end()
