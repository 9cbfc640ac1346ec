"""How much of a quota node is in use, and how much waits.

Amounts in the units of `model.resources`, managed resources only.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import NOTHING, Amounts


class QuotaUse(Struct, frozen=True, gc=False):
    """`used`: bound pods until they are gone.

    `pending`: gated or unbound ones. An inner node is the sum of what is below it. `used_by_namespace` has
    every namespace of a leaf, also those that use nothing; it is empty on inner nodes.
    """

    node: QuotaNode
    used: Amounts = NOTHING
    pending: Amounts = NOTHING
    pods: int = 0
    waiting_pods: int = 0
    used_by_namespace: Mapping[str, Amounts] = {}

    def requested(self, resource: str) -> int:
        """What all pods together ask for: used and pending."""
        return self.used.get(resource, 0) + self.pending.get(resource, 0)
