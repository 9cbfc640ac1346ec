"""The objects that the steps of operations work on (`ports.OperationCluster`)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import ApiFailure, Conflict, NotServed
from fairlead.edge.kube.api_request import (
    ApiRequest,
    create_request,
    delete_request,
    get_request,
    patch_request,
    with_query,
)
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.object_actions import known_resource, no_such_kind
from fairlead.edge.kube.resource import EVENTS, PODS, Resource
from fairlead.errors import AlreadyExists, Forbidden, InvalidObject, NotFound
from fairlead.model.actions import Manifest, ObjectRef, object_ref

FIELD_MANAGER: Final = "fairlead"
"""Of what operations apply."""
_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "Job")
_NO_REFUSALS: Final = (401, 403, 404, 408, 409, 429)
"""Answers that have an exception of their own, or mean "not now"."""


class KubeOperationCluster:
    """`account`: the user that is impersonated, "" = this process's own rights."""

    def __init__(self, api: KubeApi, account: str = "") -> None:
        self._api = api
        self._account = account
        self._discovered: dict[str, Discovery] = {}

    async def get(self, target: ObjectRef) -> Manifest | None:
        try:
            resource = await self._resource(target)
            found: Manifest = await self._sent(
                get_request(resource, target.name, target.namespace or None)
            )
        except NotFound:
            return None
        return found

    async def create(self, manifest: Manifest, plural: str = "") -> Manifest:
        target = object_ref(manifest, plural=plural)
        resource = await self._resource(target)
        request = create_request(resource, manifest, target.namespace or None, is_strict=True)
        try:
            made: Manifest = await self._sent(request)
        except Conflict as error:
            if error.reason == "AlreadyExists":
                raise AlreadyExists(error.system, error.message, error.hint) from error
            raise
        return made

    async def apply(
        self, manifest: Manifest, plural: str = "", *, is_forced: bool = False, manager: str = ""
    ) -> Manifest:
        target = object_ref(manifest, plural=plural)
        request = patch_request(
            await self._resource(target),
            target.name,
            manifest,
            target.namespace or None,
            kind="apply",
            field_manager=manager or FIELD_MANAGER,
            force=is_forced,
        )
        path = with_query(request.path, fieldValidation="Strict")
        made: Manifest = await self._sent(structs.replace(request, path=path))
        return made

    async def remove(self, target: ObjectRef) -> None:
        try:
            resource = await self._resource(target)
            await self._sent(
                delete_request(resource, target.name, target.namespace or None, uid=target.uid)
            )
        except NotFound:
            return
        except Conflict:
            found = await self.get(target)
            is_other = found is None or found["metadata"].get("uid") != target.uid
            if not (target.uid and is_other) and not (
                found is not None and found["metadata"].get("deletionTimestamp")
            ):
                raise

    async def pods_of(self, target: ObjectRef) -> tuple[Manifest, ...]:
        if target.kind not in _WORKLOADS:
            return ()
        found = await self.get(target) or {}
        labels = ((found.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
        if not labels:
            return ()
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        return tuple(await self._listed(PODS, target.namespace, labelSelector=selector))

    async def newest_warning(self, target: ObjectRef) -> str:
        selector = f"involvedObject.kind={target.kind},involvedObject.name={target.name}"
        found = await self._listed(
            EVENTS, target.namespace or "default", fieldSelector=f"{selector},type=Warning"
        )
        newest = max(found, key=_time_of_event, default=None)
        return "" if newest is None else str(newest.get("message") or "").strip()

    async def _listed(self, resource: Resource, namespace: str, **query: str) -> list[Manifest]:
        """[] if the user may not list them: they explain, and decide nothing."""
        request = ApiRequest("list", "GET", with_query(resource.path(namespace), **query))
        try:
            return list((await self._sent(request))["items"])
        except (Forbidden, NotFound):
            return []

    async def _sent(self, request: ApiRequest) -> Any:
        try:
            answer = await self._api.send(structs.replace(request, account=self._account))
        except ApiFailure as error:
            if 400 <= error.status < 500 and error.status not in _NO_REFUSALS:
                raise InvalidObject(
                    error.system, error.message, error.hint, error.causes
                ) from error
            raise
        return decoder_of(Any).decode(answer.body) if answer.body else None

    async def _resource(self, target: ObjectRef) -> Resource:
        """From the target or discovery; asked anew for a kind that is not found, which may be new.

        Raises NotFound for a kind that is not served.
        """
        group = target.group_version[0]
        found = known_resource(target, self._discovered.get(group))
        if found is None:
            self._discovered[group] = await self._api.discovery([group])
            found = known_resource(target, self._discovered[group])
        if found is None:
            unserved = no_such_kind(target)
            raise NotServed(unserved.what, unserved.hint, status=404)
        return found


def _time_of_event(event: Manifest) -> str:
    """RFC 3339 in UTC, so that texts compare as times."""
    times = (event.get("eventTime"), event.get("lastTimestamp"), event.get("firstTimestamp"))
    return str(next(filter(None, (*times, event["metadata"].get("creationTimestamp"))), ""))
