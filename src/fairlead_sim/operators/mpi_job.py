"""mpi-operator (v2beta1): worker pods with ssh, and a launcher Job whose end is the job's end.

One liberty: `runPolicy.ttlSecondsAfterFinished` removes the MPIJob too, not only its launcher: a
world that runs for weeks stays small.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from fairlead.wire.names import LABEL_JOB_NAME, LABEL_JOB_ROLE, LABEL_OPERATOR, LABEL_REPLICA_INDEX
from fairlead_sim.controllers.plan import Plan, View, is_active, owned_by, pod_from
from fairlead_sim.objects.conditions import find_condition, is_true, phase_of
from fairlead_sim.objects.pod_counts import BURST
from fairlead_sim.operators.kubeflow_status import expire, is_over, run_policy, set_state

Object = dict[str, Any]

OPERATOR = "mpi-operator"


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    children = view.owned(obj["metadata"]["uid"])
    workers = [child for child in children if child["kind"] == "Pod"]
    launcher = next((child for child in children if child["kind"] == "Job"), None)
    if is_over(obj):
        _clean(obj, workers, plan)
        expire(obj, view, plan)
        return plan
    status: Object = {**(obj.get("status") or {})}
    _created(obj, status, view, plan)
    is_paused = _is_paused(obj)
    if not _has_ended(launcher):
        _fill(obj, children, workers, launcher, plan, view)
    if launcher is not None and bool(launcher["spec"].get("suspend")) != is_paused:
        plan.change.append(
            (launcher, {**launcher, "spec": {**launcher["spec"], "suspend": is_paused}})
        )
    _record_pause(obj, status, view, plan)
    if is_paused:
        _pause(obj, workers, launcher, status, view, plan)
    else:
        _observe(obj, workers, launcher, status, view, plan)
    plan.status = status
    return plan


def _is_paused(obj: Object) -> bool:
    return bool(run_policy(obj).get("suspend"))


def _has_ended(launcher: Object | None) -> bool:
    return launcher is not None and (is_true(launcher, "Complete") or is_true(launcher, "Failed"))


def _created(obj: Object, status: Object, view: View, plan: Plan) -> None:
    if find_condition(status.get("conditions") or (), "Created") is None:
        set_state(status, "Created", "True", "MPIJobCreated", _message(obj, "is created."), view)
        plan.normal("MPIJobCreated", _message(obj, "is created."))
    if not _is_paused(obj):
        status.setdefault("startTime", view.time)


def _message(obj: Object, what: str) -> str:
    return f"MPIJob {obj['metadata']['namespace']}/{obj['metadata']['name']} {what}"


# --- what it creates ------------------------------------------------------------------------------


def _fill(
    obj: Object,
    children: list[Object],
    workers: list[Object],
    launcher: Object | None,
    plan: Plan,
    view: View,
) -> None:
    name = obj["metadata"]["name"]
    hosts = _config_map(obj, workers)
    if not any(child["kind"] == "Service" for child in children):
        plan.create += [*_surroundings(obj), hosts]
    plan.change += [
        (old, {**old, "data": hosts["data"]})
        for old in children
        if old["kind"] == "ConfigMap" and old.get("data") != hosts["data"]
    ]
    there = {pod["metadata"]["name"] for pod in workers}
    wanted = 0 if _is_paused(obj) else _replicas(obj, "Worker")
    missing = (index for index in range(wanted) if f"{name}-worker-{index}" not in there)
    plan.create += [_worker(obj, index) for index in islice(missing, BURST)]
    waits = obj["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    if launcher is None and not (waits and _running(workers) < wanted):
        plan.create.append(_launcher(obj))


def _replicas(obj: Object, role: str) -> int:
    spec = obj["spec"]["mpiReplicaSpecs"].get(role)
    return int(spec.get("replicas", 1)) if spec else 0


def _labels(obj: Object, role: str) -> dict[str, str]:
    return {LABEL_OPERATOR: OPERATOR, LABEL_JOB_NAME: obj["metadata"]["name"], LABEL_JOB_ROLE: role}


def _worker(obj: Object, index: int) -> Object:
    spec = obj["spec"]["mpiReplicaSpecs"]["Worker"]
    template = {**spec["template"], "spec": _worker_spec(obj, spec, index)}
    return pod_from(
        template,
        obj,
        f"{obj['metadata']['name']}-worker-{index}",
        _labels(obj, "worker") | {LABEL_REPLICA_INDEX: str(index)},
    )


def _worker_spec(obj: Object, spec: Object, index: int) -> Object:
    """The template's pod spec; a first container without command and arguments serves ssh."""
    pod = spec["template"]["spec"]
    first, *rest = pod["containers"]
    if not first.get("command") and not first.get("args"):
        first = {**first, "command": ["/usr/sbin/sshd", "-De"]}
    name = obj["metadata"]["name"]
    return {
        **pod,
        "containers": [first, *rest],
        "hostname": f"{name}-worker-{index}",
        "subdomain": name,
        "restartPolicy": spec.get("restartPolicy", "Never"),
    }


def _launcher(obj: Object) -> Object:
    name, policy = obj["metadata"]["name"], run_policy(obj)
    spec = obj["spec"]["mpiReplicaSpecs"]["Launcher"]
    template = spec["template"]
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **_labels(obj, "launcher")}
    pod = {
        **template["spec"],
        "hostname": f"{name}-launcher",
        "subdomain": name,
        "restartPolicy": spec.get("restartPolicy", "OnFailure"),
    }
    job: Object = {"template": {"metadata": {**metadata, "labels": labels}, "spec": pod}}
    for key in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        if policy.get(key) is not None:
            job[key] = policy[key]
    if _is_paused(obj):
        job["suspend"] = True
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(obj, f"{name}-launcher", {"app": name}),
        "spec": job,
    }


def _surroundings(obj: Object) -> list[Object]:
    """The Service that names the pods, and the ssh key."""
    name = obj["metadata"]["name"]
    selector = {LABEL_OPERATOR: OPERATOR, LABEL_JOB_NAME: name}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _metadata(obj, name, {"app": name}),
            "spec": {"clusterIP": "None", "selector": selector},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _metadata(obj, f"{name}-ssh", {"app": name}),
            "type": "kubernetes.io/ssh-auth",
            "data": {"ssh-privatekey": "", "ssh-publickey": ""},
        },
    ]


def _config_map(obj: Object, workers: list[Object]) -> Object:
    """The host file, and a script that names the workers that run now."""
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    slots = obj["spec"].get("slotsPerWorker", 1)
    hosts = "".join(
        f"{name}-worker-{index}.{name}.{namespace}.svc slots={slots}\n"
        for index in range(_replicas(obj, "Worker"))
    )
    at_work = sorted(pod["metadata"]["name"] for pod in workers if phase_of(pod) == "Running")
    script = "#!/bin/sh\n" + "".join(f"echo {pod}.{name}.{namespace}.svc\n" for pod in at_work)
    metadata = _metadata(obj, f"{name}-config", {"app": name})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"hostfile": hosts, "discover_hosts.sh": script},
    }


def _metadata(obj: Object, name: str, labels: dict[str, str]) -> Object:
    return {
        "name": name,
        "namespace": obj["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": owned_by(obj),
    }


# --- what it sees ---------------------------------------------------------------------------------


def _running(pods: list[Object]) -> int:
    return sum(phase_of(pod) == "Running" for pod in pods)


def _observe(
    obj: Object,
    workers: list[Object],
    launcher: Object | None,
    status: Object,
    view: View,
    plan: Plan,
) -> None:
    at_work = launcher is not None and _running(view.pods_of(launcher)) >= 1
    # Once the launcher has ended the operator looks at the workers no more.
    status["replicaStatuses"] = _replica_statuses(
        obj, [] if _has_ended(launcher) else workers, launcher, at_work
    )
    if launcher is not None and is_true(launcher, "Complete"):
        set_state(
            status,
            "Succeeded",
            "True",
            "MPIJobSucceeded",
            _message(obj, "successfully completed."),
            view,
        )
        status["completionTime"] = launcher["status"].get("completionTime", view.time)
        plan.normal("MPIJobSucceeded", _message(obj, "successfully completed."))
        _clean(obj, workers, plan)
        plan.wake(view.now)
    elif launcher is not None and is_true(launcher, "Failed"):
        reason, message = _failure(launcher, view)
        set_state(status, "Failed", "True", reason, message, view)
        status["completionTime"] = view.time
        plan.warning(reason, message)
        _clean(obj, workers, plan)
        plan.wake(view.now)
    elif (
        at_work
        and _running(workers) == _replicas(obj, "Worker")
        and set_state(
            status, "Running", "True", "MPIJobRunning", _message(obj, "is running."), view
        )
    ):
        plan.normal("MPIJobRunning", _message(obj, "is running"))


def _failure(launcher: Object, view: View) -> tuple[str, str]:
    """Reason and message of a failed launcher, after its last try with those of its last pod.

    Both of the pod are usually empty, so the reason ends in a slash: `BackoffLimitExceeded/`.
    """
    condition = find_condition(launcher["status"]["conditions"], "Failed") or {}
    reason, message = condition.get("reason", "MPIJobFailed"), str(condition.get("message", ""))
    failed = [pod for pod in view.pods_of(launcher) if phase_of(pod) == "Failed"]
    if reason != "BackoffLimitExceeded" or not failed:
        return reason, message
    last = failed[-1]["status"]
    return f"{reason}/{last.get('reason', '')}", f"{message}: {last.get('message', '')}"


def _replica_statuses(
    obj: Object, workers: list[Object], launcher: Object | None, at_work: bool
) -> Object:
    statuses: Object = {"Launcher": {}}
    if launcher is not None:
        counts = {name: launcher.get("status", {}).get(name, 0) for name in ("succeeded", "failed")}
        statuses["Launcher"] = {name: count for name, count in counts.items() if count} | (
            {"active": 1} if at_work else {}
        )
    if _replicas(obj, "Worker"):
        phases = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
        counts = {
            name: sum(phase_of(pod) == phase for pod in workers) for name, phase in phases.items()
        }
        statuses["Worker"] = {name: count for name, count in counts.items() if count}
    return statuses


def _record_pause(obj: Object, status: Object, view: View, plan: Plan) -> None:
    if _is_paused(obj):
        if set_state(status, "Suspended", "True", "MPIJobSuspended", "MPIJob suspended", view):
            plan.normal("MPIJobSuspended", "MPIJob suspended")
    elif is_true(obj, "Suspended"):
        set_state(status, "Suspended", "False", "MPIJobResumed", "MPIJob resumed", view)
        plan.normal("MPIJobResumed", "MPIJob resumed")
        status["startTime"] = view.time


def _pause(
    obj: Object,
    workers: list[Object],
    launcher: Object | None,
    status: Object,
    view: View,
    plan: Plan,
) -> None:
    """The launcher's Job removes its own pod.

    Where only running pods are to be removed, workers that have ended stay.
    """
    takes_all = run_policy(obj).get("cleanPodPolicy") != "Running"
    plan.delete += [
        pod
        for pod in workers
        if is_active(pod) or (takes_all and "deletionTimestamp" not in pod["metadata"])
    ]
    set_state(status, "Running", "False", "MPIJobSuspended", _message(obj, "is suspended."), view)
    at_work = launcher is not None and _running(view.pods_of(launcher)) >= 1
    status["replicaStatuses"] = _replica_statuses(obj, [], launcher, at_work)


def _clean(obj: Object, workers: list[Object], plan: Plan) -> None:
    """After the end: `cleanPodPolicy` Running deletes running workers, All deletes all."""
    policy = run_policy(obj).get("cleanPodPolicy", "None")
    going = [
        pod
        for pod in workers
        if is_active(pod) or (policy == "All" and "deletionTimestamp" not in pod["metadata"])
    ]
    plan.delete += going if policy in ("Running", "All") else []
