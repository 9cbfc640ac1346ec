"""Writes of the console's pages (`ports.ClusterWrites`): as the server itself, or as one user.

As a user the API server checks the user's rights, and its audit log names both.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_request import get_request
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.object_actions import (
    known_resource,
    no_such_kind,
    object_request,
    target_of,
)
from fairlead.edge.kube.resource import Resource
from fairlead.model.actions import Manifest, ObjectAction, ObjectRef


class KubeClusterWrites:
    """One cluster."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._discovered: dict[str, Discovery] = {}

    async def read(self, target: ObjectRef, account: str = "") -> Manifest:
        resource = await self._resource(target)
        request = get_request(resource, target.name, target.namespace or None)
        answer = await self._api.send(msgspec.structs.replace(request, account=account))
        found: Manifest = msgspec.json.decode(answer.body)
        return found

    async def write(self, action: ObjectAction, account: str = "") -> Manifest | None:
        request = object_request(action, await self._resource(target_of(action)))
        answer = await self._api.send(msgspec.structs.replace(request, account=account))
        made: Any = msgspec.json.decode(answer.body) if answer.body else None
        return made if isinstance(made, dict) and made.get("kind") != "Status" else None

    async def _resource(self, target: ObjectRef) -> Resource:
        group = target.group_version[0]
        found = known_resource(target, self._discovered.get(group))
        if found is None:
            self._discovered[group] = await self._api.discovery([group])
            found = known_resource(target, self._discovered[group])
        if found is None:
            raise no_such_kind(target)
        return found
