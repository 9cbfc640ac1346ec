"""Writes of the console's pages (`ports.ClusterWrites`): as the server itself, or as one user.

As a user the API server checks the user's rights, and its audit log names both.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import ApiFailure
from fairlead.edge.kube.api_request import ApiRequest, get_request
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.object_actions import (
    known_resource,
    no_such_kind,
    object_request,
    target_of,
)
from fairlead.edge.kube.resource import Resource
from fairlead.edge.kube.served_schema import fields_in, schema_request
from fairlead.errors import AlreadyExists, InvalidObject, OutsideError
from fairlead.model.actions import CreateObject, Manifest, ObjectAction, ObjectRef


class KubeClusterWrites:
    """One cluster."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._discovered: dict[str, Discovery] = {}

    async def read(self, target: ObjectRef, account: str = "") -> Manifest:
        resource = await self._resource(target)
        request = get_request(resource, target.name, target.namespace or None)
        answer = await self._sent(request, account)
        found: Manifest = msgspec.json.decode(answer)
        return found

    async def write(self, action: ObjectAction, account: str = "") -> Manifest | None:
        request = object_request(action, await self._resource(target_of(action)))
        try:
            answer = await self._sent(request, account)
        except ApiFailure as error:
            if isinstance(action, CreateObject) and error.reason == "AlreadyExists":
                raise AlreadyExists(error.system, error.message, error.hint) from error
            if error.reason == "Invalid":
                raise InvalidObject(
                    error.system, error.message, error.hint, error.causes
                ) from error
            raise
        made: Any = msgspec.json.decode(answer) if answer else None
        return made if isinstance(made, dict) and made.get("kind") != "Status" else None

    async def served(self, group: str, plural: str) -> tuple[str, ...]:
        """Asked anew each time: an operator may have been installed since."""
        found = self._discovered[group] = await self._api.discovery([group])
        return tuple(
            each.resource.version
            for each in found.served
            if (each.resource.group, each.resource.plural) == (group, plural)
        )

    async def spec_fields(self, api_version: str, kind: str) -> frozenset[str] | None:
        try:
            answer = await self._sent(schema_request(api_version), "")
        except OutsideError:
            return None
        return fields_in(answer, kind)

    async def _sent(self, request: ApiRequest, account: str) -> bytes:
        answer = await self._api.send(msgspec.structs.replace(request, account=account))
        return answer.body

    async def _resource(self, target: ObjectRef) -> Resource:
        group = target.group_version[0]
        found = known_resource(target, self._discovered.get(group))
        if found is None:
            self._discovered[group] = await self._api.discovery([group])
            found = known_resource(target, self._discovered[group])
        if found is None:
            raise no_such_kind(target)
        return found
