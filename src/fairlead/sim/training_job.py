"""What does training-operator do for TFJobs and PyTorchJobs? One pod and one Service per replica; the chief's end is the job's end.

The two kinds differ in a few words (`_KINDS`) and in who is chief; everything else is the operator's common code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fairlead.sim.conditions import find_condition, is_true, phase_of
from fairlead.sim.kubeflow_status import expire, is_over, run_policy, set_state
from fairlead.sim.plan import Plan, View, is_active, owned_by, pod_from, restarts_of
from fairlead.sim.pod_counts import BURST
from fairlead.wire.kube_time import parse_time
from fairlead.wire.names import LABEL_JOB_NAME, LABEL_JOB_ROLE, LABEL_OPERATOR, LABEL_REPLICA_INDEX, LABEL_REPLICA_TYPE

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
        "pytorchReplicaSpecs", "pytorchjob-controller", "pytorch", "pytorchjob-port", 23456, ("Master", "Worker"), ("Master",)
    ),
}

INIT_IMAGE = "alpine:3.20"


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    pods = _by_role(obj, view.pods_of(obj))
    if is_over(obj):
        _clean(obj, pods, plan, run_policy(obj).get("cleanPodPolicy", "None"))
        expire(obj, view, plan)
        return plan
    status: Object = {**(obj.get("status") or {})}
    if find_condition(status.get("conditions") or (), "Created") is None:
        message = f"{obj['kind']} {obj['metadata']['name']} is created."
        set_state(status, "Created", "True", f"{obj['kind']}Created", message, view)
        plan.normal(f"{obj['kind']}Created", message)
    if run_policy(obj).get("suspend"):
        _suspend(obj, pods, status, view, plan)
    else:
        _resume(obj, status, view)
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


# --- what it creates -----------------------------------------------------------------------------------------------------------------


def _fill(obj: Object, pods: Pods, view: View, plan: Plan) -> None:
    there = {child["metadata"]["name"]: child["kind"] for child in view.owned(obj["metadata"]["uid"]) if child["kind"] == "Pod"}
    services = {child["metadata"]["name"] for child in view.owned(obj["metadata"]["uid"]) if child["kind"] == "Service"}
    for role, spec in _roles(obj).items():
        for index in range(_replicas(spec)):
            name = f"{obj['metadata']['name']}-{role.lower()}-{index}"
            if name not in there:
                plan.create.append(_pod(obj, role, spec, index, name))
                plan.normal("SuccessfulCreatePod", f"Created pod: {name}")
            if name not in services:
                plan.create.append(_service(obj, role, index, name))
            if len(plan.create) >= BURST:
                return


def _labels(obj: Object, role: str, index: int) -> dict[str, str]:
    labels = {
        LABEL_OPERATOR: _kind(obj).operator,
        LABEL_JOB_NAME: obj["metadata"]["name"],
        LABEL_REPLICA_TYPE: role.lower(),
        LABEL_REPLICA_INDEX: str(index),
    }
    return labels | ({LABEL_JOB_ROLE: "master"} if _is_chief(obj, role, index) else {})


def _is_chief(obj: Object, role: str, index: int) -> bool:
    """The chief or master; of a TFJob without one, the first worker."""
    roles = _roles(obj)
    if any(chief in roles for chief in _kind(obj).chiefs):
        return role in _kind(obj).chiefs
    return role == "Worker" and index == 0


def _pod(obj: Object, role: str, spec: Object, index: int, name: str) -> Object:
    policy = spec.get("restartPolicy", "Never")
    pod: Object = {**spec["template"]["spec"], "restartPolicy": "Never" if policy == "ExitCode" else policy}
    if obj["kind"] == "PyTorchJob" and role == "Worker" and "Master" in _roles(obj):
        pod["initContainers"] = [*pod.get("initContainers", ()), _wait_for_master(obj)]
    return pod_from({**spec["template"], "spec": pod}, obj, name, _labels(obj, role, index))


def _wait_for_master(obj: Object) -> Object:
    master = f"{obj['metadata']['name']}-master-0"
    command = ["sh", "-c", f"for i in $(seq 100); do nslookup {master} && exit 0; sleep 1; done; exit 1"]
    resources = {"limits": {"cpu": "100m", "memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "10Mi"}}
    return {"name": "init-pytorch", "image": INIT_IMAGE, "command": command, "resources": resources}


def _service(obj: Object, role: str, index: int, name: str) -> Object:
    labels, kind = _labels(obj, role, index), _kind(obj)
    metadata = {"name": name, "namespace": obj["metadata"]["namespace"], "labels": labels, "ownerReferences": owned_by(obj)}
    ports = [{"name": kind.port_name, "port": kind.port, "targetPort": kind.port, "protocol": "TCP"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None", "selector": labels, "ports": ports}}


# --- what it sees --------------------------------------------------------------------------------------------------------------------


def _lost(obj: Object, pods: Pods) -> list[Object]:
    """Failed pods of an `ExitCode` role that died of a signal (128 and above): they are deleted and made again."""
    return [
        pod
        for role, spec in _roles(obj).items()
        if role in pods and spec.get("restartPolicy") == "ExitCode"
        for pod in pods[role]
        if phase_of(pod) == "Failed" and _exit_code(pod) >= 128 and "deletionTimestamp" not in pod["metadata"]
    ]


def _exit_code(pod: Object) -> int:
    codes = [status["state"].get("terminated", {}).get("exitCode", 0) for status in pod["status"].get("containerStatuses") or ()]
    return max(codes, default=0)


def _observe(obj: Object, pods: Pods, lost: list[Object], status: Object, view: View, plan: Plan) -> None:
    restarted = {role: int(counts.get("failed", 0)) for role, counts in status.get("replicaStatuses", {}).items()}
    for pod in lost:
        role = _role_of(pod, pods)
        restarted[role] = restarted.get(role, 0) + 1
    status["replicaStatuses"] = {role: _counts(obj, role, pods[role], restarted.get(role, 0)) for role in pods}
    kind, name = obj["kind"], f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
    failed = [(role, pod) for role, found in pods.items() for pod in found if phase_of(pod) == "Failed" and pod not in lost]
    tries = sum(restarted.values()) + sum(restarts_of(pod) for found in pods.values() for pod in found)
    if failed or _is_beyond_limit(obj, tries):
        role = failed[0][0] if failed else next(iter(pods))
        message = f"{kind} {obj['metadata']['name']} is failed because {max(1, len(failed))} {role} replica(s) failed."
        if not failed:
            message = f"Job {obj['metadata']['name']} has failed because it has reached the specified backoff limit"
        _end(obj, pods, status, "Failed", f"{kind}Failed", message, view, plan)
    elif (ends_at := _deadline(obj, status)) is not None and view.now >= ends_at:
        message = f"Job {obj['metadata']['name']} has failed because it was active longer than specified deadline"
        _end(obj, pods, status, "Failed", f"{kind}Failed", message, view, plan)
    elif _is_done(obj, pods):
        _end(obj, pods, status, "Succeeded", f"{kind}Succeeded", f"{kind} {name} successfully completed.", view, plan)
    elif lost:
        message = f"{kind} {obj['metadata']['name']} is restarting because {len(lost)} {_role_of(lost[0], pods)} replica(s) failed."
        set_state(status, "Restarting", "True", f"{kind}Restarting", message, view)
        plan.warning(f"{kind}Restarting", message)
    elif _is_at_work(obj, pods):
        set_state(status, "Running", "True", f"{kind}Running", f"{kind} {name} is running.", view)


def _deadline(obj: Object, status: Object) -> float | None:
    """Until when the job may be active; None: for ever."""
    seconds = run_policy(obj).get("activeDeadlineSeconds")
    return None if seconds is None or "startTime" not in status else parse_time(status["startTime"]) + int(seconds)


def _is_beyond_limit(obj: Object, tries: int) -> bool:
    limit = run_policy(obj).get("backoffLimit")
    return limit is not None and tries > int(limit)


def _is_at_work(obj: Object, pods: Pods) -> bool:
    """The chief runs; a PyTorchJob without master needs one worker that runs."""
    return any(
        phase_of(pod) == "Running" and _is_chief(obj, role, int(pod["metadata"]["labels"][LABEL_REPLICA_INDEX]))
        for role, found in pods.items()
        for pod in found
    )


def _is_done(obj: Object, pods: Pods) -> bool:
    if obj["spec"].get("successPolicy") == "AllWorkers" and "Worker" in pods:
        workers = pods["Worker"]
        return len(workers) == _replicas(_roles(obj)["Worker"]) and all(phase_of(pod) == "Succeeded" for pod in workers)
    return any(
        phase_of(pod) == "Succeeded" and _is_chief(obj, role, int(pod["metadata"]["labels"][LABEL_REPLICA_INDEX]))
        for role, found in pods.items()
        for pod in found
    )


def _role_of(pod: Object, pods: Pods) -> str:
    return next(role for role, found in pods.items() if pod in found)


def _counts(obj: Object, role: str, pods: list[Object], restarted: int) -> Object:
    """`failed` keeps those that were made again: it is the operator's memory of how often it tried."""
    phases = {"active": "Running", "succeeded": "Succeeded"}
    counts = {name: sum(phase_of(pod) == phase for pod in pods) for name, phase in phases.items()}
    counts["failed"] = restarted + sum(phase_of(pod) == "Failed" for pod in pods if pod not in _lost(obj, {role: pods}))
    selector = f"{LABEL_JOB_NAME}={obj['metadata']['name']},{LABEL_OPERATOR}={_kind(obj).operator},{LABEL_REPLICA_TYPE}={role.lower()}"
    return {**{name: count for name, count in counts.items() if count}, "selector": selector}


def _end(obj: Object, pods: Pods, status: Object, state: str, reason: str, message: str, view: View, plan: Plan) -> None:
    set_state(status, state, "True", reason, message, view)
    status["completionTime"] = view.time
    plan.create.clear()
    (plan.normal if state == "Succeeded" else plan.warning)(reason, message)
    _clean(obj, pods, plan, run_policy(obj).get("cleanPodPolicy", "None"))
    plan.wake(view.now)


def _clean(obj: Object, pods: Pods, plan: Plan, policy: str) -> None:
    for found in pods.values():
        for pod in found:
            goes = policy == "All" or (policy == "Running" and is_active(pod))
            if goes and "deletionTimestamp" not in pod["metadata"] and pod not in plan.delete:
                plan.delete.append(pod)


def _suspend(obj: Object, pods: Pods, status: Object, view: View, plan: Plan) -> None:
    plan.delete += [pod for found in pods.values() for pod in found if "deletionTimestamp" not in pod["metadata"]]
    message = f"{obj['kind']} {obj['metadata']['name']} is suspended."
    if find_condition(status["conditions"], "Running") is not None:
        set_state(status, "Running", "False", f"{obj['kind']}Suspended", message, view)
    set_state(status, "Suspended", "True", f"{obj['kind']}Suspended", message, view)
    status.pop("startTime", None)


def _resume(obj: Object, status: Object, view: View) -> None:
    if is_true(obj, "Suspended"):
        message = f"{obj['kind']} {obj['metadata']['name']} is resumed."
        set_state(status, "Suspended", "False", f"{obj['kind']}Resumed", message, view)
        status["startTime"] = view.time
    status.setdefault("startTime", view.time)
