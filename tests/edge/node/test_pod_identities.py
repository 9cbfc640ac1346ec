"""Labels and UIDs of a node's pods from a served API: a changed name is announced, the many status
updates are not.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from tests.contracts.api_client import ApiClient
from tests.contracts.simulated import simulated_server
from tests.waiting import until

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.node.pod_identities import NodePods

PODS = "/api/v1/namespaces/default/pods"


async def test_only_a_name_that_changed_is_sent(tmp_path: Path) -> None:
    with simulated_server(tmp_path, WallClock()) as server:
        connection = find_connection(str(server.kubeconfig), None, env={})
        assert connection is not None
        client = ApiClient("simulated", server.kubeconfig)
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        }
        async with KubeApi(connection) as api:
            pods, reported = NodePods(api, "n1"), list[object]()
            following = asyncio.create_task(pods.run(lambda: reported.append(pods.latest())))
            assert client.post(PODS, body).status == 201
            await until(pods.latest)
            for number in range(20):
                assert (
                    client.patch(f"{PODS}/p/status", {"status": {"message": f"{number}"}}).status
                    == 200
                )
            assert (
                client.patch(f"{PODS}/p", {"metadata": {"labels": {"app": "train"}}}).status == 200
            )
            await until(lambda: pods.latest()["default", "p"].labels == {"app": "train"})
            client.delete(f"{PODS}/p", gracePeriodSeconds=0)
            await until(lambda: not pods.latest())
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
    assert len(reported) == 3, reported
