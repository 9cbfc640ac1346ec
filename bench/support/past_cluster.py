"""States of a large cluster as a usage recorder keeps them, over many days, without a recorder.

Made by numbers alone, so that every run measures the same. The nodes stay, with a change of each
now and then; pods come and go all the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.model.devices.gpu import GpuSlot, Grant
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, ContainerState, ContainerStatus, Owner, Pod, PodPhase
from fairlead.model.usage.ledger import OPEN, KeptState, StateKind
from fairlead.wire.usage.states import state_body

CARDS: Final = 8
DAY: Final = 86_400_000
_GIB: Final = 1 << 30
_SIZES: Final = (8, 8, 8, 4, 4, 2, 2, 1, 1, 1, 1)
"""Cards of the pods of a node and the next ones, in turn: 40 cards of five nodes in 11 pods."""
_NODES_OF_TURN: Final = sum(_SIZES) // CARDS
_WAITING: Final = 25
"""One pod waits for each group of this number of nodes."""


def states(nodes: int, days: int, until: int) -> Iterator[KeptState]:
    """All states of `days` days before `until` (milliseconds UTC), which is in the last of them.

    Each node changes once in 30 days. Each pod lives a day, bound at once; the pods of one turn
    of nodes end together. `until` shows about 2.2 pods with cards per node and 2 without.
    """
    begin = until - days * DAY
    for number in range(nodes):
        yield from _node_states(number, begin, until)
        for place in range(2):
            pod = _plain_pod(number, place)
            yield _state(StateKind.POD, pod.uid, begin, OPEN, pod.namespace, pod.name, pod)
    for turn in range(nodes // _NODES_OF_TURN):
        offset = turn * 37_000 % DAY
        for day in range(-1, days):
            start = max(begin, begin + day * DAY + offset)
            end = begin + (day + 1) * DAY + offset
            for pod in _turn_pods(turn, day, start / 1000):
                ended = end if end <= until else OPEN
                yield _state(StateKind.POD, pod.uid, start, ended, pod.namespace, pod.name, pod)
    for number in range(nodes // _WAITING):
        pod = _waiting_pod(number, begin / 1000)
        yield _state(StateKind.POD, pod.uid, begin, OPEN, pod.namespace, pod.name, pod)


def _state(
    kind: StateKind,
    uid: str,
    start: int,
    end: int,
    namespace: str,
    name: str,
    row: Node | Pod,
) -> KeptState:
    return KeptState(kind, uid, start, namespace, name, state_body(row), end)


def _node_states(number: int, begin: int, until: int) -> Iterator[KeptState]:
    name, uid = f"gpu-{number:05d}", f"node-{number:05d}"
    start = begin
    while start < until:
        end = start + 30 * DAY + number * 1000
        node = Node(
            name,
            uid=uid,
            labels={
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": "h200-8",
                "topology.kubernetes.io/zone": f"zone-{number % 3}",
                "nvidia.com/gpu.product": "NVIDIA-H200",
            },
            capacity={"cpu": 192_000, "memory": 2048 * _GIB, "nvidia.com/gpu": CARDS, "pods": 110},
            allocatable={
                "cpu": 191_000,
                "memory": 2000 * _GIB,
                "nvidia.com/gpu": CARDS,
                "pods": 110,
            },
            addresses=(("InternalIP", f"10.{number >> 8}.{number & 255}.1"),),
            conditions=(Condition("Ready", "True", "KubeletReady", "ready", begin / 1000),),
            created_at=begin / 1000,
            kubelet_version="v1.36.0",
            runtime_version="containerd://2.1.0",
            os_image="Ubuntu 24.04",
            gpus=tuple(
                GpuSlot(index, _card(number, index), index, "NVIDIA H200", 143_771)
                for index in range(CARDS)
            ),
        )
        yield _state(StateKind.NODE, uid, start, end if end < until else OPEN, "", name, node)
        start = end


def _card(node: int, index: int) -> str:
    return f"GPU-{node:08x}-0000-0000-0000-{index:012x}"


def _turn_pods(turn: int, day: int, at: float) -> Iterator[Pod]:
    """The pods that fill the nodes of a turn."""
    node, index = turn * _NODES_OF_TURN, 0
    for place, cards in enumerate(_SIZES):
        name = f"train-{turn}-{day + 1}-worker-{place}"
        grants = tuple(Grant(_card(node, index + each), index + each, 0) for each in range(cards))
        yield _pod(f"team-{turn % 40}", name, f"gpu-{node:05d}", cards, at, grants)
        index += cards
        if index >= CARDS:
            node, index = node + 1, 0


def _pod(
    namespace: str, name: str, node: str, cards: int, at: float, grants: tuple[Grant, ...] = ()
) -> Pod:
    amounts = {"cpu": cards * 12_000, "memory": cards * 128 * _GIB}
    if cards:
        amounts["nvidia.com/gpu"] = cards
    job = name.rpartition("-worker-")[0]
    return Pod(
        namespace,
        name,
        uid=f"uid-{namespace}-{name}",
        labels={
            "training.kubeflow.org/job-name": job,
            "training.kubeflow.org/replica-type": "worker",
            "arena.kubeflow.org/console-user": f"user-{len(name) % 7}",
        },
        owners=(Owner("PyTorchJob", job, f"job-{job}", True, "kubeflow.org/v1"),),
        node=node,
        phase=PodPhase.RUNNING if node else PodPhase.PENDING,
        containers=(Container("pytorch", "registry.local/train:1", amounts, amounts),),
        statuses=(
            ContainerStatus(
                "pytorch", True, 0, ContainerState.RUNNING, started=True, started_at=at
            ),
        )
        if node
        else (),
        conditions=(Condition("PodScheduled", "True" if node else "False", at=at),),
        created_at=at,
        started_at=at if node else None,
        scheduler="default-scheduler",
        grants={"pytorch": grants} if grants else {},
    )


def _plain_pod(number: int, place: int) -> Pod:
    return _pod("monitoring", f"agent-{place}-{number:05d}", f"gpu-{number:05d}", 0, 1e9)


def _waiting_pod(number: int, at: float) -> Pod:
    return _pod(f"team-{number % 40}", f"wait-{number}-worker-0", "", 8, at)
