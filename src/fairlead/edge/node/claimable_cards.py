"""The cards of a node that resource claims can name (`ports.ClaimableCards`), read now and then.

Drivers publish them when they start and when a card's division changes, so an age of a minute is
acceptable.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import Resource
from fairlead.errors import NotFound, OutsideError
from fairlead.model.devices.kubelet import ClaimableCard
from fairlead.model.repeat_filter import RepeatFilter
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.resource_slices import WireSlice, newest_cards, parse_slice

LOOK_SECONDS: Final = 60.0
RETRY_SECONDS: Final = 5.0
_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
_log: Final = logging.getLogger(__name__)


class NodeSlices:
    """`node`: the node's name. The last result stays while the API server does not answer."""

    def __init__(self, api: KubeApi, node: str) -> None:
        self._api = api
        self._here = Selection(fields=f"spec.nodeName={node}")
        self._cards: Mapping[tuple[str, str, str], ClaimableCard] = {}
        self._trouble = RepeatFilter()

    async def run(self) -> None:
        while True:  # noqa: ASYNC110 - a list has no notification
            await asyncio.sleep(LOOK_SECONDS if await self.look() else RETRY_SECONDS)

    async def look(self) -> bool:
        """Reads once. Whether there was an answer."""
        try:
            self._cards = await self._ask()
        except OutsideError as error:
            if self._trouble.is_news(error.log_line):
                _log.warning("cards of resource claims are not known: %s", error.log_line)
            return False
        self._trouble.is_news("")
        return True

    def latest(self) -> Mapping[tuple[str, str, str], ClaimableCard]:
        return self._cards

    async def _ask(self) -> Mapping[tuple[str, str, str], ClaimableCard]:
        """The cards, from the newest version that the server has."""
        for version in _VERSIONS:
            resource = Resource(
                "resource.k8s.io",
                version,
                "resourceslices",
                is_namespaced=False,
                kind="ResourceSlice",
            )
            try:
                listing = await self._api.list_all(
                    ItemReader(resource, JsonForm(WireSlice, parse_slice)), self._here
                )
            except NotFound:
                continue
            return newest_cards(listing.rows.values())
        raise OutsideError(
            "kubernetes",
            "the API server has no ResourceSlices",
            "claims need Kubernetes 1.32 or later",
        )
