"""Shared GPUs on a real cluster with Fairlead's extender: the notebooks of document 003, preemption
of one card, reserved room, pods that another scheduler places, and a pod that terminates slowly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.extender import Extender, extended_scheduler
from tests.kube.kwok_stages import DELETE_DELAY
from tests.kube.sharing_words import (
    CLASSES,
    as_real,
    fate,
    found,
    pod,
    priority_class,
    ready,
    settled,
)
from tests.waiting import wait_until

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

Object = dict[str, Any]
POOLS = (
    NodePool(name="t4", cpu=32, memory="128Gi", gpu_model="Tesla T4", gpus=1, shared=True),
    NodePool(
        name="pair", cpu=32, memory="128Gi", gpu_model="Tesla V100-SXM2-16GB", gpus=2, shared=True
    ),
)
T4, PAIR = {"fairlead.io/pool": "t4"}, {"fairlead.io/pool": "pair"}


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[ControlPlane, Extender]]:
    with running_control_plane() as cluster:
        world = sharing_world(Scenario(title="cards", node_pools=POOLS), 1, 1_767_600_000.0)
        nodes = [as_real(node) for node in world.cluster.list(NODES)]
        for node in nodes:
            node["metadata"]["labels"]["fairlead.io/pool"] = node["metadata"]["name"].rpartition(
                "-"
            )[0]
        cluster.admin.create(
            [*nodes, *(priority_class(name, value) for name, value in CLASSES.items())]
        )
        wait_until("the nodes are ready", lambda: len(ready(cluster)) == len(nodes))
        with extended_scheduler(cluster) as extender:
            yield cluster, extender


@pytest.fixture(autouse=True)
def _emptied(real: tuple[ControlPlane, Extender]) -> Iterator[None]:
    yield
    _delete_all(real)


def _delete_all(real: tuple[ControlPlane, Extender]) -> None:
    real[0].admin.run(
        "delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0", "--wait"
    )
    wait_until(
        "nothing is held",
        lambda: not any(node["usedGPU"] for node in real[1].inspect().values()),
        seconds=20,
    )


def on(where: Object, obj: Object, **spec: Any) -> Object:
    return {
        **obj,
        "spec": {
            "schedulerName": "fairlead-scheduler",
            "nodeSelector": where,
            **obj["spec"],
            **spec,
        },
    }


def settle(cluster: ControlPlane, *objects: Object) -> list[Object | None]:
    """Create pods one after another; returns the result of each."""
    for obj in objects:
        cluster.admin.create([obj])
        name = obj["metadata"]["name"]
        wait_until(
            f"pod {name} is placed or gets the reason",
            lambda name=name: settled(found(cluster, name)),
            seconds=30,
        )  # type: ignore[misc]
    return [fate(found(cluster, obj["metadata"]["name"])) for obj in objects]


def cards_of(cluster: ControlPlane, name: str) -> list[int]:
    seen = fate(found(cluster, name)) or {}
    return [card[0] for given in seen.get("cards", {}).values() for card in given]


def test_three_notebooks_of_document_003_fit_on_a_t4_and_the_fourth_gets_the_reason(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster, extender = real
    seen = settle(cluster, *(on(T4, pod(f"notebook-{number}", 4)) for number in range(1, 5)))
    assert [bool(each and each["node"]) for each in seen] == [True, True, True, False]
    wait_until(
        "inspect shows 12 of 14", lambda: extender.inspect()["t4-1"]["usedGPU"] == 12, seconds=10
    )
    assert extender.inspect()["t4-1"]["totalGPU"] == 14
    words = "need 4 GiB, largest free 2 GiB"
    wait_until(
        "describe shows it",
        lambda: words in cluster.admin.run("describe", "pod", "notebook-4", "-n", "default"),
        seconds=60,
    )
    wait_until(
        "of the nodes that it may use",
        lambda: _events(cluster, "notebook-4", "GPUShareNoRoom") != [],
        seconds=60,
    )
    (message,) = set(_events(cluster, "notebook-4", "GPUShareNoRoom"))
    assert message.startswith(
        "0/1 of 2 nodes that it may use have room: 1 Insufficient aliyun.com/gpu-mem on "
        "one GPU: "
        "need 4 GiB, largest"
    )


def test_an_event_gives_the_numbers_over_all_nodes(real: tuple[ControlPlane, Extender]) -> None:
    cluster, _ = real
    settle(cluster, on(T4, pod("full", 14)), on(PAIR, pod("a", 13)), on(PAIR, pod("b", 14)))
    cluster.admin.create([on({}, pod("large", 9))])
    wait_until(
        "the pod gets the reason",
        lambda: _events(cluster, "large", "GPUShareNoRoom") != [],
        seconds=20,
    )
    (message,) = set(_events(cluster, "large", "GPUShareNoRoom"))
    assert message.startswith(
        "0/2 nodes have room: 1 Insufficient aliyun.com/gpu-mem on one GPU: need 9 GiB, "
        "largest "
        "free 0 GiB"
    )


def test_preemption_frees_one_card_and_the_room_is_kept_for_its_claimant(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster, _ = real
    slow = {"annotations": {DELETE_DELAY: "4s"}}
    first = [
        on(PAIR, pod(name, units, rank=rank, **slow), terminationGracePeriodSeconds=30)
        for name, units, rank in PAIRED
    ]
    settle(cluster, *first)
    keep, goes = (
        ({"a", "b"}, {"c", "d"})
        if cards_of(cluster, "c") == cards_of(cluster, "d")
        else (set(), set())
    )
    assert keep, "the four sit in pairs"
    cluster.admin.create([on(PAIR, pod("vip", 15, rank="high"))])
    wait_until(
        "the victims leave",
        lambda: goes == {name for name in "abcd" if _is_leaving(cluster, name)},
        seconds=20,
    )
    cluster.admin.create([on(PAIR, pod(f"thief-{number}", 1, rank="low")) for number in range(4)])
    wait_until(
        "the vip runs",
        lambda: bool((found(cluster, "vip") or {})["spec"].get("nodeName")),
        seconds=40,
    )
    assert {name for name in "abcd" if found(cluster, name)} == keep
    assert not any(
        (found(cluster, f"thief-{number}") or {})["spec"].get("nodeName") for number in range(4)
    ), "promised room was sold"


PAIRED = (("a", 8, "middle"), ("b", 7, "middle"), ("c", 9, "low"), ("d", 6, "low"))


def test_a_pod_that_is_slow_to_end_keeps_its_memory(real: tuple[ControlPlane, Extender]) -> None:
    cluster, _ = real
    slow = {"annotations": {DELETE_DELAY: "5s"}}
    settle(cluster, on(T4, pod("old", 12, **slow), terminationGracePeriodSeconds=60))
    cluster.admin.run("delete", "pod", "old", "-n", "default", "--wait=false")
    (seen,) = settle(cluster, on(T4, pod("new", 4)))
    assert found(cluster, "old") is not None and seen and not seen["node"]
    wait_until(
        "the new one runs",
        lambda: bool((fate(found(cluster, "new")) or {}).get("node")),
        seconds=40,
    )
    assert found(cluster, "old") is None


def test_pods_that_others_place_are_given_cards_or_get_the_reason(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster, extender = real
    waits = {"annotations": {"test.fairlead.io/ready-delay": "30s"}}
    by_hand = on({}, pod("by-hand", 8, **waits), nodeName="t4-1")
    other = on(T4, pod("other-scheduler", 8, **waits), schedulerName="default-scheduler")
    cluster.admin.create([by_hand])
    wait_until("it has a card", lambda: cards_of(cluster, "by-hand") == [0], seconds=15)
    cluster.admin.create([on({}, pod("too-much", 8, **waits), nodeName="t4-1")])
    wait_until(
        "it is reported",
        lambda: _events(cluster, "too-much", "GPUShareNotPlaced") != [],
        seconds=15,
    )
    assert "need 8 GiB, largest free 6 GiB" in _events(cluster, "too-much", "GPUShareNotPlaced")[0]
    assert [each["name"] for each in extender.inspect()["t4-1"]["pending"]] == ["too-much"]
    cluster.admin.run(
        "delete",
        "pods",
        "by-hand",
        "too-much",
        "-n",
        "default",
        "--force",
        "--grace-period=0",
        "--wait",
    )
    cluster.admin.create([other])
    wait_until(
        "the other scheduler's has one, too",
        lambda: cards_of(cluster, "other-scheduler") == [0],
        seconds=15,
    )


def test_a_grant_that_is_damaged_while_its_pod_runs_sells_no_memory(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster, extender = real
    settle(cluster, on(T4, pod("a", 10)))
    before = _grant(cluster, "a")
    cluster.admin.run(
        "annotate",
        "pod",
        "a",
        "-n",
        "default",
        "--overwrite",
        "fairlead.io/gpu-allocation={garbled",
    )
    (seen,) = settle(cluster, on(T4, pod("b", 10)))
    assert seen and not seen["node"]
    wait_until("the grant is written again", lambda: _grant(cluster, "a") == before)
    assert extender.inspect()["t4-1"]["usedGPU"] == 10


def test_what_runs_on_an_unknown_card_when_the_extender_comes_keeps_room_on_each(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster, extender = real
    extender.component.stop()
    cluster.admin.create([on({}, pod("stranger", 10), schedulerName="nobody", nodeName="pair-1")])
    wait_until(
        "it runs without a card",
        lambda: (found(cluster, "stranger") or {})["status"]["phase"] == "Running",
    )
    extender.start()
    seen = settle(cluster, on(PAIR, pod("fits", 5)), on(PAIR, pod("too-large", 6)))
    assert [bool(each and each["node"]) for each in seen] == [True, False]
    words = "need 6 GiB, largest free 5 GiB (10 GiB set aside for 1 pod whose GPU is unknown)"
    wait_until(
        "the reason is shown", lambda: words in (fate(found(cluster, "too-large")) or {})["told"]
    )
    wait_until("so is its own", lambda: _events(cluster, "stranger", "GPUShareNotPlaced") != [])


def test_a_card_that_an_operator_takes_out_takes_no_new_pods(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster, extender = real
    cluster.admin.run(
        "create", "configmap", "unhealthy-gpu-t4-1", "-n", "kube-system", "--from-literal=gpus=0"
    )
    try:
        wait_until(
            "it is out",
            lambda: extender.inspect()["t4-1"]["devs"][0]["health"] == "Unhealthy",
            seconds=10,
        )
        (seen,) = settle(cluster, on(T4, pod("a", 4)))
        assert seen and "the only GPU is unhealthy" in seen["told"]
    finally:
        cluster.admin.run("delete", "configmap", "unhealthy-gpu-t4-1", "-n", "kube-system")
    wait_until(
        "it runs after all",
        lambda: bool((fate(found(cluster, "a")) or {}).get("node")),
        seconds=30,
    )


def test_labels_that_contradict_each_other_are_reported(
    real: tuple[ControlPlane, Extender],
) -> None:
    cluster, _ = real
    cluster.admin.run("label", "node", "t4-1", "ack.node.gpu.schedule=default")
    try:
        wait_until(
            "the node gets the reason",
            lambda: _events(cluster, "t4-1", "GPUModeConflict") != [],
            seconds=10,
        )
    finally:
        cluster.admin.run("label", "node", "t4-1", "ack.node.gpu.schedule-")


def _grant(cluster: ControlPlane, name: str) -> str:
    return str(
        ((found(cluster, name) or {})["metadata"].get("annotations") or {}).get(
            "fairlead.io/gpu-allocation"
        )
    )


def _events(cluster: ControlPlane, name: str, reason: str) -> list[str]:
    listed = json.loads(cluster.admin.run("get", "events", "-A", "-o", "json"))["items"]
    return [
        each["message"]
        for each in listed
        if (each["reason"], each["involvedObject"]["name"]) == (reason, name)
    ]


def _is_leaving(cluster: ControlPlane, name: str) -> bool:
    obj = found(cluster, name)
    return obj is None or "deletionTimestamp" in obj["metadata"]
