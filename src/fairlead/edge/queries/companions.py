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
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.edge.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SECRETS, SERVICES, Resource
from fairlead.errors import NotFound
from fairlead.kinds.parts.companions import Companions
from fairlead.model.actions import DeleteObject, ObjectRef, Outcome, Result
from fairlead.wire.kube.forms import JsonForm

RESOURCES: Final = {each.kind: each for each in (CONFIG_MAPS, SECRETS, SERVICES, DEPLOYMENTS)}


class _Meta(Struct, frozen=True, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    owner_references: list[Any] | None = None


class _Wire(Struct, frozen=True):
    metadata: _Meta


def delete_with_companions(
    api: KubeBlocking,
    target: ObjectRef | None,
    companions: Companions,
    namespace: str,
    check: Callable[[Outcome], object] = lambda outcome: None,
) -> tuple[Outcome, list[str]]:
    """How deleting the job ended (None: there is none), and what was removed beside it, as `configmap/NAME`.

    Companions are looked for while the job is deleted, and stay when it could not be. Who may not list such
    objects has not made them. `check` may raise for an outcome after which companions stay, too.
    """
    writer = ObjectWriter(api)
    calls: list[Callable[[], Any]] = [partial(_left, api, RESOURCES[kind], companions, namespace) for kind in companions.kinds]
    if target is not None:
        calls.append(partial(writer.apply, DeleteObject(target)))
    found = in_parallel(calls)
    outcome = told(found.pop()) if target is not None else Outcome(Result.GONE)
    check(outcome.expect(Result.GONE))
    left = [each for result in found for each in _told(result)]
    ends = in_parallel([partial(writer.apply, DeleteObject(each)) for each in left]) if left else []
    for end in ends:
        told(end).expect(Result.GONE)
    return outcome, [f"{each.kind.lower()}/{each.name}" for each in left]


def told(result: Outcome | Exception) -> Outcome:
    """Of one call of several: its outcome. Raises the exception in which it ended."""
    if isinstance(result, Exception):
        raise result
    return result


def _left(api: KubeBlocking, resource: Resource, companions: Companions, namespace: str) -> list[ObjectRef]:
    reader = ItemReader(resource, JsonForm(_Wire, lambda wire: wire.metadata))
    rows: Sequence[_Meta] = list(api.list_all(reader, Selection(namespace, labels=companions.selector)).rows.values())
    ours = [meta.name for meta in rows if meta.name and not meta.owner_references and companions.has(resource.kind, meta.name)]
    return [resource.ref(name, namespace) for name in ours]


def _told(result: Any) -> list[ObjectRef]:
    if isinstance(result, NotFound | ForbiddenByServer):
        return []
    if isinstance(result, Exception):
        raise result
    return list(result)
