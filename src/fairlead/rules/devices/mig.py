"""The GPU instances of a divided card as series show them.

One each, however many compute instances it has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import structs

from fairlead.model.devices.device import DeviceChoice, DeviceSample, MigInstance
from fairlead.rules.devices.container_use import merged_use

_COMPUTE_SLICE: Final = re.compile(r"(?<!\d)\d++c\.", re.ASCII)


def chosen_devices(samples: Sequence[DeviceSample], choice: DeviceChoice) -> list[DeviceSample]:
    """The chosen cards, and cards with a chosen instance, each with its chosen instances.

    Instances are counted from 0 over all cards by index and id, as DCGM numbers them.

    >>> card = DeviceSample("n", 0, 0, "GPU-a", "", "", "", None, {})
    >>> parts = (MigInstance(9, 0, "1g.18gb", "MIG-b"), MigInstance(2, 0, "3g.71gb", "MIG-a"))
    >>> cards = [card, structs.replace(card, index=1, instances=parts)]
    >>> choice = DeviceChoice(frozenset(), frozenset([1]), has_instances=True)
    >>> chosen = chosen_devices(cards, choice)
    >>> [(each.index, [part.uuid for part in each.instances]) for each in chosen]
    [(1, ['MIG-b'])]
    """
    found: list[DeviceSample] = []
    before = 0
    for sample in samples:
        parts = [each.gpu_instance for each in gpu_instances(sample)]
        wanted = {
            part
            for number, part in enumerate(parts, before)
            if choice.instances is None or number in choice.instances
        }
        before += len(parts)
        is_named = choice.cards is None or sample.index in choice.cards
        if choice.has_instances and len(wanted) < len(parts):
            sample = structs.replace(
                sample,
                instances=tuple(each for each in sample.instances if each.gpu_instance in wanted),
            )
        if is_named or (choice.has_instances and wanted):
            found.append(sample)
    return found


def gpu_instances(sample: DeviceSample) -> list[MigInstance]:
    """GPU instances by id.

    Compute instances of one GPU instance share its memory: the first one's fields are used, and a
    container that has several of them is listed once.

    >>> card = DeviceSample("n", 0, 0, "GPU-a", "", "", "", None, {})
    >>> parts = (MigInstance(2, 1, "1c.3g.71gb", "MIG-b"), MigInstance(2, 0, "2c.3g.71gb", "MIG-a"))
    >>> [first] = gpu_instances(structs.replace(card, instances=parts))
    >>> first.gpu_instance, first.profile, first.uuid
    (2, '3g.71gb', 'MIG-a')
    """
    found: dict[int, MigInstance] = {}
    for each in sorted(
        sample.instances, key=lambda each: (each.gpu_instance, each.compute_instance)
    ):
        first = found.get(each.gpu_instance)
        if first is None:
            found[each.gpu_instance] = structs.replace(
                each, profile=_COMPUTE_SLICE.sub("", each.profile, count=1)
            )
        else:
            processes = merged_use(first.processes + each.processes, is_one_memory=True)
            found[each.gpu_instance] = structs.replace(first, processes=processes)
    return list(found.values())
