"""How each card of a node is allocated, and the kubelet's lists that follow from it.

Specification: docs/spec/gpu-sharing.md#switching-a-node-between-shared-and-exclusive.

Holders decide before labels: a card that is held in the mode that its node has left drains,
whatever its labels ask for. Nothing is remembered between calls, so it does not matter how often a
label changed. The kubelet's list does not show recent grants yet, so the caller adds whole cards
that it has just given out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.gpu import CardMode, GpuSlot
from fairlead.model.devices.kubelet import GivenShare, HeldDevices, OfferedDevice
from fairlead.model.keys import LABEL_GPU_SCHEDULE
from fairlead.model.node import Condition
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_CORE, GPU_MEMORY, NVIDIA_GPU
from fairlead.rules.devices.ids import offered, uuid_of
from fairlead.rules.devices.owner import KnownPods
from fairlead.rules.nodes.status import share_mode

SHARE_READY: Final = "GPUShareReady"
FOREIGN: Final = "ForeignDevicePlugin"
UNUSABLE: Final = "UnusableGPUs"
SERVING: Final = "Serving"
_SHARED: Final = CardMode.SHARED
_EXCLUSIVE: Final = CardMode.EXCLUSIVE
_DRAINING: Final = CardMode.DRAINING
_CORE_MEMORY: Final = "core_mem"
_SETTLED_SECONDS: Final = 60.0
"""`_SETTLED_SECONDS`: time in which the kubelet updates its node with the list that it received."""


class CardHolders(Struct, frozen=True, gc=False):
    """UUIDs of cards that are held as a whole, and of cards that are held in parts.

    `is_hidden`: a container holds shared memory of an unknown card, which may be any of them.
    """

    whole: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    is_hidden: bool = False


class CardPlan(Struct, frozen=True, gc=False):
    """The cards with their modes, and the list of each resource that is served on this node.

    A resource without a list is not registered. `condition` None: the node must have no condition
    of the type `GPUShareReady`.
    """

    is_shared: bool
    cards: tuple[GpuSlot, ...]
    lists: Mapping[str, tuple[OfferedDevice, ...]]
    condition: Condition | None = None


def card_holders(
    cards: Iterable[GpuSlot],
    held: Sequence[HeldDevices],
    pods: Sequence[Pod],
    given: Iterable[GivenShare],
) -> CardHolders:
    """Which cards of this node are held.

    `held`: the list of pod resources and the checkpoint. `pods`: those of this node. `given`: the
    agent's own record of containers that still exist; an annotation may be lost.
    """
    uuids = {card.index: card.uuid for card in cards}
    named: dict[str, set[str]] = {pod.key: _granted(pod, uuids) for pod in pods if pod.is_holding}
    for share in given:
        named.setdefault(f"{share.namespace}/{share.pod}", set()).add(share.grant.uuid)
    whole: set[str] = set()
    is_hidden = False
    known = KnownPods(pods)
    for each in held:
        pod = known.holding(each)
        if pod.is_finished if pod else not each.pod:
            continue  # the kubelet keeps ended pods until it assigns their ids again
        key = pod.key if pod else f"{each.namespace}/{each.pod}"
        if each.resource == NVIDIA_GPU:
            whole.update(map(uuid_of, each.ids))
        elif each.resource == GPU_MEMORY and not named.get(key):
            is_hidden = True
    return CardHolders(frozenset(whole), frozenset().union(*named.values()), is_hidden)


def card_plan(
    labels: Mapping[str, str],
    cards: Sequence[GpuSlot],
    holders: CardHolders,
    *,
    fault: str = "",
    is_foreign: bool = False,
    is_core_held: bool = False,
) -> CardPlan:
    """The mode of each card and the lists to send.

    `fault`: why the cards cannot be listed for a kubelet (`ids.unlistable`), "" = they can.
    `is_foreign`: NVIDIA's plugin serves here, too. `is_core_held`: a container holds core percent,
    whose ids stay in the list while cards drain.

    >>> holders = CardHolders(whole=frozenset({"GPU-a"}))
    >>> plan = card_plan({"cgpu": "true"}, [GpuSlot(0, "GPU-a"), GpuSlot(1, "GPU-b")], holders)
    >>> [str(card.mode) for card in plan.cards]
    ['draining', 'shared']
    """
    is_shared = share_mode(labels).is_shared
    planned = card_modes(labels, cards, holders, is_foreign=is_foreign)
    if is_foreign:
        lists: dict[str, tuple[OfferedDevice, ...]] = {GPU_MEMORY: (), GPU_CORE: ()}
        return CardPlan(
            is_shared, planned, lists, _foreign_condition() if is_shared or holders.parts else None
        )
    if fault or not cards:
        unusable = Condition(SHARE_READY, "False", UNUSABLE, fault or "the driver shows no GPU")
        return CardPlan(
            is_shared,
            planned,
            {GPU_MEMORY: (), GPU_CORE: (), NVIDIA_GPU: ()},
            unusable if is_shared else None,
        )
    draining = [card for card in planned if card.mode == _DRAINING]
    settled = [card for card in planned if card.mode != _DRAINING]
    parts, whole = (settled, draining) if is_shared else (draining, settled)
    has_core = labels.get(LABEL_GPU_SCHEDULE) == _CORE_MEMORY or (is_core_held and not is_shared)
    lists = {
        GPU_MEMORY: offered(GPU_MEMORY, parts),
        GPU_CORE: offered(GPU_CORE, parts) if has_core else (),
        NVIDIA_GPU: offered(NVIDIA_GPU, whole),
    }
    ready = Condition(
        SHARE_READY,
        "True",
        SERVING,
        "the GPUs of this node are shared by Fairlead's device plugin",
    )
    return CardPlan(is_shared, planned, lists, ready if is_shared else None)


def card_modes(
    labels: Mapping[str, str],
    cards: Iterable[GpuSlot],
    holders: CardHolders,
    *,
    is_foreign: bool = False,
) -> tuple[GpuSlot, ...]:
    """The cards with the mode of each, without the lists that follow."""
    is_shared = share_mode(labels).is_shared
    return tuple(
        structs.replace(card, mode=_mode(card, is_shared, holders, is_foreign)) for card in cards
    )


def is_foreign_plugin(
    sockets: Iterable[str], allocatable: int, served: int, served_seconds: float
) -> bool:
    """Whether another plugin serves `nvidia.com/gpu` on this node.

    `sockets`: names of the live sockets in the plugin directory. `allocatable`: the node's amount
    of `nvidia.com/gpu`; `served`: how many healthy ones this agent sent to the kubelet,
    `served_seconds` ago. A node's amount is updated late, and stays when a plugin leaves, so only a
    larger amount, for some time, counts.

    >>> is_foreign_plugin(["nvidia-gpu.sock"], 0, 0, 0.0), is_foreign_plugin([], 2, 2, 90.0)
    (True, False)
    """
    if any(name.startswith("nvidia-") and name.endswith(".sock") for name in sockets):
        return True
    return allocatable > served and served_seconds > _SETTLED_SECONDS


def _mode(card: GpuSlot, is_shared: bool, holders: CardHolders, is_foreign: bool) -> CardMode:
    if is_shared and not is_foreign:
        return _DRAINING if card.uuid in holders.whole else _SHARED
    return _DRAINING if holders.is_hidden or card.uuid in holders.parts else _EXCLUSIVE


def _foreign_condition() -> Condition:
    return Condition(
        SHARE_READY,
        "False",
        FOREIGN,
        "another device plugin serves nvidia.com/gpu on this node, so no GPU memory is "
        "shared: keep it off this node"
        " (GPU Operator: label nvidia.com/gpu.deploy.device-plugin=false; else a nodeSelector "
        "on its DaemonSet)",
    )


def _granted(pod: Pod, uuids: Mapping[int, str]) -> set[str]:
    """The shared cards of a pod. A grant of the reference plugin names only an index."""
    grants = [grant for given in pod.grants.values() for grant in given if grant.units]
    return {uuid for grant in grants if (uuid := grant.uuid or uuids.get(grant.index, ""))}
