"""A cluster for `fairlead install`, `upgrade` and `uninstall`: server-side apply of objects of any
kind, trial runs, rights, Helm's releases, pods at a gate. Blocking.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import structs

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_discovery import Discovery, ServerVersion
from fairlead.edge.kube.api_failure import ApiFailure, Conflict, NotServed
from fairlead.edge.kube.api_request import (
    ApiRequest,
    delete_request,
    patch_request,
    with_query,
)
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.object_actions import (
    known_resource,
    no_such_kind,
    object_request,
    outcome_of_failure,
)
from fairlead.edge.kube.resource import NAMESPACES, PODS, Resource
from fairlead.errors import Forbidden, UserError
from fairlead.model.actions import Manifest, ObjectRef, PatchObject, Result, object_ref
from fairlead.model.installation import (
    HELM_NAMESPACE,
    INSTALLATION_LABEL,
    SYSTEM_NAMESPACE,
    SYSTEM_PART,
)
from fairlead.model.installed.facts import SIMULATED_BUILD
from fairlead.model.refusal import Refusal
from fairlead.wire.installation.inventory import inventory_ref
from fairlead.wire.installation.release import release_name, release_ref

_TAKE_OFF: Final = f"{INSTALLATION_LABEL}-"
FIELD_MANAGER: Final = "fairlead-install"
VERSION: Final = ApiRequest("get", "GET", "/version")
_AT_ONCE: Final = 8
_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", is_namespaced=False
)
_PAGE: Final = 500
_UNBOUND: Final = "spec.nodeName="
_FOR_A_MOMENT: Final = (403, 409, 422)
"""What the API server answers while a removed policy is still in force, and also for good."""
Answer = TypeVar("Answer")


class KubeInstallationTarget:
    """See `ports.InstallationTarget`. Discovery is read once. `field_manager`: of writes."""

    def __init__(self, api: KubeBlocking, field_manager: str = FIELD_MANAGER) -> None:
        self._api = api
        self._field_manager = field_manager
        self._discovered: Discovery | None = None
        self._discovering = threading.Lock()

    def server_version(self) -> tuple[int, int] | None:
        return self._version().numbers

    def is_simulated(self) -> bool:
        return self._version().git_version.endswith(SIMULATED_BUILD)

    def _version(self) -> ServerVersion:
        """An empty one if the user may not see it."""
        try:
            answer = self._api.send(VERSION)
        except Forbidden:
            return ServerVersion()
        version: ServerVersion = decoder_of(ServerVersion).decode(answer.body)
        return version

    def unserved(self, targets: Iterable[ObjectRef]) -> list[ObjectRef]:
        return [each for each in targets if self._find(each) is None]

    def get(self, target: ObjectRef) -> Manifest | None:
        try:
            found: Manifest = self._api.get(
                self._resource(target), target.name, target.namespace or None
            )
        except NotServed:
            return None
        return found

    def try_objects(
        self, manifests: Sequence[Manifest], *, is_forced: bool = False
    ) -> list[Manifest | Exception]:
        return in_groups(
            [partial(self._apply, each, is_forced=is_forced, is_trial=True) for each in manifests]
        )

    def may_write(self, targets: Sequence[ObjectRef]) -> list[ObjectRef]:
        return self._refused(targets, ("create", "patch"))

    def may_delete(self, targets: Sequence[ObjectRef]) -> list[ObjectRef]:
        """Objects that this user may not delete: the first of each resource and namespace."""
        return self._refused(targets, ("delete",))

    def is_namespaced(self, target: ObjectRef) -> bool | None:
        """None if the cluster does not serve its kind."""
        found = self._find(target)
        return None if found is None else found.is_namespaced

    def may_patch(self, targets: Sequence[ObjectRef], subresource: str = "") -> list[ObjectRef]:
        return self._refused(targets, ("patch",), subresource)

    def written(self, targets: Iterable[ObjectRef]) -> list[ObjectRef]:
        served = [each for each in targets if self._find(each) is not None]
        found = []
        for each, answer in zip(
            served, in_groups([partial(self.get, each) for each in served]), strict=True
        ):
            if isinstance(answer, Exception):
                raise answer
            if answer is not None and is_own(answer):
                found.append(each)
        return found

    def list_objects(self, kind: ObjectRef) -> list[Manifest]:
        resource = self._find(kind)
        return [] if resource is None else self._list(resource, None, kind)

    def members(self, kind: ObjectRef, selector: str) -> list[Manifest]:
        """All objects of the kind with these labels ("" = any), in its namespace; none if the
        cluster does not serve it.
        """
        resource = self._find(kind)
        if resource is None:
            return []
        query = {"labelSelector": selector} if selector else {}
        return self._list(resource, kind.namespace or None, kind, **query)

    def ending_objects(self, namespace: str) -> list[Manifest]:
        served = [
            each.resource
            for each in self._discovery().served
            if each.resource.is_namespaced and {"list", "delete"} <= set(each.verbs)
        ]
        answers = in_groups([partial(self._list_of, each, namespace) for each in served])
        return [
            obj
            for rows in answers
            if not isinstance(rows, Exception)  # a kind that may not be read names nothing
            for obj in rows
            if obj["metadata"].get("deletionTimestamp")
        ]

    def _refused(
        self, targets: Sequence[ObjectRef], verbs: Sequence[str], subresource: str = ""
    ) -> list[ObjectRef]:
        places: dict[tuple[str, str, str], ObjectRef] = {}
        for each in targets:
            resource = self._resource(each)
            places.setdefault((resource.group, resource.plural, each.namespace), each)
        questions = [(place, verb, subresource) for place in places for verb in verbs]
        answers = in_groups([partial(self._is_allowed, *each) for each in questions])
        refused = []
        for (place, _, _), answer in zip(questions, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            if not answer and places[place] not in refused:
                refused.append(places[place])
        return refused

    def put(self, manifest: Manifest, *, is_forced: bool = False) -> Manifest:
        return self._apply(manifest, is_forced=is_forced)

    def try_remove(self, targets: Sequence[ObjectRef]) -> list[Exception | None]:
        answers = in_groups([partial(self._remove, each, is_trial=True) for each in targets])
        return [each if isinstance(each, Exception) else None for each in answers]

    def remove(self, target: ObjectRef, *, is_foreground: bool = False) -> bool:
        return self._remove(target, is_foreground=is_foreground)

    def change(self, action: PatchObject) -> Refusal | None:
        request = object_request(action, self._resource(action.target))
        try:
            self._api.send(request)
        except ApiFailure as error:
            if outcome_of_failure(action, error).result is Result.GONE:
                return None
            return _refusal(error)
        return None

    def installation_namespaces(self) -> list[Manifest]:
        return list(self._list(NAMESPACES, None, labelSelector=INSTALLATION_LABEL))

    def inventory(self, first: str) -> Manifest | None:
        # A user who may write a ConfigMap of some namespace must not make an inventory: only
        # administrators label namespaces.
        labelled = _labelled_system(self.installation_namespaces())
        ahead = dict.fromkeys((first, SYSTEM_NAMESPACE))
        for namespace in ahead:
            found = self.get(inventory_ref(namespace)) if namespace in labelled else None
            if found is not None:
                return found
        others = sorted(labelled.difference(ahead))
        several = {each: self.get(inventory_ref(each)) for each in others}
        inventories = {name: each for name, each in several.items() if each is not None}
        if len(inventories) > 1:
            what = f"there are several installations: in namespaces {', '.join(inventories)}"
            hint = f"take the label off the wrong one: `kubectl label namespace NAME {_TAKE_OFF}`"
            raise UserError(what, hint)
        return next(iter(inventories.values()), None)

    def release(self, first: str, chart: str) -> Manifest | None:
        trusted = self.system_namespaces()
        ahead = [first] if first in trusted else []
        for namespace in dict.fromkeys((*ahead, *trusted)):
            found = self.get(release_ref(namespace, chart))
            if found is not None:
                return found
        return None

    def system_namespaces(self) -> list[str]:
        """The namespaces that may be those of an installation's system, the default first.

        Helm makes the release's namespace without a label, but the release has a namespace with
        one, of the pods that use their node, and Helm writes there in which the release is.
        """
        spaces = self.installation_namespaces()
        named = {
            str((each["metadata"].get("annotations") or {}).get(HELM_NAMESPACE, ""))
            for each in spaces
        }
        found = {*_labelled_system(spaces), *filter(None, named)}
        return sorted(found, key=lambda name: (name != SYSTEM_NAMESPACE, name))

    def helm_releases(self, first: str, chart: str) -> list[str]:
        found = self.release(first, chart)
        return [] if found is None else [release_name(found)]

    def gated_pods(self, gate: str) -> list[ObjectRef]:
        return [
            _pod_ref(each)
            for each in self._list(PODS, None, fieldSelector=_UNBOUND)
            if any(one["name"] == gate for one in each["spec"].get("schedulingGates") or ())
        ]

    def unscheduled_pods(self, scheduler: str) -> list[ObjectRef]:
        selector = f"{_UNBOUND},spec.schedulerName={scheduler}"
        return [_pod_ref(each) for each in self._list(PODS, None, fieldSelector=selector)]

    def open_gate(self, pod: ObjectRef, gate: str) -> Refusal | None:
        found = self.get(pod)
        gates = [each["name"] for each in (found or {}).get("spec", {}).get("schedulingGates", ())]
        if found is None or found["metadata"]["uid"] != pod.uid or gate not in gates:
            return None
        place = f"/spec/schedulingGates/{gates.index(gate)}"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": pod.uid},
            {"op": "test", "path": f"{place}/name", "value": gate},
            {"op": "remove", "path": place},
        ]
        try:
            self._api.send(patch_request(PODS, pod.name, patch, pod.namespace, kind="json"))
        except ApiFailure as error:
            return _refusal(error)
        return None

    def _remove(
        self, target: ObjectRef, *, is_foreground: bool = False, is_trial: bool = False
    ) -> bool:
        request = delete_request(
            self._resource(target),
            target.name,
            target.namespace or None,
            propagation="Foreground" if is_foreground else "Background",
            is_trial=is_trial,
        )
        try:
            self._send(request)
        except NotServed:
            return False
        except Conflict:  # a namespace that is being deleted already
            pass
        return True

    def _apply(
        self, manifest: Manifest, *, is_forced: bool = False, is_trial: bool = False
    ) -> Manifest:
        target = object_ref(manifest)
        request = patch_request(
            self._resource(target),
            target.name,
            manifest,
            target.namespace or None,
            kind="apply",
            field_manager=self._field_manager,
            force=is_forced,
        )
        path = with_query(
            request.path, dryRun="All" if is_trial else None, fieldValidation="Strict"
        )
        made: Manifest = self._send(structs.replace(request, path=path))
        return made

    def _is_allowed(self, place: tuple[str, str, str], verb: str, subresource: str) -> bool:
        group, plural, namespace = place
        attributes = {
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "verb": verb,
            "namespace": namespace,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        return bool(self._api.create(_REVIEWS, review)["status"]["allowed"])

    def _list_of(self, resource: Resource, namespace: str) -> list[dict[str, Any]]:
        api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
        return self._list(resource, namespace, ObjectRef(api_version, resource.kind, ""))

    def _list(
        self,
        resource: Resource,
        namespace: str | None,
        kind: ObjectRef | None = None,
        **query: str,
    ) -> list[dict[str, Any]]:
        """`kind`: objects get it, and its API version, which a list has only once."""
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            path = with_query(resource.path(namespace), limit=_PAGE, **{"continue": token}, **query)
            page = self._send(ApiRequest("list", "GET", path))
            found += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                break
        own = {} if kind is None else {"apiVersion": kind.api_version, "kind": kind.kind}
        return [{**each, **own} for each in found]

    def _send(self, request: ApiRequest) -> Any:
        return decoder_of(Any).decode(self._api.send(request).body)

    def _resource(self, target: ObjectRef) -> Resource:
        found = self._find(target)
        if found is None:
            self._discovered = None  # the kind may have been defined since
            found = self._find(target)
        if found is None:
            raise no_such_kind(target)
        return found

    def _find(self, target: ObjectRef) -> Resource | None:
        return known_resource(target) or known_resource(target, self._discovery())

    def _discovery(self) -> Discovery:
        with self._discovering:  # threads that ask at once need one discovery
            if self._discovered is None:
                self._discovered = self._api.discovery()
            return self._discovered


def _refusal(error: ApiFailure) -> Refusal:
    """Raises all that is no refusal of this change."""
    if error.status not in _FOR_A_MOMENT:
        raise error
    return Refusal(error.message)


def is_own(found: Manifest) -> bool:
    """Whether `put` has written the object."""
    entries = found["metadata"].get("managedFields") or ()
    return any(each.get("manager") == FIELD_MANAGER for each in entries)


def _labelled_system(labelled: Iterable[Manifest]) -> set[str]:
    """Of labelled namespaces those of pods that need nothing of their node."""
    return {
        str(each["metadata"]["name"])
        for each in labelled
        if each["metadata"]["labels"][INSTALLATION_LABEL] == SYSTEM_PART
    }


def _pod_ref(pod: Manifest) -> ObjectRef:
    meta = pod["metadata"]
    return ObjectRef("v1", "Pod", meta["name"], meta["namespace"], meta["uid"])


def in_groups(calls: Sequence[Callable[[], Answer]]) -> list[Answer | Exception]:
    """As `in_parallel`, at most eight at a time."""
    return [
        each
        for start in range(0, len(calls), _AT_ONCE)
        for each in in_parallel(calls[start : start + _AT_ONCE])
    ]
