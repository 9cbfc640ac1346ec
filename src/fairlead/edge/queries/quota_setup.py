"""Reads how quota is installed, for one command. For built-in quota, pods are tried in a dry run.

Blocking. What may not be read is reported, and does not prevent reading the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import Struct

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.resource import DEPLOYMENTS, LEASES, NAMESPACES, PODS, Resource
from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.edge.queries.installed import own_namespace, read_installed
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.model.installation import OwnAccounts
from fairlead.model.keys import LABEL_QUOTA, LABEL_QUOTA_NAME, QUOTA_ENFORCED, QUOTA_GATE
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.setup import BuiltInQuota, QuotaSetup
from fairlead.settings import QUOTA_LEASE
from fairlead.wire.installation.inventory import Inventory
from fairlead.wire.kube.budgets import WireNamespace, parse_namespace
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.objects import WireMeta
from fairlead.wire.kube.time import parse_time
from fairlead.wire.names import QUOTA_GROUP, QUOTA_PLURAL, QUOTA_TREE_NAMESPACE

CONTROLLER: Final = "fairlead-quota-controller"
GATE: Final = "fairlead-quota-gate"
GUARD: Final = "fairlead-quota-guard"
_WEBHOOKS: Final = "fairlead-quota"


def _admission(kind: str, plural: str) -> Resource:
    return Resource("admissionregistration.k8s.io", "v1", plural, is_namespaced=False, kind=kind)


_OBJECTS: Final = (
    (_admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies"), GATE),
    (_admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"), GATE),
    (_admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies"), GUARD),
    (_admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"), GUARD),
)
_CONFIGURATIONS: Final = (
    _admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    _admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
)
_REVIEWS: Final = Resource(
    "authorization.k8s.io",
    "v1",
    "subjectaccessreviews",
    is_namespaced=False,
    kind="SubjectAccessReview",
)
_RIGHTS: Final = (
    ("list", "", "pods", ""),
    ("patch", "", "pods", ""),
    ("patch", "", "pods/status", ""),
    ("create", "", "pods/eviction", ""),
    ("patch", "", "namespaces", ""),
    ("list", "policy", "poddisruptionbudgets", ""),
    ("patch", "batch", "jobs", ""),
    ("create", "", "events", ""),
    ("list", QUOTA_GROUP, QUOTA_PLURAL, QUOTA_TREE_NAMESPACE),
    ("patch", QUOTA_GROUP, f"{QUOTA_PLURAL}/status", QUOTA_TREE_NAMESPACE),
)
"""Rights that the controller needs to admit or evict: verb, group, resource, namespace or "".

And its Lease, in its own namespace.
"""
Asked = TypeVar("Asked")


class _WireNamed(Struct, gc=False):
    metadata: WireMeta


def read_setup(api: KubeBlocking) -> QuotaSetup:
    """The installation. Raises OutsideError when the API server does not answer at all."""
    unasked: dict[str, str] = {}
    target = KubeInstallationTarget(api)
    installed = _installed(target)
    own = own_namespace(target) if installed is None else installed.namespace
    asked = (*_RIGHTS, ("update", "coordination.k8s.io", "leases", own))

    def found_or(what: str, answer: Asked | Exception, otherwise: Asked) -> Asked:
        if isinstance(answer, OutsideError):
            unasked[what] = answer.what
            return otherwise
        if isinstance(answer, Exception):
            raise answer
        return answer

    calls: list[Callable[[], Any]] = [
        partial(_is_there, api, resource, name) for resource, name in _OBJECTS
    ]
    calls += [partial(_webhooks, api, resource) for resource in _CONFIGURATIONS]
    calls += [
        partial(_found, api, LEASES, QUOTA_LEASE, own),
        partial(_found, api, DEPLOYMENTS, CONTROLLER, own),
    ]
    calls += [partial(_may, api, own, *right) for right in asked]
    answers = iter(in_parallel(calls))
    keys = [f"{resource.kind}/{name}" for resource, name in _OBJECTS]
    there = {key: found_or(key, next(answers), True) for key in keys}
    webhooks = [
        name for resource in _CONFIGURATIONS for name in found_or(resource.kind, next(answers), [])
    ]
    lease = found_or("Lease", next(answers), None)
    deployment = found_or("Deployment", next(answers), None)
    rights = {_right(*right): found_or("rights", next(answers), True) for right in asked}
    spec = (lease or {}).get("spec") or {}
    return QuotaSetup(
        missing=tuple(key for key, is_there in there.items() if not is_there),
        webhooks=tuple(webhooks),
        holder=spec.get("holderIdentity") or "",
        renewed_at=parse_time(spec["renewTime"]) if spec.get("renewTime") else 0.0,
        lease_seconds=spec.get("leaseDurationSeconds") or 0,
        ready=None
        if deployment is None
        else (deployment.get("status") or {}).get("readyReplicas") or 0,
        denied=tuple(right for right, may in rights.items() if not may),
        unasked=unasked,
        namespace=own,
        release=None if installed is None else installed.release,
        is_part=installed is None or _has_controller(installed),
    )


def _installed(target: KubeInstallationTarget) -> Inventory | None:
    try:
        return read_installed(target)
    except OutsideError:  # the namespace's label is enough; what else is wrong, `doctor` prints
        return None


def _has_controller(installed: Inventory) -> bool:
    return any((each.kind, each.name) == ("Deployment", CONTROLLER) for each in installed.objects)


def _name(wire: _WireNamed) -> str:
    return wire.metadata.name or ""


def read_built_in(api: KubeBlocking) -> BuiltInQuota:
    """The result of trial pods. Raises OutsideError when the API server does not answer at all."""
    try:
        rows: Iterable[Namespace] = api.list_all(
            ItemReader(NAMESPACES, JsonForm(WireNamespace, parse_namespace))
        ).rows.values()
        spaces = sorted(
            space.name for space in rows if space.labels.get(LABEL_QUOTA) == QUOTA_ENFORCED
        )
    except Forbidden as error:
        return BuiltInQuota(unasked=error.what)
    if not spaces:
        return BuiltInQuota(unasked="no namespace is enforced, so no pod could be tried")
    try:
        made = api.create(PODS, _tried({}), spaces[0], dry_run=True)
    except Forbidden as error:
        if GUARD in error.what:  # the guard refuses a pod without the gate
            return BuiltInQuota(spaces[0], has_gate=False, is_guarded=True)
        return BuiltInQuota(spaces[0], unasked=error.what)
    gates = [each.get("name") for each in (made.get("spec") or {}).get("schedulingGates") or ()]
    try:
        api.create(
            PODS,
            _tried({LABEL_QUOTA_NAME: f"not-the-leaf-of-{spaces[0]}"}),
            spaces[0],
            dry_run=True,
        )
    except Forbidden as error:
        if GUARD not in error.what:
            return BuiltInQuota(spaces[0], QUOTA_GATE in gates, unasked=error.what)
        return BuiltInQuota(spaces[0], QUOTA_GATE in gates, is_guarded=True)
    return BuiltInQuota(spaces[0], QUOTA_GATE in gates, is_guarded=False)


def _tried(labels: dict[str, str]) -> dict[str, Any]:
    """A minimal pod."""
    metadata = {"name": "fairlead-quota-doctor", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "main", "image": "tried"}]},
    }


def _is_there(api: KubeBlocking, resource: Resource, name: str) -> bool:
    """Whether the object exists; False also if its kind is not served."""
    try:
        api.get(resource, name)
    except NotFound:
        return False
    return True


def _found(api: KubeBlocking, resource: Resource, name: str, namespace: str) -> Any:
    try:
        return api.get(resource, name, namespace)
    except NotFound:
        return None


def _webhooks(api: KubeBlocking, resource: Resource) -> list[str]:
    reader = ItemReader(resource, JsonForm(_WireNamed, _name))
    return sorted(
        f"{resource.kind}/{name}"
        for name in api.list_all(reader).rows.values()
        if name.startswith(_WEBHOOKS)
    )


def _may(api: KubeBlocking, own: str, verb: str, group: str, resource: str, namespace: str) -> bool:
    plural, _, part = resource.partition("/")
    asked = {
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": part,
        "namespace": namespace,
    }
    if plural == "leases":
        asked["name"] = QUOTA_LEASE
    account = OwnAccounts(own).quota_controller
    groups = [
        "system:serviceaccounts",
        f"system:serviceaccounts:{own}",
        "system:authenticated",
    ]
    spec = {
        "user": account,
        "groups": groups,
        "resourceAttributes": {key: value for key, value in asked.items() if value},
    }
    review = api.create(
        _REVIEWS,
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
    )
    return bool((review.get("status") or {}).get("allowed"))


def _right(verb: str, group: str, resource: str, namespace: str) -> str:
    return (
        f"{verb} {resource}{f'.{group}' if group else ''}{f' in {namespace}' if namespace else ''}"
    )
