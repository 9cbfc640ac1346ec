"""Shared GPUs in both worlds: a stock kube-scheduler with Fairlead's extender and the simulated
scheduler place the same pods on the same cards and write the same messages for waiting pods. The
shipped admission policies refuse what the simulated cluster refuses, in the same words.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.extender import Extender, extended_scheduler
from tests.kube.kubectl import KubectlError
from tests.kube.sharing_words import (
    CLASSES,
    FORGED,
    POLICIES,
    Object,
    as_real,
    dry_run,
    fate,
    found,
    is_refused,
    pod,
    priority_class,
    ready,
    sends,
    settled,
)
from tests.waiting import wait_until

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire import names
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.scenario.scenario import NodePool, Scenario
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.world import World

pytestmark = pytest.mark.turns(2, 0)

POOL = NodePool(
    name="shared", cpu=32, memory="128Gi", gpu_model="Tesla V100-SXM2-16GB", gpus=2, shared=True
)
PLAIN = NodePool(name="plain", cpu=16, memory="64Gi")
NODES_OF_ALL = 2
PAUSE_SECONDS, QUIET_LOOKS = 0.5, 3
"""Pods are at rest when this number of looks in a row, with this
pause between them, see no change.
"""


LABELS = {"labels": {"aliyun.com/gpu-count": "2"}}
APART = {"annotations": {"fairlead.io/gpu-split": "per-container"}}
SPREAD = {"annotations": {"fairlead.io/gpu-placement": "spread"}}

CASES = {
    "best fit fills a card before it opens another": [pod("a", 4), pod("b", 11), pod("c", 4)],
    "a pod spreads": [pod("a", 4), pod("b", 4, **SPREAD)],
    "free memory on two cards does not add up": [pod("a", 11), pod("b", 11), pod("c", 8)],
    "the sum is too small": [pod("a", 13), pod("b", 14), pod("c", 4)],
    "it fits no card": [pod("a", 20)],
    "two cards": [pod("a", 8, **LABELS), pod("b", 24, **LABELS)],
    "more cards than there are": [pod("a", 8, labels={"aliyun.com/gpu-count": "4"})],
    "containers apart": [pod("a", 0, parts=(8, 9), **APART)],
    "containers together": [pod("a", 0, parts=(8, 9))],
    "preemption frees one card": [
        pod("a", 8, rank="middle"),
        pod("b", 7, rank="middle"),
        pod("c", 9, rank="low"),
        pod("d", 6, rank="low"),
        pod("e", 15, rank="high"),
    ],
    "no pod has to go and no card has room": [
        pod("a", 11, rank="low"),
        pod("b", 11, rank="low"),
        pod("c", 8, rank="high"),
    ],
    "preemption cannot help": [
        pod("a", 11, rank="middle"),
        pod("b", 11, rank="middle"),
        pod("c", 8, rank="low"),
    ],
}


# --- the two worlds -------------------------------------------------------------------------------


def simulated() -> World:
    world = sharing_world(Scenario(title="both", node_pools=(POOL, PLAIN)), 1, 1_767_600_000.0)
    for name, value in CLASSES.items():
        world.cluster.create(priority_class(name, value))
    return world


def live(world: World, seconds: float) -> None:
    world.run_until(world.clock.now() + seconds)


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[ControlPlane, Extender]]:
    with running_control_plane() as cluster:
        nodes = [as_real(node) for node in simulated().cluster.list(NODES)]
        cluster.admin.create(
            [*nodes, *(priority_class(name, value) for name, value in CLASSES.items())]
        )
        wait_until("the nodes are ready", lambda: len(ready(cluster)) == NODES_OF_ALL)
        cluster.admin.run("apply", "--server-side", "-f", str(POLICIES))
        wait_until("the policies are in force", lambda: is_refused(cluster) and sends(cluster))
        with extended_scheduler(cluster) as extender:
            yield cluster, extender


def really(cluster: ControlPlane, pods: Sequence[Object]) -> dict[str, Object | None]:
    """Results of the pods on the real cluster, created one after another."""
    for obj in pods:
        cluster.admin.create([obj])
        name = obj["metadata"]["name"]
        wait_until(
            f"pod {name} is placed or gets the reason",
            lambda name=name: settled(found(cluster, name)),
            seconds=30,
        )  # type: ignore[misc]
    return quiet(cluster, [obj["metadata"]["name"] for obj in pods])


def quiet(cluster: ControlPlane, wanted: Sequence[str]) -> dict[str, Object | None]:
    """The state after a while without changes: a preempting pod gets two messages in turn."""
    looks: list[dict[str, Object | None]] = []
    for _ in range(60):
        time.sleep(PAUSE_SECONDS)
        reported = {
            obj["metadata"]["name"]: fate(obj) for obj in cluster.admin.get("pods", "-n", "default")
        }
        looks.append({name: reported.get(name) for name in wanted})
        if len(looks) > QUIET_LOOKS and all(
            look == looks[-1] for look in looks[-QUIET_LOOKS - 1 :]
        ):
            return looks[-1]
    raise TimeoutError(f"the pods do not come to rest: {looks[-1]}")


def in_simulation(pods: Sequence[Object]) -> dict[str, Object | None]:
    world = simulated()
    for obj in pods:
        world.cluster.create(obj)
        live(world, 3)
    live(world, 60)
    return {
        obj["metadata"]["name"]: fate(world.cluster.get(PODS, "default", obj["metadata"]["name"]))
        for obj in pods
    }


# --- the tests ------------------------------------------------------------------------------------


def filters(extender: Extender) -> float:
    return extender.metrics().value("fairlead_gpushare_extender_seconds_count", verb="filter")


@pytest.mark.parametrize("case", CASES)
def test_both_worlds_place_alike_and_agree(real: tuple[ControlPlane, Extender], case: str) -> None:
    cluster, extender = real
    before = filters(extender)
    try:
        seen = really(cluster, CASES[case])
    finally:
        cluster.admin.run(
            "delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0", "--wait"
        )
    assert in_simulation(CASES[case]) == seen
    assert filters(extender) > before or case == "the sum is too small"


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(pod("x", 4, annotations=FORGED), id="a grant on a new pod"),
        pytest.param(
            pod("x", 0, annotations={names.ANNOTATION_ALLOCATION: "{}"}),
            id="a grant on a pod without GPU",
        ),
        pytest.param(pod("x", 7, **LABELS), id="a malformed split"),
        pytest.param(pod("x", 8, labels={"aliyun.com/gpu-count": "x"}), id="a word for a number"),
        pytest.param(pod("x", 0, core=30), id="core percent alone"),
    ],
)
def test_both_worlds_refuse_alike(real: tuple[ControlPlane, Extender], obj: Object) -> None:
    with pytest.raises(KubectlError) as really_refused:
        real[0].admin.create([obj])
    with pytest.raises(ApiStatus) as refused:
        simulated().cluster.create(obj)
    # kubectl leaves this prefix out for an object that is Invalid
    reported = str(refused.value.message).removeprefix('pods "x" is forbidden: ')
    assert reported in str(really_refused.value) and reported != refused.value.message


@pytest.mark.parametrize(
    ("obj", "scheduler"),
    [
        (pod("x", 4), "fairlead-scheduler"),
        (pod("x", 0), "default-scheduler"),
        (pod("x", 0, parts=(0, 4)), "fairlead-scheduler"),
    ],
)
def test_both_worlds_send_pods_to_the_same_scheduler(
    real: tuple[ControlPlane, Extender], obj: Object, scheduler: str
) -> None:
    assert dry_run(real[0], obj)["spec"]["schedulerName"] == scheduler
    assert simulated().cluster.create(obj)["spec"]["schedulerName"] == scheduler


def test_a_person_may_neither_change_nor_remove_a_grant(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster = real[0]
    try:
        assert really(cluster, [pod("p", 4)])["p"] is not None
        for change in ("ALIYUN_COM_GPU_MEM_IDX=1", "fairlead.io/gpu-allocation-"):
            with pytest.raises(KubectlError, match="only Fairlead writes the annotation"):
                cluster.admin.run("annotate", "pod", "p", change, "--overwrite")
        cluster.admin.run("annotate", "pod", "p", "team=a")
    finally:
        cluster.admin.run(
            "delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0", "--wait"
        )
