"""training-operator's TFJobs and PyTorchJobs: a pod and a Service per replica.

The chief's end is the job's end.

The two kinds differ in a few words (`_KINDS`, `_message`) and in the chief; everything else is the
operator's common code. One liberty: a job that is active too long fails at that moment, not when
the real one happens to look at it next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fairlead.wire.kube.time import parse_time
from fairlead.wire.names import (
    LABEL_JOB_NAME,
    LABEL_JOB_ROLE,
    LABEL_OPERATOR,
    LABEL_REPLICA_INDEX,
    LABEL_REPLICA_TYPE,
)
from fairlead_sim.controllers.plan import Plan, View, is_active, owned_by, pod_from, restarts_of
from fairlead_sim.objects.conditions import find_condition, is_true, phase_of
from fairlead_sim.objects.pod_counts import BURST
from fairlead_sim.operators.kubeflow_status import expire, is_over, run_policy, set_state

Object = dict[str, Any]
Pods = Mapping[str, list[Object]]
"""Pods by role, as the spec spells it (`Worker`)."""


class _Kind(Struct, frozen=True):
    specs: str
    operator: str
    container: str
    port_name: str
    port: int
    roles: tuple[str, ...]
    chiefs: tuple[str, ...]


_KINDS = {
    "TFJob": _Kind(
        "tfReplicaSpecs",
        "tfjob-controller",
        "tensorflow",
        "tfjob-port",
        2222,
        ("Chief", "Master", "PS", "Worker", "Evaluator"),
        ("Chief", "Master"),
    ),
    "PyTorchJob": _Kind(
        "pytorchReplicaSpecs",
        "pytorchjob-controller",
        "pytorch",
        "pytorchjob-port",
        23456,
        ("Master", "Worker"),
        ("Master",),
    ),
}

INIT_IMAGE = "alpine:3.10"


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    pods = _by_role(obj, view.pods_of(obj))
    if is_over(obj):
        _clean(obj, pods, view, plan, run_policy(obj).get("cleanPodPolicy", "None"))
        if is_true(obj, "Succeeded"):
            plan.status = _all_succeeded(obj["status"])
        expire(obj, view, plan)
        return plan
    status: Object = {**(obj.get("status") or {})}
    if find_condition(status.get("conditions") or (), "Created") is None:
        set_state(
            status,
            "Created",
            "True",
            f"{obj['kind']}Created",
            f"{obj['kind']} {obj['metadata']['name']} is created.",
            view,
        )
    if run_policy(obj).get("suspend"):
        _suspend(obj, pods, status, view, plan)
    else:
        _resume(obj, status, view, plan)
        lost = _lost(obj, pods)
        plan.delete += lost
        _fill(obj, pods, view, plan)
        _observe(obj, pods, lost, status, view, plan)
        if (ends_at := _deadline(obj, status)) is not None and ends_at > view.now:
            plan.wake(ends_at)
    plan.status = status
    return plan


def _kind(obj: Object) -> _Kind:
    return _KINDS[obj["kind"]]


def _roles(obj: Object) -> dict[str, Object]:
    """Replica specs by role, in the operator's order."""
    specs = obj["spec"].get(_kind(obj).specs) or {}
    return {role: specs[role] for role in _kind(obj).roles if specs.get(role)}


def _replicas(spec: Object) -> int:
    value = spec.get("replicas")
    return 1 if value is None else int(value)


def _by_role(obj: Object, pods: list[Object]) -> dict[str, list[Object]]:
    roles: dict[str, list[Object]] = {role: [] for role in _roles(obj)}
    spelled = {role.lower(): role for role in roles}
    for pod in pods:
        role = spelled.get(pod["metadata"]["labels"].get(LABEL_REPLICA_TYPE, ""))
        if role:
            roles[role].append(pod)
    return roles


# --- what it creates ------------------------------------------------------------------------------


def _fill(obj: Object, pods: Pods, view: View, plan: Plan) -> None:
    there = {
        child["metadata"]["name"]: child["kind"]
        for child in view.owned(obj["metadata"]["uid"])
        if child["kind"] == "Pod"
    }
    services = {
        child["metadata"]["name"]
        for child in view.owned(obj["metadata"]["uid"])
        if child["kind"] == "Service"
    }
    for role, spec in _roles(obj).items():
        for index in range(_replicas(spec)):
            name = f"{obj['metadata']['name']}-{role.lower()}-{index}"
            if name not in there:
                plan.create.append(_pod(obj, role, spec, index, name))
                plan.normal("SuccessfulCreatePod", f"Created pod: {name}")
            if name not in services:
                plan.create.append(_service(obj, role, index, name))
                plan.normal("SuccessfulCreateService", f"Created service: {name}")
            if len(plan.create) >= BURST:
                return


def _labels(obj: Object, role: str, index: int) -> dict[str, str]:
    return {
        LABEL_OPERATOR: _kind(obj).operator,
        LABEL_JOB_NAME: obj["metadata"]["name"],
        LABEL_REPLICA_TYPE: role.lower(),
        LABEL_REPLICA_INDEX: str(index),
    }


def _is_chief(obj: Object, role: str, index: int) -> bool:
    """The chief or master; of a TFJob without one, the first worker."""
    roles = _roles(obj)
    if any(chief in roles for chief in _kind(obj).chiefs):
        return role in _kind(obj).chiefs
    return role == "Worker" and index == 0


def _pod(obj: Object, role: str, spec: Object, index: int, name: str) -> Object:
    policy = spec.get("restartPolicy", "Never")
    pod: Object = {
        **spec["template"]["spec"],
        "restartPolicy": "Never" if policy == "ExitCode" else policy,
    }
    if obj["kind"] == "PyTorchJob" and role == "Worker" and "Master" in _roles(obj):
        pod["initContainers"] = [*pod.get("initContainers", ()), _wait_for_master(obj)]
    labels = _labels(obj, role, index) | (
        {LABEL_JOB_ROLE: "master"} if _is_chief(obj, role, index) else {}
    )
    return pod_from({**spec["template"], "spec": pod}, obj, name, labels)


def _wait_for_master(obj: Object) -> Object:
    master = f"{obj['metadata']['name']}-master-0"
    script = (
        f"err=1;for i in $(seq 100); do if nslookup {master}; then err=0 && break; fi;echo "
        "waiting for master; sleep 2; done; exit $err"
    )
    command = ["sh", "-c", script]
    resources = {
        "limits": {"cpu": "100m", "memory": "20Mi"},
        "requests": {"cpu": "50m", "memory": "10Mi"},
    }
    return {
        "name": "init-pytorch",
        "image": INIT_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": resources,
    }


def _service(obj: Object, role: str, index: int, name: str) -> Object:
    labels, kind = _labels(obj, role, index), _kind(obj)
    metadata = {
        "name": name,
        "namespace": obj["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": owned_by(obj),
    }
    ports = [
        {"name": kind.port_name, "port": kind.port, "targetPort": kind.port, "protocol": "TCP"}
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": "None", "selector": labels, "ports": ports},
    }


# --- what it sees ---------------------------------------------------------------------------------


_RESTARTED = ("OnFailure", "Always")


def _lost(obj: Object, pods: Pods) -> list[Object]:
    """Failed pods that are deleted and made again: of an `ExitCode` role those that died of a
    signal (128 and above).
    """
    policies = {role: spec.get("restartPolicy") for role, spec in _roles(obj).items()}
    return [
        pod
        for role, found in pods.items()
        for pod in found
        if phase_of(pod) == "Failed"
        and "deletionTimestamp" not in pod["metadata"]
        and (
            policies[role] in _RESTARTED
            or (policies[role] == "ExitCode" and _exit_code(pod) >= 128)
        )
    ]


def _exit_code(pod: Object) -> int:
    codes = [
        status["state"].get("terminated", {}).get("exitCode", 0)
        for status in pod["status"].get("containerStatuses") or ()
    ]
    return max(codes, default=0)


def _observe(
    obj: Object, pods: Pods, lost: list[Object], status: Object, view: View, plan: Plan
) -> None:
    ends_at = _deadline(obj, status)
    if _is_beyond_limit(obj, pods, status):
        _end(
            obj,
            status,
            "Failed",
            (
                f"Job {obj['metadata']['name']} has failed because it has reached the specified "
                "backoff limit"
            ),
            view,
            plan,
        )
        _clean(obj, pods, view, plan, "All")
    elif ends_at is not None and view.now >= ends_at:
        _end(
            obj,
            status,
            "Failed",
            (
                f"Job {obj['metadata']['name']} has failed because it was active longer than "
                "specified deadline"
            ),
            view,
            plan,
        )
        _clean(obj, pods, view, plan, "All")
    else:
        status["replicaStatuses"] = {
            role: _counts(obj, role, found) for role, found in pods.items()
        }
        _judge(obj, pods, lost, status, view, plan)


def _judge(
    obj: Object, pods: Pods, lost: list[Object], status: Object, view: View, plan: Plan
) -> None:
    failed = {
        role: sum(phase_of(pod) == "Failed" and pod not in lost for pod in found)
        for role, found in pods.items()
    }
    bad_role = next((role for role, count in failed.items() if count), "")
    if bad_role:
        _end(
            obj,
            status,
            "Failed",
            _message(obj, "failed").format(f"{failed[bad_role]} {bad_role}"),
            view,
            plan,
        )
    elif _is_done(obj, pods):
        _end(obj, status, "Succeeded", _message(obj, "succeeded"), view, plan)
    elif lost:
        message = (
            f"job {obj['metadata']['name']} is restarting because {_role_of(lost[0], pods)} "
            "replica(s) failed."
        )
        set_state(status, "Restarting", "True", f"{obj['kind']}Restarting", message, view)
        plan.warning(f"{obj['kind']}Restarting", message)
    elif _is_at_work(obj, pods):
        set_state(
            status, "Running", "True", f"{obj['kind']}Running", _message(obj, "running"), view
        )


_WORDS = {
    "running": "is running.",
    "succeeded": "successfully completed.",
    "failed": "has failed because {} replica(s) failed.",
}
_PYTORCH_WORDS = {
    "running": "is running.",
    "succeeded": "is successfully completed.",
    "failed": "is failed because {} replica(s) failed.",
}
"""For a PyTorchJob with a master; if workers alone decide, only its failure uses this message."""


def _message(obj: Object, what: str) -> str:
    metadata = obj["metadata"]
    if obj["kind"] == "PyTorchJob" and ("Master" in _roles(obj) or what == "failed"):
        return f"PyTorchJob {metadata['name']} {_PYTORCH_WORDS[what]}"
    return f"{obj['kind']} {metadata['namespace']}/{metadata['name']} {_WORDS[what]}"


def _deadline(obj: Object, status: Object) -> float | None:
    """Until when the job may be active; None: for ever."""
    seconds = run_policy(obj).get("activeDeadlineSeconds")
    return (
        None
        if seconds is None or "startTime" not in status
        else parse_time(status["startTime"]) + int(seconds)
    )


def _is_beyond_limit(obj: Object, pods: Pods, status: Object) -> bool:
    """Containers restarted as often as the limit allows; with a limit of 0, any pod that has failed
    since the last look.
    """
    limit = run_policy(obj).get("backoffLimit")
    if limit is None:
        return False
    everybody = [pod for found in pods.values() for pod in found]
    policies = {role: spec.get("restartPolicy") for role, spec in _roles(obj).items()}
    counted = [
        pod
        for role, found in pods.items()
        if policies[role] in (*_RESTARTED, "ExitCode")
        for pod in found
    ]
    restarts = sum(restarts_of(pod) for pod in counted if phase_of(pod) == "Running")
    if int(limit) > 0:
        return restarts >= int(limit)
    failed = sum(phase_of(pod) == "Failed" for pod in everybody)
    known = sum(
        counts.get("failed", 0) for counts in (status.get("replicaStatuses") or {}).values()
    )
    at_work = sum(is_active(pod) for pod in everybody)
    return restarts > 0 or (
        failed > known and at_work != sum(_replicas(spec) for spec in _roles(obj).values())
    )


def _leaders(obj: Object) -> tuple[str, ...]:
    """The roles that decide: the chief's, else the workers."""
    chiefs = tuple(role for role in _roles(obj) if role in _kind(obj).chiefs)
    return chiefs or ("Worker",)


def _is_at_work(obj: Object, pods: Pods) -> bool:
    return any(phase_of(pod) == "Running" for role in _leaders(obj) for pod in pods.get(role, ()))


def _is_done(obj: Object, pods: Pods) -> bool:
    """All of the leaders have succeeded; of a TFJob led by its workers the first is enough, unless
    it wants all of them.
    """
    for role in _leaders(obj):
        succeeded = [
            pod["metadata"]["labels"][LABEL_REPLICA_INDEX]
            for pod in pods.get(role, ())
            if phase_of(pod) == "Succeeded"
        ]
        if role in pods and len(succeeded) == _replicas(_roles(obj)[role]):
            return True
        if (
            obj["kind"] == "TFJob"
            and role == "Worker"
            and obj["spec"].get("successPolicy") != "AllWorkers"
            and "0" in succeeded
        ):
            return True
    return False


def _role_of(pod: Object, pods: Pods) -> str:
    return next(role for role, found in pods.items() if pod in found)


def _counts(obj: Object, role: str, pods: list[Object]) -> Object:
    phases = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
    counts = {name: sum(phase_of(pod) == phase for pod in pods) for name, phase in phases.items()}
    found: Object = {name: count for name, count in counts.items() if count}
    if obj["kind"] == "PyTorchJob":
        labels = {
            LABEL_JOB_NAME: obj["metadata"]["name"],
            LABEL_OPERATOR: _kind(obj).operator,
            LABEL_REPLICA_TYPE: role.lower(),
        }
        found["selector"] = ",".join(f"{key}={value}" for key, value in labels.items())
    return found


def _all_succeeded(status: Object) -> Object:
    """What still ran when the job succeeded counts as succeeded."""
    counts = {
        role: {**each, "succeeded": each.get("succeeded", 0) + each["active"]}
        if each.get("active")
        else each
        for role, each in (status.get("replicaStatuses") or {}).items()
    }
    return {
        **status,
        "replicaStatuses": {
            role: {key: n for key, n in each.items() if key != "active"}
            for role, each in counts.items()
        },
    }


def _end(obj: Object, status: Object, state: str, message: str, view: View, plan: Plan) -> None:
    set_state(status, state, "True", f"{obj['kind']}{state}", message, view)
    status["completionTime"] = view.time
    plan.create.clear()
    plan.events = [event for event in plan.events if not event[1].startswith("SuccessfulCreate")]
    plan.normal(f"{obj['kind']}{state}", message)
    plan.wake(view.now)


def _clean(obj: Object, pods: Pods, view: View, plan: Plan, policy: str) -> None:
    """Pods with their Services: all of them, or those that have not ended."""
    services = {child["metadata"]["name"]: child for child in view.controlled(obj, "Service")}
    for pod in (pod for found in pods.values() for pod in found):
        name = pod["metadata"]["name"]
        if (
            not (policy == "All" or (policy == "Running" and is_active(pod)))
            or "deletionTimestamp" in pod["metadata"]
            or pod in plan.delete
        ):
            continue
        plan.delete.append(pod)
        plan.normal("SuccessfulDeletePod", f"Deleted pod: {name}")
        if name in services:
            plan.delete.append(services[name])
            plan.normal("SuccessfulDeleteService", f"Deleted service: {name}")


def _suspend(obj: Object, pods: Pods, status: Object, view: View, plan: Plan) -> None:
    _clean(obj, pods, view, plan, "All")
    for counts in (status.get("replicaStatuses") or {}).values():
        counts.pop("active", None)
    reason, message = (
        f"{obj['kind']}Suspended",
        f"{obj['kind']} {obj['metadata']['name']} is suspended.",
    )
    if is_true(obj, "Running"):
        set_state(status, "Running", "False", reason, message, view)
    if set_state(status, "Suspended", "True", reason, message, view):
        plan.normal(reason, message)


def _resume(obj: Object, status: Object, view: View, plan: Plan) -> None:
    if is_true(obj, "Suspended"):
        message = f"{obj['kind']} {obj['metadata']['name']} is resumed."
        set_state(status, "Suspended", "False", f"{obj['kind']}Resumed", message, view)
        plan.normal(f"{obj['kind']}Resumed", message)
        status["startTime"] = view.time
    status.setdefault("startTime", view.time)
