"""The demo of document 004 on the real thing: real Deployments, a real scheduler, one node of 56 cpu, so that quota alone holds the line.

After each step as many pods run as the contract says, exactly four are evicted in all, and no instant shows more charged than a max allows
(quota contract 4). In the storms the controller is killed at random points, and a tenth of its calls fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.fault_proxy import FaultProxy, running_fault_proxy
from tests.kube.quota_line import DEMO, EVICTIONS, STEPS, QuotaController, big_node, deployment, enforce, install, settled
from tests.kube.quota_truth import QuotaTruth
from tests.waiting import wait_until

PLACES = ("namespace1", "namespace2", "namespace3", "namespace4")
STORMS = range(1, 4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create([big_node("only", 56)])
        yield made


@pytest.fixture(scope="module")
def proxy(cluster: ControlPlane) -> Iterator[FaultProxy]:
    with running_fault_proxy(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> Iterator[QuotaController]:
    made = QuotaController(cluster)
    try:
        made.start()
        enforce(cluster, DEMO)
        yield made
    finally:
        made.stop()


@pytest.fixture
def truth(cluster: ControlPlane, controller: QuotaController) -> Iterator[QuotaTruth]:
    made = QuotaTruth(cluster, DEMO)
    try:
        yield made
    finally:
        made.stop()
        clear(cluster)


def clear(cluster: ControlPlane) -> None:
    for place in PLACES:
        cluster.admin.run("delete", "deployments", "--all", "-n", place, "--wait=false")
    for place in PLACES:
        cluster.admin.run("delete", "pods", "--all", "-n", place, "--force", "--grace-period=0", "--wait", seconds=60)
    wait_until("nothing is left", lambda: not any(cluster.admin.get("pods", "-n", place) for place in PLACES))


def wanted(step: int) -> dict[str, int]:
    return {place: count for place, count in zip(PLACES, STEPS[step], strict=False) if count}


def test_the_demo_of_the_documents(cluster: ControlPlane, truth: QuotaTruth, controller: QuotaController) -> None:
    for step, place in enumerate(PLACES):
        cluster.admin.create([deployment(f"nginx{step + 1}", place, 5, "5")])
        settled(truth, wanted(step))
        assert len(truth.evicted) == EVICTIONS[step], truth.evicted
    assert truth.stopped == truth.evicted
    assert truth.faults == []
    assert truth.most["root", "cpu"] == 40_000
    assert truth.waiting() == dict.fromkeys(PLACES, 3)
    assert {reason for place in PLACES for reason in truth.reasons(place)} == {"WaitingForIdleQuota"}
