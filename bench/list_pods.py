"""100,000 pods over TLS: list, decode to the model, hold. Ours against the official Python client, each in a process of its own.

    .venv/bin/python bench/list_pods.py [--pods 100000] [--official-pods 10000] [--runs 3]

The official client is run at 10,000 pods by default and scaled by ten (it is linear; run it whole with --official-pods 100000: about a
minute and 6 GiB). Memory is what the process holds after the list, less what it held before.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--official-pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--client", choices=["ours", "blocking", "official"], help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        print(json.dumps({"ours": run_ours, "blocking": run_blocking, "official": run_official}[arguments.client](arguments.kubeconfig)))
    else:
        compare(arguments.pods, arguments.official_pods, arguments.runs)


def compare(pods: int, official_pods: int, runs: int) -> None:
    ours = measure("ours", pods, runs)
    blocking = measure("blocking", pods, runs)
    official = measure("official", official_pods, 1)
    scale = pods / official_pods
    wall, memory = official["seconds"] * scale, official["mib"] * scale
    how = "run whole" if scale == 1 else f"{official_pods:,} pods, scaled x{scale:g}"
    print(f"\n{pods:,} pods over TLS, list + decode to the model, median of {runs}")
    print(f"{'client':34}{'seconds':>10}{'MiB held':>10}{'MiB peak RSS':>14}{'pods/s':>10}")
    for name, row in (("fairlead, async (services)", ours), ("fairlead, blocking (CLI)", blocking)):
        print(f"{name:34}{row['seconds']:>10.2f}{row['mib']:>10.0f}{row['rss']:>14.0f}{pods / row['seconds']:>10,.0f}")
    print(f"{'official (' + how + ')':34}{wall:>10.2f}{memory:>10.0f}{'':>14}{pods / wall:>10,.0f}")
    print(f"\nofficial / fairlead async: {wall / ours['seconds']:.1f}x the time, {memory / ours['mib']:.1f}x the memory")


def measure(client: str, pods: int, runs: int) -> dict[str, float]:
    from pod_source import pod_server

    rows = []
    with tempfile.TemporaryDirectory() as directory, pod_server(pods, 0, Path(directory)) as kubeconfig:
        for _ in range(runs):
            command = [sys.executable, __file__, "--client", client, "--kubeconfig", str(kubeconfig)]
            row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            assert row["count"] == pods, row
            rows.append(row)
            print(f"{client}: {row}", file=sys.stderr)
    return {name: statistics.median(row[name] for row in rows) for name in ("seconds", "mib", "rss")}


def resident() -> float:
    """MiB of this process in memory now."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def report(before: float, seconds: float, count: int) -> dict[str, float]:
    gc.collect()
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "mib": resident() - before, "rss": peak, "count": count}


def run_ours(kubeconfig: str) -> dict[str, float]:
    import uvloop

    from fairlead.edge.followed import POD_SUBJECT
    from fairlead.edge.kube_api import KubeApi
    from fairlead.edge.kubeconfig import find_connection
    from fairlead.edge.mirror import Mirror
    from fairlead.edge.reflector import quiet_collector

    connection = find_connection(kubeconfig)
    assert connection is not None

    async def run() -> dict[str, float]:
        mirror = Mirror(POD_SUBJECT.order)
        async with KubeApi(connection) as api:
            reader = POD_SUBJECT.reader(POD_SUBJECT.resource)
            before, started = resident(), time.perf_counter()
            with quiet_collector(is_first=True):
                listing = await api.list_all(reader)
                mirror.replace(listing.rows, ())
            del listing
            rows = mirror.rows()
            return report(before, time.perf_counter() - started, len(rows))

    return uvloop.run(run())


def run_blocking(kubeconfig: str) -> dict[str, float]:
    from fairlead.edge.followed import POD_SUBJECT
    from fairlead.edge.kube_blocking import KubeBlocking
    from fairlead.edge.kubeconfig import find_connection

    connection = find_connection(kubeconfig)
    assert connection is not None
    with KubeBlocking(connection) as api:
        reader = POD_SUBJECT.reader(POD_SUBJECT.resource)
        before, started = resident(), time.perf_counter()
        gc.disable()
        rows = api.list_all(reader).rows
        return report(before, time.perf_counter() - started, len(rows))


def run_official(kubeconfig: str) -> dict[str, float]:
    from kubernetes import client, config

    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    before, started = resident(), time.perf_counter()
    pods, token = [], None
    while True:
        page = core.list_pod_for_all_namespaces(limit=500, _continue=token)
        pods += page.items
        token = page.metadata._continue
        if not token:
            break
    return report(before, time.perf_counter() - started, len(pods))


if __name__ == "__main__":
    main()
