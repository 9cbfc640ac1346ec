"""Reads what the plan of a component is made from. Blocking; nothing is written.

What may not be read is reported as `Unread` and does not prevent reading the rest.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from fairlead.edge.helm.helm_blocking import HelmBlocking
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.queries.installation_facts import read_server, trial_result
from fairlead.edge.queries.installation_target import KubeInstallationTarget, in_groups
from fairlead.errors import FairleadError, OutsideError
from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.installed.component_facts import (
    LiveObject,
    PlanFacts,
    TriedObject,
    WantedComponent,
)
from fairlead.model.installed.facts import Mismatch, Unread
from fairlead.model.operations.apply_set import (
    APPLY_MANAGER,
    PART_OF_LABEL,
    apply_set_id,
    component_inventory_ref,
)
from fairlead.model.operations.component import ComponentInventory
from fairlead.model.operations.operation import HelmRelease, HelmStep, OperationKind
from fairlead.wire.components.applied_fields import is_as_applied
from fairlead.wire.components.inventory import parse_component_inventory

Identity = tuple[str, str, str, str]
Result = TypeVar("Result")
_DEFINITION: Final = "CustomResourceDefinition"
_DEFINITIONS: Final = "apiextensions.k8s.io/v1"
_RECORD: Final = "helm.sh/release.v1"
"""The type of Secrets in which Helm keeps releases."""
_CLASSES: Final = ObjectRef("storage.k8s.io/v1", "StorageClass", "")
_INGRESSES: Final = ObjectRef("networking.k8s.io/v1", "Ingress", "")
_SERVICES: Final = ObjectRef("v1", "Service", "")
_LISTED: Final = 4
"""From this many objects of a kind in a namespace on they are read as a list."""
_PODS: Final = ObjectRef("v1", "Pod", "")
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


class PlanReading:
    """Reads for one plan. `environment`: in which the program `helm` is looked for."""

    def __init__(self, api: KubeBlocking, environment: Mapping[str, str]) -> None:
        self._api = api
        self._target = KubeInstallationTarget(api, APPLY_MANAGER)
        self._helm = HelmBlocking(api.connection, environment)

    def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        """See `ports.Helm.render`."""
        return self._helm.render(step)

    def placed(self, manifests: Iterable[Manifest], namespace: str) -> tuple[Manifest, ...]:
        """The objects; those of a namespaced kind that name no namespace are in this one."""
        given = list(manifests)
        scopes = {
            (each["spec"]["group"], each["spec"]["names"]["kind"]): each["spec"]["scope"]
            for each in given
            if each["kind"] == _DEFINITION
        }
        return tuple(self._placed(each, namespace, scopes) for each in given)

    def _placed(
        self, manifest: Manifest, namespace: str, scopes: Mapping[tuple[str, str], str]
    ) -> Manifest:
        ref = object_ref(manifest)
        if ref.namespace:
            return manifest
        is_namespaced = self._target.is_namespaced(ref)
        if is_namespaced is None:
            is_namespaced = scopes.get((ref.group_version[0], ref.kind)) == "Namespaced"
        if not is_namespaced:
            return manifest
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}

    def found(self, targets: Sequence[ObjectRef]) -> list[Manifest | None]:
        """The objects that exist. Raises OutsideError for one that may not be read."""
        return [_value(each) for each in in_groups([partial(self._get, each) for each in targets])]

    def facts(self, wanted: WantedComponent) -> PlanFacts:
        """Raises OutsideError if the API server does not answer."""
        has_helm = self._helm.is_there
        before = self._inventory(wanted)
        is_helms = has_helm and bool(wanted.release) and before is None
        release = self._helm.release(wanted.release, wanted.place) if is_helms else None
        is_removal = wanted.do is OperationKind.REMOVE
        tried = self._definitions(wanted) if is_removal else self._tried(wanted)
        members = self._members(before, release, tried)
        refs = [object_ref(each) for each in (members if is_removal else wanted.objects)]
        return PlanFacts(
            server=read_server(self._api, time.time),
            before=before,
            release=release,
            tried=tried,
            members=members,
            denied=_asked(partial(self._denied, wanted, refs, is_removal=is_removal)),
            namespace=_asked(partial(self._get, ObjectRef("v1", "Namespace", wanted.place))),
            storage_classes=_asked(self._classes),
            hosts=_asked(partial(self._hosts, wanted.objects)),
            node_ports=_asked(partial(self._ports, wanted.objects)),
            host_ports=_asked(partial(self._host_ports, wanted.objects)),
            live=_asked(partial(self._live, tried)) if is_removal else (),
            unserved=self._unserved(wanted.objects),
            has_helm=has_helm,
            helm_denied=self._helm_denied(wanted) if has_helm and wanted.chart else "",
        )

    def _get(self, target: ObjectRef) -> Manifest | None:
        """None, too, if its kind is not served."""
        if self._target.is_namespaced(target) is None:
            return None
        return self._target.get(target)

    def _helm_denied(self, wanted: WantedComponent) -> str:
        """Why Helm could not record a release, which is a Secret: admission may forbid what rights
        allow. Tried beside the inventories where the component has no namespace yet.
        """
        for place in (wanted.place, wanted.home):
            if self._get(ObjectRef("v1", "Namespace", place)) is None:
                continue
            meta = {"name": f"sh.helm.release.v1.{wanted.release}.trial", "namespace": place}
            trial = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": _RECORD}
            (answer,) = self._target.try_objects([trial])
            result = _result(answer)
            why = result.why if isinstance(result, Mismatch | Unread) else ""
            return why if "denied" in why else ""  # a missing right has a check of its own
        return ""

    def _inventory(self, wanted: WantedComponent) -> ComponentInventory | None:
        id = wanted.component.id
        found = self._get(component_inventory_ref(id, wanted.home))
        return None if found is None else parse_component_inventory(found, id, wanted.home)

    def _tried(self, wanted: WantedComponent) -> tuple[TriedObject, ...]:
        """An object that is as it was applied would not change, so the API server is not asked."""
        objects = wanted.objects
        found = self._found_objects(wanted)
        # Helm's objects are Helm's; definitions are applied by Fairlead.
        helms = {id(each) for each in objects if wanted.chart and each["kind"] != _DEFINITION}
        results: dict[int, Manifest | Mismatch | Unread] = {
            id(each): seen
            for each, seen in zip(objects, found, strict=True)
            if isinstance(seen, dict)
            and id(each) not in helms
            and is_as_applied(each, seen, APPLY_MANAGER)
        }
        asked = [each for each in objects if id(each) not in results]
        later = self._later(asked)
        tried = [each for each in asked if id(each) not in later]
        forced = [id(each) in helms for each in tried]
        for is_forced in (False, True):
            some = [each for each, one in zip(tried, forced, strict=True) if one is is_forced]
            answers = self._target.try_objects(some, is_forced=is_forced)
            for each, answer in zip(some, answers, strict=True):
                results[id(each)] = _result(answer)
        return tuple(
            TriedObject(each, seen, results.get(id(each)))
            for each, seen in zip(objects, found, strict=True)
        )

    def _found_objects(self, wanted: WantedComponent) -> list[Manifest | Unread | None]:
        """As they are. Members of the set are read in one list of each kind."""
        refs = [object_ref(each) for each in wanted.objects]
        listed = {} if wanted.chart else self._listed_members(wanted, refs)
        rest = [each for each in refs if each.identity not in listed]
        calls = [partial(_asked, partial(self._get, each)) for each in rest]
        read = dict(zip((each.identity for each in rest), in_groups(calls), strict=True))
        return [_value({**read, **listed}[each.identity]) for each in refs]

    def _listed_members(
        self, wanted: WantedComponent, refs: Sequence[ObjectRef]
    ) -> dict[Identity, Manifest]:
        """What has the label of the set, of kinds with several objects in a namespace; {} of kinds
        that may not be listed, whose objects are read one by one.
        """
        counts = Counter((each.api_version, each.kind, each.namespace) for each in refs)
        label = f"{PART_OF_LABEL}={apply_set_id(wanted.component.id, wanted.home)}"
        found: dict[Identity, Manifest] = {}
        for (version, kind, namespace), count in counts.items():
            if count >= _LISTED:
                with contextlib.suppress(OutsideError):
                    members = self._target.members(ObjectRef(version, kind, "", namespace), label)
                    found |= {object_ref(each).identity: each for each in members}
        return found

    def _later(self, objects: Sequence[Manifest]) -> set[int]:
        """Objects whose kind is not served, or whose namespace does not exist."""
        spaces = {object_ref(each).namespace for each in objects} - {""}
        lacking = {each for each in spaces if self._get(ObjectRef("v1", "Namespace", each)) is None}
        unserved = {each.identity for each in self._target.unserved(map(object_ref, objects))}
        return {
            id(each)
            for each in objects
            if object_ref(each).namespace in lacking or object_ref(each).identity in unserved
        }

    def _members(
        self,
        before: ComponentInventory | None,
        release: HelmRelease | None,
        tried: Sequence[TriedObject],
    ) -> tuple[Manifest, ...]:
        """Wanted objects have been read already."""
        if release is not None:
            written = self.placed(self._helm.written(release), release.namespace)
            refs = [object_ref(each) for each in written]
        else:
            refs = list(before.objects) if before else []
        known = {
            object_ref(each.manifest).identity: each.found
            for each in tried
            if not isinstance(each.found, Unread)
        }
        others = [each for each in refs if each.identity not in known]
        read = dict(zip((each.identity for each in others), self.found(others), strict=True))
        every = {**known, **read}
        found = (every[each.identity] for each in refs)
        return tuple(each for each in found if each is not None)

    def _definitions(self, wanted: WantedComponent) -> tuple[TriedObject, ...]:
        refs = [ObjectRef(_DEFINITIONS, _DEFINITION, name) for name in wanted.component.definitions]
        return tuple(TriedObject(each, each) for each in self.found(refs) if each is not None)

    def _denied(
        self, wanted: WantedComponent, refs: Sequence[ObjectRef], *, is_removal: bool
    ) -> tuple[str, ...]:
        """Kinds that are not served yet cannot be asked about."""
        record = component_inventory_ref(wanted.component.id, wanted.home)
        unserved = {each.identity for each in self._target.unserved(refs)}
        asked = [record, *(each for each in refs if each.identity not in unserved)]
        ask = self._target.may_delete if is_removal else self._target.may_write
        return tuple(
            f"{each.kind} {f'in {each.namespace}' if each.namespace else ''}".rstrip()
            for each in ask(asked)
        )

    def _classes(self) -> dict[str, bool]:
        return {
            each["metadata"]["name"]: (each["metadata"].get("annotations") or {}).get(
                _DEFAULT_CLASS
            )
            == "true"
            for each in self._target.list_objects(_CLASSES)
        }

    def _hosts(self, objects: Iterable[Any]) -> dict[str, str]:
        """Who has host names of Ingresses; asked only if the component has an Ingress."""
        own = {object_ref(each).identity for each in objects if each["kind"] == "Ingress"}
        others = self._target.list_objects(_INGRESSES) if own else []
        return {
            str(rule["host"]): object_ref(each).title
            for each in others
            if object_ref(each).identity not in own
            for rule in (each.get("spec") or {}).get("rules") or ()
            if rule.get("host")
        }

    def _ports(self, objects: Iterable[Any]) -> dict[int, str]:
        """Who has ports of nodes; asked only if the component names one."""
        own = {
            object_ref(each).identity
            for each in objects
            if each["kind"] == "Service"
            and any(port.get("nodePort") for port in (each.get("spec") or {}).get("ports") or ())
        }
        others = self._target.list_objects(_SERVICES) if own else []
        return {
            int(port["nodePort"]): object_ref(each).title
            for each in others
            if object_ref(each).identity not in own
            for port in (each.get("spec") or {}).get("ports") or ()
            if port.get("nodePort")
        }

    def _host_ports(self, objects: Sequence[Any]) -> dict[tuple[int, str], str]:
        """Pods of others that have a port of their node; asked only if the component names one."""
        if not any(True for pod in _templates(objects) for _ in _ports_of(pod.get("spec") or {})):
            return {}
        own = [
            ((each["metadata"].get("namespace") or ""), labels)
            for each in objects
            for pod in _templates([each])
            if (labels := (pod.get("metadata") or {}).get("labels") or {})
        ]
        found: dict[tuple[int, str], str] = {}
        for pod in self._target.list_objects(_PODS):
            meta, labels = pod["metadata"], pod["metadata"].get("labels") or {}
            is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
            is_own = any(
                meta["namespace"] == namespace and wanted.items() <= labels.items()
                for namespace, wanted in own
            )
            if not is_over and not is_own:
                for port in _ports_of(pod["spec"]):
                    found.setdefault(port, object_ref(pod).title)
        return found

    def _live(self, definitions: Iterable[TriedObject]) -> tuple[LiveObject, ...]:
        return tuple(
            LiveObject(
                name,
                object_ref(each).title,
                tuple(each["metadata"].get("finalizers") or ()),
            )
            for name, kind in map(_served_kind, definitions)
            for each in self._target.list_objects(kind)
        )

    def _unserved(self, objects: Sequence[Any]) -> tuple[str, ...]:
        """Kinds that neither the cluster serves nor the objects define, as `Kind.group`."""
        defined = {
            (each["spec"]["group"], each["spec"]["names"]["kind"])
            for each in objects
            if each["kind"] == _DEFINITION
        }
        lacking = self._target.unserved(map(object_ref, objects))
        return tuple(
            sorted(
                {
                    f"{each.kind}.{each.group_version[0]}"
                    for each in lacking
                    if (each.group_version[0], each.kind) not in defined
                }
            )
        )


def _templates(objects: Iterable[Any]) -> list[Any]:
    """The pod templates of workloads."""
    found = ((each.get("spec") or {}).get("template") for each in objects)
    return [each for each in found if isinstance(each, dict)]


def _ports_of(pod: Any) -> list[tuple[int, str]]:
    """The ports of its node that a pod opens."""
    return [
        (int(port["hostPort"]), str(port.get("protocol") or "TCP"))
        for container in pod.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def _served_kind(tried: TriedObject) -> tuple[str, ObjectRef]:
    """The name of a definition and its kind, in a version that is served."""
    found: Any = tried.found
    spec = found["spec"]
    version = next(each["name"] for each in spec["versions"] if each.get("served"))
    kind = ObjectRef(f"{spec['group']}/{version}", spec["names"]["kind"], "")
    return found["metadata"]["name"], kind


def _result(answer: Manifest | Exception) -> Manifest | Mismatch | Unread:
    if isinstance(answer, FairleadError) and not isinstance(answer, OutsideError):
        return Mismatch(answer.what)
    return trial_result(answer)


def _asked(call: Callable[[], Result]) -> Result | Unread:
    try:
        return call()
    except OutsideError as error:
        return Unread(error.what)


def _value(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer
