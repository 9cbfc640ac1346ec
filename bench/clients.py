"""Reading many pods from an API server: Fairlead's client beside the official one."""

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

from bench.support.options import options

MIB = 1 << 20


def measure_list_pods() -> None:
    """100,000 pods over TLS: list, decode, keep; by Fairlead's client and by the official one.

        python -m bench list_pods [--pods 100000] [--official-pods 10000] [--runs 3]

    Each in a process of its own. The official client is run at 10,000 pods by default and scaled
    by ten (it is linear; run it whole with --official-pods 100000: about a minute and 6 GiB). MiB
    held is what the list added to the process; RSS is all of it. On a busy machine trust the CPU
    seconds.
    """
    parser = options(measure_list_pods)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--official-pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--client", choices=["fairlead", "json", "blocking", "official"], help=argparse.SUPPRESS
    )
    parser.add_argument("--kubeconfig", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        print(
            json.dumps(
                {
                    "fairlead": list_pods_run_fairlead,
                    "json": list_pods_run_fairlead,
                    "blocking": run_blocking,
                    "official": list_pods_run_official,
                }[arguments.client](arguments.kubeconfig)
            )
        )
    else:
        list_pods_compare(arguments.pods, arguments.official_pods, arguments.runs)


def list_pods_compare(pods: int, official_pods: int, runs: int) -> None:
    own = list_pods_measure("fairlead", pods, runs)
    plain = list_pods_measure("json", pods, runs)
    blocking = list_pods_measure("blocking", pods, runs)
    official = list_pods_measure("official", official_pods, runs)
    scale = pods / official_pods
    scaled = {name: official[name] * scale for name in ("seconds", "cpu", "mib")}
    how = "run whole" if scale == 1 else f"{official_pods:,} pods, scaled x{scale:g}"
    print(f"\n{pods:,} pods over TLS, list + decode to the model, median of {runs}")
    print(
        f"{'client':40}{'seconds':>10}{'CPU s':>10}{'MiB held':>10}{'RSS MiB':>10}{'peak MiB':>10}"
    )
    for name, row in (
        ("fairlead, async (services)", own),
        ("the same, from a server without protobuf", plain),
        ("fairlead, blocking (CLI)", blocking),
    ):
        print(
            f"{name:40}{row['seconds']:>10.2f}{row['cpu']:>10.2f}{row['mib']:>10.0f}{row['rss']:>10.0f}{row['peak']:>10.0f}"
        )
    title = f"official ({how})"
    print(f"{title:40}{scaled['seconds']:>10.2f}{scaled['cpu']:>10.2f}{scaled['mib']:>10.0f}")
    ratios = ", ".join(
        f"{scaled[key] / own[key]:.1f}x the {what}"
        for key, what in (("seconds", "time"), ("cpu", "CPU"), ("mib", "memory"))
    )
    print(f"\nofficial / fairlead async: {ratios}")


def list_pods_measure(client: str, pods: int, runs: int) -> dict[str, float]:
    from bench.support.pod_source import pod_server

    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        pod_server(
            pods, 0, Path(directory), with_protobuf=client in ("fairlead", "blocking")
        ) as kubeconfig,
    ):
        for _ in range(runs):
            command = [
                sys.executable,
                "-m",
                "bench",
                "list_pods",
                "--client",
                client,
                "--kubeconfig",
                str(kubeconfig),
            ]
            row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            assert row["count"] == pods, row
            rows.append(row)
            print(f"{client}: {row}", file=sys.stderr)
    return {
        name: statistics.median(row[name] for row in rows)
        for name in ("seconds", "cpu", "mib", "rss", "peak")
    }


def resident() -> float:
    """MiB of this process in memory now."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


class Measured:
    """From now on: seconds, CPU seconds (this process only) and memory."""

    def __init__(self) -> None:
        self._before, self._started, self._cpu = (
            resident(),
            time.perf_counter(),
            time.process_time(),
        )

    def report(self, count: int) -> dict[str, float]:
        seconds, cpu = time.perf_counter() - self._started, time.process_time() - self._cpu
        gc.collect()
        peak, now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, resident()
        return {
            "seconds": seconds,
            "cpu": cpu,
            "mib": now - self._before,
            "rss": now,
            "peak": peak,
            "count": count,
        }


def list_pods_run_fairlead(kubeconfig: str) -> dict[str, float]:
    import uvloop

    from fairlead.collector import quiet_collector
    from fairlead.edge.connection.kubeconfig import find_connection
    from fairlead.edge.kube.follow.followed_kind import POD_SUBJECT
    from fairlead.edge.kube.kube_api import KubeApi
    from fairlead.edge.kube.reflector import Mirror
    from fairlead.model.changes import listed

    connection = find_connection(kubeconfig)
    assert connection is not None

    async def run() -> dict[str, float]:
        mirror = Mirror(POD_SUBJECT.order)
        async with KubeApi(connection) as api:
            reader = POD_SUBJECT.reader(POD_SUBJECT.resource)
            measured = Measured()
            with quiet_collector(is_first=True):
                listing = await api.list_all(reader)
                mirror.observe(listed(POD_SUBJECT.name, listing.rows))
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


def list_pods_run_official(kubeconfig: str) -> dict[str, float]:
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


PODS = 5_000


def measure_watch_events() -> None:
    """Watch events applied per second over TLS: Fairlead against the official Python client.

        python -m bench watch_events [--events 100000] [--official-events 5000] [--runs 3]

    With `--marked` Fairlead's side is the extender's watch: it makes rows only of pods that share
    GPUs, and here none does.

    Each in a process of its own. Both read the same MODIFIED events of 4.4 kB pods as fast as they
    can and keep a mirror of the pods. The official client's rate does not depend on the number of
    events, so it gets fewer.
    """
    parser = options(measure_watch_events)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--official-events", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--marked", action="store_true")
    parser.add_argument(
        "--client", choices=["fairlead", "json", "official"], help=argparse.SUPPRESS
    )
    parser.add_argument("--kubeconfig", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        run = {
            "fairlead": watch_events_run_fairlead,
            "json": watch_events_run_fairlead,
            "official": watch_events_run_official,
        }[arguments.client]
        print(json.dumps(run(arguments.kubeconfig, arguments.events, arguments.marked)))
    else:
        watch_events_compare(
            arguments.events, arguments.official_events, arguments.runs, arguments.marked
        )


def watch_events_compare(events: int, official_events: int, runs: int, marked: bool) -> None:
    own = watch_events_measure("fairlead", events, runs, marked)
    plain = watch_events_measure("json", events, runs, marked)
    official = watch_events_measure("official", official_events, runs, marked)
    print(f"\nwatch events of 4.4 kB pods over TLS, applied to a mirror, median of {runs}")
    print(f"{'client':30}{'events':>10}{'seconds':>10}{'CPU s':>10}{'events/s':>12}")
    for name, count, row in (
        ("fairlead (reflector)", events, own),
        ("the same, from lines of JSON", events, plain),
        ("official (watch.Watch)", official_events, official),
    ):
        rate = count / row["seconds"]
        print(f"{name:30}{count:>10,}{row['seconds']:>10.2f}{row['cpu']:>10.2f}{rate:>12,.0f}")
    faster = (events / own["seconds"]) / (official_events / official["seconds"])
    each = own["cpu"] / events
    cheaper = official["cpu"] / official_events / each
    print(
        f"\nfairlead / official: {faster:.1f}x the events per second, {cheaper:.1f}x less CPU; "
        f"{each * 1e6:.1f} us CPU each"
    )


def watch_events_measure(client: str, events: int, runs: int, marked: bool) -> dict[str, float]:
    from bench.support.pod_source import pod_server

    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        pod_server(PODS, events, Path(directory), with_protobuf=client == "fairlead") as kubeconfig,
    ):
        command = [
            sys.executable,
            "-m",
            "bench",
            "watch_events",
            "--client",
            client,
            "--kubeconfig",
            str(kubeconfig),
            "--events",
            str(events),
            *(["--marked"] if marked else []),
        ]
        for _ in range(runs):
            rows.append(
                json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            )
            print(f"{client}: {rows[-1]}", file=sys.stderr)
    return {name: statistics.median(row[name] for row in rows) for name in ("seconds", "cpu")}


def watch_events_run_fairlead(kubeconfig: str, events: int, marked: bool) -> dict[str, float]:
    import asyncio

    import uvloop

    from fairlead.edge.connection.kubeconfig import find_connection
    from fairlead.edge.kube import resource
    from fairlead.edge.kube.api_page import ItemReader
    from fairlead.edge.kube.follow.followed_kind import POD_SUBJECT
    from fairlead.edge.kube.kube_api import KubeApi
    from fairlead.edge.kube.reflector import Mirror, Reflector
    from fairlead.model.resources import SHARED_GPU_PREFIX
    from fairlead.wire.kube.objects import POD_FORM

    connection = find_connection(kubeconfig)
    assert connection is not None

    async def run() -> dict[str, float]:
        mirror = Mirror(POD_SUBJECT.order)
        async with KubeApi(connection) as api:
            changed = asyncio.Event()
            reader = ItemReader(
                resource.PODS, POD_FORM, SHARED_GPU_PREFIX.encode(), lambda _: False
            )
            reader = reader if marked else POD_SUBJECT.reader(POD_SUBJECT.resource)
            reflector = Reflector(
                api, reader, POD_SUBJECT.name, mirror.observe, on_change=changed.set
            )
            task = asyncio.create_task(reflector.run())
            while not reflector.is_synced:
                await changed.wait()
                changed.clear()
            started, cpu = time.perf_counter(), time.process_time()
            while reflector.events_total < events:
                await (asyncio.sleep(0.001) if marked else changed.wait())
                changed.clear()
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
            task.cancel()
            assert len(mirror) == PODS
            return {"seconds": seconds, "cpu": cpu}

    return uvloop.run(run())


def watch_events_run_official(kubeconfig: str, events: int, marked: bool) -> dict[str, float]:
    from kubernetes import client, config, watch

    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    mirror = {pod.metadata.uid: pod for pod in core.list_pod_for_all_namespaces(limit=500).items}
    started, cpu = time.perf_counter(), time.process_time()
    watcher = watch.Watch()
    for number, event in enumerate(
        watcher.stream(core.list_pod_for_all_namespaces, resource_version="5000000"), 1
    ):
        mirror[event["object"].metadata.uid] = event["object"]
        if number == events:
            break
    return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
