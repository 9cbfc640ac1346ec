"""`arena top node` on 1,000 nodes and 10,000 pods of a real API server.

    .venv/bin/python bench/top_node.py [--nodes 1000] [--pods 10000] [--runs 5]

Against the bytes alone (in the same forms), `kubectl get pods -A`, itself in plain JSON. Needs the programs
that `tools/build_kube.py` builds (etcd, kube-apiserver, kubectl). Runs alternate; medians are compared.
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from tests.kube.control_plane import ControlPlane  # noqa: E402
from tests.kube.programs import program  # noqa: E402

from bytes_alone import record  # noqa: E402
from fairlead.edge.queries.cluster_query import ClusterQuery  # noqa: E402
from filled_cluster import filled_cluster, write_plan  # noqa: E402
from fresh_process import alternating, print_costs  # noqa: E402

AIM_REQUESTS, AIM_RATIO, AIM_MIB, AIM_MB = 60, 0.22, 70, 3
BYTES, KUBECTL, OURS = "the bytes alone", "kubectl get pods -A", "arena top node"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with filled_cluster(arguments.nodes, arguments.pods) as plane:
        compare(plane, arguments.runs)


def compare(plane: ControlPlane, runs: int) -> None:
    sent = record(plane.kubeconfig, lambda api: ClusterQuery(api).read_nodes())
    arena, of = str(Path(sys.executable).parent / "arena"), f"--kubeconfig={plane.kubeconfig}"
    commands = {
        BYTES: [sys.executable, str(ROOT / "bench" / "bytes_alone.py"), write_plan(plane, sent.stages, plane.folder / "plan.json")],
        KUBECTL: [str(program("kubectl")), "get", "pods", "-A", of],
        OURS: [arena, "top", "node", of],
        "the same in plain JSON": [sys.executable, str(ROOT / "bench" / "in_json.py"), "top", "node", of],
        "arena top node -d": [arena, "top", "node", "-d", of],
    }
    costs = alternating(commands, runs)
    print_costs(costs, [BYTES, KUBECTL], runs)
    ratio = costs[OURS].wall / costs[KUBECTL].wall
    print(
        f"\naims: {sent.requests} requests (<= {AIM_REQUESTS}); {ratio:.2f} x kubectl's wall (<= {AIM_RATIO}); "
        f"{costs[OURS].mib:.0f} MiB (<= {AIM_MIB}); {sent.received / 1e6:.1f} MB on the wire (<= {AIM_MB})"
    )


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
