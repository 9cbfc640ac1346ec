"""Which provider isolates the containers on a node's shared cards.

Specification: docs/spec/gpu-sharing.md#isolation-providers.

It is the first of the specification's table that the node supports, one per node. The rules for
`cgroup` and `mig` follow the specification and have not been tried on hardware. `guard` needs its
library; the agent reports whether the node has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from fairlead.model.devices.driver import IsolationMeans
from fairlead.model.keys import LABEL_GPU_SCHEDULE, LABEL_NO_ISOLATION

_CGROUP_DRIVER: Final = 615
_CGROUP_CUDA: Final = (13, 4)


class Provider(StrEnum):
    """Values of the node's label, from strongest to weakest.

    Specification: docs/spec/gpu-sharing.md#isolation-providers.
    """

    CGROUP = "cgroup"
    MIG = "mig"
    MPS = "mps"
    GUARD = "guard"
    NONE = "none"


def choose_provider(labels: Mapping[str, str], means: IsolationMeans) -> Provider:
    """The provider in force.

    Labels may turn isolation off (`cgpu.disable.isolation=true`, `ack.node.gpu.schedule=share`);
    MPS is used only on request (`ack.node.gpu.schedule=mps`).

    >>> print(choose_provider({"ack.node.gpu.schedule": "mps"}, IsolationMeans(has_mps=True)))
    mps
    >>> print(choose_provider({"cgpu": "true"}, IsolationMeans(has_mps=True)))
    none
    """
    schedule = labels.get(LABEL_GPU_SCHEDULE)
    if labels.get(LABEL_NO_ISOLATION) == "true" or schedule == "share":
        return Provider.NONE
    if means.has_mig:
        return Provider.MIG
    if means.has_cgroup_v2 and means.driver >= _CGROUP_DRIVER and means.cuda >= _CGROUP_CUDA:
        return Provider.CGROUP
    if means.has_mps and schedule == "mps":
        return Provider.MPS
    return Provider.GUARD if means.has_guard else Provider.NONE
