"""Deletes a job together with its companions that have no owner. Blocking, for the CLI.

`arena submit` makes the job the owner of its companions, and the cluster deletes them with it.
After a dry run that was applied with kubectl there are no owners, and only the labels and names in
Fairlead's manifests connect the objects.
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
    """The outcome of deleting the job (None: absent), and its companions.

    The companions are the other deleted objects, as `configmap/NAME`.

    Companions are looked for while the job is deleted, and stay when it could not be. A user that
    may not list such objects has not created them. `check` may raise for an outcome after which
    companions must stay too.
    """
    writer = ObjectWriter(api)
    calls: list[Callable[[], Any]] = [
        partial(_left, api, RESOURCES[kind], companions, namespace) for kind in companions.kinds
    ]
    if target is not None:
        calls.append(partial(writer.apply, DeleteObject(target)))
    found = in_parallel(calls)
    outcome = outcome_of(found.pop()) if target is not None else Outcome(Result.GONE)
    check(outcome.expect(Result.GONE))
    left = [each for result in found for each in _rows_of(result)]
    ends = in_parallel([partial(writer.apply, DeleteObject(each)) for each in left]) if left else []
    for end in ends:
        outcome_of(end).expect(Result.GONE)
    return outcome, [f"{each.kind.lower()}/{each.name}" for each in left]


def outcome_of(result: Outcome | Exception) -> Outcome:
    """The outcome of one of several calls. Raises the exception of the call."""
    if isinstance(result, Exception):
        raise result
    return result


def _left(
    api: KubeBlocking, resource: Resource, companions: Companions, namespace: str
) -> list[ObjectRef]:
    reader = ItemReader(resource, JsonForm(_Wire, lambda wire: wire.metadata))
    rows: Sequence[_Meta] = list(
        api.list_all(reader, Selection(namespace, labels=companions.selector)).rows.values()
    )
    mine = [
        meta.name
        for meta in rows
        if meta.name and not meta.owner_references and companions.has(resource.kind, meta.name)
    ]
    return [resource.ref(name, namespace) for name in mine]


def _rows_of(result: Any) -> list[ObjectRef]:
    if isinstance(result, NotFound | ForbiddenByServer):
        return []
    if isinstance(result, Exception):
        raise result
    return list(result)
