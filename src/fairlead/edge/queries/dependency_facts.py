"""Asks the servers that a console depends on for their versions, times and served resources."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

from msgspec import structs

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.connection.timestamp import clock_offset
from fairlead.edge.kube.api_discovery import ServerVersion
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.prometheus.client import Prometheus
from fairlead.errors import Forbidden, OutsideError
from fairlead.kinds.registry import KINDS
from fairlead.model.dependency import DependencyLooks, ServerLook
from fairlead.wire.metrics.gpu_readings import METRICS
from fairlead.wire.names import FLUID_GROUP, PEOPLE_GROUP

_VERSION = ApiRequest("get", "GET", "/version")
_GROUPS = (FLUID_GROUP, PEOPLE_GROUP, *sorted({kind.GROUP for kind in KINDS}))
_SERIES = f'count({{__name__=~"{"|".join(METRICS)}"}})'


class DependencyQuery:
    """`ports.Dependencies` for a cluster and its Prometheus, if one is configured; closes neither.

    `now` and `monotonic`: this machine's, in seconds.
    """

    def __init__(
        self,
        api: KubeApi,
        prometheus: Prometheus | None = None,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._prometheus = prometheus
        self._now = now
        self._monotonic = monotonic

    async def look(self) -> DependencyLooks:
        api, prometheus = await asyncio.gather(self._look_at_api(), self._look_at_prometheus())
        served = None if api.failure else await self._served()
        return DependencyLooks(api, prometheus, served)

    async def _look_at_api(self) -> ServerLook:
        look = ServerLook(self._api.connection.server)
        begun, begun_at = self._monotonic(), self._now()
        try:
            answer = await self._api.send(_VERSION)
        except Forbidden:
            # it answers, but without a version
            return structs.replace(look, seconds=self._monotonic() - begun)
        except OutsideError as error:
            return structs.replace(look, failure=error.what, hint=error.hint)
        seconds = self._monotonic() - begun
        return structs.replace(
            look,
            version=_version_in(answer.body),
            seconds=seconds,
            ahead_seconds=clock_offset(answer.headers.get("Date"), begun_at, seconds),
        )

    async def _look_at_prometheus(self) -> ServerLook | None:
        if self._prometheus is None:
            return None
        look = ServerLook(self._prometheus.address)
        begun = self._monotonic()
        try:
            found = await self._prometheus.query(_SERIES)
            seconds = self._monotonic() - begun
            version = await self._prometheus.version()
        except OutsideError as error:
            return structs.replace(look, failure=error.what, hint=error.hint)
        series = int(found[0].value) if found and math.isfinite(found[0].value) else 0
        return structs.replace(look, version=version, seconds=seconds, series=series)

    async def _served(self) -> dict[str, tuple[str, ...]] | None:
        try:
            found = await self._api.discovery(_GROUPS)
        except OutsideError:
            return None  # the version was just read, so only the served resources are unknown
        versions: dict[str, tuple[str, ...]] = {}
        for each in found.served:
            name = f"{each.resource.plural}.{each.resource.group}"
            versions[name] = (*versions.get(name, ()), each.resource.version)
        return versions


def _version_in(body: bytes) -> str:
    try:
        read: Any = decoder_of(ServerVersion).decode(body)
    except ValueError:
        return ""
    return str(read.git_version)
