"""The API server as the scheduler extender needs it (`ports.SharingApi`): follow three kinds, carry actions
out, keep a Lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.followed import NODE_SUBJECT
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.lease import KubeLease
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import CONFIG_MAPS, PODS
from fairlead.edge.kube.writer import KubeWriter
from fairlead.errors import Forbidden, NotFound
from fairlead.model.actions import Action, Outcome
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.resources import SHARED_GPU_PREFIX
from fairlead.model.sharing import Withheld
from fairlead.ports import LeaseRecord, PodRows, RowSink
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.objects import WirePod, parse_pod
from fairlead.wire.names import UNHEALTHY_GPUS_NAMESPACE


class KubeSharingApi:
    """`lease`: namespace and name.

    The rate bounds bindings and what belongs to them; Events have a smaller one of their own.
    """

    def __init__(self, api: KubeApi, lease: tuple[str, str], per_second: float = 100, burst: int = 200) -> None:
        self._api = api
        self._rate = RateLimit(per_second, burst)
        self._writer = KubeWriter(api, self._rate)
        self._lease = KubeLease(api, *lease)

    async def follow(self, nodes: RowSink[Node], pods: PodRows, withheld: RowSink[Withheld]) -> None:
        withheld_reader = ItemReader(CONFIG_MAPS, WireConfigMap, parse_withheld_map)
        of_system = Selection(namespace=UNHEALTHY_GPUS_NAMESPACE)
        optional: Reflector[Withheld] = Reflector(
            self._api, withheld_reader, withheld, selection=of_system, on_change=lambda: _empty_if_forbidden(optional, withheld)
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(optional.run())
            group.create_task(Reflector(self._api, NODE_SUBJECT.reader(NODE_SUBJECT.resource), nodes).run())
            pod_reader = ItemReader(PODS, WirePod, parse_pod, SHARED_GPU_PREFIX.encode(), pods.holds)
            group.create_task(Reflector(self._api, pod_reader, pods).run())

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


def _empty_if_forbidden(reflector: Reflector[Withheld], sink: RowSink[Withheld]) -> None:
    if isinstance(reflector.last_error, Forbidden | NotFound):
        sink.replace({}, ())
