"""Fixtures: the mixed company on a real control plane, its exporters' pages, and Prometheus, the
cluster exporter and the console that read them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.kube.control_plane import running_control_plane
from tests.kube.gpu_pages import served
from tests.kube.numbers.company_seen import CompanySeen
from tests.kube.numbers.mixed_company import build_mixed_company
from tests.kube.numbers.reported_cards import dcgm_page, own_page, past_of
from tests.kube.prometheus import running_prometheus
from tests.kube.servers import running


@pytest.fixture(scope="package")
def seen() -> Iterator[CompanySeen]:
    with running_control_plane() as cluster:
        build_mixed_company(cluster)
        company = CompanySeen(cluster)
        with (
            served(lambda: own_page(company.seats)) as own,
            served(lambda: dcgm_page(company.seats)) as dcgm,
        ):
            pages = {"own": own, "dcgm": dcgm}
            read = [
                f"--kubeconfig={cluster.kubeconfig}",
                *(f"--gpu-exporter=http://{place}/metrics" for place in pages.values()),
            ]
            now, texts = (
                time.time(),
                {"own": own_page(company.seats), "dcgm": dcgm_page(company.seats)},
            )
            history = "".join(
                past_of(texts[job], f'job="{job}",instance="{place}"', now)
                for job, place in pages.items()
            )
            with (
                running(
                    "cluster-exporter", *read, log=cluster.logs / "cluster-exporter.log"
                ) as exporter,
                running_prometheus(
                    {**pages, "cluster": exporter.address},
                    cluster.logs / "prometheus.log",
                    history=f"{history}# EOF\n",
                ) as prometheus,
                running(
                    "console",
                    *read,
                    f"--prometheus={prometheus.url}",
                    log=cluster.logs / "console.log",
                ) as console,
                running(
                    "console",
                    read[0],
                    f"--prometheus={prometheus.url}",
                    "--gpu-source=prometheus",
                    log=cluster.logs / "console-prometheus.log",
                ) as second,
            ):
                company.watch({"pages": console, "prometheus": second}, exporter, prometheus)
                yield company
