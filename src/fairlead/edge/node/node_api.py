"""The API server as a node's agent needs it (`ports.NodeApi`): one node, its pods, one ConfigMap."""

from __future__ import annotations

import asyncio
from typing import Final

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import CONFIG_MAPS, NODES, PODS
from fairlead.edge.kube.writer import KubeWriter
from fairlead.errors import Forbidden, NotFound
from fairlead.model.actions import Action, Outcome
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.sharing import Withheld
from fairlead.ports import RowSink
from fairlead.wire.gpus.topology import WireConfigMap, parse_withheld_map
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead.wire.names import UNHEALTHY_GPUS_NAMESPACE, UNHEALTHY_GPUS_PREFIX

WRITES_A_SECOND: Final = 20.0
WRITES_AT_ONCE: Final = 100


class KubeNodeApi:
    """Of the node with this name."""

    def __init__(self, api: KubeApi, node: str) -> None:
        self._api = api
        self._node = node
        self._writer = KubeWriter(api, RateLimit(WRITES_A_SECOND, WRITES_AT_ONCE))

    async def follow(self, node: RowSink[Node], pods: RowSink[Pod], withheld: RowSink[Withheld]) -> None:
        this = Selection(fields=f"metadata.name={self._node}")
        here = Selection(fields=f"spec.nodeName={self._node}")
        map_name = f"metadata.name={UNHEALTHY_GPUS_PREFIX}{self._node}"
        taken_out = Selection(namespace=UNHEALTHY_GPUS_NAMESPACE, fields=map_name)
        optional: Reflector[Withheld] = Reflector(
            self._api,
            ItemReader(CONFIG_MAPS, WireConfigMap, parse_withheld_map),
            withheld,
            selection=taken_out,
            on_change=lambda: _empty_if_forbidden(optional, withheld),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(optional.run())
            group.create_task(Reflector(self._api, ItemReader(NODES, WireNode, parse_node), node, selection=this).run())
            group.create_task(Reflector(self._api, ItemReader(PODS, WirePod, parse_pod), pods, selection=here).run())

    async def apply(self, action: Action) -> Outcome:
        return await self._writer.apply(action)

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        try:
            return parse_pod(await self._api.get(PODS, name, namespace, WirePod))
        except NotFound:
            return None


def _empty_if_forbidden(reflector: Reflector[Withheld], sink: RowSink[Withheld]) -> None:
    if isinstance(reflector.last_error, Forbidden | NotFound):
        sink.replace({}, ())
