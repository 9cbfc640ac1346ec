"""When did each object first look so? A watch of the API server, read in a thread."""

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

    `within`: how the keys begin that count. A watch that ends is begun again.
    """

    def __init__(self, cluster: ControlPlane, path: str, is_so: Callable[[Object], bool], within: str = "") -> None:
        self.at: dict[str, float] = {}
        self.made: dict[str, float] = {}
        self._cluster = cluster
        self._path = path
        self._is_so = is_so
        self._within = within
        self._context = ssl.create_default_context(cafile=str(cluster.authority))
        self._context.load_cert_chain(*cluster.admin_pair)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while True:
            try:
                self._watch()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)

    def _watch(self) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", self._cluster.port, timeout=600, context=self._context)
        try:
            connection.request("GET", f"{self._path}?watch=1&timeoutSeconds=3000")
            answer = connection.getresponse()
            while answer.status == 200 and (line := answer.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                self._see(event["object"])
        finally:
            connection.close()

    def _see(self, obj: Object) -> None:
        now = time.monotonic()
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        if not key.startswith(self._within):
            return
        self.made.setdefault(key, now)
        if key not in self.at and self._is_so(obj):
            self.at[key] = now
