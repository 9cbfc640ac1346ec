"""Labels and UIDs of a node's pods, followed through the API server (`ports.PodIdentities`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Reflector
from fairlead.edge.kube.resource import PODS
from fairlead.model.pod import Pod
from fairlead.wire.kube.objects import WirePod, parse_pod

_Identity = tuple[str, str, str, Mapping[str, str]]


class NodePods:
    """Of the node with this name. A silent API server takes nothing away.

    `latest` may be asked from another thread: the dict is replaced, never changed.
    """

    def __init__(self, api: KubeApi, node: str) -> None:
        self._pods: dict[str, _Identity] = {}
        self._is_news = False
        self._news: Callable[[], None] = lambda: None
        here = Selection(fields=f"spec.nodeName={node}")
        self._reflector: Reflector[Pod] = Reflector(api, ItemReader(PODS, WirePod, parse_pod), self, selection=here, on_change=self._tell)

    async def run(self, news: Callable[[], None]) -> None:
        self._news = news
        await self._reflector.run()

    def latest(self) -> Mapping[tuple[str, str], tuple[str, Mapping[str, str]]]:
        return {(namespace, name): (uid, labels) for namespace, name, uid, labels in self._pods.values()}

    def replace(self, rows: dict[str, Pod], unreadable: Collection[str]) -> None:
        kept = {key: self._pods[key] for key in unreadable if key in self._pods}
        self._adopt({**kept, **{key: _identity(row) for key, row in rows.items()}})

    def upsert(self, key: str, row: Pod) -> None:
        if self._pods.get(key) != (told := _identity(row)):
            self._adopt({**self._pods, key: told})

    def remove(self, key: str) -> None:
        self._adopt({each: pod for each, pod in self._pods.items() if each != key})

    def _adopt(self, pods: dict[str, _Identity]) -> None:
        self._is_news |= pods != self._pods
        self._pods = pods

    def _tell(self) -> None:
        """Of names; most events are of a pod's status, which no page shows."""
        if self._is_news:
            self._is_news = False
            self._news()


def _identity(pod: Pod) -> _Identity:
    return pod.namespace, pod.name, pod.uid, pod.labels
