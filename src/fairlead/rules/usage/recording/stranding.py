"""Free GPUs that a waiting pod cannot use because of a node's CPU or memory
(docs/spec/usage.md#hours).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.pod import Pod
from fairlead.model.resources import CPU, MEMORY
from fairlead.rules.nodes.choice import may_use
from fairlead.rules.nodes.status import is_ready
from fairlead.rules.pods.devices import has_gpu
from fairlead.rules.usage.recording.amounts import MIB, held_by
from fairlead.rules.usage.recording.hours import NamedPod
from fairlead.rules.usage.recording.intervals import NodeBook, OpenPod

MOST_SHAPES: Final = 50
"""Different needs of waiting pods that are compared with each node."""
MOST_HOLDERS: Final = 3


class Stranded(Struct, frozen=True):
    """`gpu`: the free GPUs. `lacking`: `cpu` or `memory`; `holders`: who hold most of it."""

    gpu: int
    lacking: str
    holders: tuple[NamedPod, ...]


def is_waiting(pod: Pod) -> bool:
    """Whether it waits for a node with GPUs: quota or another gate does not hold it back."""
    return (
        not pod.node
        and not pod.gates
        and not pod.is_finished
        and pod.deleted_at is None
        and has_gpu(pod)
    )


def shapes_of(waiting: Iterable[Pod]) -> Sequence[Pod]:
    """One waiting pod of each need."""
    found: dict[object, Pod] = {}
    for pod in waiting:
        amounts = (*pod.requests.items(), *pod.limits.items())
        found.setdefault((frozenset(amounts), pod.node_choice), pod)
        if len(found) == MOST_SHAPES:
            break
    return tuple(found.values())


def stranded_on(
    book: NodeBook, shapes: Sequence[Pod], pods: Mapping[str, OpenPod]
) -> Stranded | None:
    """What is stranded on a node, and who holds what is scarce; None = nothing."""
    node = book.node
    if node is None or not book.free or node.unschedulable or not is_ready(node):
        return None
    cpu = node.allocatable.get(CPU, 0) - book.cpu_milli
    memory = node.allocatable.get(MEMORY, 0) // MIB - book.memory_mib
    lacking = ""
    for pod in shapes:
        if not may_use(pod.node_choice, node):
            continue
        need = held_by(pod, book.gpus).amount
        if not 0 < need.gpu <= book.free:
            continue
        if need.cpu_milli <= cpu and need.memory_mib <= memory:
            return None  # it fits, and the scheduler is about to place it
        lacking = lacking or (CPU if need.cpu_milli > cpu else MEMORY)
    if not lacking:
        return None
    return Stranded(book.free, lacking, _holders(book, lacking, pods))


def _holders(book: NodeBook, lacking: str, pods: Mapping[str, OpenPod]) -> tuple[NamedPod, ...]:
    def amount(uid: str) -> int:
        held = pods[uid].row.amount
        return held.cpu_milli if lacking == CPU else held.memory_mib

    most = sorted(book.pods, key=lambda uid: (-amount(uid), uid))[:MOST_HOLDERS]
    return tuple((pods[uid].row.by.namespace, pods[uid].row.pod) for uid in most if amount(uid))
