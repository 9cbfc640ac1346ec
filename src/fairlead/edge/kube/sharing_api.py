"""The API server as the scheduler extender needs it (`ports.SharingApi`).

It follows three kinds, carries actions out and keeps a Lease.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import structs

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.follow.followed_kind import NODE_SUBJECT, POD_SUBJECT, WITHHELD_SUBJECT
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.resource import PODS
from fairlead.edge.kube.writer import KubeWriter
from fairlead.errors import NotFound
from fairlead.model.actions import Action, Outcome
from fairlead.model.changes import Observe
from fairlead.model.pod import Pod
from fairlead.model.resources import SHARED_GPU_PREFIX
from fairlead.ports import LeaseRecord
from fairlead.wire.kube.objects import WirePod, parse_pod

OPTIONAL_WITHHELD_SUBJECT: Final = structs.replace(WITHHELD_SUBJECT, is_optional=True)


class KubeSharingApi:
    """`lease`: namespace and name.

    The rate bounds bindings and what belongs to them; Events have a smaller one of their own.
    """

    def __init__(
        self, api: KubeApi, lease: tuple[str, str], per_second: float = 100, burst: int = 200
    ) -> None:
        self._api = api
        self._rate = RateLimit(per_second, burst)
        self._lease = KubeLease(api, *lease)
        self._writer = KubeWriter(api, self._rate, self._lease)

    async def follow(self, observe: Observe, is_known: Callable[[str], bool]) -> None:
        pods = structs.replace(POD_SUBJECT, mark=SHARED_GPU_PREFIX.encode(), is_known=is_known)
        await Follower(self._api, observe).run((OPTIONAL_WITHHELD_SUBJECT, NODE_SUBJECT, pods))

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        return await self._writer.apply(action, left)

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        await self._rate.wait()
        try:
            return parse_pod(await self._api.get(PODS, name, namespace, WirePod))
        except NotFound:
            return None

    async def get_lease(self) -> LeaseRecord | None:
        return await self._lease.get_lease()

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        return await self._lease.put_lease(record)
