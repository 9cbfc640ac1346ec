"""The demo of document 004 on a real control plane: real Deployments, a real scheduler, one node of
56 cpu, so that quota alone limits the pods.

After each step the contract's number of pods run, exactly four are evicted in all, and no instant
shows more charged than a max allows (docs/spec/quota.md#the-40-core-demo). In the storms the
controller is killed at random points, and a tenth of its calls fails.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest
from tests.kube.clocks import HOUR
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.fault_proxy import FaultProxy, held_back, running_fault_proxy
from tests.kube.kwok_stages import DELETE_DELAY, READY_DELAY
from tests.kube.quota_line import (
    DEMO,
    EVICTIONS,
    STEPS,
    QuotaController,
    big_node,
    clear,
    deployment,
    install,
    running_controller,
    settled,
)
from tests.kube.quota_truth import QuotaTruth
from tests.waiting import wait_until

PLACES = ("namespace1", "namespace2", "namespace3", "namespace4")
STORMS = range(1, 2)
"""Twenty other seeds passed once; a storm takes three quarters of a minute."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create([big_node("only", 56)])
        yield made


@pytest.fixture(scope="module")
def proxy(cluster: ControlPlane) -> Iterator[FaultProxy]:
    with running_fault_proxy(cluster, as_admin=False) as made:
        yield made


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> Iterator[QuotaController]:
    with running_controller(cluster, DEMO) as made:
        yield made


@pytest.fixture
def truth(cluster: ControlPlane, controller: QuotaController) -> Iterator[QuotaTruth]:
    made = QuotaTruth(cluster, DEMO)
    try:
        yield made
    finally:
        made.stop()
        clear(cluster, PLACES)


def wanted(step: int) -> dict[str, int]:
    return {place: count for place, count in zip(PLACES, STEPS[step], strict=False) if count}


def test_the_demo_of_the_documents(
    cluster: ControlPlane, truth: QuotaTruth, controller: QuotaController
) -> None:
    for step, place in enumerate(PLACES):
        cluster.admin.create([deployment(f"nginx{step + 1}", place, 5, "5")])
        settled(truth, wanted(step))
        assert len(truth.evicted) == EVICTIONS[step], truth.evicted
    assert truth.stopped == truth.evicted
    assert truth.faults == []
    assert truth.most["root", "cpu"] == 40_000
    assert truth.waiting() == dict.fromkeys(PLACES, 3)
    assert {reason for place in PLACES for reason in truth.reasons(place)} == {
        "WaitingForIdleQuota"
    }


def test_while_the_controller_is_down_new_pods_wait_and_what_runs_is_left_alone(
    cluster: ControlPlane, truth: QuotaTruth, controller: QuotaController
) -> None:
    cluster.admin.create([deployment("before", "namespace1", 2, "5")])
    settled(truth, {"namespace1": 2})
    controller.stop()
    elsewhere = deployment("elsewhere", "default", 2, "1")
    cluster.admin.create([deployment("after", "namespace2", 2, "5"), elsewhere])
    wait_until("pods wait at the gate", lambda: truth.waiting() == {"namespace2": 2})
    cluster.admin.run(
        "rollout", "status", "deployment/elsewhere", "-n", "default", "--timeout=60s", seconds=70
    )
    cluster.admin.run("delete", "deployment", "elsewhere", "-n", "default")
    assert truth.running() == {"namespace1": 2}
    controller.start()
    settled(truth, {"namespace1": 2, "namespace2": 2})
    assert truth.stopped == {}


def test_of_two_controllers_one_works_and_the_other_goes_on(
    cluster: ControlPlane, truth: QuotaTruth, controller: QuotaController
) -> None:
    """The working controller is killed in the middle of a step; then the other one is stopped with
    SIGTERM. The clock of the second is an hour ahead, that of the third an hour behind: because of
    it no pod looks stuck, unbound, or as if it had waited.
    """
    other = QuotaController(cluster, "quota-1", clock=HOUR)
    third = QuotaController(cluster, "quota-2", clock=-HOUR)
    try:
        other.start()
        assert leading(controller, other) == [1.0, 0.0]
        for step, place in enumerate(PLACES[:3]):
            slow = {DELETE_DELAY: "2000ms"}
            cluster.admin.create([deployment(f"nginx{step + 1}", place, 5, "5", annotations=slow)])
            if step == 2:
                wait_until(
                    "a pod claims",
                    lambda: "WaitingForEvictions" in truth.reasons("namespace3") or truth.evicted,
                    pause_seconds=0.01,
                )
                controller.component.kill()
            settled(truth, wanted(step))
        assert leading(other) == [1.0]
        third.start()
        other.stop()
        cluster.admin.create([deployment("nginx4", PLACES[3], 5, "5")])
        settled(truth, wanted(3), seconds=10.0)
        assert leading(third) == [1.0]
        assert len(truth.evicted) == 4
        assert truth.stopped == truth.evicted
        assert truth.faults == []
    finally:
        other.stop()
        third.stop()
        if not controller.component.is_running:
            controller.start()


def test_a_frozen_controller_evicts_no_pod_after_another_has_the_lease(
    cluster: ControlPlane, proxy: FaultProxy, truth: QuotaTruth, controller: QuotaController
) -> None:
    """Its request is held at a proxy until another controller works and no pod waits any more. Then
    it reaches the API server.
    """
    controller.stop()
    frozen = QuotaController(cluster, "frozen", server=proxy.server)
    other = QuotaController(cluster, "quota-1")
    try:
        frozen.start()
        for step, place in enumerate(PLACES[:2]):
            cluster.admin.create([deployment(f"nginx{step + 1}", place, 5, "5")])
            settled(truth, wanted(step))
        eviction = proxy.plan(held_back("eviction"))
        cluster.admin.create([deployment("late", PLACES[2], 1, "5")])
        wait_until("an eviction is on its way", lambda: eviction.strikes == 1)
        frozen.component.freeze()
        clear(cluster, PLACES[2:3])
        other.start()
        wait_until("the other one works", lambda: leading(other) == [1.0])
        proxy.release(eviction)
        assert eviction.answered == 403
        frozen.component.thaw()
        wait_until("the first one works no more", lambda: leading(frozen, other) == [0.0, 1.0])
        settled(truth, wanted(1))
        assert truth.evicted == {}
        assert truth.faults == []
    finally:
        proxy.forget()
        frozen.component.thaw()
        frozen.stop()
        other.stop()
        controller.start()


def leading(*controllers: QuotaController) -> list[float]:
    return [each.metrics().value("fairlead_quota_leading") for each in controllers]


@pytest.mark.parametrize("seed", STORMS)
def test_the_demo_in_a_storm(
    cluster: ControlPlane,
    proxy: FaultProxy,
    truth: QuotaTruth,
    controller: QuotaController,
    seed: int,
) -> None:
    """Pods take time to start and to stop, a tenth of all calls fails, and the controller dies at
    random points.
    """
    controller.stop()
    stormy = QuotaController(cluster, f"storm-{seed}", server=proxy.server)
    chance = random.Random(seed)
    try:
        stormy.start()
        proxy.fail(0.1, random.Random(-seed))
        for step, place in enumerate(PLACES):
            slow = {
                DELETE_DELAY: f"{chance.randint(0, 2500)}ms",
                READY_DELAY: f"{chance.randint(0, 1500)}ms",
            }
            cluster.admin.create([deployment(f"nginx{step + 1}", place, 5, "5", annotations=slow)])
            for _ in range(chance.randint(0, 2)):
                time.sleep(chance.uniform(0.0, 1.5))
                stormy.kill()
            settled(truth, wanted(step), seconds=120.0, still=2.0)
            assert len(truth.evicted) == EVICTIONS[step], truth.evicted
        assert truth.stopped == truth.evicted
        assert truth.faults == []
        assert proxy.failed > 0
    except AssertionError as error:
        again = f"python -m pytest tests/kube/test_quota_demo.py -k 'storm and {seed}'"
        raise AssertionError(
            f"storm {seed}: {error}; again: {again}\n{stormy.component.log_tail()}"
        ) from error
    finally:
        proxy.forget()
        stormy.stop()
        controller.start()
