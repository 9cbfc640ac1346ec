"""What a release of the Helm chart has beside an installation's objects: the pod of `helm test`,
the Job before `helm uninstall`, and an annotation on what stays when the release goes.

`tools/helm_chart.py` makes a template of each function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART, Installation
from fairlead.model.installed.chart_values import ChartValues
from fairlead.wire.installation import people_parts
from fairlead.wire.installation.components import COMPONENTS, component_objects, every_object
from fairlead.wire.installation.inventory import inventory_ref
from fairlead.wire.installation.object_parts import (
    KUBE_SYSTEM,
    LOCKED,
    NON_ROOT,
    Object,
    PartPlace,
    account,
    cluster_rights,
    grant,
    labels,
    pull_secrets,
    requests,
    rights,
)
from fairlead.wire.installation.release import release_ref
from fairlead.wire.names import PEOPLE_GROUP, USERS
from fairlead.wire.people.bindings import RBAC

HOOK: Final = "helm.sh/hook"
KEPT: Final = ("helm.sh/resource-policy", "keep")
"""The annotation of an object that stays when its release goes."""
FIRST_ADMINISTRATOR: Final = "first-administrator"
"""The template that is left out where the cluster has an administrator (`tools/helm_chart`)."""
_OF_USERS: Final = ("CustomResourceDefinition", "Namespace")
"""Kinds of objects that hold what users wrote."""
_DOCTOR: Final = "fairlead-doctor"
_END: Final = "fairlead-uninstall"
_CHECK: Final = "fairlead-upgrade"
_ENDED_GROUPS: Final = ("admissionregistration.k8s.io", "apps")
"""Of admission objects and workloads."""
_HELD: Final = (
    ("", "pods"),
    ("batch", "jobs"),
    ("kubeflow.org", "mpijobs pytorchjobs tfjobs"),
    ("ray.io", "rayjobs"),
)
"""What quota holds back."""


def definition(chosen: ChartValues) -> list[Object]:
    """The definition of the quota tree, if the release has one."""
    if not chosen.crds.enabled:
        return []
    return [_kept(each, chosen) for each in component_objects("quota-crd", chosen)]


def people(chosen: ChartValues) -> list[Object]:
    """Roles of users; their namespace and the definitions of users and groups, if the release has
    them.
    """
    found = component_objects("people", chosen)
    left_out = set() if chosen.crds.enabled else {"CustomResourceDefinition"}
    if not chosen.users_namespace.create:
        left_out.add("Namespace")
    return [
        _kept(each, chosen) if each["kind"] in _OF_USERS else each
        for each in found
        if each["kind"] not in left_out
    ]


def _kept(obj: Object, chosen: ChartValues) -> Object:
    """The object; with the annotation by which Helm leaves it, if what users wrote is kept."""
    if not chosen.crds.keep:
        return obj
    meta = obj["metadata"]
    name, value = KEPT
    return {
        **obj,
        "metadata": {**meta, "annotations": {**meta.get("annotations", {}), name: value}},
    }


def namespaces(chosen: ChartValues) -> list[Object]:
    """Namespaces without the release's own, which Helm finds or makes before all objects."""
    return [
        each
        for each in component_objects("namespace", chosen)
        if each["metadata"]["labels"][INSTALLATION_LABEL] != SYSTEM_PART
    ]


def console_access(chosen: ChartValues) -> list[Object]:
    """What leads to the console; the volume of its store stays when the release goes."""
    name, value = KEPT
    return [
        {**each, "metadata": {**each["metadata"], "annotations": {name: value}}}
        if each["kind"] == "PersistentVolumeClaim"
        else each
        for each in component_objects("console-access", chosen)
    ]


def doctor(chosen: ChartValues) -> list[Object]:
    """`helm test`: a pod that runs `fairlead doctor`, with an account that reads."""
    place = PartPlace(_DOCTOR, chosen.namespace)
    container = {
        "name": "doctor",
        "image": chosen.image,
        "command": ["fairlead", "doctor"],
        **requests("100m", "128Mi"),
        "securityContext": LOCKED,
    }
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**place.meta, "labels": labels(_DOCTOR)},
        "spec": _hook_pod(_DOCTOR, container, chosen),
    }
    everywhere = [
        *_readable(),
        *_findable(),
        grant("", "nodes pods services", "list"),
        grant("apps", "deployments daemonsets", "list"),
        grant("coordination.k8s.io", "leases", "list"),
    ]
    # kube-schedulers' configurations, in which extenders are named.
    others = [grant("", "configmaps", "list")]
    return _hooks(
        "test",
        [
            account(place),
            *cluster_rights(_DOCTOR, place, everywhere),
            *rights(_DOCTOR, place, KUBE_SYSTEM, others),
            pod,
        ],
    )


def uninstall(chosen: ChartValues) -> list[Object]:
    """Before `helm uninstall`: a Job ends admission and workloads. It lets go what waits for them,
    or refuses while there is any.
    """
    place = PartPlace(_END, chosen.namespace)
    is_releasing = chosen.uninstall.release_waiting
    flags = ["--release-waiting"] if is_releasing else []
    job = _job(_END, ["uninstall", "--helm-hook", *flags], chosen)
    everywhere = [
        *_endable(),
        *_findable(),
        *(grant(group, kinds, "list") for group, kinds in _HELD),
        *(grant(group, kinds, "get patch") for group, kinds in _HELD if is_releasing),
        *(_withdrawing() if chosen.parts.people else ()),
    ]
    return _hooks(
        "pre-delete",
        [
            account(place),
            *cluster_rights(_END, place, everywhere),
            job,
        ],
    )


def upgrade(chosen: ChartValues) -> list[Object]:
    """Before `helm upgrade` and `helm rollback`: a Job refuses what would be lost by it."""
    place = PartPlace(_CHECK, chosen.namespace)
    parts = chosen.parts
    has_scheduler = parts.gpu_sharing and chosen.scheduler == "own"
    job = _job(
        _CHECK,
        [
            "upgrade",
            "--helm-hook",
            *(["--set=parts.quota=false"] if not parts.quota else []),
            *(["--set=parts.people=false"] if not parts.people else []),
            *(["--set=parts.gpuSharing=false"] if not has_scheduler else []),
        ],
        chosen,
    )
    is_ending = not (parts.quota and has_scheduler)
    everywhere = [
        *_findable(),
        *_comparable(),
        *(grant(group, kinds, "list") for group, kinds in _HELD if is_ending),
    ]
    return _hooks(
        "pre-upgrade,pre-rollback",
        [account(place), *cluster_rights(_CHECK, place, everywhere), job],
    )


def first_administrator(chosen: ChartValues) -> list[Object]:
    """A hook: no object of the release, so no upgrade changes it and no removal deletes it. After
    the event the definition of users is served.
    """
    if not (chosen.parts.people and chosen.first_administrator and chosen.crds.enabled):
        return []
    first = people_parts.first_administrator()
    hook = {HOOK: "post-install,post-upgrade", "helm.sh/hook-delete-policy": "hook-failed"}
    return [{**first, "metadata": {**first["metadata"], "annotations": hook}}]


def _withdrawing() -> list[Object]:
    """Rights to end what the people controller made. They are cluster-wide, so that the release
    can be removed where the users namespace is gone.
    """
    return [
        grant(RBAC, "rolebindings clusterrolebindings", "list delete"),
        grant("", "serviceaccounts", "list delete"),
        grant(PEOPLE_GROUP, USERS, "list patch"),
        grant(PEOPLE_GROUP, f"{USERS}/status", "patch"),
    ]


def _job(name: str, words: list[str], chosen: ChartValues) -> Object:
    """A Job that runs `fairlead` once."""
    container = {
        "name": name.removeprefix("fairlead-"),
        "image": chosen.image,
        "command": ["fairlead", *words],
        **requests("100m", "128Mi"),
        "securityContext": LOCKED,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**PartPlace(name, chosen.namespace).meta, "labels": labels(name)},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels(name)},
                "spec": _hook_pod(name, container, chosen),
            },
        },
    }


def _hook_pod(name: str, container: Object, chosen: ChartValues) -> Object:
    return {
        "serviceAccountName": name,
        **pull_secrets(chosen),
        "restartPolicy": "Never",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": NON_ROOT,
        "containers": [container],
    }


def _findable() -> list[Object]:
    """Rights to find the record of the release, or an inventory, in whatever namespace."""
    names = f"{inventory_ref('').name} {release_ref('').name}"
    return [grant("", "configmaps", "get", names), grant("", "namespaces", "list")]


def _endable() -> list[Object]:
    """Rights to delete admission objects and workloads that an installation may have, by name."""
    names: dict[tuple[str, str], set[str]] = {}
    for each in every_object(Installation()):
        group = each["apiVersion"].rpartition("/")[0]
        if group in _ENDED_GROUPS:
            names.setdefault((group, plural(each["kind"])), set()).add(each["metadata"]["name"])
    return [
        grant(group, kind, "get delete", " ".join(sorted(found)))
        for (group, kind), found in sorted(names.items())
    ]


def _comparable() -> list[Object]:
    """Rights to read the objects of the installation's definitions, and which parts exist."""
    every = every_object(Installation())
    definitions = [each for each in every if each["kind"] == "CustomResourceDefinition"]
    kinds = sorted((each["spec"]["group"], each["spec"]["names"]["plural"]) for each in definitions)
    return [
        grant("apiextensions.k8s.io", "customresourcedefinitions", "get", _names(definitions)),
        grant("apps", "deployments", "get", _names(e for e in every if e["kind"] == "Deployment")),
        *(grant(group, kind, "list") for group, kind in kinds),
    ]


def _names(objects: Iterable[Object]) -> str:
    return " ".join(sorted(each["metadata"]["name"] for each in objects))


def _readable() -> list[Object]:
    """Rights to read the objects of an installation. Of ConfigMaps only its own, by their names."""
    kinds: dict[str, set[str]] = {}
    names = set()
    for each in every_object(Installation()):
        if each["kind"] == "ConfigMap":
            names.add(each["metadata"]["name"])
        else:
            group = each["apiVersion"].rpartition("/")[0]
            kinds.setdefault(group, set()).add(plural(each["kind"]))
    return [
        grant("", "configmaps", "get", " ".join(sorted(names))),
        *(grant(group, " ".join(sorted(found)), "get") for group, found in sorted(kinds.items())),
    ]


def plural(kind: str) -> str:
    """
    >>> plural("ValidatingAdmissionPolicy")
    'validatingadmissionpolicies'
    """
    return re.sub("y$", "ie", kind.lower()) + "s"


def _hooks(event: str, objects: list[Object]) -> list[Object]:
    """The objects exist while Helm handles the event; Helm prints what their pods print."""
    annotations = {
        HOOK: event,
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded,hook-failed",
    }
    printed = {"helm.sh/hook-output-log-policy": "hook-succeeded,hook-failed"}
    return [
        {
            **each,
            "metadata": {
                **each["metadata"],
                "annotations": {**annotations, **(printed if each["kind"] in _RUN else {})},
            },
        }
        for each in objects
    ]


_RUN: Final = ("Pod", "Job")

CHART_COMPONENTS: Final[dict[str, Callable[[ChartValues], list[Object]]]] = {
    **{name: partial(component_objects, name) for name in COMPONENTS},
    "namespace": namespaces,
    "quota-crd": definition,
    "people": people,
    "console-access": console_access,
    FIRST_ADMINISTRATOR: first_administrator,
    "doctor": doctor,
    "upgrade": upgrade,
    "uninstall": uninstall,
}
"""The objects of each template, by its name without `.yaml`."""


def chart_objects(chosen: ChartValues) -> list[Object]:
    """All objects of a release, but for its record."""
    return [each for objects in CHART_COMPONENTS.values() for each in objects(chosen)]
