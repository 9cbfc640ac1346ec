"""A node's properties: roles, status word, address, GPU mode and model, sharing.

The mode follows from *capacity*: a node whose GPUs all failed is still a GPU node. Cordoned is not
unhealthy: the status word never contains it. Labels of three origins decide whether GPUs are
shared, the strongest first (docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory); a
label with an unknown value is ignored, and the next one is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.keys import (
    LABEL_GPU_MODEL,
    LABEL_GPU_PLACEMENT,
    LABEL_GPU_PRODUCT,
    LABEL_GPU_SCHEDULE,
    LABEL_ROLE,
    LABEL_ROLE_PREFIX,
    LABEL_SHARED,
    LABEL_SHARED_ALIAS,
)
from fairlead.model.node import Node, NodeStatus
from fairlead.model.resources import ALIYUN_GPU, GPU_COUNT, GPU_MEMORY, MIG_PREFIX, nvidia_gpus
from fairlead.model.sharing import PLACEMENTS, Placement
from fairlead.model.snapshot import GPU_TOPOLOGIES, TOPOLOGY_SCHEDULE, ClusterSnapshot

SHARE: Final = GpuMode.SHARE
TOPOLOGY: Final = GpuMode.TOPOLOGY
EXCLUSIVE: Final = GpuMode.EXCLUSIVE
MIG: Final = GpuMode.MIG
NO_GPU: Final = GpuMode.NONE
_UNKNOWN: Final = NodeStatus.UNKNOWN
_READY: Final = NodeStatus.READY
_STATUS_WORDS: Final = {"True": NodeStatus.READY, "False": NodeStatus.NOT_READY}


def node_roles(node: Node) -> tuple[str, ...]:
    """Sorted roles of `node-role.kubernetes.io/<role>` and `kubernetes.io/role`; empty if none.

    >>> labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}
    >>> node_roles(Node("n", labels=labels))
    ('gpu', 'worker')
    """
    roles = {
        label.removeprefix(LABEL_ROLE_PREFIX)
        for label in node.labels
        if label.startswith(LABEL_ROLE_PREFIX)
    }
    roles.add(node.labels.get(LABEL_ROLE, ""))
    return tuple(sorted(roles - {""}))


def role_text(node: Node) -> str:
    """The roles as one cell.

    >>> role_text(Node("n"))
    '<none>'
    """
    return ",".join(node_roles(node)) or "<none>"


def status_word(node: Node) -> NodeStatus:
    for condition in node.conditions:
        if condition.type == "Ready":
            return _STATUS_WORDS.get(condition.status, _UNKNOWN)
    return _UNKNOWN


def is_ready(node: Node) -> bool:
    return status_word(node) == _READY


def is_silent(node: Node) -> bool:
    """Whether its kubelet is silent, so that the state of its pods is unknown.

    >>> from fairlead.model.node import Condition
    >>> is_silent(Node("n", conditions=(Condition("Ready", "Unknown"),))), is_silent(Node("n"))
    (True, False)
    """
    return any(each.type == "Ready" and each.status == "Unknown" for each in node.conditions)


def node_ip(node: Node) -> str:
    """The first InternalIP, else the first address, else ""."""
    for kind, address in node.addresses:
        if kind == "InternalIP":
            return address
    return node.addresses[0][1] if node.addresses else ""


def gpu_mode(node: Node, snapshot: ClusterSnapshot | None = None) -> GpuMode:
    """share, topology, exclusive, mig or none, the first that matches by capacity.

    `snapshot` None: topology ConfigMaps have not been read.

    >>> print(gpu_mode(Node("n", capacity={"nvidia.com/gpu": 4})))
    exclusive
    >>> print(gpu_mode(Node("n", capacity={"nvidia.com/mig-1g.18gb": 7})))
    mig
    """
    capacity = node.capacity
    if capacity.get(GPU_MEMORY, 0) > 0:
        return SHARE
    whole = nvidia_gpus(capacity) > 0 or capacity.get(ALIYUN_GPU, 0) > 0
    if whole:
        return TOPOLOGY if is_topology_node(node, snapshot) else EXCLUSIVE
    if any(amount > 0 and name.startswith(MIG_PREFIX) for name, amount in capacity.items()):
        return MIG
    return SHARE if capacity.get(GPU_COUNT, 0) > 0 else NO_GPU


def is_topology_node(node: Node, snapshot: ClusterSnapshot | None) -> bool:
    """Whether the label makes it a topology node.

    If topology ConfigMaps were read, the node must have one, too.
    """
    if node.labels.get(LABEL_GPU_SCHEDULE) != TOPOLOGY_SCHEDULE:
        return False
    return (
        snapshot is None
        or node.name in snapshot.topologies
        or not snapshot.was_read(GPU_TOPOLOGIES)
    )


def arena_mode(mode: GpuMode) -> GpuMode:
    """The mode as `arena_*` metrics spell it: they have no MIG.

    Specification: docs/spec/telemetry.md#definitions.

    >>> print(arena_mode(GpuMode.MIG), arena_mode(GpuMode.SHARE))
    exclusive share
    """
    return EXCLUSIVE if mode == MIG else mode


def gpu_model(node: Node, snapshot: ClusterSnapshot) -> str:
    """The model of the node's GPUs: from the devices and the inventory, else from labels.

    Several models: the sorted list, with commas.
    """
    models = {gpu.model for gpu in snapshot.gpus_on(node.name)} | {slot.model for slot in node.gpus}
    models.discard("")
    if models:
        return ",".join(sorted(models))
    return node.labels.get(LABEL_GPU_MODEL) or node.labels.get(LABEL_GPU_PRODUCT) or ""


CONFLICT: Final = "GPUModeConflict"
"""Reason of the Warning event about a `ShareMode.conflict`."""
_SWITCH: Final = {"true": True, "false": False}
_SCHEDULE: Final = {
    "cgpu": True,
    "core_mem": True,
    "share": True,
    "mps": True,
    "default": False,
    "topology": False,
}
_MEANINGS: Final = {
    LABEL_SHARED: _SWITCH,
    LABEL_GPU_SCHEDULE: _SCHEDULE,
    LABEL_SHARED_ALIAS: _SWITCH,
}


class ShareMode(Struct, frozen=True, gc=False):
    """`placement` is the node's own policy for its cards.

    `conflict`: labels that contradict each other, as a sentence.
    """

    is_shared: bool
    placement: Placement | None = None
    conflict: str = ""


def share_mode(labels: Mapping[str, str]) -> ShareMode:
    """The mode from the node's labels, the strongest of them first.

    >>> share_mode({"cgpu": "true"}).is_shared, share_mode({}).is_shared
    (True, False)
    >>> share_mode({"cgpu": "false", "gpushare": "true"}).conflict
    'label cgpu=false overrides gpushare=true: the GPUs of this node are exclusive'
    """
    known = [
        (key, labels[key], meaning[labels[key]])
        for key, meaning in _MEANINGS.items()
        if labels.get(key) in meaning
    ]
    placement = PLACEMENTS.get(labels.get(LABEL_GPU_PLACEMENT, ""))
    if not known:
        return ShareMode(False, placement)
    key, value, is_shared = known[0]
    beaten = [f"{other}={text}" for other, text, wanted in known[1:] if wanted is not is_shared]
    mode = "shared" if is_shared else "exclusive"
    conflict = (
        f"label {key}={value} overrides {' and '.join(beaten)}: the GPUs of this node are {mode}"
        if beaten
        else ""
    )
    return ShareMode(is_shared, placement, conflict)
