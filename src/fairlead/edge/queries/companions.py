"""Deletes a job together with what came with it and has no owner. Blocking, for the CLI.

`arena submit` lets companions belong to the job, and the cluster removes them with it; where a dry run was
applied with kubectl nothing belongs to anything, and only the labels and names that our manifests give tell
what came together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from fairlead.edge.kube.api_failure import ForbiddenByServer
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.resource import CONFIG_MAPS, Resource
from fairlead.errors import NotFound
from fairlead.kinds.parts.companions import Companions

RESOURCES: Final = {
    each.kind: each
    for each in (
        CONFIG_MAPS,
        Resource("", "v1", "secrets", kind="Secret"),
        Resource("", "v1", "services", kind="Service"),
        Resource("apps", "v1", "deployments", kind="Deployment"),
    )
}

Left = tuple[Resource, str]
"""An object that nobody owns, by name."""


class _Meta(Struct, frozen=True, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    owner_references: list[Any] | None = None


class _Wire(Struct, frozen=True):
    metadata: _Meta


def delete_with_companions(api: KubeBlocking, delete: Callable[[], Any], companions: Companions, namespace: str) -> tuple[Any, list[str]]:
    """What `delete` of the job returned, or its NotFound; and what went with it, as `configmap/NAME`.

    Companions are looked for while the job is deleted, and stay when it could not be. Who may not list such
    objects has not made them.
    """
    lists: list[Callable[[], Any]] = [partial(_left, api, RESOURCES[kind], companions, namespace) for kind in companions.kinds]
    calls: list[Callable[[], Any]] = [delete, *lists]
    deleted, *found = in_parallel(calls)
    if isinstance(deleted, Exception) and not isinstance(deleted, NotFound):
        raise deleted
    left = [each for result in found for each in _told(result)]
    return deleted, _delete(api, left, namespace)


def _left(api: KubeBlocking, resource: Resource, companions: Companions, namespace: str) -> list[Left]:
    reader = ItemReader(resource, _Wire, lambda wire: wire.metadata)
    rows: Sequence[_Meta] = list(api.list_all(reader, Selection(namespace, labels=companions.selector)).rows.values())
    ours = [meta.name for meta in rows if meta.name and not meta.owner_references and companions.has(resource.kind, meta.name)]
    return [(resource, name) for name in ours]


def _told(result: Any) -> list[Left]:
    if isinstance(result, NotFound | ForbiddenByServer):
        return []
    if isinstance(result, Exception):
        raise result
    return list(result)


def _delete(api: KubeBlocking, left: Sequence[Left], namespace: str) -> list[str]:
    results = in_parallel([partial(api.delete, resource, name, namespace) for resource, name in left]) if left else []
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, NotFound):
            raise result
    return [f"{resource.kind.lower()}/{name}" for resource, name in left]
