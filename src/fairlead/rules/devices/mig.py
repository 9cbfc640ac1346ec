"""The GPU instances of a divided card as series tell them: one each, whatever compute instances it has."""

from __future__ import annotations

import re
from typing import Final

from msgspec import structs

from fairlead.model.devices.device import DeviceSample, MigInstance

_COMPUTE_SLICE: Final = re.compile(r"\d+c\.", re.ASCII)


def gpu_instances(sample: DeviceSample) -> list[MigInstance]:
    """By id. Compute instances of one GPU instance share its memory: their fields are the first one's.

    >>> card = DeviceSample("n", 0, 0, "GPU-a", "", "", "", None, {})
    >>> parts = (MigInstance(2, 1, "1c.3g.71gb", "MIG-b"), MigInstance(2, 0, "2c.3g.71gb", "MIG-a"))
    >>> [first] = gpu_instances(structs.replace(card, instances=parts))
    >>> first.gpu_instance, first.profile, first.uuid
    (2, '3g.71gb', 'MIG-a')
    """
    found: dict[int, MigInstance] = {}
    for each in sorted(sample.instances, key=lambda each: (each.gpu_instance, each.compute_instance)):
        first = found.get(each.gpu_instance)
        if first is None:
            found[each.gpu_instance] = structs.replace(each, profile=_COMPUTE_SLICE.sub("", each.profile, count=1))
        else:
            found[each.gpu_instance] = structs.replace(first, processes=first.processes + each.processes)
    return list(found.values())
