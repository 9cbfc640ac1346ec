"""What the API server fills in that the writer left out, and when the generation grows.

Defaults never overwrite. They are those that programs and `kubectl describe` read; the rest of the
real server's list is left out.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from fairlead_sim.objects import resources as served
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.validation import rbac_objects
from fairlead_sim.validation.custom import with_defaults as custom_resource_definition
from fairlead_sim.validation.stored_rules import first_status, stored_defaults


def is_new_generation(ref: ResourceKind, old: Object, new: Object) -> bool:
    """Whether the writer's wish changed: the spec, or for a Deployment also the annotations (a
    rollout restart is one).
    """
    if ref is served.DEPLOYMENTS and _wished_annotations(old) != _wished_annotations(new):
        return True
    if ref.is_custom:
        own = ("metadata", "status") if "status" in ref.subresources else ("metadata",)
        return any(old.get(key) != new.get(key) for key in {**old, **new} if key not in own)
    if "spec" not in new:
        return any(old.get(key) != new.get(key) for key in {**old, **new} if key != "metadata")
    return bool(old.get("spec") != new.get("spec"))


def _wished_annotations(obj: Object) -> Object:
    """Without those of the controller, who writes them through the door of the status."""
    held = obj["metadata"].get("annotations") or {}
    return {
        key: value for key, value in held.items() if not key.startswith("deployment.kubernetes.io/")
    }


def with_defaults(ref: ResourceKind, new: Object) -> Object:
    """`new` with the defaults of its kind; the same object when nothing was missing."""
    fill = _DEFAULTS.get(ref)
    return fill(new) if fill else stored_defaults(ref, new)


def with_decoded_defaults(ref: ResourceKind, new: Object) -> Object:
    """`new` with the defaults that a server fills in while it reads a body.

    What admission and the kind itself add later has no writer: of a pod its account, priority and
    tolerations, of a namespace its finalizer.
    """
    if ref is served.PODS:
        spec = _with_all_requests(_template_spec(new.get("spec") or {}))
        return {**new, "spec": _filled(spec, enableServiceLinks=True)}
    if ref is served.NAMESPACES:
        if not new["metadata"].get("name"):
            return new
        filled = _namespace(new)
        rest = {key: value for key, value in filled.items() if key != "spec"}
        return {**rest, "spec": new["spec"]} if "spec" in new else rest
    return with_defaults(ref, new)


def new_status(ref: ResourceKind, obj: Object) -> Object:
    """A fresh object under its first status: a writer's own counts only for nodes (a kubelet
    registers itself with one).
    """
    if ref is served.PODS:
        return {**obj, "status": {"phase": "Pending", "qosClass": qos_class(obj["spec"])}}
    if ref is served.NAMESPACES:
        return {**obj, "status": {"phase": "Active"}}
    if ref in (served.PERSISTENT_VOLUME_CLAIMS, served.PERSISTENT_VOLUMES):
        return {**obj, "status": {"phase": "Pending"}}
    if ref is served.SERVICES:
        return {**obj, "status": {"loadBalancer": {}}}
    if ref is served.CUSTOM_RESOURCE_DEFINITIONS:
        return custom_resource_definition(
            {**obj, "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None}}
        )
    if ref is served.NODES or "status" not in ref.subresources:
        return obj
    rest = {key: value for key, value in obj.items() if key != "status"}
    return rest if ref.is_custom else {**rest, "status": first_status(ref)}


def _filled(target: Mapping[str, Any] | None, **values: Any) -> Object:
    """`target` plus those values that it does not have."""
    return {**{key: value for key, value in values.items() if value is not None}, **(target or {})}


# --- pods -----------------------------------------------------------------------------------------

_EVICTION_TOLERATIONS = tuple(
    {
        "key": f"node.kubernetes.io/{condition}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for condition in ("not-ready", "unreachable")
)


def _container(container: Object) -> Object:
    image = str(container.get("image", ""))
    floating = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    filled = _filled(
        container,
        imagePullPolicy="Always" if floating and "@" not in image else "IfNotPresent",
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    if filled.get("ports"):
        filled["ports"] = [_filled(port, protocol="TCP") for port in filled["ports"]]
    return filled


def _with_requests(container: Object) -> Object:
    """What is limited and not asked for is asked for: in pods, not in templates of them."""
    resources = container["resources"]
    limits = resources.get("limits")
    return (
        {
            **container,
            "resources": {**resources, "requests": {**limits, **(resources.get("requests") or {})}},
        }
        if limits
        else container
    )


def _with_all_requests(spec: Object) -> Object:
    asking = {
        key: [_with_requests(container) for container in spec[key]]
        for key in ("containers", "initContainers")
        if isinstance(spec.get(key), list)
    }
    return {**spec, **asking}


def _template_spec(spec: Object) -> Object:
    """The defaults that a pod and a pod template share."""
    filled = _filled(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        schedulerName="default-scheduler",
        securityContext={},
        terminationGracePeriodSeconds=30,
    )
    for key in ("containers", "initContainers"):
        if isinstance(filled.get(key), list):
            filled[key] = [_container(container) for container in filled[key]]
    return filled


def _pod(obj: Object) -> Object:
    spec = _with_all_requests(_template_spec(obj.get("spec") or {}))
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec = _filled(
        spec,
        enableServiceLinks=True,
        preemptionPolicy="PreemptLowerPriority",
        priority=0,
        serviceAccountName=account,
        serviceAccount=account,
    )
    if spec.get("hostNetwork") is None:
        spec.pop("hostNetwork", None)
    tolerations = spec.get("tolerations") or []
    held = {toleration.get("key") for toleration in tolerations}
    missing = [toleration for toleration in _EVICTION_TOLERATIONS if toleration["key"] not in held]
    if missing and not any(not t.get("key") and t.get("operator") == "Exists" for t in tolerations):
        spec["tolerations"] = [*tolerations, *missing]
    return {**obj, "spec": spec}


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory alone (GPUs do not count)."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    resources = [container.get("resources") or {} for container in containers]
    watched = [
        {
            name: amount
            for name, amount in (entry.get(side) or {}).items()
            if name in ("cpu", "memory")
        }
        for entry in resources
        for side in ("requests", "limits")
    ]
    if not any(watched):
        return "BestEffort"
    requests, limits = watched[0::2], watched[1::2]
    guaranteed = all(
        len(limit) == 2 and request == limit
        for request, limit in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if guaranteed else "Burstable"


# --- controllers ----------------------------------------------------------------------------------


def _templated(spec: Object, **values: Any) -> Object:
    filled = _filled(spec, **values)
    template = filled.get("template")
    if isinstance(template, dict):
        filled["template"] = {
            **template,
            "metadata": template.get("metadata") or {},
            "spec": _template_spec(template.get("spec") or {}),
        }
    return filled


def _rollout(strategy: Object | None) -> Object:
    filled = _filled(strategy, type="RollingUpdate")
    if filled["type"] == "RollingUpdate":
        filled["rollingUpdate"] = _filled(
            filled.get("rollingUpdate"), maxSurge="25%", maxUnavailable="25%"
        )
    return filled


def _deployment(obj: Object) -> Object:
    spec = _templated(
        obj.get("spec") or {}, progressDeadlineSeconds=600, replicas=1, revisionHistoryLimit=10
    )
    return {**obj, "spec": {**spec, "strategy": _rollout(spec.get("strategy"))}}


def _replica_set(obj: Object) -> Object:
    return {**obj, "spec": _templated(obj.get("spec") or {}, replicas=1)}


def _stateful_set(obj: Object) -> Object:
    values = {
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "serviceName": "",
    }
    spec = _templated(obj.get("spec") or {}, **values)
    spec["updateStrategy"] = _filled(
        spec.get("updateStrategy") or {"rollingUpdate": {}}, type="RollingUpdate"
    )
    if spec["updateStrategy"]["type"] == "RollingUpdate" and isinstance(
        spec["updateStrategy"].get("rollingUpdate"), dict
    ):
        spec["updateStrategy"]["rollingUpdate"] = _filled(
            spec["updateStrategy"]["rollingUpdate"], partition=0
        )
    spec["persistentVolumeClaimRetentionPolicy"] = _filled(
        spec.get("persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain"
    )
    return {**obj, "spec": spec}


def _daemon_set(obj: Object) -> Object:
    spec = _templated(obj.get("spec") or {}, revisionHistoryLimit=10)
    spec["updateStrategy"] = _filled(spec.get("updateStrategy"), type="RollingUpdate")
    if spec["updateStrategy"]["type"] == "RollingUpdate":
        spec["updateStrategy"]["rollingUpdate"] = _filled(
            spec["updateStrategy"].get("rollingUpdate"), maxSurge=0, maxUnavailable=1
        )
    return {**obj, "spec": spec}


def _job_spec(spec: Object) -> Object:
    unset = "parallelism" not in spec and "completions" not in spec
    return _templated(
        spec,
        backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1,
        completionMode="NonIndexed",
        completions=1 if unset else None,
        manualSelector=False,
        parallelism=1,
        podReplacementPolicy="TerminatingOrFailed",
        suspend=False,
    )


def _job(obj: Object) -> Object:
    """A Job selects its pods by its own uid, so that Jobs of the same name share no pods."""
    spec = _job_spec(obj.get("spec") or {})
    uid = obj["metadata"].get("uid")
    if uid and "selector" not in spec and isinstance(spec.get("template"), dict):
        name = obj["metadata"]["name"]
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        metadata = spec["template"]["metadata"]
        spec["template"] = {
            **spec["template"],
            "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}},
        }
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        if not obj["metadata"].get("labels"):  # a Job without labels has those of its pods
            obj = {
                **obj,
                "metadata": {
                    **obj["metadata"],
                    "labels": dict(spec["template"]["metadata"]["labels"]),
                },
            }
    return {**obj, "spec": spec}


def _cron_job(obj: Object) -> Object:
    spec = _filled(
        obj.get("spec") or {},
        concurrencyPolicy="Allow",
        failedJobsHistoryLimit=1,
        successfulJobsHistoryLimit=3,
        suspend=False,
    )
    template = spec.get("jobTemplate")
    if isinstance(template, dict):
        spec["jobTemplate"] = {
            **template,
            "metadata": template.get("metadata") or {},
            "spec": _templated(template.get("spec") or {}),
        }
    return {**obj, "spec": spec}


# --- the rest -------------------------------------------------------------------------------------


def _pod_template(obj: Object) -> Object:
    template = obj.get("template") or {}
    return {
        **obj,
        "template": {
            **template,
            "metadata": template.get("metadata") or {},
            "spec": _template_spec(template.get("spec") or {}),
        },
    }


def _replication_controller(obj: Object) -> Object:
    filled = stored_defaults(served.REPLICATION_CONTROLLERS, obj)
    return {**filled, "spec": _templated(filled.get("spec") or {})}


_WORDLESS: tuple[Any, ...] = ("", 0, [], {}, None)  # what Go leaves out of an answer
_CLIENT_SECONDS = 10800


def _service(obj: Object) -> Object:
    """Empty fields of a Service count as absent: a `nodePort` of 0 asks for any, a `clusterIP` of
    "" for the existing one.
    """
    held = {
        key: value
        for key, value in (obj.get("spec") or {}).items()
        if key in _MAY_BE_EMPTY or value not in _WORDLESS
    }
    spec = _filled(held, sessionAffinity="None", type="ClusterIP")
    if spec["type"] in ("NodePort", "LoadBalancer") or (
        spec["type"] == "ClusterIP" and spec.get("externalIPs")
    ):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
    else:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif (
        ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    ) is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _CLIENT_SECONDS}}
    if spec.get("ports"):
        spec["ports"] = [_service_port(port) for port in spec["ports"]]
    return {**obj, "spec": spec}


_MAY_BE_EMPTY = ("allocateLoadBalancerNodePorts", "loadBalancerClass", "sessionAffinityConfig")


def _service_port(port: Object) -> Object:
    held = {key: value for key, value in port.items() if key == "port" or value not in _WORDLESS}
    return _filled(held, protocol="TCP", targetPort=port.get("port"))


def _namespace(obj: Object) -> Object:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {
        **obj,
        "metadata": {**metadata, "labels": labels},
        "spec": _filled(obj.get("spec"), finalizers=["kubernetes"]),
    }


def _claim(obj: Object) -> Object:
    return {**obj, "spec": _filled(obj.get("spec"), volumeMode="Filesystem")}


def _secret(obj: Object) -> Object:
    """What is written in plain words (`stringData`) becomes data; it is never shown again."""
    rest = {key: value for key, value in obj.items() if key != "stringData"}
    plain = obj.get("stringData") or {}
    if plain:
        rest["data"] = {
            **(obj.get("data") or {}),
            **{key: b64encode(text.encode()).decode() for key, text in plain.items()},
        }
    return _filled(rest, type="Opaque")


def _volume(obj: Object) -> Object:
    """An empty class is left out, as a real server does."""
    spec = dict(obj.get("spec") or {})
    if spec.get("storageClassName") == "":
        del spec["storageClassName"]
    return {
        **obj,
        "spec": _filled(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"),
    }


def _storage_class(obj: Object) -> Object:
    return _filled(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


_DEFAULTS: dict[ResourceKind, Callable[[Object], Object]] = {
    served.PODS: _pod,
    served.DEPLOYMENTS: _deployment,
    served.REPLICA_SETS: _replica_set,
    served.STATEFUL_SETS: _stateful_set,
    served.DAEMON_SETS: _daemon_set,
    served.JOBS: _job,
    served.CRON_JOBS: _cron_job,
    served.SERVICES: _service,
    served.NAMESPACES: _namespace,
    served.PERSISTENT_VOLUME_CLAIMS: _claim,
    served.PERSISTENT_VOLUMES: _volume,
    served.SECRETS: _secret,
    served.STORAGE_CLASSES: _storage_class,
    served.ROLE_BINDINGS: rbac_objects.with_defaults,
    served.CLUSTER_ROLE_BINDINGS: rbac_objects.with_defaults,
    served.CUSTOM_RESOURCE_DEFINITIONS: custom_resource_definition,
    served.POD_TEMPLATES: _pod_template,
    served.REPLICATION_CONTROLLERS: _replication_controller,
}
