"""The cluster exporter's page at 5,000 nodes, 40,000 GPUs, 5,000 jobs: ours, and by prometheus_client.

    .venv/bin/python bench/cluster_exporter_page.py [--nodes 5000] [--runs 5]

`page` is everything from a new snapshot to bytes and gzip: occupancy, jobs, families, text. `render` is
families to text alone, which is what prometheus_client's `generate_latest` does with the same samples. Peak
memory is of a process that holds the cluster and has made the page `--runs` times.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from fairlead.apps.cluster_exporter import ClusterExporterSettings, cluster_families
from fairlead.apps.metrics_page import make_page
from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.jobs.job import Job, Role
from fairlead.model.metric import Family
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, ContainerStatus, Owner, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.metrics.prom_text import render_page

GPUS_PER_NODE = 8
NOW = 1767600000.0
CHOSEN = ClusterExporterSettings(node="bench")


def big_cluster(nodes: int) -> ClusterSnapshot:
    """Every GPU held by a worker of a job of eight; every card has a reading."""
    ready, running = (Condition("Ready", "True"),), (Condition("Created", "True", at=NOW), Condition("Running", "True", at=NOW))
    limits = {names.NVIDIA_GPU: 1}
    container = Container("pytorch", "train:1", {**limits, "cpu": 8000}, limits)
    status = (ContainerStatus("pytorch", True, 0, "running", started=True, started_at=NOW),)
    made_nodes, pods, jobs, gpus = [], [], [], []
    for number in range(nodes):
        node, job = f"gpu-node-{number:05d}", f"training-job-{number:05d}"
        namespace = f"team-{number % 50}"
        made_nodes.append(
            Node(
                node,
                capacity={names.NVIDIA_GPU: GPUS_PER_NODE},
                allocatable={names.NVIDIA_GPU: GPUS_PER_NODE},
                addresses=(("InternalIP", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"),),
                conditions=ready,
                card_memory_mib=81920,
            )
        )
        jobs.append(
            Job(
                "pytorchjob",
                "PyTorchJob",
                "kubeflow.org/v1",
                namespace,
                job,
                uid=job,
                roles=(Role("worker", GPUS_PER_NODE, limits=limits),),
                conditions=running,
                created_at=NOW - 5000,
                started_at=NOW - 4000,
            )
        )
        owner, labels = (Owner("PyTorchJob", job, job, True),), {names.LABEL_JOB_NAME: job, names.LABEL_REPLICA_TYPE: "worker"}
        for index in range(GPUS_PER_NODE):
            pod = f"{job}-worker-{index}"
            pods.append(
                Pod(
                    namespace,
                    pod,
                    uid=pod,
                    labels=labels,
                    owners=owner,
                    node=node,
                    phase="Running",
                    containers=(container,),
                    statuses=status,
                    created_at=NOW - 4500,
                    started_at=NOW - 4000,
                )
            )
            seen = (GpuHolder(namespace, pod, "pytorch", "exclusive", 70000.0, 81920.0, 0.9),)
            gpus.append(
                GpuReading(
                    node,
                    index,
                    f"GPU-{number:05d}-{index}",
                    "NVIDIA A100",
                    81920.0,
                    70123.0,
                    (number * 7 + index) % 100 / 100,
                    holders=seen,
                )
            )
    return ClusterSnapshot(nodes=tuple(made_nodes), pods=tuple(pods), jobs=tuple(jobs)).with_gpus(gpus)


def run_ours(nodes: int, runs: int) -> dict[str, float]:
    snapshot = big_cluster(nodes)
    held = peak_mib()
    pages, renders, page = [], [], make_page(())
    for turn in range(runs):
        fresh = snapshot.without(())  # a new value, as after every change: no index is warm
        pages.append(seconds(lambda fresh=fresh: make_page(render_page(cluster_families(fresh, NOW, CHOSEN)))))
        if turn == 0:
            page = make_page(render_page(cluster_families(fresh, NOW, CHOSEN)))
    peak = peak_mib()
    families = list(cluster_families(snapshot, NOW, CHOSEN))
    samples = sum(value is not None for family in families for value in family.values)
    renders = [seconds(lambda: sum(len(piece) for piece in render_page(families))) for _ in range(runs)]
    return {
        "page": statistics.median(pages),
        "render": statistics.median(renders),
        "samples": samples,
        "mb": page.size / 1e6,
        "gzip_mb": len(page.gzipped) / 1e6,
        "held": held,
        "peak": peak,
    }


def run_peer(nodes: int, runs: int) -> dict[str, float]:
    """prometheus_client: the same samples, already in its own objects.

    Its text, then zlib as its server does.
    """
    from gzip import compress

    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import Metric

    def converted(family: Family) -> Metric:
        name, labels = family.metric.name, family.metric.labels
        metric = Metric(name.removesuffix("_total"), family.metric.help, family.metric.type)
        for key, value in zip(family.keys, family.values, strict=True):
            if value is not None:
                metric.add_sample(name, dict(zip(labels, key, strict=True)), value)
        return metric

    class Collector:
        def __init__(self, metrics: list[Metric]) -> None:
            self.metrics = metrics

        def collect(self) -> Iterator[Metric]:
            return iter(self.metrics)

    registry = CollectorRegistry()
    registry.register(Collector([converted(family) for family in cluster_families(big_cluster(nodes), NOW, CHOSEN)]))  # type: ignore[arg-type]
    text = generate_latest(registry)
    return {
        "render": statistics.median(seconds(lambda: generate_latest(registry)) for _ in range(max(1, runs // 2))),
        "gzip": seconds(lambda: compress(text)),
        "peak": peak_mib(),
    }


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds: all of this is one busy thread.

    A shared machine's wall clock says more about its neighbours.
    """
    began = time.process_time()
    work()
    return time.process_time() - began


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(who: str, nodes: int, runs: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--client", who, f"--nodes={nodes}", f"--runs={runs}"]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def compare(nodes: int, runs: int) -> None:
    ours, peer = child("ours", nodes, runs), child("peer", nodes, runs)
    print(f"\n{nodes:,} nodes, {nodes * GPUS_PER_NODE:,} GPUs, {nodes:,} jobs: {ours['samples']:,.0f} samples, {ours['mb']:.0f} MB of text")
    print(f"{'':44}{'CPU s':>9}{'peak MiB':>10}")
    print(f"{'fairlead: whole page, from a new snapshot':44}{ours['page']:>9.2f}{ours['peak']:>10.0f}")
    print(f"{'fairlead: render alone':44}{ours['render']:>9.2f}")
    print(f"{'prometheus_client: render alone':44}{peer['render']:>9.2f}{peer['peak']:>10.0f}")
    print(f"{'prometheus_client: gzip':44}{peer['gzip']:>9.2f}")
    print(f"\nprometheus_client / fairlead, render: {peer['render'] / ours['render']:.1f}x")
    print(f"the cluster itself holds {ours['held']:.0f} MiB of the peak; gzip level 1 makes {ours['gzip_mb']:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--client", choices=("ours", "peer"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.client:
        print(json.dumps({"ours": run_ours, "peer": run_peer}[chosen.client](chosen.nodes, chosen.runs)))
    else:
        compare(chosen.nodes, chosen.runs)


if __name__ == "__main__":
    main()
