"""100,000 pods over TLS: list, decode to the model, hold. Ours against the official Python client.

    .venv/bin/python bench/list_pods.py [--pods 100000] [--official-pods 10000] [--runs 3]

Each in a process of its own. The official client is run at 10,000 pods by default and scaled by ten (it is
linear; run it whole with --official-pods 100000: about a minute and 6 GiB). MiB held is what the list added
to the process; RSS is all of it. On a busy machine trust the CPU seconds.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
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
    parser.add_argument("--client", choices=["ours", "json", "blocking", "official"], help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        print(
            json.dumps(
                {"ours": run_ours, "json": run_ours, "blocking": run_blocking, "official": run_official}[arguments.client](
                    arguments.kubeconfig
                )
            )
        )
    else:
        compare(arguments.pods, arguments.official_pods, arguments.runs)


def compare(pods: int, official_pods: int, runs: int) -> None:
    ours = measure("ours", pods, runs)
    plain = measure("json", pods, runs)
    blocking = measure("blocking", pods, runs)
    official = measure("official", official_pods, runs)
    scale = pods / official_pods
    scaled = {name: official[name] * scale for name in ("seconds", "cpu", "mib")}
    how = "run whole" if scale == 1 else f"{official_pods:,} pods, scaled x{scale:g}"
    print(f"\n{pods:,} pods over TLS, list + decode to the model, median of {runs}")
    print(f"{'client':40}{'seconds':>10}{'CPU s':>10}{'MiB held':>10}{'RSS MiB':>10}{'peak MiB':>10}")
    for name, row in (
        ("fairlead, async (services)", ours),
        ("the same, from a server without protobuf", plain),
        ("fairlead, blocking (CLI)", blocking),
    ):
        print(f"{name:40}{row['seconds']:>10.2f}{row['cpu']:>10.2f}{row['mib']:>10.0f}{row['rss']:>10.0f}{row['peak']:>10.0f}")
    print(f"{'official (' + how + ')':40}{scaled['seconds']:>10.2f}{scaled['cpu']:>10.2f}{scaled['mib']:>10.0f}")
    ratios = ", ".join(
        f"{scaled[key] / ours[key]:.1f}x the {what}" for key, what in (("seconds", "time"), ("cpu", "CPU"), ("mib", "memory"))
    )
    print(f"\nofficial / fairlead async: {ratios}")


def measure(client: str, pods: int, runs: int) -> dict[str, float]:
    from pod_source import pod_server

    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        pod_server(pods, 0, Path(directory), with_protobuf=client in ("ours", "blocking")) as kubeconfig,
    ):
        for _ in range(runs):
            command = [sys.executable, __file__, "--client", client, "--kubeconfig", str(kubeconfig)]
            row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            assert row["count"] == pods, row
            rows.append(row)
            print(f"{client}: {row}", file=sys.stderr)
    return {name: statistics.median(row[name] for row in rows) for name in ("seconds", "cpu", "mib", "rss", "peak")}


def resident() -> float:
    """MiB of this process in memory now."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


class Measured:
    """From now on: seconds, CPU seconds (this process only) and memory."""

    def __init__(self) -> None:
        self._before, self._started, self._cpu = resident(), time.perf_counter(), time.process_time()

    def report(self, count: int) -> dict[str, float]:
        seconds, cpu = time.perf_counter() - self._started, time.process_time() - self._cpu
        gc.collect()
        peak, now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, resident()
        return {"seconds": seconds, "cpu": cpu, "mib": now - self._before, "rss": now, "peak": peak, "count": count}


def run_ours(kubeconfig: str) -> dict[str, float]:
    import uvloop

    from fairlead.edge.connection.kubeconfig import find_connection
    from fairlead.edge.kube.follow.followed_kind import POD_SUBJECT
    from fairlead.edge.kube.kube_api import KubeApi
    from fairlead.edge.kube.reflector import Mirror, quiet_collector

    connection = find_connection(kubeconfig)
    assert connection is not None

    async def run() -> dict[str, float]:
        mirror = Mirror(POD_SUBJECT.order)
        async with KubeApi(connection) as api:
            reader = POD_SUBJECT.reader(POD_SUBJECT.resource)
            measured = Measured()
            with quiet_collector(is_first=True):
                listing = await api.list_all(reader)
                mirror.replace(listing.rows, ())
            del listing
            rows = mirror.rows()
            return measured.report(len(rows))

    return uvloop.run(run())


def run_blocking(kubeconfig: str) -> dict[str, float]:
    from fairlead.edge.connection.kubeconfig import find_connection
    from fairlead.edge.kube.follow.followed_kind import POD_SUBJECT
    from fairlead.edge.kube.kube_blocking import KubeBlocking

    connection = find_connection(kubeconfig)
    assert connection is not None
    with KubeBlocking(connection) as api:
        reader = POD_SUBJECT.reader(POD_SUBJECT.resource)
        measured = Measured()
        gc.disable()
        rows = api.list_all(reader).rows
        return measured.report(len(rows))


def run_official(kubeconfig: str) -> dict[str, float]:
    from kubernetes import client, config

    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    measured = Measured()
    pods, token = [], None
    while True:
        page = core.list_pod_for_all_namespaces(limit=500, _continue=token)
        pods += page.items
        token = page.metadata._continue
        if not token:
            break
    return measured.report(len(pods))


if __name__ == "__main__":
    main()
