"""What a command of `arena` costs, beside kubectl and beside the bytes that it reads."""

from __future__ import annotations

import argparse
import http.client
import http.server
import json
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds
from tests.kube.programs import program

from bench.support.bytes_alone import HEAD_BYTES, MORE, record
from bench.support.clusters import filled_cluster, write_plan
from bench.support.options import options
from bench.support.processes import Cost, alternating, print_costs, run
from fairlead.edge.kube.conversation import PROTOBUF_OR_JSON
from fairlead.edge.queries.cluster_query import ClusterQuery
from fairlead.edge.queries.job_query import JobQuery
from fairlead.errors import OutsideError
from fairlead.kinds.registry import KINDS

AIM_MILLISECONDS, CLI_START_AIM_RATIO = 100, 1.5


SUPPORT = Path(__file__).with_name("support")
BYTES_ALONE, IN_JSON = SUPPORT / "bytes_alone.py", SUPPORT / "in_json.py"
"""Programs that are measured beside `arena`; they import nothing of this module."""


def measure_cli_start() -> None:
    """How soon a command answers: `arena version` and help against `kubectl version --client`.

        python -m bench cli_start [--runs 21] [--kubectl PATH]

    Each in fresh processes. Runs alternate, so that a busy machine is busy for both; medians are
    compared.
    """
    parser = options(measure_cli_start)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--kubectl", default=default_kubectl())
    arguments = parser.parse_args()
    here = Path(sys.executable).parent
    commands = {
        "kubectl version --client": [arguments.kubectl, "version", "--client"],
        "arena version": [str(here / "arena"), "version"],
        "arena --help": [str(here / "arena"), "--help"],
        "fairlead --help": [str(here / "fairlead"), "--help"],
        "fairlead up --help": [str(here / "fairlead"), "up", "--help"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    medians = cli_start_measure(commands, arguments.runs)
    base = medians["kubectl version --client"]
    print(f"\nmedian of {arguments.runs} alternating runs; kubectl: {arguments.kubectl}")
    print(f"{'command':28}{'ms':>8}{'x kubectl':>12}")
    for name, seconds in medians.items():
        print(f"{name:28}{seconds * 1000:>8.0f}{seconds / base:>12.2f}")
    arena = medians["arena version"]
    print(
        f"\naim: `arena version` <= {AIM_MILLISECONDS} ms and <= {CLI_START_AIM_RATIO} x "
        f"kubectl: {arena * 1000:.0f} ms, {arena / base:.2f} x"
    )


def cli_start_measure(commands: dict[str, list[str]], runs: int) -> dict[str, float]:
    """Median seconds per command; one round of each first, unmeasured, to warm the page cache."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if number:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def default_kubectl() -> str:
    """The one that tests build, else the machine's."""
    built = sorted(Path("~/.cache/fairlead/bin").expanduser().glob("kubectl-*"))
    return str(built[-1]) if built else shutil.which("kubectl") or "kubectl"


SUBMIT_AIM_RATIO = 1.5
ARENA = str(Path(sys.executable).parent / "arena")
CASES = {
    "MPIJob": ["submit", "mpijob", "--image=i", "--workers=2", "--gpus=1"],
    "PyTorchJob": ["submit", "pytorchjob", "--image=i", "--workers=2", "--gpus=1"],
    "PyTorchJob with TensorBoard": [
        "submit",
        "pytorchjob",
        "--image=i",
        "--workers=2",
        "--gpus=1",
        "--tensorboard",
    ],
}


def measure_submit() -> None:
    """How soon a job is created: `arena submit` against `kubectl create` of the same objects.

        python -m bench submit [--runs 15]

    On a real API server, each in fresh processes. Runs alternate, so that a busy machine is busy
    for both; medians are compared, of wall and of CPU time. kubectl's caches are warm.
    """
    parser = options(measure_submit)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        install_job_kinds(cluster.admin)
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        print(
            f"{'objects':30}{'arena: ms, CPU ms':>20}{'kubectl: ms, CPU ms':>22}"
            f"{'ratio: wall, CPU':>20}"
        )
        for number, (title, words) in enumerate(CASES.items()):
            arena, kubectl = submit_measure(cluster, words, Path(home), env, runs, f"case-{number}")
            print(
                f"{title:30}{arena.wall * 1000:>14.0f}{arena.cpu * 1000:>6.0f}"
                f"{kubectl.wall * 1000:>16.0f}{kubectl.cpu * 1000:>6.0f}"
                f"{arena.wall / kubectl.wall:>14.2f}{arena.cpu / kubectl.cpu:>6.2f}",
                flush=True,
            )
        print(
            f"median of {runs} alternating runs, aim <= {SUBMIT_AIM_RATIO}; load "
            f"{os.getloadavg()[0]:.1f}"
        )


def submit_measure(
    cluster: ControlPlane, words: list[str], home: Path, env: dict[str, str], runs: int, prefix: str
) -> tuple[Cost, Cost]:
    """The medians of arena's and of kubectl's costs; the first of each is not measured."""
    arena: list[Cost] = []
    kubectl: list[Cost] = []
    manifest = home / "objects.yaml"
    for number in range(runs + 1):
        printed = subprocess.run(
            [ARENA, *words, f"--name={prefix}-k{number}", "--dry-run", "run"],
            env=env,
            check=True,
            capture_output=True,
        )
        manifest.write_bytes(printed.stdout)
        arena.append(run([ARENA, *words, f"--name={prefix}-a{number}", "run"], env))
        kubectl.append(run([str(program("kubectl")), "create", "-f", str(manifest)], env))
    return median(arena[1:]), median(kubectl[1:])


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


LIST_JOBS_AIM_RATIO = 1.5
LIST_JOBS_BYTES, LIST_JOBS_KUBECTL = "the bytes alone", "kubectl get pods -A"
LIST_JOBS_ARENA = {
    "arena list -A": ["list", "-A"],
    "arena top job -A": ["top", "job", "-A"],
    "arena list -A -o json": ["list", "-A", "-o", "json"],
}
WITH = ", with Prometheus"


def measure_list_jobs() -> None:
    """`arena list -A` and `top job -A` with 100 running jobs and 2,000 pods on a real API server.

        python -m bench list_jobs [--jobs 100] [--pods 2000] [--runs 5]

    With and without Prometheus, against the bytes alone and `kubectl get pods -A`. Prometheus is
    played by a server with one fixed answer: what is measured is the asking. `-o json` is the form
    of `list` that wants GPU values.
    """
    parser = options(measure_list_jobs)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with filled_cluster(100, arguments.pods, arguments.jobs) as plane:
        list_jobs_compare(plane, arguments)


def list_jobs_compare(plane: ControlPlane, arguments: argparse.Namespace) -> None:
    address = serve_readings(arguments.pods, arguments.pods // arguments.jobs)
    arena, of = str(Path(sys.executable).parent / "arena"), f"--kubeconfig={plane.kubeconfig}"
    sent = record(
        plane.kubeconfig, lambda api: JobQuery(api, no_readings, time.time).read_jobs(KINDS, "")
    )
    commands = {
        LIST_JOBS_BYTES: [
            sys.executable,
            str(BYTES_ALONE),
            write_plan(plane, sent.stages, plane.folder / "plan.json"),
        ],
        LIST_JOBS_KUBECTL: [str(program("kubectl")), "get", "pods", "-A", of],
    }
    plain = str(IN_JSON)
    asking = {}
    for name, words in LIST_JOBS_ARENA.items():
        commands[name] = commands[name + WITH] = [arena, *words, of]
        asking[name + WITH] = {**os.environ, "PROMETHEUS_ADDRESS": address}
    for name, words in list(LIST_JOBS_ARENA.items())[:1]:
        commands[f"{name}, in plain JSON"] = [sys.executable, plain, *words, of]
    costs = alternating(commands, arguments.runs, asking)
    print_costs(costs, [LIST_JOBS_BYTES, LIST_JOBS_KUBECTL], arguments.runs)
    print(
        f"\n{sent.requests} requests; aim: every line <= {LIST_JOBS_AIM_RATIO} x the "
        "bytes alone, "
        "the same with and without Prometheus"
    )


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
    names = (
        "nvidia_gpu_duty_cycle",
        "nvidia_gpu_memory_used_bytes",
        "nvidia_gpu_memory_total_bytes",
    )
    result = [
        {"metric": {"__name__": name, **each}, "value": [time.time(), "42"]}
        for name in names
        for each in labels
    ]
    answer = json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": result}}
    ).encode()

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


AIM_REQUESTS, TOP_NODE_AIM_RATIO, AIM_MIB, AIM_MB = 60, 0.22, 70, 3
TOP_NODE_BYTES, TOP_NODE_KUBECTL, TOP_NODE_ARENA = (
    "the bytes alone",
    "kubectl get pods -A",
    "arena top node",
)


def measure_top_node() -> None:
    """`arena top node` on 1,000 nodes and 10,000 pods of a real API server.

        python -m bench top_node [--nodes 1000] [--pods 10000] [--runs 5]

    Against the bytes alone (in the same forms), `kubectl get pods -A`, itself in plain JSON. Needs
    the programs that `tools/build_kube.py` builds (etcd, kube-apiserver, kubectl). Runs alternate;
    medians are compared.
    """
    parser = options(measure_top_node)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with filled_cluster(arguments.nodes, arguments.pods) as plane:
        top_node_compare(plane, arguments.runs)


def top_node_compare(plane: ControlPlane, runs: int) -> None:
    sent = record(plane.kubeconfig, lambda api: ClusterQuery(api).read_nodes())
    arena, of = str(Path(sys.executable).parent / "arena"), f"--kubeconfig={plane.kubeconfig}"
    commands = {
        TOP_NODE_BYTES: [
            sys.executable,
            str(BYTES_ALONE),
            write_plan(plane, sent.stages, plane.folder / "plan.json"),
        ],
        TOP_NODE_KUBECTL: [str(program("kubectl")), "get", "pods", "-A", of],
        TOP_NODE_ARENA: [arena, "top", "node", of],
        "the same in plain JSON": [sys.executable, str(IN_JSON), "top", "node", of],
        "arena top node -d": [arena, "top", "node", "-d", of],
    }
    costs = alternating(commands, runs)
    print_costs(costs, [TOP_NODE_BYTES, TOP_NODE_KUBECTL], runs)
    ratio = costs[TOP_NODE_ARENA].wall / costs[TOP_NODE_KUBECTL].wall
    print(
        f"\naims: {sent.requests} requests (<= {AIM_REQUESTS}); {ratio:.2f} x kubectl's wall "
        f"(<= {TOP_NODE_AIM_RATIO}); "
        f"{costs[TOP_NODE_ARENA].mib:.0f} MiB (<= {AIM_MIB}); {sent.received / 1e6:.1f} MB on "
        f"the wire (<= {AIM_MB})"
    )


JSON = "application/json"
FORMS = {
    "JSON": (JSON, "identity"),
    "JSON, gzip": (JSON, "gzip"),
    "protobuf": (PROTOBUF_OR_JSON, "identity"),
    "protobuf, gzip": (PROTOBUF_OR_JSON, "gzip"),
}


class ApiFormsCost(NamedTuple):
    mb: float
    wall: float
    client: float
    server: float


def measure_api_forms() -> None:
    """A list of pods of a real API server in each form: bytes sent, wall time, CPU of both sides.

        python -m bench api_forms [--pods 10000] [--runs 5]

    The client asks in pages of 500 on one connection and throws the answers away, so what differs
    is the form. Runs take turns; medians. Pods of one company are alike, so gzip does better here
    than in the wild.
    """
    parser = options(measure_api_forms)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with filled_cluster(arguments.nodes, arguments.pods) as plane:
        api_forms_compare(plane, arguments.pods, arguments.runs)


def api_forms_compare(plane: ControlPlane, pods: int, runs: int) -> None:
    costs: dict[str, list[ApiFormsCost]] = {name: [] for name in FORMS}
    for number in range(runs + 1):
        for name, (accept, encoding) in FORMS.items():
            cost = read(plane, accept, encoding)
            if number:  # the first of each warms the server
                costs[name].append(cost)
    print(f"\n{pods:,} pods in pages of 500, medians of {runs}")
    print(
        f"{'form':18}{'MB on the wire':>16}{'wall s':>10}{'client CPU s':>14}{'server CPU s':>14}"
    )
    found = {
        name: ApiFormsCost(*map(statistics.median, zip(*rows, strict=True)))
        for name, rows in costs.items()
    }
    for name, row in found.items():
        print(f"{name:18}{row.mb:>16.2f}{row.wall:>10.2f}{row.client:>14.2f}{row.server:>14.2f}")
    was, now = found["JSON"], found["protobuf, gzip"]
    print(
        f"\nprotobuf and gzip against JSON: {now.mb / was.mb:.3f} x the bytes, "
        f"{now.wall / was.wall:.2f} x the wall, "
        f"{now.client / was.client:.2f} x the client's CPU, {now.server / was.server:.2f} x "
        "the server's"
    )


def read(plane: ControlPlane, accept: str, encoding: str) -> ApiFormsCost:
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
        line.request(
            "GET",
            f"/api/v1/pods?limit=500{more}",
            headers={"Accept": accept, "Accept-Encoding": encoding},
        )
        answer = line.getresponse()
        body = answer.read()
        received += len(body)
        is_zipped = answer.getheader("Content-Encoding") == "gzip"
        found = MORE.search(
            zlib.decompressobj(31).decompress(body, HEAD_BYTES) if is_zipped else body[:HEAD_BYTES]
        )
        if not found:
            break
        token = found[1]
    spent = ApiFormsCost(
        received / 1e6,
        time.perf_counter() - begun,
        time.process_time() - cpu,
        cpu_seconds(pid) - serving,
    )
    line.close()
    return spent


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))
