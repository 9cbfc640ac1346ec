"""When did each object first look so? One watch of the API server, read in a thread."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.kube.control_plane import ControlPlane

Object = dict[str, Any]


class FirstSeen:
    """`at`: by key (namespace/name), when (`time.monotonic`) `is_so` first held. `made`: when it came.

    `within`: how the keys begin that count.
    """

    def __init__(self, cluster: ControlPlane, path: str, is_so: Callable[[Object], bool], within: str = "") -> None:
        self.at: dict[str, float] = {}
        self.made: dict[str, float] = {}
        self._is_so = is_so
        self._within = within
        context = ssl.create_default_context(cafile=str(cluster.authority))
        context.load_cert_chain(*cluster.admin_pair)
        self._connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, timeout=600, context=context)
        self._connection.request("GET", f"{path}?watch=1&timeoutSeconds=3000")
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while line := self._answer.readline():
            event = json.loads(line)
            now = time.monotonic()
            meta = event["object"]["metadata"]
            key = f"{meta['namespace']}/{meta['name']}"
            if not key.startswith(self._within):
                continue
            if event["type"] == "ADDED":
                self.made.setdefault(key, now)
            if key not in self.at and self._is_so(event["object"]):
                self.at[key] = now
