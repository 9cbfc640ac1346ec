"""Data of a job that is read when a user opens it: logs of its pods, its object, its events.

For services, as the user who asks (impersonation) or with the server's own rights. A 403 names the
missing right, and the account that needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final

import msgspec
from msgspec import structs

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import ApiFailure, ForbiddenByServer, is_impersonation
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import (
    ApiRequest,
    Selection,
    create_request,
    get_request,
    with_query,
)
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.resource import EVENTS, PODS, Resource
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.kinds.registry import kind_of
from fairlead.model.actions import Manifest
from fairlead.model.event import Event
from fairlead.model.jobs.job import Job
from fairlead.ports import LogRequest
from fairlead.wire.kube.objects import EVENT_FORM

FOLLOW_SECONDS: Final = 86_400.0
"""The longest time that a log is followed, in seconds; then the page asks again."""
_SELF_REVIEWS: Final = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    is_namespaced=False,
    kind="SelfSubjectAccessReview",
)
SINGLE_LISTS_MAX: Final = 8
"""Up to this number of objects their events are listed one by one; for more, those of the
namespace are listed once, because the API server scans all of them for each list.
"""


class KubeJobFiles:
    """Fills `ports.JobFiles` over an API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._served: dict[str, Discovery] = {}

    async def log(
        self, namespace: str, pod: str, wish: LogRequest, account: str
    ) -> AsyncGenerator[bytes, None]:
        path = with_query(
            PODS.path(namespace, pod, "log"),
            container=wish.container,
            tailLines=wish.tail_lines,
            previous="true" if wish.previous else None,
            follow="true" if wish.follow else None,
            limitBytes=wish.limit_bytes or None,
        )
        seconds = FOLLOW_SECONDS if wish.follow else None
        request = ApiRequest("get", "GET", path, accept="*/*", seconds=seconds, account=account)
        with _explained(f"`get` of `pods/log` in namespace `{namespace}`", account):
            async with aclosing(self._api.stream(request)) as pieces:
                async for piece in pieces:
                    yield piece

    async def may_read_logs(self, namespace: str, account: str) -> bool:
        attributes = {
            "verb": "get",
            "resource": PODS.plural,
            "subresource": "log",
            "namespace": namespace,
        }
        question = {
            "apiVersion": f"{_SELF_REVIEWS.group}/{_SELF_REVIEWS.version}",
            "kind": _SELF_REVIEWS.kind,
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = await self._ask(create_request(_SELF_REVIEWS, question, None), account)
        except ForbiddenByServer:  # to ask, or to impersonate
            return False
        return bool(answer.get("status", {}).get("allowed"))

    async def manifest(self, job: Job, account: str) -> Manifest:
        kind = kind_of(job)
        right = f"`get` of `{kind.PLURAL}.{kind.GROUP}` in namespace `{job.namespace}`"
        with _explained(right, account):
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
            return await self._ask(get_request(resource, job.name, job.namespace), account)

    async def _ask(self, request: ApiRequest, account: str) -> Manifest:
        answer = await self._api.send(structs.replace(request, account=account))
        found: Any = msgspec.json.decode(answer.body)
        if not isinstance(found, dict):
            raise OutsideError("kubernetes", "the API server's answer is no object")
        return found

    async def events(
        self, namespace: str, uids: Collection[str], account: str
    ) -> tuple[Event, ...]:
        reader = ItemReader(EVENTS, EVENT_FORM)
        chosen = (
            [f"involvedObject.uid={uid}" for uid in uids]
            if len(uids) <= SINGLE_LISTS_MAX
            else [None]
        )
        with _explained(f"`list` of `events` in namespace `{namespace}`", account):
            listings = await asyncio.gather(
                *(
                    self._api.list_all(reader, Selection(namespace, fields=fields, account=account))
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
def _explained(right: str, account: str) -> Iterator[None]:
    """Turns failures within it into messages for the user of a page."""
    needs = f"`{account}`" if account else "the console's account"
    try:
        yield
    except ForbiddenByServer as error:
        hint = error.hint if is_impersonation(error) else f"{needs} needs the right {right}"
        raise Forbidden("kubernetes", error.message, hint) from error
    except ApiFailure as error:
        if error.status in (400, 404):  # for an absent log the API server answers 400
            raise NotFound(
                "kubernetes",
                error.message,
                "it may have been deleted or replaced meanwhile; look at the instances",
            ) from error
        raise OutsideError("kubernetes", error.what, error.hint) from error
