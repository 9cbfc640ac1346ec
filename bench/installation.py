"""The installer on a real API server."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.helm import Helm, packed_chart
from tests.kube.objects import gpu_node, namespace
from tests.kube.programs import program
from tests.waiting import wait_until

from bench.support.company import Company
from bench.support.options import options
from bench.support.processes import Cost, alternating, print_costs, run

FAIRLEAD = str(Path(sys.executable).parent / "fairlead")
UPGRADE, PEER = "fairlead upgrade", "kubectl apply --server-side"
UPGRADE_AIM_SECONDS = 2.0
SYSTEM = "fairlead-system"
TREES = "elasticquotatrees.scheduling.sigs.k8s.io"
PLACES = {"kubernetes.io/os": "linux", "nvidia.com/gpu.present": "true"}
"""The labels by which Fairlead's pods choose their nodes."""
WITHOUT_WEBHOOK = tuple(
    f"--set={each}=false" for each in ("parts.quota", "parts.people", "signIn.enabled")
)
"""No pod runs a program here, so no webhook would ever answer."""
INSTALL_AIM, DOCTOR_AIM_SECONDS, BUNDLE_AIM_SECONDS, BUNDLE_AIM_MIB = 1.1, 3.0, 20.0, 20.0


def measure_upgrade() -> None:
    """An upgrade without a change: `fairlead upgrade` against kubectl's apply of the same objects.

        python -m bench upgrade [--runs 9]

    On a real API server, in fresh processes that alternate. kubectl's caches are warm. That nothing
    is written shows tests/kube/test_installation.py.
    """
    parser = options(measure_upgrade)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        subprocess.run([FAIRLEAD, "install", "--wait=0"], env=env, check=True, capture_output=True)
        objects = Path(home) / "objects.yaml"
        printed = [FAIRLEAD, "install", "--dry-run", "-o", "yaml"]
        objects.write_bytes(
            subprocess.run(printed, env=env, check=True, capture_output=True).stdout
        )
        apply = ["apply", "--server-side", "--field-manager=fairlead-install", "-f", str(objects)]
        commands = {
            UPGRADE: [FAIRLEAD, "upgrade", "--wait=0"],
            PEER: [str(program("kubectl")), *apply],
        }
        costs = alternating(commands, runs, dict.fromkeys(commands, env))
        print_costs(costs, [PEER], runs)
        print(f"\naim: {costs[UPGRADE].wall:.2f} s (<= {UPGRADE_AIM_SECONDS:.0f} s)")


def measure_install() -> None:
    """An installation until all is ready, and its removal: `fairlead install` against Helm 3.

        python -m bench install [--runs 5] [--nodes 3]

    On a real API server whose nodes and pods KWOK plays: pods are ready as soon as they are bound,
    so the time is that of the two commands and of the controllers. The runs take turns; after each
    all is removed. Both wait until all is ready (`--wait`). Without the part quota: its webhook is
    ready when it has written its authority, and KWOK's pods write nothing.
    """
    parser = options(measure_install)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=3)
    args = parser.parse_args()
    costs: dict[str, list[Cost]] = {"fairlead install": [], "helm install --wait": []}
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        nodes = [gpu_node(f"gpu-{number}") for number in range(args.nodes)]
        for each in nodes:
            each["metadata"]["labels"] |= PLACES
        cluster.admin.create(nodes)
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        helm = Helm("helm3", Path(home), cluster.kubeconfig)
        chart = str(packed_chart(Path(home)))
        for number in range(args.runs + 1):  # the first of each warms the server
            for name, rows in costs.items():
                cost = _installed_by(name, cluster, env, helm, chart)
                print(f"{name}: {cost.wall:.1f} s; load {os.getloadavg()[0]:.1f}", flush=True)
                if number:
                    rows.append(cost)
    found = {
        name: Cost(*map(statistics.median, zip(*rows, strict=True))) for name, rows in costs.items()
    }
    print_costs(found, ["helm install --wait"], args.runs)
    ratio = found["fairlead install"].wall / found["helm install --wait"].wall
    print(f"\naim: {ratio:.2f} x Helm's wall (<= {INSTALL_AIM})")


def _installed_by(
    name: str, cluster: ControlPlane, env: dict[str, str], helm: Helm, chart: str
) -> Cost:
    if name == "fairlead install":
        cost = run([FAIRLEAD, "install", *WITHOUT_WEBHOOK], env)
        removal = [FAIRLEAD, "uninstall", "--delete-data"]
        subprocess.run(removal, env=env, check=True, capture_output=True)
    else:
        cluster.admin.apply([namespace(SYSTEM)])
        words = ["install", "gpus", chart, "-n", SYSTEM, "--wait", *WITHOUT_WEBHOOK]
        cost = run([str(program("helm3")), *words, f"--kubeconfig={cluster.kubeconfig}"], env)
        helm.run("uninstall", "gpus", "-n", SYSTEM, "--no-hooks", "--wait")
        cluster.admin.run("delete", "crd", TREES, "--ignore-not-found")
        cluster.admin.delete("namespace", SYSTEM, "fairlead-nodes")
    wait_until("nothing is left", lambda: _spaces(cluster) == 0)
    return cost


def _spaces(cluster: ControlPlane) -> int:
    return sum(
        each["metadata"]["name"].startswith("fairlead-") for each in cluster.admin.get("namespaces")
    )


def measure_doctor() -> None:
    """`fairlead doctor`, and its bundle, beside a large cluster with an installation.

        python -m bench doctor [--nodes 1000] [--pods 10000] [--runs 5]

    On a real API server whose nodes and pods KWOK plays, those of node agents and GPU exporters
    included. Against `kubectl get pods -A`, of the same cluster, in turns.
    """
    parser = options(measure_doctor)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        Company(cluster, args.nodes, 0).grow(args.nodes, args.pods)
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        subprocess.run([FAIRLEAD, "install", "--wait=0"], env=env, check=True, capture_output=True)
        for name in ("fairlead-node-agent", "fairlead-gpu-exporter"):
            where = ("-n", "fairlead-nodes", "--timeout=1200s")
            cluster.admin.run("rollout", "status", f"daemonset/{name}", *where, seconds=1300)
        print(f"{args.nodes:,} nodes, {args.pods:,} pods and those of Fairlead", flush=True)
        bundle = Path(home) / "bundle.zip"
        peer = "kubectl get pods -A"
        commands = {
            "fairlead doctor": [FAIRLEAD, "doctor"],
            "fairlead doctor --bundle": [FAIRLEAD, "doctor", "--bundle", str(bundle)],
            peer: [str(program("kubectl")), "get", "pods", "-A"],
        }
        asked = subprocess.run(commands["fairlead doctor"], env=env, capture_output=True, text=True)
        print(asked.stdout + asked.stderr)
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for number in range(args.runs + 1):
            for name, command in commands.items():
                bundle.unlink(missing_ok=True)
                cost = run(command, env, (0, 1))  # 1: the doctor found something
                if number:
                    costs[name].append(cost)
        subprocess.run(commands["fairlead doctor --bundle"], env=env, capture_output=True)
        size = bundle.stat().st_size / 2**20
        found = {
            name: Cost(*map(statistics.median, zip(*rows, strict=True)))
            for name, rows in costs.items()
        }
    print_costs(found, [peer], args.runs)
    doctor, bundled = (found[name].wall for name in list(commands)[:2])
    print(
        f"\naims: {doctor:.1f} s (<= {DOCTOR_AIM_SECONDS:.0f}); bundle {bundled:.1f} s "
        f"(<= {BUNDLE_AIM_SECONDS:.0f}), {size:.1f} MiB (<= {BUNDLE_AIM_MIB:.0f})"
    )
