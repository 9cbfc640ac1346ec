"""What the programs of the simulated cluster get of their cards, by the rules of the node agent."""

from __future__ import annotations

from typing import Final

from fairlead.model.keys import LABEL_ISOLATION
from fairlead.rules.devices.guard.allocation import program_memory
from fairlead.rules.devices.watchdog import (
    OVER_GRANT,
    MemoryUse,
    MemoryWatchdog,
    OverGrantPolicy,
)
from fairlead_sim.objects.asked_memory import AskedMemory, GotMemory
from fairlead_sim.objects.resources import NODES
from fairlead_sim.store.cluster import StoredCluster

_POLICY: Final = OverGrantPolicy.REPORT
"""The node agent's default."""


class MemoryOfNodes:
    """The `MemoryHook` of the laptop."""

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster

    def __call__(self, asked: AskedMemory) -> GotMemory:
        node = self._cluster.get(NODES, None, asked.node) or {"metadata": {}}
        provider = (node["metadata"].get("labels") or {}).get(LABEL_ISOLATION, "")
        given = program_memory(provider, asked.limit_mib, asked.free_mib, asked.sizes_mib)
        if not given.is_granted:
            return GotMemory(False, given.counts)
        use = MemoryUse(
            asked.namespace,
            asked.pod,
            asked.pod_uid,
            asked.container,
            asked.uuid,
            used_mib=sum(asked.sizes_mib),
            granted_mib=asked.limit_mib,
        )
        over = MemoryWatchdog().look([use], _POLICY)
        return GotMemory(
            True, given.counts, tuple((OVER_GRANT, each.sentence) for each in over if each.is_new)
        )
