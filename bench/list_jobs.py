"""`arena list -A` and `top job -A` with 100 running jobs and 2,000 pods on a real API server.

    .venv/bin/python bench/list_jobs.py [--jobs 100] [--pods 2000] [--runs 5]

With and without Prometheus, against the bytes alone and `kubectl get pods -A`. Prometheus is played by a
server with one fixed answer: what is measured is the asking. `-o json` is the form of `list` that wants GPU
values.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from tests.kube.control_plane import ControlPlane  # noqa: E402
from tests.kube.programs import program  # noqa: E402

from bytes_alone import record  # noqa: E402
from fairlead.edge.queries.job_query import JobQuery  # noqa: E402
from fairlead.errors import OutsideError  # noqa: E402
from fairlead.kinds.registry import KINDS  # noqa: E402
from filled_cluster import filled_cluster, write_plan  # noqa: E402
from fresh_process import alternating, print_costs  # noqa: E402

AIM_RATIO = 1.5
BYTES, KUBECTL = "the bytes alone", "kubectl get pods -A"
OURS = {"arena list -A": ["list", "-A"], "arena top job -A": ["top", "job", "-A"], "arena list -A -o json": ["list", "-A", "-o", "json"]}
WITH = ", with Prometheus"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with filled_cluster(100, arguments.pods, arguments.jobs) as plane:
        compare(plane, arguments)


def compare(plane: ControlPlane, arguments: argparse.Namespace) -> None:
    address = serve_readings(arguments.pods, arguments.pods // arguments.jobs)
    arena, of = str(Path(sys.executable).parent / "arena"), f"--kubeconfig={plane.kubeconfig}"
    sent = record(plane.kubeconfig, lambda api: JobQuery(api, no_readings, time.time).read_jobs(KINDS, ""))
    commands = {
        BYTES: [sys.executable, str(ROOT / "bench" / "bytes_alone.py"), write_plan(plane, sent.stages, plane.folder / "plan.json")],
        KUBECTL: [str(program("kubectl")), "get", "pods", "-A", of],
    }
    plain = str(ROOT / "bench" / "in_json.py")
    asking = {}
    for name, words in OURS.items():
        commands[name] = commands[name + WITH] = [arena, *words, of]
        asking[name + WITH] = {**os.environ, "PROMETHEUS_ADDRESS": address}
    for name, words in list(OURS.items())[:1]:
        commands[f"{name}, in plain JSON"] = [sys.executable, plain, *words, of]
    costs = alternating(commands, arguments.runs, asking)
    print_costs(costs, [BYTES, KUBECTL], arguments.runs)
    print(f"\n{sent.requests} requests; aim: every line <= {AIM_RATIO} x the bytes alone, the same with and without Prometheus")


def no_readings(namespace: str) -> Any:
    raise OutsideError("prometheus", "it is not asked here")


def serve_readings(pods: int, per_job: int) -> str:
    """The address of a server that answers every query with a sample of each family per GPU."""
    labels = [
        {
            "node_name": f"gpu-{number % 100:04d}",
            "minor_number": str(number // 100 % 8),
            "uuid": f"GPU-{number:08d}",
            "namespace_name": "default",
            "pod_name": f"train-{number // per_job:05d}-worker-{number % per_job}",
            "container_name": "mpi",
        }
        for number in range(pods)
    ]
    names = ("nvidia_gpu_duty_cycle", "nvidia_gpu_memory_used_bytes", "nvidia_gpu_memory_total_bytes")
    result = [{"metric": {"__name__": name, **each}, "value": [time.time(), "42"]} for name in names for each in labels]
    answer = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Nothing: the table stands alone."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
