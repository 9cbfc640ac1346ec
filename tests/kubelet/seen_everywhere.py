"""Do Prometheus, the cluster's figures and the console's boards show what the containers of a real
node received?

The oracle is the text of document 003: three notebooks of 4 GiB on one T4, which has 14, each with
4308 MiB.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.kube.kubelet import NODE
from tests.kube.prometheus import running_prometheus
from tests.kube.servers import Server, running
from tests.kubelet.agent import SECONDS, Line
from tests.waiting import wait_until

LIMIT = "fairlead_container_gpu_memory_limit_bytes"


def seen_everywhere(line: Line, uuid: str, names: Sequence[str]) -> None:
    """`names`: the notebooks, which run."""
    logs, kubeconfig = line.cluster.logs, f"--kubeconfig={line.cluster.kubeconfig}"
    with (
        line.exporter() as exporter,
        running("cluster-exporter", kubeconfig, log=logs / "cluster-exporter.log") as figures,
    ):
        targets = {"gpu": exporter.address, "cluster": figures.address}
        with running_prometheus(targets, logs / "prometheus.log") as prometheus:
            for name in names:
                (limit,) = prometheus.wait_for_data(f'{LIMIT}{{pod_name="{name}"}}')
                assert limit.value == 4308 << 20
                assert (
                    limit.labels["uuid"],
                    limit.labels["container_name"],
                    limit.labels["allocate_mode"],
                ) == (uuid, "app", "share")
            (node,) = prometheus.wait_for_data(f'arena_used_gpus_of_node{{node_name="{NODE}"}}')
            assert (node.labels["gpu_mode"], node.labels["total_gpus"]) == ("share", "1")
            flags = (kubeconfig, f"--prometheus={prometheus.url}", "--gpu-source=prometheus")
            with running("console", *flags, log=logs / "console.log") as console:
                on_the_boards(console, uuid, names)


def on_the_boards(console: Server, uuid: str, names: Sequence[str]) -> None:
    wait_until(
        "the card has readings",
        lambda: [each["utilPercent"] for each in console.api("/gpus")["items"]] not in ([], [None]),
        SECONDS,
    )
    (card,) = console.api("/gpus")["items"]
    assert (card["node"], card["uuid"], card["mode"], card["health"]) == (
        NODE,
        uuid,
        "share",
        "Healthy",
    )
    assert sorted(card["holders"]) == [f"default/{name}" for name in names]
    assert (card["units"], card["unitsAllocated"], card["memoryTotalMiB"]) == (14, 12, 15079)
    assert card["memoryAllocatedMiB"] == 3 * 4308
    (node,) = console.api("/nodes")["items"]
    assert (node["name"], node["gpusTotal"], node["gpusUnhealthy"], node["status"]) == (
        NODE,
        1,
        0,
        "Ready",
    )
