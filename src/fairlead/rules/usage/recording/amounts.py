"""What a pod holds of its node, in the units of the ledger (docs/spec/usage.md#pod-intervals).

It follows from the API server's objects alone. Readings of devices come and go, and an amount that
followed from them would cut intervals without a reason.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuMode, Grant
from fairlead.model.keys import LABEL_GPU_CARD_COUNT
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import (
    ALIYUN_GPU,
    CPU,
    GPU_COUNT,
    GPU_MEMORY,
    MEMORY,
    MIG_PREFIX,
    Amounts,
    counted,
    nvidia_gpus,
)
from fairlead.model.usage.ledger import GPU, Amount, LedgerCard
from fairlead.rules.holding.account import NodeAccount, account, tenant_of
from fairlead.rules.holding.units import MIB_PER_UNIT, grant_mib
from fairlead.rules.nodes.status import MIG, SHARE, gpu_mode
from fairlead.rules.pods.devices import memory_units, whole_gpus

LABEL_PRODUCT_COUNT: Final = "nvidia.com/gpu.count"
LABEL_REPLICAS: Final = "nvidia.com/gpu.replicas"
MIB: Final = 1 << 20
EIGHTHS: Final = 8
"""Parts into which MIG divides the memory of a card."""
_PROFILE: Final = re.compile(r"(?P<compute>\d+)g\.(?P<gib>\d+)gb", re.ASCII)
_EIGHTHS_OF_COMPUTE: Final = {1: 1, 2: 2, 3: 4, 4: 4}
_MOST: Final = 1 << 20
"""More GPUs, or replicas, than a node can have: such a number is a mistake."""


class NodeGpus(Struct, frozen=True):
    """The GPUs of a node. `gpu`: of its capacity, in millionths; `broken`: the part that is not
    allocatable. `worth`: of one GPU of the node's count, less than a whole one with time slices.
    `card_mib`: memory of a card, 0 = unknown. `shared`: the cards of a node with shared memory.
    """

    mode: GpuMode
    gpu: int = 0
    broken: int = 0
    worth: int = GPU
    card_mib: int = 0
    shared: NodeAccount | None = None


class Held(Struct, frozen=True):
    """What a pod holds. `cards`: as far as its grants name them."""

    amount: Amount
    cards: tuple[LedgerCard, ...] = ()


def node_gpus(node: Node) -> NodeGpus:
    """
    >>> capacity = {"nvidia.com/gpu": 8}
    >>> labels = {"nvidia.com/gpu.replicas": "4"}
    >>> node_gpus(Node("n", capacity=capacity, allocatable=capacity, labels=labels)).gpu
    2000000
    """
    mode = gpu_mode(node)
    if mode == GpuMode.NONE:
        return NodeGpus(mode)
    card_mib = _card_mib(node)
    if mode == SHARE:
        cards = account(node, mode=mode)
        gpu = GPU * min(
            counted(node.capacity, GPU_COUNT) or len(node.gpus) or len(cards.cards), _MOST
        )
        offered, left = (counted(each, GPU_MEMORY) for each in (node.capacity, node.allocatable))
        broken = gpu * max(0, offered - left) // offered if offered else 0
        return NodeGpus(mode, gpu, broken, GPU, card_mib, cards)
    worth = GPU // _replicas(node)
    whole, left = (_whole(each) for each in (node.capacity, node.allocatable))
    sliced, sliced_left = (_eighths(each, card_mib) for each in (node.capacity, node.allocatable))
    gpu = worth * whole + GPU * -(-sliced // EIGHTHS)
    if mode == MIG:
        gpu = max(gpu, GPU * _count(node))
    broken = worth * max(0, whole - left) + GPU * max(0, sliced - sliced_left) // EIGHTHS
    return NodeGpus(mode, gpu, min(broken, gpu), worth, card_mib)


def held_by(pod: Pod, gpus: NodeGpus) -> Held:
    """What a bound pod holds of a node with these GPUs."""
    requests, limits = pod.requests, pod.limits
    cpu_milli, memory_mib = requests.get(CPU, 0), requests.get(MEMORY, 0) // MIB
    gpu, memory, cards = _gpus_held(pod, limits, gpus) if limits else (0, 0, ())
    return Held(Amount(gpu, memory, cpu_milli, memory_mib), cards)


def _gpus_held(
    pod: Pod, limits: Amounts, gpus: NodeGpus
) -> tuple[int, int, tuple[LedgerCard, ...]]:
    """Millionths of a GPU, MiB of their memory, and cards."""
    whole, units = whole_gpus(limits), memory_units(limits)
    gpu = whole * gpus.worth + GPU * _eighths(limits, gpus.card_mib) // EIGHTHS
    memory = gpu * gpus.card_mib // GPU
    if not units:
        return gpu, memory, _whole_cards(pod) if whole else ()
    shared, granted = _shared(pod, units, gpus)
    return gpu + shared, memory + sum(each.mib for each in granted), granted


def _whole_cards(pod: Pod) -> tuple[LedgerCard, ...]:
    given = {
        grant.uuid or str(grant.index): grant for each in pod.grants.values() for grant in each
    }
    return tuple(LedgerCard(each.uuid, each.index) for each in given.values())


def _shared(pod: Pod, units: int, gpus: NodeGpus) -> tuple[int, tuple[LedgerCard, ...]]:
    """The granted parts; without a readable grant the same number of units of any card."""
    node = gpus.shared
    if node is None or not node.cards:
        return 0, ()
    first = node.cards[0]
    booked = tenant_of(pod).booked
    if not booked:
        mib = grant_mib(first.memory_mib, units, first.units) if first.units else 0
        return _part(mib, units, first.memory_mib, first.units), (LedgerCard("", -1, mib),)
    taken: dict[str, tuple[str, int, int]] = {}
    gpu = 0
    for given in booked.values():
        for grant in given:
            card = node.card_of(grant)
            size, most = (card.memory_mib, card.units) if card else (first.memory_mib, first.units)
            mib = _granted(grant, size, most, node)
            gpu += _part(mib, grant.units, size, most)
            key = card.key if card else grant.uuid or f"#{grant.index}"
            uuid, index, before = taken.get(key, (grant.uuid, grant.index, 0))
            taken[key] = uuid, index, before + mib
    return gpu, tuple(LedgerCard(*each) for each in taken.values())


def _granted(grant: Grant, size: int, units: int, node: NodeAccount) -> int:
    if grant.memory_mib is not None:
        return grant.memory_mib
    return grant_mib(size, grant.units, units) if units else grant.units * MIB_PER_UNIT[node.unit]


def _part(mib: int, units: int, card_mib: int, card_units: int) -> int:
    """Millionths of a card, never more than one."""
    if card_mib:
        return min(GPU, mib * GPU // card_mib)
    return min(GPU, units * GPU // card_units) if card_units else 0


def _whole(amounts: Amounts) -> int:
    return min(nvidia_gpus(amounts) or counted(amounts, ALIYUN_GPU), _MOST)


def _eighths(amounts: Amounts, card_mib: int) -> int:
    """Eighths of cards that these MIG instances are.

    >>> _eighths({"nvidia.com/mig-3g.71gb": 2}, 143771), _eighths({"nvidia.com/mig-1g.5gb": 7}, 0)
    (8, 7)
    """
    return sum(
        count * _eighths_of(name.removeprefix(MIG_PREFIX), card_mib)
        for name, count in amounts.items()
        if name.startswith(MIG_PREFIX)
    )


def _eighths_of(profile: str, card_mib: int) -> int:
    found = _PROFILE.match(profile)
    if found is None:
        return 1
    if card_mib:
        return min(EIGHTHS, max(1, round(EIGHTHS * 1024 * int(found["gib"]) / card_mib)))
    return _EIGHTHS_OF_COMPUTE.get(int(found["compute"]), EIGHTHS)


def _replicas(node: Node) -> int:
    """How often each GPU is counted, by time slices."""
    offered, cards = _whole(node.capacity), _count(node)
    declared = _number(node.labels.get(LABEL_REPLICAS, ""))
    if declared > 1 and offered % declared == 0:
        return declared
    return offered // cards if 0 < cards < offered and offered % cards == 0 else 1


def _count(node: Node) -> int:
    """Physical GPUs, from the inventory, else from a label; 0 = unknown."""
    labels = (node.labels.get(each, "") for each in (LABEL_PRODUCT_COUNT, LABEL_GPU_CARD_COUNT))
    return len(node.gpus) or next((n for n in map(_number, labels) if n), 0)


def _number(text: str) -> int:
    return min(int(text), _MOST) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _card_mib(node: Node) -> int:
    """Memory of a card: of the smallest in the inventory, else from the label."""
    sizes = [slot.memory_mib for slot in node.gpus if slot.memory_mib]
    return min(sizes) if sizes else node.card_memory_mib or 0
