"""The bytes alone: the same requests as a command of ours sends, by a client that throws the answers away.

    python bench/bytes_alone.py PLAN.json

The plan names server, authority, certificate and stages of paths. What stands in one stage is asked side by
side, pages one after another. `record` makes the plan from what a query of ours really sends.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

MORE = re.compile(rb'"continue":"([^"]+)"')
HEAD_BYTES = 1000


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    context = ssl.create_default_context(cafile=plan["authority"])
    context.load_cert_chain(plan["certificate"], plan["key"])
    server = urlsplit(plan["server"])
    idle: list[http.client.HTTPSConnection] = []

    def follow(path: str, accept: str) -> None:
        line = idle.pop() if idle else http.client.HTTPSConnection(str(server.hostname), server.port, context=context)
        token: bytes | None = b""
        while token is not None:
            suffix = f"&continue={quote(token.decode())}" if token else ""
            line.request("GET", path + suffix, headers={"Accept": accept})
            found = MORE.search(line.getresponse().read()[:HEAD_BYTES])
            token = found and found[1]
        idle.append(line)

    for stage in plan["stages"]:
        threads = [threading.Thread(target=follow, args=each) for each in stage]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Sent(NamedTuple):
    started: float
    ended: float
    path: str
    accept: str


def record(kubeconfig: Path, ask: Callable[[Any], object]) -> tuple[list[list[tuple[str, str]]], int]:
    """The stages of what `ask` sends through a client of ours, and how many requests that are, pages counted.

    A request that began after another had ended may have waited for it, so it belongs to the next stage.
    """
    from fairlead.edge.connection.kubeconfig import find_connection
    from fairlead.edge.kube.kube_blocking import KubeBlocking

    sent: list[Sent] = []

    class Recording(KubeBlocking):
        def ask(self, asked: Any) -> Any:
            started = time.perf_counter()
            try:
                return super().ask(asked)
            finally:
                sent.append(Sent(started, time.perf_counter(), asked.request.path, asked.request.accept))

    connection = find_connection(str(kubeconfig))
    assert connection is not None
    with Recording(connection) as api:
        ask(api)
        total = api.requests_total
    stages: list[list[Sent]] = []
    for each in sorted(sent):
        if "continue=" in each.path:
            continue
        if not stages or each.started > min(other.ended for other in stages[-1]):
            stages.append([])
        stages[-1].append(each)
    return [[(each.path, each.accept) for each in stage] for stage in stages], total


if __name__ == "__main__":
    main()
