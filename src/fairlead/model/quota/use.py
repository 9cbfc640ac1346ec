"""A quota node together with its usage."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.tree import QuotaNode


class QuotaUse(Struct, frozen=True, gc=False):
    """`own`: the numbers of `node`, the same in the plan, the status and all boards."""

    node: QuotaNode
    own: QuotaNodeUse

    def min_of(self, resource: str) -> int:
        """Its min as it counts: less than written if the cluster has less than the mins promise."""
        return self.own.counted_min.get(resource, self.node.min.get(resource, 0))

    def waits(self, resource: str) -> int:
        """The amount that its waiting pods request."""
        return self.own.request.get(resource, 0) - self.own.used.get(resource, 0)


class Lack(Struct, frozen=True, gc=False):
    """For a leaf and a resource: what waits because the resource has no room for it.

    `units`: number of pods, gangs and suspended jobs; `smallest`: the smallest of their requests
    for it.
    """

    units: int
    smallest: int
