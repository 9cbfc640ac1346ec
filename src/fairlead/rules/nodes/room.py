"""Why no node has room for a pod, with numbers and names.

What the pod needs, which nodes allow it, which comes nearest.

It counts as kube-scheduler does: labels and taints first, then each node's allocatable less the
requests of its pods. If that leaves a node, there is no answer, since something else holds the pod
(another pod's affinity, a volume, a port). Memory of shared GPUs is not checked, since one card
must have enough (`rules/sharing/why`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from fairlead.model.node import Node
from fairlead.model.node_choice import NodeChoice
from fairlead.model.pod import Pod
from fairlead.model.resources import (
    CPU,
    GPU_MEMORY,
    MEMORY,
    NVIDIA_GPU,
    NVIDIA_GPU_SHARED,
    PODS,
    Amounts,
    is_gpu_resource,
    sum_of,
)
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.nodes.choice import may_use

_GIB: Final = 1 << 30


class NoNodeFits(Struct, frozen=True):
    """Why no node takes the pod.

    `kind`: `barred` (labels and taints), `absent` (no node offers it), `never` (more than the
    largest has), `full` (more than the freest has left), `together` (each is free somewhere, not on
    one node). `resource`: what is missing; `best`: the node that comes nearest, with `best_free`
    or, for `never`, its total. `nodes`: number of nodes that it may use and that offer the
    resource, for `barred` of all. Amounts in the model's units. `labels`: required node labels, as
    `key=value`; for `barred` the one that no node has, if that is the reason. `taints`, `cordoned`:
    for `barred`, what else excludes the pod.
    """

    kind: str
    resource: str = ""
    asked: float = 0
    nodes: int = 0
    best: str = ""
    best_free: float = 0
    labels: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    cordoned: int = 0

    @property
    def text(self) -> str:
        """One sentence.

        >>> NoNodeFits("full", "nvidia.com/gpu", 4, 2, "gpu-a100-1", 1).text
        'needs 4 GPUs on one node; the freest of 2, gpu-a100-1, has 1'
        """
        where = "".join(f" with {label}" for label in self.labels)
        need = f"needs {amount_words(self.resource, self.asked)} on one node{where}"
        had = f"{spoken_amount(self.resource, self.best_free):g}"
        match self.kind:
            case "barred":
                of = "its node" if self.nodes == 1 else f"any of {self.nodes} nodes"
                return (
                    f"may not use {of}: "
                    f"{self._barrier or 'selector, affinity or taints rule them out'}"
                )
            case "absent":
                return (
                    f"needs {amount_words(self.resource, self.asked)}; no node that it may use "
                    "offers any"
                )
            case "never":
                return f"{need}; the largest of {self.nodes}, {self.best}, has {had}"
            case "full":
                return f"{need}; the freest of {self.nodes}, {self.best}, has {had}"
        return f"{need}; of {self.nodes} with enough of the rest, {self.best} has most left: {had}"

    @property
    def _barrier(self) -> str:
        if self.labels:
            return f"none has the label {self.labels[0]}"
        reasons = (
            [f"they have taints that it does not tolerate ({', '.join(self.taints)})"]
            if self.taints
            else []
        )
        return (" and ").join(
            [
                *reasons,
                *(
                    [f"{self.cordoned} {'is' if self.cordoned == 1 else 'are'} cordoned"]
                    if self.cordoned
                    else []
                ),
            ]
        )


def amount_words(resource: str, amount: float) -> str:
    """An amount of the model in words.

    >>> asked = (("nvidia.com/gpu", 1), ("cpu", 1500), ("memory", 3 << 30), ("example.com/x", 2))
    >>> [amount_words(name, number) for name, number in asked]
    ['1 GPU', '1.5 cores', '3 GiB of memory', '2 example.com/x']
    """
    number = f"{spoken_amount(resource, amount):g}"
    if resource in (NVIDIA_GPU, NVIDIA_GPU_SHARED):
        return f"{number} {'GPU' if amount == 1 else 'GPUs'}"
    if resource == CPU:
        return f"{number} {'core' if number == '1' else 'cores'}"
    return f"{number} GiB of memory" if resource == MEMORY else f"{number} {resource}"


def spoken_amount(resource: str, amount: float) -> float:
    """The number of `amount_words`: of cores, of GiB of memory, else of the model's units.

    >>> spoken_amount("cpu", 1500), spoken_amount("memory", 3 << 30)
    (1.5, 3.0)
    """
    return amount / (1000 if resource == CPU else _GIB if resource == MEMORY else 1)


class NodeRooms:
    """`why` for many pods at one moment: equal needs have one
    answer, and nodes are summed up once.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._answers: dict[tuple[tuple[tuple[str, int], ...], NodeChoice], NoNodeFits | None] = {}
        self._left: dict[str, Amounts] = {}

    def why(self, pod: Pod) -> NoNodeFits | None:
        """Why a pod without a node waits.

        None if a node has room, or the pod's need cannot be judged here.
        """
        asked = {name: amount for name, amount in pod.requests.items() if amount}
        if GPU_MEMORY in asked or pod.node or pod.nominated_node:
            return None
        key = (tuple(sorted(asked.items())), pod.node_choice)
        if key not in self._answers:
            self._answers[key] = _why(asked, pod.node_choice, self._free)
        return self._answers[key]

    @cached_property
    def _free(self) -> Sequence[tuple[Node, Amounts]]:
        return [(node, self.left(node)) for node in self._snapshot.nodes]

    def left(self, node: Node) -> Amounts:
        """The node's allocatable less the requests of its pods; for `pods`, less their number."""
        if node.name not in self._left:
            held = [pod for pod in self._snapshot.pods_on(node.name) if pod.is_holding]
            taken = {**sum_of(pod.requests for pod in held), PODS: len(held)}
            self._left[node.name] = {
                name: amount - taken.get(name, 0) for name, amount in node.allocatable.items()
            }
        return self._left[node.name]


def _why(
    asked: Amounts, choice: NodeChoice, free: Sequence[tuple[Node, Amounts]]
) -> NoNodeFits | None:
    usable = [(node, left) for node, left in free if may_use(choice, node)]
    if not usable:
        return _barred(choice, [node for node, _ in free]) if free else None
    where = tuple(f"{key}={value}" for key, value in choice.selector)
    short = [
        name
        for name in sorted(asked, key=_rank)
        if all(left.get(name, 0) < asked[name] for _, left in usable)
    ]
    if short:
        return _short_of(short[0], asked[short[0]], usable, where)
    if any(_fits(asked, left) for _, left in usable):
        return None
    return _no_common_node(asked, usable, where)


def _short_of(
    resource: str, asked: float, usable: Iterable[tuple[Node, Amounts]], where: tuple[str, ...]
) -> NoNodeFits:
    offering = [(node, left) for node, left in usable if node.allocatable.get(resource, 0) > 0]
    if not offering:
        return NoNodeFits("absent", resource, asked)
    largest = max((node for node, _ in offering), key=lambda node: node.allocatable[resource])
    if largest.allocatable[resource] < asked:
        return NoNodeFits(
            "never",
            resource,
            asked,
            len(offering),
            largest.name,
            largest.allocatable[resource],
            where,
        )
    node, left = max(offering, key=lambda each: each[1].get(resource, 0))
    return NoNodeFits(
        "full", resource, asked, len(offering), node.name, max(0, left.get(resource, 0)), where
    )


def _no_common_node(
    asked: Amounts, usable: Sequence[tuple[Node, Amounts]], where: tuple[str, ...]
) -> NoNodeFits:
    """No node has all resources: what nodes with the scarcest one lack."""
    first = min(asked, key=_rank)
    able = [(node, left) for node, left in usable if left.get(first, 0) >= asked[first]]
    missing = next(
        name
        for name in sorted(asked, key=_rank)
        if any(left.get(name, 0) < asked[name] for _, left in able)
    )
    node, left = max(able, key=lambda each: each[1].get(missing, 0))
    # enough on one of them, so a third resource is missing
    if left.get(missing, 0) >= asked[missing]:
        others = [each for each in able if each[1].get(missing, 0) >= asked[missing]]
        return _no_common_node(
            {name: amount for name, amount in asked.items() if name != missing}, others, where
        )
    return NoNodeFits(
        "together",
        missing,
        asked[missing],
        len(able),
        node.name,
        max(0, left.get(missing, 0)),
        where,
    )


def _fits(asked: Amounts, left: Mapping[str, int]) -> bool:
    return all(left.get(name, 0) >= amount for name, amount in asked.items())


def _rank(resource: str) -> tuple[int, str]:
    """Sort key: GPUs are the resource that people look for first, then cores, then memory."""
    return (
        0 if is_gpu_resource(resource) else 1 if resource == CPU else 2 if resource == MEMORY else 3
    ), resource


def _barred(choice: NodeChoice, nodes: Sequence[Node]) -> NoNodeFits:
    """The reason that excludes all nodes, if there is a single one."""
    for key, value in choice.selector:
        if all(node.labels.get(key) != value for node in nodes):
            return NoNodeFits("barred", nodes=len(nodes), labels=(f"{key}={value}",))
    if any(may_use(NodeChoice(tolerations=choice.tolerations), node) for node in nodes):
        return NoNodeFits("barred", nodes=len(nodes))
    taints = sorted(
        {taint.key for node in nodes for taint in node.taints if taint.effect != "PreferNoSchedule"}
    )
    cordoned = sum(node.unschedulable for node in nodes)
    return NoNodeFits("barred", nodes=len(nodes), taints=tuple(taints[:3]), cordoned=cordoned)
