"""Labels, UIDs and containers of a node's pods, followed through the API server (`ports.PodIdentities`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import PODS
from fairlead.model.devices.series_names import LocalPod
from fairlead.wire.kube.local_pod import WireLocalPod, parse_local_pod


class NodePods:
    """Of the node with this name. A silent API server takes nothing away.

    `latest` may be asked from another thread: the dict is replaced, never changed.
    """

    def __init__(self, api: KubeApi, node: str) -> None:
        self._pods: dict[str, LocalPod] = {}
        self._is_news = False
        self._news: Callable[[], None] = lambda: None
        here, reader = Selection(fields=f"spec.nodeName={node}"), ItemReader(PODS, WireLocalPod, parse_local_pod)
        self._reflector: Reflector[LocalPod] = Reflector(api, reader, self, selection=here, on_change=self._tell)

    async def run(self, news: Callable[[], None]) -> None:
        self._news = news
        await self._reflector.run()

    def latest(self) -> Mapping[tuple[str, str], LocalPod]:
        return {(pod.namespace, pod.name): pod for pod in self._pods.values()}

    def replace(self, rows: dict[str, LocalPod], unreadable: Collection[str]) -> None:
        kept = {key: self._pods[key] for key in unreadable if key in self._pods}
        self._adopt({**kept, **rows})

    def upsert(self, key: str, row: LocalPod) -> None:
        if self._pods.get(key) != row:
            self._adopt({**self._pods, key: row})

    def remove(self, key: str) -> None:
        self._adopt({each: pod for each, pod in self._pods.items() if each != key})

    def _adopt(self, pods: dict[str, LocalPod]) -> None:
        self._is_news |= pods != self._pods
        self._pods = pods

    def _tell(self) -> None:
        """Of names; most events are of a pod's status, which no page shows."""
        if self._is_news:
            self._is_news = False
            self._news()
