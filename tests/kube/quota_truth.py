"""The API server's state of quota, write after write: a watch of its own that sees every version of
every pod.

It shares no code with Fairlead's: what a pod requests, which pods are admitted and what a quota
node may use is read from the objects once more, here. It watches because polling would miss an
instant. A watch delivers each write in order, also over an API server that was away.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tests.waiting import HANG_SECONDS

Object = dict[str, Any]
GATE = "fairlead.io/quota"
CONDITION = "fairlead.io/QuotaAdmitted"


class Watched(Protocol):
    """A cluster on loopback. Its administrator has a certificate and its key, or sends headers."""

    @property
    def port(self) -> int: ...
    @property
    def authority(self) -> Path: ...
    @property
    def admin_pair(self) -> tuple[Path, Path] | None: ...
    @property
    def admin_headers(self) -> dict[str, str]: ...


class QuotaTruth:
    """`faults`: observations that must never occur. `evicted`: uids of pods that the eviction API
    has stopped.

    `stopped`: uids of all deleted pods in namespaces of the tree. `tree`: the object's `spec.root`.
    Amounts are thousandths.
    """

    def __init__(self, cluster: Watched, tree: Object) -> None:
        self._cluster = cluster
        self._context = ssl.create_default_context(cafile=str(cluster.authority))
        if cluster.admin_pair is not None:
            self._context.load_cert_chain(*cluster.admin_pair)
        self.max: dict[tuple[str, str], int] = {}
        self.above: dict[str, list[str]] = {}
        self.learn(tree)
        self.pods: dict[str, Object] = {}
        self.evicted: dict[str, str] = {}
        self.stopped: dict[str, str] = {}
        self.faults: list[str] = []
        self.used: Counter[tuple[str, str]] = Counter()
        self.most: Counter[tuple[str, str]] = Counter()
        self._charged: dict[str, Counter[tuple[str, str]]] = {}
        self._version = ""
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._list()
        self._thread.start()

    def stop(self) -> None:
        """Stop the watch, also while it delivers nothing."""
        self._stopped.set()
        watched = self._socket
        if watched is not None:
            with (
                contextlib.suppress(OSError),
                socket.socket(fileno=os.dup(watched.fileno())) as same,
            ):
                same.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=HANG_SECONDS)

    def learn(self, tree: Object) -> None:
        """Use this tree from now on."""
        most: dict[tuple[str, str], int] = {}
        above: dict[str, list[str]] = {}
        _learn(tree, [], most, above)
        self.max, self.above = most, above

    def running(self) -> dict[str, int]:
        """Admitted, unfinished pods that are not stopping, by namespace of the tree."""
        return self._by_place(
            lambda pod: is_admitted(pod) and not is_stopping(pod) and not _is_finished(pod)
        )

    def waiting(self) -> dict[str, int]:
        return self._by_place(lambda pod: not is_admitted(pod))

    def _by_place(self, counts: Callable[[Object], bool]) -> dict[str, int]:
        return dict(
            Counter(
                _place(pod)
                for pod in list(self.pods.values())
                if _place(pod) in self.above and counts(pod)
            )
        )

    def reasons(self, namespace: str) -> dict[str, int]:
        """Why pods wait, from their conditions."""
        waiting = [
            pod
            for pod in list(self.pods.values())
            if _place(pod) == namespace and not is_admitted(pod)
        ]
        return dict(Counter(str(quota_condition(pod).get("reason", "")) for pod in waiting))

    def is_quiet(self) -> bool:
        """Whether no pod is terminating."""
        return not any(is_stopping(pod) for pod in list(self.pods.values()))

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self._cluster.port, timeout=5, context=self._context
        )

    def _list(self) -> None:
        connection = self._connection()
        connection.request("GET", "/api/v1/pods", headers=self._cluster.admin_headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:  # just started, it may be busy
            raise OSError(body)
        listing = json.loads(body)
        for uid in list(self._charged):
            self._charge(uid, Counter())
        self.pods = {}
        for each in listing["items"]:
            self._see("ADDED", each)
        self._version = listing["metadata"]["resourceVersion"]

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
            connection.request("GET", path, headers=self._cluster.admin_headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise OSError(answer.read())
            self._socket = connection.sock
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
            self._socket = None
            connection.close()

    def _see(self, kind: str, pod: Object) -> None:
        self._version = pod["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        uid, name = pod["metadata"]["uid"], f"{_place(pod)}/{pod['metadata']['name']}"
        if is_stopping(pod) and is_admitted(pod) and _place(pod) in self.above:
            self.stopped[uid] = name
        if any(
            each["type"] == "DisruptionTarget" and each["reason"] == "EvictionByEvictionAPI"
            for each in _conditions(pod)
        ):
            self.evicted[uid] = name
        if kind == "DELETED":
            self.pods.pop(uid, None)
            self._charge(uid, Counter())
            return
        self.pods[uid] = pod
        self._charge(uid, self._charge_of(pod))

    def _charge_of(self, pod: Object) -> Counter[tuple[str, str]]:
        charge: Counter[tuple[str, str]] = Counter()
        if is_admitted(pod) and not _is_finished(pod) and not is_daemon(pod):
            for node in self.above.get(_place(pod), ()):
                for container in pod["spec"]["containers"]:
                    for resource, amount in (
                        container.get("resources", {}).get("requests", {}).items()
                    ):
                        charge[node, resource] += thousandths(amount)
        return charge

    def _charge(self, uid: str, charge: Counter[tuple[str, str]]) -> None:
        """Charge what the pod costs now, instead of what it cost before."""
        before = self._charged.pop(uid, Counter())
        if charge:
            self._charged[uid] = charge
        for key in {*before, *charge}:
            self.used[key] += charge[key] - before[key]
            self.most[key] = max(self.most[key], self.used[key])
            if self.used[key] > self.max.get(key, self.used[key]) and charge[key] > before[key]:
                self.faults.append(
                    f"version {self._version}: {key[0]} is charged {self.used[key]} of "
                    f"{self.max[key]} {key[1]} (thousandths)"
                )


def _learn(
    node: Object, path: list[str], most: dict[tuple[str, str], int], above: dict[str, list[str]]
) -> None:
    way = [*path, node["name"]]
    for resource, amount in node.get("max", {}).items():
        most[node["name"], resource] = thousandths(amount)
    for place in node.get("namespaces", ()):
        above[place] = way
    for child in node.get("children", ()):
        _learn(child, way, most, above)


def thousandths(amount: str | int) -> int:
    """Thousandths of a quantity, in the spellings that these tests use: `5`, `500m`, `64Mi`."""
    text = str(amount)
    if text.endswith("m"):
        return int(text[:-1])
    for power, suffix in enumerate(("Ki", "Mi", "Gi"), 1):
        if text.endswith(suffix):
            return int(text[:-2]) * 1000 * 1024**power
    return int(text) * 1000


def quota_condition(pod: Object) -> Object:
    """The pod's quota condition."""
    return next((each for each in _conditions(pod) if each["type"] == CONDITION), {})


def is_admitted(pod: Object) -> bool:
    return all(gate["name"] != GATE for gate in pod["spec"].get("schedulingGates", ()))


def is_stopping(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_daemon(pod: Object) -> bool:
    """Whether a DaemonSet owns the pod: quota ignores such pods (2.1)."""
    return any(each["kind"] == "DaemonSet" for each in pod["metadata"].get("ownerReferences", ()))


def _is_finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _conditions(pod: Object) -> list[Object]:
    found: list[Object] = pod.get("status", {}).get("conditions", [])
    return found


def _place(pod: Object) -> str:
    return str(pod["metadata"]["namespace"])
