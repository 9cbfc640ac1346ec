"""The API server's state of shared cards, write after write: a watch of its own that sees every
version of every pod.

It watches because polling would miss an instant. A watch delivers each write in order, also over an
API server that was away.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import Any

import msgspec
from tests.kube.control_plane import ControlPlane
from tests.rules.held import Held, held_at_most
from tests.waiting import HANG_SECONDS

from fairlead.model.pod import Pod
from fairlead.rules.holding.need import gpu_need
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod

Object = dict[str, Any]


class ShareTruth:
    """`faults`: observations that must never occur. `placements`: by the uid of a pod, the nodes
    and cards on which it was seen.

    A pod stays on the cards with which it was first seen, whatever becomes of its annotations.
    """

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._context = ssl.create_default_context(cafile=str(cluster.authority))
        self._context.load_cert_chain(*cluster.admin_pair)
        self.nodes = {
            node.name: node
            for node in (
                parse_node(_node.decode(json.dumps(each).encode()))
                for each in cluster.admin.get("nodes")
            )
        }
        self.units = {
            slot.uuid: slot.units or 0 for node in self.nodes.values() for slot in node.gpus
        }
        self.pods: dict[str, Pod] = {}
        self.placements: dict[str, set[str]] = {}
        self.faults: list[str] = []
        self._held: dict[str, Held] = {}
        self._used: dict[str, int] = {}
        self._sits: dict[str, Held] = {}
        self._version = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._list()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=HANG_SECONDS)

    def bound(self) -> list[Pod]:
        return [pod for pod in list(self.pods.values()) if pod.node]

    def waiting(self) -> list[Pod]:
        return [
            pod
            for pod in list(self.pods.values())
            if not pod.node and pod.deleted_at is None and gpu_need(pod).units
        ]

    def held(self) -> dict[str, dict[str, int]]:
        """Units by the uid of the pod that holds them, then by the UUID of the card: a pod stays on
        the cards with which it was first seen.
        """
        return {
            uid: {uuid: units for uuid, (units, _) in cards.items() if units}
            for uid, cards in list(self._held.items())
        }

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self._cluster.port, timeout=5, context=self._context
        )

    def _list(self) -> None:
        connection = self._connection()
        connection.request("GET", "/api/v1/pods")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:  # just started, it may be busy
            raise OSError(body)
        listing = json.loads(body)
        self._version = listing["metadata"]["resourceVersion"]
        for uid in list(self.pods):
            self._count(uid, None)
        self.pods = {}
        for each in listing["items"]:
            self._see("ADDED", each)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                self._watch()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)

    def _watch(self) -> None:
        connection = self._connection()
        try:
            path = (
                "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=30&"
                f"resourceVersion={self._version}"
            )
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != 200:
                raise OSError(answer.read())
            while not self._stopped.is_set():
                line = answer.readline()
                if not line:
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self._list()
                    return
                self._see(event["type"], event["object"])
        except TimeoutError:  # a quiet time
            return
        finally:
            connection.close()

    def _see(self, kind: str, obj: Object) -> None:
        self._version = obj["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        pod = parse_pod(_pod.decode(json.dumps(obj).encode()))
        if kind == "DELETED":
            self.pods.pop(pod.uid, None)
            self._count(pod.uid, None)
            return
        self.pods[pod.uid] = pod
        if pod.node and gpu_need(pod).units and pod.grants:
            cards = sorted(
                (name, grant.uuid, grant.units)
                for name, given in pod.grants.items()
                for grant in given
            )
            self.placements.setdefault(pod.uid, set()).add(f"{pod.node} {cards}")
        self._count(pod.uid, pod)

    def _sitting(self, pod: Pod) -> Held:
        return (
            self._sits.setdefault(pod.uid, held_at_most(pod))
            if pod.grants
            else self._sits.get(pod.uid, {})
        )

    def _count(self, uid: str, pod: Pod | None) -> None:
        """Count what the pod holds now, instead of what it held before."""
        now = self._sitting(pod) if pod is not None and pod.is_holding else {}
        for uuid, (units, _) in self._held.pop(uid, {}).items():
            self._used[uuid] -= units
        for uuid, (units, _) in now.items():
            self._used[uuid] = count = self._used.get(uuid, 0) + units
            if count > self.units.get(uuid, 0):
                self.faults.append(
                    f"version {self._version}: {count} of {self.units.get(uuid)} units of "
                    f"{uuid} "
                    "are granted"
                )
        if now:
            self._held[uid] = now


_pod = msgspec.json.Decoder(WirePod)
_node = msgspec.json.Decoder(WireNode)
