"""What a node's agent writes of its cards on its node beside the inventory
(docs/spec/gpu-sharing.md#resources-and-device-ids,
docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory, docs/spec/gpu-sharing.md#device-plugin).

Labels that somebody else wrote stay as they are, but for the provider in force, which is ours alone. Of cards
that differ no label can tell the model or the memory; the inventory does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.keys import LABEL_GPU_CARD_COUNT, LABEL_GPU_CARD_MEMORY, LABEL_GPU_MODEL, LABEL_ISOLATION
from fairlead.model.resources import GPU_MEMORY
from fairlead.rules.devices.card_mode import CardPlan
from fairlead.rules.devices.ids import uuid_of
from fairlead.rules.devices.provider import Provider

_NO_LABEL_TEXT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_LABEL: Final = 63


def missing_labels(cards: Sequence[GpuSlot], provider: Provider, present: Mapping[str, str]) -> Mapping[str, str]:
    """Labels that are to be written on the node now.

    >>> card = GpuSlot(0, "GPU-a", model="Tesla T4", memory_mib=15079)
    >>> told = missing_labels([card], Provider.NONE, {"aliyun.accelerator/nvidia_name": "mine"})
    >>> sorted(told)
    ['aliyun.accelerator/nvidia_count', 'aliyun.accelerator/nvidia_mem', 'fairlead.io/gpu-isolation']
    """
    told = {LABEL_GPU_CARD_COUNT: str(len(cards))} if cards else {}
    models, sizes = {_label_text(card.model) for card in cards}, {card.memory_mib for card in cards}
    if len(models) == 1 and (model := models.pop()):
        told[LABEL_GPU_MODEL] = model
    if len(sizes) == 1 and (size := sizes.pop()):
        told[LABEL_GPU_CARD_MEMORY] = f"{size}MiB"
    ours = {} if present.get(LABEL_ISOLATION) == provider else {LABEL_ISOLATION: provider.value}
    return {**{key: text for key, text in told.items() if key not in present}, **ours}


def gpu_counts(plan: CardPlan) -> tuple[int, int]:
    """`aliyun.com/gpu-count` of the node, capacity and allocatable.

    Those are the cards whose memory the kubelet is told of, and of them the ones that it may give away.
    """
    listed = plan.lists[GPU_MEMORY]
    return len({uuid_of(each.id) for each in listed}), len({uuid_of(each.id) for each in listed if each.is_healthy})


def _label_text(text: str) -> str:
    """The text as a label's value may be.

    >>> _label_text("Tesla V100-SXM2-16GB"), _label_text(" NVIDIA H200 (SXM) ")
    ('Tesla-V100-SXM2-16GB', 'NVIDIA-H200-SXM')
    """
    return _NO_LABEL_TEXT.sub("-", text).strip("-._")[:_LONGEST_LABEL].rstrip("-._")
