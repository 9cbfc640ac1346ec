"""Watch events applied per second over TLS: ours against the official Python client.

    .venv/bin/python bench/watch_events.py [--events 100000] [--official-events 5000] [--runs 3]

With `--marked` ours is the extender's watch: it makes rows only of pods that share GPUs, and here none does.

Each in a process of its own. Both read the same MODIFIED events of 4.4 kB pods as fast as they can and keep a
mirror of the pods. The official client's rate does not depend on the number of events, so it gets fewer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PODS = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--official-events", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--marked", action="store_true")
    parser.add_argument("--client", choices=["ours", "json", "official"], help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        run = {"ours": run_ours, "json": run_ours, "official": run_official}[arguments.client]
        print(json.dumps(run(arguments.kubeconfig, arguments.events, arguments.marked)))
    else:
        compare(arguments.events, arguments.official_events, arguments.runs, arguments.marked)


def compare(events: int, official_events: int, runs: int, marked: bool) -> None:
    ours = measure("ours", events, runs, marked)
    plain = measure("json", events, runs, marked)
    official = measure("official", official_events, runs, marked)
    print(f"\nwatch events of 4.4 kB pods over TLS, applied to a mirror, median of {runs}")
    print(f"{'client':30}{'events':>10}{'seconds':>10}{'CPU s':>10}{'events/s':>12}")
    for name, count, row in (
        ("fairlead (reflector)", events, ours),
        ("the same, from lines of JSON", events, plain),
        ("official (watch.Watch)", official_events, official),
    ):
        print(f"{name:30}{count:>10,}{row['seconds']:>10.2f}{row['cpu']:>10.2f}{count / row['seconds']:>12,.0f}")
    faster = (events / ours["seconds"]) / (official_events / official["seconds"])
    each = ours["cpu"] / events
    cheaper = official["cpu"] / official_events / each
    print(f"\nfairlead / official: {faster:.1f}x the events per second, {cheaper:.1f}x less CPU; {each * 1e6:.1f} us CPU each")


def measure(client: str, events: int, runs: int, marked: bool) -> dict[str, float]:
    from pod_source import pod_server

    rows = []
    with (
        tempfile.TemporaryDirectory() as directory,
        pod_server(PODS, events, Path(directory), with_protobuf=client == "ours") as kubeconfig,
    ):
        command = [
            sys.executable,
            __file__,
            "--client",
            client,
            "--kubeconfig",
            str(kubeconfig),
            "--events",
            str(events),
            *(["--marked"] if marked else []),
        ]
        for _ in range(runs):
            rows.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
            print(f"{client}: {rows[-1]}", file=sys.stderr)
    return {name: statistics.median(row[name] for row in rows) for name in ("seconds", "cpu")}


def run_ours(kubeconfig: str, events: int, marked: bool) -> dict[str, float]:
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
            reader = ItemReader(resource.PODS, POD_FORM, SHARED_GPU_PREFIX.encode(), lambda _: False)
            reader = reader if marked else POD_SUBJECT.reader(POD_SUBJECT.resource)
            reflector = Reflector(api, reader, POD_SUBJECT.name, mirror.observe, on_change=changed.set)
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


def run_official(kubeconfig: str, events: int, marked: bool) -> dict[str, float]:
    from kubernetes import client, config, watch

    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    mirror = {pod.metadata.uid: pod for pod in core.list_pod_for_all_namespaces(limit=500).items}
    started, cpu = time.perf_counter(), time.process_time()
    watcher = watch.Watch()
    for number, event in enumerate(watcher.stream(core.list_pod_for_all_namespaces, resource_version="5000000"), 1):
        mirror[event["object"].metadata.uid] = event["object"]
        if number == events:
            break
    return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    main()
