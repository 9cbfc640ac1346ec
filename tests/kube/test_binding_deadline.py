"""The real API server decides a binding within its `timeout`, also while etcd is stopped. The
hand-over of the Lease relies on it.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.objects import cpu_node

ANSWER_SECONDS = 20.0
"""Far less than the 34 s that the API server takes without `timeout`."""


def binding(cluster: ControlPlane, pod: str, timeout: str) -> tuple[int, float, Any]:
    """Status, seconds until the answer, and the answer."""
    context = ssl.create_default_context(cafile=str(cluster.authority))
    context.load_cert_chain(*cluster.admin_pair)
    connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, timeout=40, context=context)
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod},
        "target": {"kind": "Node", "name": "deadline"},
    }
    began = time.monotonic()
    try:
        path = f"/api/v1/namespaces/default/pods/{pod}/binding?timeout={timeout}"
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, time.monotonic() - began, json.loads(answer.read())
    finally:
        connection.close()


def test_it_gives_up_in_time_while_etcd_stands_still(control_plane: ControlPlane) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"deadline-{name}", "namespace": "default"},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "a:1"}]},
        }
        for name in ("prompt", "late")
    ]
    control_plane.admin.create([cpu_node("deadline"), *pods])
    etcd = control_plane.components["etcd"]
    try:
        assert binding(control_plane, "deadline-prompt", "20.500s")[0] == 201
        etcd.freeze()
        try:
            status, seconds, answer = binding(control_plane, "deadline-late", "0.500s")
        finally:
            etcd.thaw()
        # 500 without a reason where the deadline of the request to etcd ends a moment earlier
        assert (status, answer.get("reason")) in ((504, "Timeout"), (500, None)), answer
        assert 0.5 <= seconds < ANSWER_SECONDS
    finally:
        control_plane.admin.run(
            "delete",
            "pod",
            "deadline-prompt",
            "deadline-late",
            "-n",
            "default",
            "--force",
            "--grace-period=0",
        )
        control_plane.admin.run("delete", "node", "deadline")
