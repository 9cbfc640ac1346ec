"""From a pod's binding until it runs, on a real kubelet with containerd 2, with shared memory and without.

    .venv/bin/python -m bench.bound_to_running [--pods 20]

Needs root, as every real kubelet does. One pod after the other, a plain one and a shared one in turns, each
of one container; both by the scheduler that asks our extender. Times are of a watch of the API server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from bench.first_seen import FirstSeen
from tests.kube.control_plane import running_control_plane
from tests.kube.kubelet import running_node
from tests.kube.node_images import BUSYBOX
from tests.kubelet.agent import MEMORY, Line, container, running_line, shared
from tests.waiting import wait_until

Object = dict[str, Any]
PODS = "/api/v1/pods"


def main(count: int) -> None:
    with (
        running_control_plane() as cluster,
        running_node(cluster, with_cdi=True) as node,
        running_line(cluster, node, "1xTesla-T4", f"--test-image={BUSYBOX}") as line,
    ):
        line.label(cgpu="true")
        wait_until("the node shows its memory", lambda: line.shown(MEMORY) == ("14", "14"))
        bound = FirstSeen(cluster, PODS, _is_bound, "default/")
        runs = FirstSeen(cluster, PODS, _runs, "default/")
        time.sleep(1)
        took: dict[str, list[float]] = {"plain": [], "shared": []}
        for number in range(count):
            for kind, units in (("plain", 0), ("shared", 4)):
                took[kind].append(_one(line, f"{kind}-{number}", units, bound, runs))
        middle = {kind: statistics.median(seconds) * 1000 for kind, seconds in took.items()}
        for kind, seconds in took.items():
            late = sorted(seconds)[len(seconds) * 9 // 10] * 1000
            print(f"{kind}: bound until it runs p50 {middle[kind]:.0f} ms, p90 {late:.0f} ms")
        print(f"p50 of a shared pod is {middle['shared'] - middle['plain']:.0f} ms later")


def _one(line: Line, name: str, units: int, bound: FirstSeen, runs: FirstSeen) -> float:
    line.create(shared(name, container("app", units, "sleep 1000000")))
    key = f"default/{name}"
    wait_until(f"{name} runs", lambda: key in runs.at, pause_seconds=0.02)
    line.delete(name)
    wait_until(f"{name} is gone", lambda: not line.agent.grants(), pause_seconds=0.1)
    return runs.at[key] - bound.at[key]


def _is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _runs(pod: Object) -> bool:
    return bool(pod["status"].get("phase") == "Running")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20)
    sys.exit(main(parser.parse_args().pods))
