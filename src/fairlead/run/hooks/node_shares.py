"""What the simulated node agents give a container, by the rules of `fairlead device-plugin`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.devices.granted import ContainerGrant, DeviceRefusal, RefusalCode
from fairlead.model.keys import LABEL_ISOLATION
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_MEMORY
from fairlead.rules.devices.container_edits import NodeFiles, shared_edits
from fairlead.rules.devices.grant import container_grant
from fairlead.rules.devices.provider import Provider
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
        cards, _ = _node_of(self._cluster, pod)
        given = container_grant(_parsed(pod), container, cards, whole)
        if isinstance(given, DeviceRefusal):
            return NoShare(_in_go(given.code), given.reason)
        return [Share(grant.uuid, grant.memory_mib or 0) for grant in given]


class EnvironmentOfNodes:
    """The `EnvironmentHook` of the laptop."""

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster

    def __call__(self, pod: Object, container: str) -> Mapping[str, str]:
        cards, provider = _node_of(self._cluster, pod)
        owner = _parsed(pod)
        given = container_grant(owner, container, cards)
        if isinstance(given, DeviceRefusal):
            return {}
        units = sum(grant.units for grant in given)
        pod_units = owner.limits.get(GPU_MEMORY, 0)
        edits = shared_edits(
            ContainerGrant("", units, given, pod_units=pod_units),
            cards,
            provider,
            NodeFiles("", "", mps_pipes={card.uuid: "" for card in cards}, has_device_nodes=False),
        )
        return {} if isinstance(edits, DeviceRefusal) else edits.environment


def _parsed(pod: Object) -> Pod:
    return parse_pod(_pods.decode(msgspec.json.encode(pod)))


def _node_of(cluster: StoredCluster, pod: Object) -> tuple[Sequence[GpuSlot], Provider]:
    """The cards of the pod's node, and the provider in force there."""
    node = cluster.get(NODES, None, pod["spec"]["nodeName"])
    if node is None:
        return (), Provider.NONE
    label = (node["metadata"].get("labels") or {}).get(LABEL_ISOLATION, "")
    provider = Provider(label) if label in list(Provider) else Provider.NONE
    return parse_node(_nodes.decode(msgspec.json.encode(node))).gpus, provider


def _in_go(code: RefusalCode) -> str:
    """As the kubelet, a Go program, prints the code.

    >>> _in_go(RefusalCode.FAILED_PRECONDITION)
    'FailedPrecondition'
    """
    return "".join(word.capitalize() for word in code.value.split("_"))
