"""The API server as a node's agent needs it (`ports.NodeApi`): one node, its pods, a ConfigMap."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from fairlead.edge.connection.rate_limit import RateLimit
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.follow.followed_kind import NODE_SUBJECT, POD_SUBJECT, WITHHELD_SUBJECT
from fairlead.edge.kube.follow.follower import Follower
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import PODS
from fairlead.edge.kube.writer import KubeWriter
from fairlead.errors import NotFound
from fairlead.model.actions import Action, Outcome
from fairlead.model.changes import Observe
from fairlead.model.pod import Pod
from fairlead.wire.kube.objects import WirePod, parse_pod
from fairlead.wire.names import UNHEALTHY_GPUS_NAMESPACE, UNHEALTHY_GPUS_PREFIX

WRITES_A_SECOND: Final = 20.0
WRITES_AT_ONCE: Final = 100


class KubeNodeApi:
    """Of the node with this name."""

    def __init__(self, api: KubeApi, node: str) -> None:
        self._api = api
        self._node = node
        self._writer = KubeWriter(api, RateLimit(WRITES_A_SECOND, WRITES_AT_ONCE))

    async def follow(self, observe: Observe) -> None:
        this = Selection(fields=f"metadata.name={self._node}")
        here = Selection(fields=f"spec.nodeName={self._node}")
        map_name = f"metadata.name={UNHEALTHY_GPUS_PREFIX}{self._node}"
        withheld = Selection(namespace=UNHEALTHY_GPUS_NAMESPACE, fields=map_name)
        kinds = (
            structs.replace(WITHHELD_SUBJECT, selection=withheld, is_optional=True),
            structs.replace(NODE_SUBJECT, selection=this),
            structs.replace(POD_SUBJECT, selection=here),
        )
        await Follower(self._api, observe).run(kinds)

    async def apply(self, action: Action) -> Outcome:
        return await self._writer.apply(action)

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        try:
            return parse_pod(await self._api.get(PODS, name, namespace, WirePod))
        except NotFound:
            return None
