"""What a page of the console reads when a user opens it; nothing is followed.

Of serving jobs, workloads and Services by one label, beside the pods, which are followed. Of data,
what the command line reads, by the same code in threads: ten thousand claims take seconds, in which
the event loop goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from fairlead.edge.connection.connection import Connection
from fairlead.edge.kube.api_failure import ForbiddenByServer
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import DEPLOYMENTS, SERVICES, Resource
from fairlead.edge.queries.data_query import DataQuery
from fairlead.edge.queries.job_query import sorted_out
from fairlead.errors import Forbidden, OutsideError
from fairlead.kinds.serving.kinds import INFERENCE_SERVICES, selector
from fairlead.model.actions import ObjectRef
from fairlead.model.jobs.acceleration import AccelerationFacts, DataUser
from fairlead.model.jobs.data_details import DataReasons, DataSetFacts
from fairlead.model.jobs.datasets import FoundData
from fairlead.model.jobs.serving import ServingObjects
from fairlead.model.source import Source
from fairlead.wire.jobs.serving import (
    WireDeployment,
    WireInferenceService,
    WireService,
    parse_deployment,
    parse_inference_service,
    parse_service,
)
from fairlead.wire.kube.forms import JsonForm

P = ParamSpec("P")
Answer = TypeVar("Answer")

_THREADS: Final = 4
_INFERENCE: Final = Resource(*INFERENCE_SERVICES[:3], kind=INFERENCE_SERVICES[3])
_READERS: Final[tuple[ItemReader[Any], ...]] = (
    ItemReader(DEPLOYMENTS, JsonForm(WireDeployment, parse_deployment)),
    ItemReader(_INFERENCE, JsonForm(WireInferenceService, parse_inference_service)),
    ItemReader(SERVICES, JsonForm(WireService, parse_service)),
)


class KubeServings:
    """Fills `ports.ServingQuestions` over an API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def read(self) -> ServingObjects:
        deployments, inference, services = await asyncio.gather(*map(self._list, _READERS))
        if isinstance(deployments, ForbiddenByServer):
            hint = (
                "the console's account needs the right `list` of `deployments.apps` in all "
                "namespaces"
            )
            raise Forbidden("kubernetes", deployments.what, hint)
        if isinstance(deployments, OutsideError):
            raise deployments
        sources: dict[str, Source] = {}
        rows = [
            sorted_out([(reader.resource.label, found)], sources)
            for reader, found in zip(_READERS[1:], (inference, services), strict=True)
        ]
        return ServingObjects((*rows[0], *deployments), tuple(rows[1]), sources)

    async def _list(self, reader: ItemReader[Any]) -> list[Any] | OutsideError:
        """The rows, or the failure to read them."""
        try:
            return list(
                (await self._api.list_all(reader, Selection(labels=selector()))).rows.values()
            )
        except OutsideError as error:
            return error


class KubeDataQuestions:
    """Fills `ports.DataQuestions` over an API server. `now`: the cluster's time.

    It has threads of its own: an API server that does not answer would else keep all those in which
    pages are made.
    """

    def __init__(self, connection: Connection, now: Callable[[], float]) -> None:
        self._api = KubeBlocking(connection)
        self._query = DataQuery(self._api, now)
        self._threads = ThreadPoolExecutor(_THREADS, "data")

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._api.close()

    async def read(self, namespace: str = "") -> FoundData:
        return await self._asked(self._query.read, namespace)

    async def users(self, namespace: str) -> list[DataUser]:
        return await self._asked(self._query.users, namespace)

    async def reasons(self, found: FoundData) -> DataReasons:
        return await self._asked(self._query.reasons, found)

    async def details(self, namespace: str, name: str) -> DataSetFacts:
        return await self._asked(self._query.details, namespace, name)

    async def leftovers(self, namespace: str, name: str) -> tuple[ObjectRef, ...]:
        return await self._asked(self._query.leftovers, namespace, name)

    async def has_secret(self, namespace: str, name: str) -> bool | None:
        return await self._asked(self._query.has_secret, namespace, name)

    async def facts(self, namespace: str, claim: str, name: str) -> AccelerationFacts:
        return await self._asked(self._query.facts, namespace, claim, name)

    async def _asked(self, call: Callable[P, Answer], *given: P.args, **_: P.kwargs) -> Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *given))
