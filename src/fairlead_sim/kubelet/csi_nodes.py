"""Which volume drivers each node has: the CSINode objects that kubelets keep.

A driver's pod has a registrar, whose argument names the socket of the driver: a kubelet registers
the driver while the pod runs, and takes it back afterwards. Before the first registrar there
are no CSINode objects here.
"""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any

from fairlead.wire.data.stand_in import REGISTRATION_PATH
from fairlead_sim.objects.conditions import phase_of
from fairlead_sim.objects.resources import CSI_NODES, NODES, PODS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]

REGISTRATION_SECONDS = 0.5


class CsiNodes:
    def __init__(self, cluster: StoredCluster, timers: Timers) -> None:
        self._cluster = cluster
        self._timers = timers
        self._due: set[str] = set()
        cluster.subscribe(PODS, self._on_pod)

    def _on_pod(self, event: LoggedChange) -> None:
        pod, before = event.object, event.previous
        node = pod["spec"].get("nodeName")
        if not node or not is_of_daemon_set(pod) or node in self._due:
            return
        if before is not None and event.type != DELETED and is_running(before) == is_running(pod):
            return
        if drivers_of(pod):
            self._due.add(node)
            self._timers.after(REGISTRATION_SECONDS, partial(self._register, node))

    def _register(self, name: str) -> None:
        self._due.discard(name)
        node = self._cluster.get(NODES, None, name)
        if node is None:
            return
        drivers = self._drivers_on(name)
        spec = {
            "drivers": [
                {"name": driver, "nodeID": name, "topologyKeys": None} for driver in drivers
            ]
        }
        old = self._cluster.get(CSI_NODES, None, name)
        if old is not None:
            self._cluster.mutate(
                CSI_NODES,
                None,
                name,
                lambda old: {**old, "spec": spec} if old.get("spec") != spec else None,
            )
        elif drivers:
            owner = {
                "apiVersion": "v1",
                "kind": "Node",
                "name": name,
                "uid": node["metadata"]["uid"],
            }
            metadata = {"name": name, "ownerReferences": [owner]}
            kind = {"apiVersion": CSI_NODES.api_version, "kind": CSI_NODES.kind}
            self._cluster.create({**kind, "metadata": metadata, "spec": spec})

    def _drivers_on(self, name: str) -> list[str]:
        pods = [
            pod
            for pod in self._cluster.scan(PODS)
            if pod["spec"].get("nodeName") == name and is_of_daemon_set(pod) and is_running(pod)
        ]
        return sorted({driver for pod in pods for driver in drivers_of(pod)})


def is_of_daemon_set(pod: Object) -> bool:
    return any(
        owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ()
    )


def is_running(pod: Object) -> bool:
    return phase_of(pod) == "Running" and "deletionTimestamp" not in pod["metadata"]


def drivers_of(pod: Object) -> list[str]:
    """The drivers that the pod's registrars register, by the folders of their sockets.

    >>> argument = "--kubelet-registration-path=/var/lib/kubelet/plugins/csi.example.com/csi.sock"
    >>> drivers_of({"spec": {"containers": [{"args": ["--v=5", argument]}]}})
    ['csi.example.com']
    """
    arguments = (
        str(argument)
        for container in pod["spec"].get("containers") or ()
        for argument in container.get("args") or ()
    )
    return [
        PurePosixPath(argument.removeprefix(REGISTRATION_PATH)).parent.name
        for argument in arguments
        if argument.startswith(REGISTRATION_PATH)
    ]
