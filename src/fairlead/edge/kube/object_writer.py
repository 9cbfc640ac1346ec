"""How do objects of any kind come into a cluster, and out again? Blocking, for `submit` (arena contract §6: a create per object, no list).

What a newcomer gets wrong: an object that is there already is no failure here but an answer (None), because only the caller knows whether
that is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fairlead.edge.kube.api_discovery import Discovery
from fairlead.edge.kube.api_failure import ApiFailure, Conflict
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.resource import Resource
from fairlead.edge.kube.who_am_i import user_name
from fairlead.errors import Forbidden, NotAsWritten, NotFound, OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.kinds.parts.kind import JobKind
    from fairlead.kinds.submission import Served

Manifest = Mapping[str, Any]

PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", is_namespaced=False, kind="PriorityClass")
_WELL_KNOWN: Final = (
    Resource("", "v1", "configmaps", kind="ConfigMap"),
    Resource("", "v1", "secrets", kind="Secret"),
    Resource("", "v1", "services", kind="Service"),
    Resource("apps", "v1", "deployments", kind="Deployment"),
)
"""What needs no discovery."""
_NOT_AS_WRITTEN: Final = (400, 403, 404, 422)
_LOOK: Final = "look whether it is there: `arena list`"


class ObjectWriter:
    """One cluster for one command. What is served is asked once."""

    def __init__(self, api: KubeBlocking) -> None:
        self._api = api
        self._discovered: Discovery | None = None
        self._submitter: str | None = None

    def served(self, kind: JobKind, with_fields_of: str, priority: str) -> Served:
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
            each.resource.version for each in discovery.served if (each.resource.group, each.resource.plural) == (kind.GROUP, kind.PLURAL)
        ]
        return Served(
            versions=tuple(versions),
            spec_fields=_told(fields),
            user=_told(user),
            has_priority=_told(has_priority),
        )

    def create(self, manifest: Manifest, namespace: str) -> dict[str, Any] | None:
        return self._create(self._resource(manifest), manifest, namespace)

    def create_unasked(self, kind: JobKind, manifest: Manifest, namespace: str) -> dict[str, Any] | None:
        """See `cli.context.ClusterObjects`."""
        group, _, version = str(manifest["apiVersion"]).rpartition("/")
        resource = Resource(group, version, kind.PLURAL, kind=kind.KIND)
        try:
            created = self._create(resource, manifest, namespace, is_strict=True)
        except ApiFailure as error:
            if error.status in _NOT_AS_WRITTEN:
                raise NotAsWritten("kubernetes", error.what, error.hint) from error
            raise
        if created is not None and not manifest["spec"].keys() <= (created.get("spec") or {}).keys():
            self._api.delete(resource, created["metadata"]["name"], created["metadata"]["namespace"])
            raise NotAsWritten("kubernetes", "the API server, older than 1.25, dropped fields that it does not know")
        return created

    def _create(self, resource: Resource, manifest: Manifest, namespace: str, **more: bool) -> dict[str, Any] | None:
        namespace = str(manifest["metadata"].get("namespace") or namespace)
        try:
            created: dict[str, Any] = self._api.create(resource, manifest, namespace, **more)
            if not isinstance(created, dict) or "metadata" not in created:
                raise OutsideError("kubernetes", f"the API server made a {manifest['kind']} and answered with something else", _LOOK)
        except Conflict as error:
            if error.reason == "AlreadyExists":
                return None
            raise
        return created

    def is_there(self, manifest: Manifest, namespace: str) -> bool:
        meta = manifest["metadata"]
        try:
            self._api.get(self._resource(manifest), meta["name"], str(meta.get("namespace") or namespace))
        except NotFound:
            return False
        return True

    def adopt(self, created: Manifest, owner: Manifest) -> None:
        from fairlead.kinds.parts.job_companions import owner_reference

        meta = created["metadata"]
        patch = {"metadata": {"ownerReferences": [owner_reference(owner)]}}
        self._api.patch(self._resource(created), meta["name"], patch, meta.get("namespace"))

    def delete(self, created: Manifest) -> None:
        meta = created["metadata"]
        try:
            self._api.delete(self._resource(created), meta["name"], meta.get("namespace"))
        except NotFound:
            return

    def _discover(self, group: str = "kubeflow.org") -> Discovery:
        """`group`: that of the job; `apps` has what comes with it."""
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

    def _resource(self, manifest: Manifest) -> Resource:
        group, _, version = str(manifest["apiVersion"]).rpartition("/")
        wanted = (group, version, manifest["kind"])
        known = [resource for resource in _WELL_KNOWN if (resource.group, resource.version, resource.kind) == wanted]
        if known:
            return known[0]
        discovery = self._discover()
        found = _find(discovery, wanted)
        if found is None:
            discovery = self._api.discovery([group])  # neither ours nor a kind that comes with ours: the core API, or an older server
            found = _find(discovery, wanted)
        if found is None:
            raise UserError(
                f"the cluster serves no {manifest['kind']} of `{manifest['apiVersion']}`", "`kubectl api-resources` lists what it serves"
            )
        return found

    def _spec_fields(self, kind: JobKind, version: str) -> frozenset[str] | None:
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


def _told(outcome: Any) -> Any:
    """What the server says, or None when it does not; anything but its refusal is raised."""
    if isinstance(outcome, OutsideError):
        return None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _find(discovery: Discovery, wanted: tuple[str, str, Any]) -> Resource | None:
    for each in discovery.served:
        resource = each.resource
        if (resource.group, resource.version, resource.kind) == wanted and "create" in each.verbs:
            return resource
    return None
