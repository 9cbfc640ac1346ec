"""Fixtures of this folder: a company's cluster, and Fairlead's processes that read it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.kube.company import build_company
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.fluid import Fluid, running_fluid
from tests.kube.kubectl import KubectlError
from tests.kube.servers import Server, running

MOST_PODS = 60
"""Lines of pods in the report of a failed test."""


@pytest.fixture(scope="session")
def company() -> Iterator[ControlPlane]:
    """A real cluster with 20 GPU nodes, 60 pods, 10 Jobs and 5 training jobs; see company.py."""
    with running_control_plane() as cluster:
        build_company(cluster)
        yield cluster


@pytest.fixture(scope="session")
def real_fluid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fluid]:
    """A real cluster with Fluid's real controllers; see fluid.py."""
    with running_fluid(tmp_path_factory.mktemp("fluid")) as made:
        yield made


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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Iterator[None]:
    """A failed test is reported with the pods of its cluster as they are then: a cluster that is
    stopped leaves no trace of a race.
    """
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when != "call" or not report.failed:
        return
    values = getattr(item, "funcargs", {}).values()
    for each in {value for value in values if isinstance(value, ControlPlane)}:
        report.sections.append(("pods", described_pods(each)))


def described_pods(cluster: ControlPlane) -> str:
    """A line for each pod: phase, node, gates, deletion, and the messages of conditions that are
    False.
    """
    columns = {
        "NAMESPACE": ".metadata.namespace",
        "NAME": ".metadata.name",
        "PHASE": ".status.phase",
        "NODE": ".spec.nodeName",
        "GATES": ".spec.schedulingGates[*].name",
        "DELETED": ".metadata.deletionTimestamp",
        "CONDITIONS": ".status.conditions[?(@.status=='False')].message",
    }
    words = ",".join(f"{name}:{path}" for name, path in columns.items())
    try:
        text = cluster.admin.run("get", "pods", "-A", "-o", f"custom-columns={words}", seconds=30)
    except (KubectlError, subprocess.TimeoutExpired) as error:
        return f"not read: {error}"
    return "\n".join(text.splitlines()[:MOST_PODS])
