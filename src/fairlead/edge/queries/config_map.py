"""One text of one ConfigMap (`ports.TextSource`).

It is read, not watched, because the rights that dcgm-exporter's manifests give are only `get`.
"""

from __future__ import annotations

from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import CONFIG_MAPS
from fairlead.errors import NotFound
from fairlead.wire.gpus.topology import WireConfigMap


class ConfigMapText:
    """`key` of the ConfigMap's data."""

    def __init__(self, api: KubeApi, namespace: str, name: str, key: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._key = key

    async def read_text(self) -> str | None:
        try:
            found: WireConfigMap = await self._api.get(
                CONFIG_MAPS, self._name, self._namespace, WireConfigMap
            )
        except NotFound:
            return None
        return (found.data or {}).get(self._key)
