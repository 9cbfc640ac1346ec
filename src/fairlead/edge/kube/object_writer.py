"""Carries out actions on objects for the command line, blocking
(docs/spec/arena-cli.md#requests: a create per object, no list), and reads what the cluster
serves before a job is made. `writer` is the module for services.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import ApiFailure
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.object_actions import (
    known_resource,
    no_such_kind,
    not_sent,
    object_request,
    outcome_of_answer,
    outcome_of_failure,
    target_of,
)
from fairlead.edge.kube.resource import PRIORITY_CLASSES, Resource
from fairlead.edge.kube.who_am_i import user_name
from fairlead.errors import FairleadError, Forbidden, NotFound, OutsideError, RejectedObject
from fairlead.model.actions import (
    CreateObject,
    DeleteObject,
    Manifest,
    ObjectAction,
    ObjectRef,
    Outcome,
    Result,
    object_ref,
)

if TYPE_CHECKING:
    from fairlead.kinds.parts.kind import CreatedKind
    from fairlead.kinds.submission import Served

_NOT_AS_WRITTEN: Final = (400, 403, 404, 422)


class ObjectWriter:
    """One cluster for one command. Discovery is read once."""

    def __init__(self, api: KubeBlocking) -> None:
        self._api = api
        self._discovered: Discovery | None = None
        self._submitter: str | None = None

    def served(self, kind: CreatedKind, with_fields_of: str, priority: str) -> Served:
        """See `cli.context.ClusterObjects`."""
        from fairlead.kinds.submission import Served

        calls: list[Callable[[], Any]] = [
            partial(self._discover, kind.GROUP),
            self.submitter,
            partial(self._spec_fields, kind, with_fields_of) if with_fields_of else lambda: None,
            partial(self._has_priority, priority) if priority else lambda: None,
        ]
        discovery, user, fields, has_priority = in_parallel(calls)
        if isinstance(discovery, Exception):
            raise discovery
        versions = [
            each.resource.version
            for each in discovery.served
            if (each.resource.group, each.resource.plural) == (kind.GROUP, kind.PLURAL)
        ]
        return Served(
            versions=tuple(versions),
            spec_fields=_value_or_none(fields),
            user=_value_or_none(user),
            has_priority=_value_or_none(has_priority),
        )

    def apply(self, action: ObjectAction) -> Outcome:
        """See `ports.Cluster.apply`; a kind that the cluster does not serve is REFUSED."""
        try:
            request = object_request(action, self._resource(target_of(action)))
        except FairleadError as error:
            return not_sent(error)
        try:
            answer = self._api.send(request)
        except FairleadError as error:
            return outcome_of_failure(action, error)
        return outcome_of_answer(action, answer.body)

    def create_unasked(self, kind: CreatedKind, manifest: Manifest, namespace: str) -> Outcome:
        """See `cli.context.ClusterObjects`."""
        outcome = self.apply(CreateObject(manifest, namespace, kind.PLURAL, is_strict=True))
        failure, created = outcome.failure, outcome.made
        if isinstance(failure, ApiFailure) and failure.status in _NOT_AS_WRITTEN:
            raise RejectedObject("kubernetes", failure.what, failure.hint) from failure
        if created is not None and not manifest["spec"].keys() <= _keys(created.get("spec")):
            self.apply(DeleteObject(object_ref(created, plural=kind.PLURAL))).expect(Result.GONE)
            raise RejectedObject(
                "kubernetes",
                "the API server, older than 1.25, dropped fields that it does not know",
            )
        return outcome

    def is_there(self, manifest: Manifest, namespace: str) -> bool:
        target = object_ref(manifest, namespace)
        try:
            self._api.get(self._resource(target), target.name, target.namespace)
        except NotFound:
            return False
        return True

    def _discover(self, group: str = "kubeflow.org") -> Discovery:
        """`group`: of the job; `apps` has the companions."""
        if self._discovered is None:
            self._discovered = self._api.discovery([group, "apps"])
        return self._discovered

    def submitter(self) -> str:
        """See `cli.context.ClusterObjects`."""
        if self._submitter is None:
            try:
                self._submitter = user_name(self._api)
            except OutsideError:
                self._submitter = ""
        return self._submitter

    def _resource(self, target: ObjectRef) -> Resource:
        """The resource of the target: from discovery for jobs and companions, then, for an older
        server or another kind, from discovery of its own group.
        """
        found = known_resource(target) or known_resource(target, self._discover())
        found = found or known_resource(target, self._api.discovery([target.group_version[0]]))
        if found is None:
            raise no_such_kind(target)
        return found

    def _spec_fields(self, kind: CreatedKind, version: str) -> frozenset[str] | None:
        from fairlead.edge.kube.served_schema import spec_fields

        return spec_fields(self._api, kind.GROUP, version, kind.KIND)

    def _has_priority(self, name: str) -> bool | None:
        try:
            self._api.get(PRIORITY_CLASSES, name)
        except NotFound:
            return False
        except Forbidden:
            return None
        return True


def _keys(part: Any) -> frozenset[str]:
    """Of a part of an answer, which need not be an object."""
    return frozenset(part) if isinstance(part, dict) else frozenset()


def _value_or_none(outcome: Any) -> Any:
    """The server's answer, or None when it refuses; any other failure is raised."""
    if isinstance(outcome, OutsideError):
        return None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
