"""The API server as the quota controller needs it (`ports.QuotaApi`).

It follows what quota reads, carries actions out and keeps a Lease.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import structs

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.follow.followed_kind import (
    BUDGET_SUBJECT,
    GROUP_SUBJECT,
    NAMESPACE_SUBJECT,
    NODE_SUBJECT,
    POD_SUBJECT,
    QUOTA_SUBJECT,
    FollowedKind,
    workload_subject,
)
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.writer import KubeWriter
from fairlead.kinds.workloads import WORKLOAD_KINDS
from fairlead.model.actions import Action, Outcome
from fairlead.model.changes import Observe
from fairlead.model.pod import without_report
from fairlead.ports import LeaseRecord

TREE_SECONDS: Final = 5.0
"""The longest wait between two tries to read the tree, whose CRD may be installed later."""
LEAN_POD_SUBJECT: Final = structs.replace(POD_SUBJECT, keep=without_report)
"""A list of all pods is in memory at once, so each is made lean when it is read."""
NEEDED_NAMESPACES_SUBJECT: Final = structs.replace(NAMESPACE_SUBJECT, is_optional=False)
SOUGHT_TREE_SUBJECT: Final = structs.replace(
    QUOTA_SUBJECT, versions=None, is_optional=True, retry_seconds=TREE_SECONDS
)
"""Asked for without discovery, so that a tree counts within seconds of its CRD."""
SOUGHT_GROUP_SUBJECT: Final = structs.replace(
    GROUP_SUBJECT, is_optional=True, retry_seconds=TREE_SECONDS
)
"""Groups have caps of their users; a cluster may have no groups."""
FOLLOWED: Final[tuple[FollowedKind[Any], ...]] = (
    NODE_SUBJECT,
    NEEDED_NAMESPACES_SUBJECT,
    LEAN_POD_SUBJECT,
    SOUGHT_TREE_SUBJECT,
    SOUGHT_GROUP_SUBJECT,
    BUDGET_SUBJECT,
    *map(workload_subject, WORKLOAD_KINDS),
)


class KubeQuotaApi:
    """The quota controller's API.

    `lease`: namespace and name. The rate bounds all writes; Events have a smaller one of their own.
    """

    workload_kinds = tuple(each.name for each in WORKLOAD_KINDS)

    def __init__(
        self,
        api: KubeApi,
        lease: tuple[str, str],
        per_second: float = 300,
        burst: int = 500,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._lease = KubeLease(api, *lease)
        self._writer = KubeWriter(api, RateLimit(per_second, burst), self._lease)
        self._rng = rng
        self._sleep = sleep

    async def follow(self, observe: Observe) -> None:
        await Follower(self._api, observe, rng=self._rng, sleep=self._sleep).run(FOLLOWED)

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        return await self._writer.apply(action, left)

    async def get_lease(self) -> LeaseRecord | None:
        return await self._lease.get_lease()

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        return await self._lease.put_lease(record)
