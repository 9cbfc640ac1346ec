"""Labels, UIDs and containers of a node's pods, followed through the API server.

Implements `ports.PodIdentities`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import PODS
from fairlead.model.changes import KIND_PODS, Changes
from fairlead.model.devices.series_names import LocalPod
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.local_pod import WireLocalPod, parse_local_pod


class NodePods:
    """Of the node with this name. A silent API server takes nothing away.

    `latest` may be asked from another thread: the dict is replaced, never changed.
    """

    def __init__(self, api: KubeApi, node: str) -> None:
        self._pods: dict[str, LocalPod] = {}
        self._is_news = False
        self._news: Callable[[], None] = lambda: None
        here, reader = (
            Selection(fields=f"spec.nodeName={node}"),
            ItemReader(PODS, JsonForm(WireLocalPod, parse_local_pod)),
        )
        self._reflector: Reflector[LocalPod] = Reflector(
            api, reader, KIND_PODS, self._observe, selection=here, on_change=self._announce
        )

    async def run(self, news: Callable[[], None]) -> None:
        self._news = news
        await self._reflector.run()

    def latest(self) -> Mapping[tuple[str, str], LocalPod]:
        return {(pod.namespace, pod.name): pod for pod in self._pods.values()}

    def _observe(self, changes: Changes[LocalPod]) -> None:
        before = self._pods
        if changes.is_list:
            after = {
                **{key: before[key] for key in changes.unreadable if key in before},
                **changes.all_rows(),
            }
        else:
            after = {key: pod for key, pod in {**before, **changes.rows}.items() if pod is not None}
        if after != before:
            self._is_news = True
            self._pods = after

    def _announce(self) -> None:
        """Names that changed; most events are of a pod's status, which no page shows."""
        if self._is_news:
            self._is_news = False
            self._news()
