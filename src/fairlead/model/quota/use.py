"""A quota node beside what is used of it."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.tree import QuotaNode


class QuotaUse(Struct, frozen=True, gc=False):
    """`own`: the numbers of `node`, as the plan, the status and every board tell them."""

    node: QuotaNode
    own: QuotaNodeUse

    def min_of(self, resource: str) -> int:
        """Its min as it counts: less than is written where the cluster has less than the mins promise."""
        return self.own.counted_min.get(resource, self.node.min.get(resource, 0))

    def waits(self, resource: str) -> int:
        """What its waiting pods ask for."""
        return self.own.request.get(resource, 0) - self.own.used.get(resource, 0)


class Lack(Struct, frozen=True, gc=False):
    """A leaf and a resource: what waits because there is no room for what it asks of it.

    `units`: pods, gangs and suspended jobs; `smallest`: the least that one of them asks of it.
    """

    units: int
    smallest: int
