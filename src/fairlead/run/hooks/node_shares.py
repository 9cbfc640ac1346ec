"""What the simulated node agents give a container, by the rules of `fairlead device-plugin`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from fairlead.model.devices.granted import DeviceRefusal, RefusalCode
from fairlead.rules.devices.grant import container_grant
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scheduler.hooks import NoShare, Object, Share
from fairlead_sim.store.cluster import StoredCluster

_nodes: Final = msgspec.json.Decoder(WireNode)
_pods: Final = msgspec.json.Decoder(WirePod)


class SharesOfNodes:
    """The `AgentHook` of the laptop."""

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster

    def __call__(
        self, pod: Object, container: str, whole: Collection[str]
    ) -> Sequence[Share] | NoShare:
        node = self._cluster.get(NODES, None, pod["spec"]["nodeName"])
        cards = (
            parse_node(_nodes.decode(msgspec.json.encode(node))).gpus if node is not None else ()
        )
        given = container_grant(
            parse_pod(_pods.decode(msgspec.json.encode(pod))), container, cards, whole
        )
        if isinstance(given, DeviceRefusal):
            return NoShare(_in_go(given.code), given.reason)
        return [Share(grant.uuid, grant.memory_mib or 0) for grant in given]


def _in_go(code: RefusalCode) -> str:
    """As the kubelet, a Go program, prints the code.

    >>> _in_go(RefusalCode.FAILED_PRECONDITION)
    'FailedPrecondition'
    """
    return "".join(word.capitalize() for word in code.value.split("_"))
