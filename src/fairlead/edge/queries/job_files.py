"""Data of a job that is read when a user opens it: logs of its pods, its object, its events.

For services. A 403 names the missing right, because the account is the server's and not the user's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing, contextmanager
from typing import Final

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import ApiFailure, ForbiddenByServer
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import ApiRequest, Selection, with_query
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import EVENTS, PODS
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.kinds.registry import kind_of
from fairlead.model.actions import Manifest
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.ports import LogRequest
from fairlead.wire.kube.objects import EVENT_FORM

FOLLOW_SECONDS: Final = 86_400.0
"""The longest time that a log is followed, in seconds; then the page asks again."""
SINGLE_LISTS_MAX: Final = 8
"""Up to this number of objects their events are listed one by one; for more, those of the
namespace are listed once, because the API server scans all of them for each list.
"""


class KubeJobFiles:
    """Fills `ports.JobFiles` over an API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._served: dict[str, Discovery] = {}

    async def log(self, namespace: str, pod: str, wish: LogRequest) -> AsyncGenerator[bytes, None]:
        path = with_query(
            PODS.path(namespace, pod, "log"),
            container=wish.container,
            tailLines=wish.tail_lines,
            previous="true" if wish.previous else None,
            follow="true" if wish.follow else None,
            limitBytes=wish.limit_bytes or None,
        )
        request = ApiRequest(
            "get", "GET", path, accept="*/*", seconds=FOLLOW_SECONDS if wish.follow else None
        )
        with _explained(f"`get` of `pods/log` in namespace `{namespace}`"):
            async with aclosing(self._api.stream(request)) as pieces:
                async for piece in pieces:
                    yield piece

    async def manifest(self, job: Job) -> Manifest:
        kind = kind_of(job)
        with _explained(f"`get` of `{kind.PLURAL}.{kind.GROUP}` in namespace `{job.namespace}`"):
            resource = (await self._discover(kind.GROUP)).find(
                kind.GROUP, kind.PLURAL, [job.api_version.rpartition("/")[2]]
            )
            if resource is None:
                self._served.pop(kind.GROUP, None)
                raise NotFound(
                    "kubernetes",
                    f"`{kind.PLURAL}` of `{job.api_version}` are not served any more",
                    "look at the list of jobs",
                )
            found: Manifest = await self._api.get(resource, job.name, job.namespace)
            return found

    async def events(self, namespace: str, uids: Collection[str]) -> tuple[Event, ...]:
        reader = ItemReader(EVENTS, EVENT_FORM)
        chosen = (
            [f"involvedObject.uid={uid}" for uid in uids]
            if len(uids) <= SINGLE_LISTS_MAX
            else [None]
        )
        with _explained(f"`list` of `events` in namespace `{namespace}`"):
            listings = await asyncio.gather(
                *(
                    self._api.list_all(reader, Selection(namespace, fields=fields))
                    for fields in chosen
                )
            )
        wanted = frozenset(uids)
        return tuple(
            event
            for listing in listings
            for event in listing.rows.values()
            if event.object_uid in wanted
        )

    async def _discover(self, group: str) -> Discovery:
        if group not in self._served:
            self._served[group] = await self._api.discovery({group})
        return self._served[group]


@contextmanager
def _explained(right: str) -> Iterator[None]:
    """Turns failures within it into messages for the user of a page."""
    try:
        yield
    except ForbiddenByServer as error:
        raise Forbidden(
            "kubernetes", error.message, f"the console's account needs the right {right}"
        ) from error
    except ApiFailure as error:
        if error.status in (400, 404):  # for an absent log the API server answers 400
            raise NotFound(
                "kubernetes",
                error.message,
                "it may have been deleted or replaced meanwhile; look at the instances",
            ) from error
        raise OutsideError("kubernetes", error.what, error.hint) from error
