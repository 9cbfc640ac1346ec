"""The requests of a Fairlead command, sent by a client that throws the answers away.

    python bench/support/bytes_alone.py PLAN.json

The plan names server, authority, certificate and stages of paths, each with the form that is asked
for: of its first page, and of those behind it. What stands in one stage is asked side by side,
pages one by one. `record` makes the plan from what a Fairlead query really sends.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

MORE = re.compile(rb"(eyJ2Ijoi[\w=+/-]+)")
"""A token of an API server in either form: base64 of `{"v":"…`."""
HEAD_BYTES = 1000


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    context = ssl.create_default_context(cafile=plan["authority"])
    context.load_cert_chain(plan["certificate"], plan["key"])
    server = urlsplit(plan["server"])
    idle: list[http.client.HTTPSConnection] = []

    def follow(path: str, accept: str, further: str, encoding: str) -> None:
        line = (
            idle.pop()
            if idle
            else http.client.HTTPSConnection(str(server.hostname), server.port, context=context)
        )
        token: bytes | None = b""
        while token is not None:
            suffix = f"&continue={quote(token.decode())}" if token else ""
            line.request(
                "GET",
                path + suffix,
                headers={"Accept": further if token else accept, "Accept-Encoding": encoding},
            )
            answer = line.getresponse()
            body = answer.read()
            is_zipped = answer.getheader("Content-Encoding") == "gzip"
            found = MORE.search(
                zlib.decompressobj(31).decompress(body, HEAD_BYTES)
                if is_zipped
                else body[:HEAD_BYTES]
            )
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
    encoding: str


Stages = list[list[tuple[str, str, str, str]]]
"""Path, form of the first page, form of the pages behind it, encoding."""


class Recorded(NamedTuple):
    """`received`: bytes of answers as they came, without heads."""

    stages: Stages
    requests: int
    received: int


def record(kubeconfig: Path, ask: Callable[[Any], object]) -> Recorded:
    """What `ask` sends through Fairlead's client.

    A request that began after another had ended may have waited for it, so it belongs to the next
    stage.
    """
    from fairlead.edge.connection.kubeconfig import find_connection
    from fairlead.edge.kube.kube_blocking import KubeBlocking

    sent: list[Sent] = []
    received = 0

    class Recording(KubeBlocking):
        def ask(self, asked: Any) -> Any:
            nonlocal received
            started, headers = time.perf_counter(), dict(asked.headers)
            answer = super().ask(asked)
            received += len(answer.body)
            sent.append(
                Sent(
                    started,
                    time.perf_counter(),
                    asked.request.path,
                    headers["Accept"],
                    headers["Accept-Encoding"],
                )
            )
            return answer

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
    further = {
        each.path.partition("&continue=")[0]: each.accept
        for each in sent
        if "continue=" in each.path
    }
    planned = [
        [
            (each.path, each.accept, further.get(each.path, each.accept), each.encoding)
            for each in stage
        ]
        for stage in stages
    ]
    return Recorded(planned, total, received)


if __name__ == "__main__":
    main()
