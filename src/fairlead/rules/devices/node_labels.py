"""Labels and counts that a node's agent writes on its node, beside the inventory.

Specification: docs/spec/gpu-sharing.md#resources-and-device-ids,
docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory,
docs/spec/gpu-sharing.md#device-plugin.

Labels that exist stay as they are, except the provider in force, which only the agent writes. If
cards differ, no label can give their model or memory; the inventory does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.keys import (
    LABEL_GPU_CARD_COUNT,
    LABEL_GPU_CARD_MEMORY,
    LABEL_GPU_MODEL,
    LABEL_ISOLATION,
)
from fairlead.model.resources import GPU_MEMORY
from fairlead.rules.devices.card_mode import CardPlan
from fairlead.rules.devices.ids import uuid_of
from fairlead.rules.devices.provider import Provider

_NO_LABEL_TEXT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_LABEL: Final = 63


def missing_labels(
    cards: Sequence[GpuSlot], provider: Provider, present: Mapping[str, str]
) -> Mapping[str, str]:
    """Labels that must be written on the node now.

    >>> card = GpuSlot(0, "GPU-a", model="Tesla T4", memory_mib=15079)
    >>> wanted = missing_labels([card], Provider.NONE, {"aliyun.accelerator/nvidia_name": "mine"})
    >>> sorted(wanted)[:2]
    ['aliyun.accelerator/nvidia_count', 'aliyun.accelerator/nvidia_mem']
    >>> sorted(wanted)[2:]
    ['fairlead.io/gpu-isolation']
    """
    wanted = {LABEL_GPU_CARD_COUNT: str(len(cards))} if cards else {}
    models, sizes = {_label_text(card.model) for card in cards}, {card.memory_mib for card in cards}
    if len(models) == 1 and (model := models.pop()):
        wanted[LABEL_GPU_MODEL] = model
    if len(sizes) == 1 and (size := sizes.pop()):
        wanted[LABEL_GPU_CARD_MEMORY] = f"{size}MiB"
    own = {} if present.get(LABEL_ISOLATION) == provider else {LABEL_ISOLATION: provider.value}
    return {**{key: text for key, text in wanted.items() if key not in present}, **own}


def gpu_counts(plan: CardPlan) -> tuple[int, int]:
    """`aliyun.com/gpu-count` of the node, capacity and allocatable.

    The first counts the cards whose memory is listed for the kubelet, the second those that may be
    given away.
    """
    listed = plan.lists[GPU_MEMORY]
    return len({uuid_of(each.id) for each in listed}), len(
        {uuid_of(each.id) for each in listed if each.is_healthy}
    )


def _label_text(text: str) -> str:
    """The text in the form of a label's value.

    >>> _label_text("Tesla V100-SXM2-16GB"), _label_text(" NVIDIA H200 (SXM) ")
    ('Tesla-V100-SXM2-16GB', 'NVIDIA-H200-SXM')
    """
    return _NO_LABEL_TEXT.sub("-", text).strip("-._")[:_LONGEST_LABEL].rstrip("-._")
