"""Fixtures of this folder: a company's cluster, and Fairlead's processes that read it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.company import build_company
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.servers import Server, running


@pytest.fixture(scope="session")
def company() -> Iterator[ControlPlane]:
    """A real cluster with 20 GPU nodes, 60 pods, 10 Jobs and 5 training jobs; see company.py."""
    with running_control_plane() as cluster:
        build_company(cluster)
        yield cluster


@pytest.fixture(scope="module")
def cluster_exporter(company: ControlPlane) -> Iterator[Server]:
    with running(
        "cluster-exporter",
        f"--kubeconfig={company.kubeconfig}",
        log=company.logs / "cluster-exporter.log",
    ) as server:
        yield server


@pytest.fixture(scope="module")
def console(company: ControlPlane) -> Iterator[Server]:
    with running(
        "console", f"--kubeconfig={company.kubeconfig}", log=company.logs / "console.log"
    ) as server:
        yield server
