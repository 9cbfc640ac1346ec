"""One list of pods of a real API server in each form: bytes on the wire, wall, and CPU of client and server.

    .venv/bin/python bench/api_forms.py [--pods 10000] [--runs 5]

The client asks in pages of 500 on one connection and throws the answers away, so what differs is the form.
Runs take turns; medians. Pods of one company are alike, so gzip does better here than in the wild.
"""

from __future__ import annotations

import argparse
import http.client
import os
import ssl
import statistics
import sys
import time
import zlib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from tests.kube.control_plane import ControlPlane  # noqa: E402

from bytes_alone import HEAD_BYTES, MORE  # noqa: E402
from fairlead.edge.kube.conversation import PROTOBUF_OR_JSON  # noqa: E402
from filled_cluster import filled_cluster  # noqa: E402

JSON = "application/json"
FORMS = {
    "JSON": (JSON, "identity"),
    "JSON, gzip": (JSON, "gzip"),
    "protobuf": (PROTOBUF_OR_JSON, "identity"),
    "protobuf, gzip": (PROTOBUF_OR_JSON, "gzip"),
}


class Cost(NamedTuple):
    mb: float
    wall: float
    client: float
    server: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with filled_cluster(arguments.nodes, arguments.pods) as plane:
        compare(plane, arguments.pods, arguments.runs)


def compare(plane: ControlPlane, pods: int, runs: int) -> None:
    costs: dict[str, list[Cost]] = {name: [] for name in FORMS}
    for number in range(runs + 1):
        for name, (accept, encoding) in FORMS.items():
            cost = read(plane, accept, encoding)
            if number:  # the first of each warms the server
                costs[name].append(cost)
    print(f"\n{pods:,} pods in pages of 500, medians of {runs}")
    print(f"{'form':18}{'MB on the wire':>16}{'wall s':>10}{'client CPU s':>14}{'server CPU s':>14}")
    found = {name: Cost(*map(statistics.median, zip(*rows, strict=True))) for name, rows in costs.items()}
    for name, row in found.items():
        print(f"{name:18}{row.mb:>16.2f}{row.wall:>10.2f}{row.client:>14.2f}{row.server:>14.2f}")
    was, now = found["JSON"], found["protobuf, gzip"]
    print(
        f"\nprotobuf and gzip against JSON: {now.mb / was.mb:.3f} x the bytes, {now.wall / was.wall:.2f} x the wall, "
        f"{now.client / was.client:.2f} x the client's CPU, {now.server / was.server:.2f} x the server's"
    )


def read(plane: ControlPlane, accept: str, encoding: str) -> Cost:
    context = ssl.create_default_context(cafile=str(plane.authority))
    context.load_cert_chain(plane.admin_pair.certificate, plane.admin_pair.key)
    server = urlsplit(plane.server)
    line = http.client.HTTPSConnection(str(server.hostname), server.port, context=context)
    line.connect()
    pid = plane.components["kube-apiserver"].pid
    begun, cpu, serving = time.perf_counter(), time.process_time(), cpu_seconds(pid)
    token, received = b"", 0
    while True:
        more = f"&continue={quote(token.decode())}" if token else ""
        line.request("GET", f"/api/v1/pods?limit=500{more}", headers={"Accept": accept, "Accept-Encoding": encoding})
        answer = line.getresponse()
        body = answer.read()
        received += len(body)
        is_zipped = answer.getheader("Content-Encoding") == "gzip"
        found = MORE.search(zlib.decompressobj(31).decompress(body, HEAD_BYTES) if is_zipped else body[:HEAD_BYTES])
        if not found:
            break
        token = found[1]
    spent = Cost(received / 1e6, time.perf_counter() - begun, time.process_time() - cpu, cpu_seconds(pid) - serving)
    line.close()
    return spent


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


if __name__ == "__main__":
    main()
