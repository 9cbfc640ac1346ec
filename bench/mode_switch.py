"""From `kubectl label node … cgpu=…` until the node's resources are those of the new mode, on a real kubelet.

    .venv/bin/python -m bench.mode_switch [--switches 10] [--status-seconds 10]

Needs root. Two rows: an idle node, and from the end of a card's last holder until its card has joined the
other mode. `--status-seconds` is the kubelet's `nodeStatusUpdateFrequency`, 10 s by default in Kubernetes: so
often it tells the API server what it knows. Beside each figure stands the same until the agent's own list
has changed, which is what the kubelet hears.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time

from tests.kube.control_plane import running_control_plane
from tests.kube.kubelet import running_node
from tests.kube.node_images import BUSYBOX
from tests.kubelet.agent import MEMORY, WHOLE, Line, container, running_line, shared
from tests.waiting import wait_until

SHARED, WHOLES = (("0", "0"), ("14", "14")), (("1", "1"), ("0", "0"))
"""`nvidia.com/gpu`, then memory, as capacity and allocatable."""


def main(count: int, status_seconds: float) -> None:
    took: dict[str, list[tuple[float, float]]] = {"idle": [], "after its holder": []}
    with (
        running_control_plane() as cluster,
        running_node(cluster, with_cdi=True, status_seconds=status_seconds) as node,
        running_line(cluster, node, "1xTesla-T4", f"--test-image={BUSYBOX}") as line,
    ):
        for number in range(count):
            for mode, shows in (("true", SHARED), ("false", WHOLES)):
                time.sleep(random.uniform(0, status_seconds))
                line.label(cgpu=mode)
                took["idle"].append(_until(line, shows, "shared" if mode == "true" else "exclusive"))
            line.label(cgpu="true")
            _until(line, SHARED, "shared")
            line.create(shared(f"holder-{number}", container("app", 4, "sleep 1000000")))
            line.runs(f"holder-{number}")
            line.label(cgpu="false")
            wait_until("the card drains", lambda: set(line.modes().values()) == {"draining"}, pause_seconds=0.02)
            line.delete(f"holder-{number}")
            took["after its holder"].append(_until(line, WHOLES, "exclusive"))
    print(f"the kubelet tells the API server every {status_seconds:g} s")
    for what, seconds in took.items():
        for told, each in (
            ("the agent's inventory", [agent for agent, _ in seconds]),
            ("the node's resources", [node for _, node in seconds]),
        ):
            print(f"{what}: until {told} p50 {statistics.median(each):.2f} s, most {max(each):.2f} s of {len(each)}")


def _until(line: Line, shows: tuple[tuple[str, str], tuple[str, str]], mode: str) -> tuple[float, float]:
    """Seconds until the agent says so, and until the node's resources do."""
    began = time.monotonic()
    wait_until("the agent has changed", lambda: set(line.modes().values()) == {mode}, pause_seconds=0.02)
    agent = time.monotonic() - began
    wait_until("the node has changed", lambda: (line.shown(WHOLE), line.shown(MEMORY)) == shows, pause_seconds=0.02)
    return agent, time.monotonic() - began


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", type=int, default=10)
    parser.add_argument("--status-seconds", type=float, default=10.0)
    chosen = parser.parse_args()
    sys.exit(main(chosen.switches, chosen.status_seconds))
