"""The installer on a real API server."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kube.control_plane import running_control_plane
from tests.kube.programs import program

from bench.support.options import options
from bench.support.processes import alternating, print_costs

FAIRLEAD = str(Path(sys.executable).parent / "fairlead")
UPGRADE, PEER = "fairlead upgrade", "kubectl apply --server-side"
UPGRADE_AIM_SECONDS = 2.0


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
