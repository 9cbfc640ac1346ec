"""Which shared GPUs did an operator take out? The ConfigMaps `unhealthy-gpu-<node>` of kube-system, one row each.

What a newcomer gets wrong: no selector finds them, so all ConfigMaps of that namespace come, and most are rows of no node.
"""

from __future__ import annotations

from fairlead.ports import Withheld
from fairlead.wire.allocation import parse_withheld
from fairlead.wire.gpu_topology import WireConfigMap
from fairlead.wire.names import UNHEALTHY_GPUS_PREFIX


def withheld_row(wire: WireConfigMap) -> Withheld:
    name = wire.metadata.name or ""
    if not name.startswith(UNHEALTHY_GPUS_PREFIX):
        return Withheld("", frozenset())
    return Withheld(name.removeprefix(UNHEALTHY_GPUS_PREFIX), parse_withheld(wire.data))
