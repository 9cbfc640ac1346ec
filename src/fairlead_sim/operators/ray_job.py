"""kuberay-operator's RayJobs: a RayCluster, then a Job that submits the program.

The end of that Job is the end of the RayJob.

The program runs in the submitter here: nothing is sent to a Ray. Left out: `clusterSelector`, other
submission modes, retries of the whole (`backoffLimit`), deletion rules.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import Plan, View, is_going, owned_by
from fairlead_sim.objects.conditions import is_true, status_of

Object = dict[str, Any]

OVER = ("Complete", "Failed")


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    status: Object = {"jobStatus": "", "jobDeploymentStatus": "", **status_of(obj)}
    cluster = next(iter(view.controlled(obj, "RayCluster")), None)
    submitter = next(iter(view.controlled(obj, "Job")), None)
    if obj["spec"].get("suspend") and (invalid := _unsuspendable(obj["spec"])):
        plan.warning(
            "InvalidRayJobSpec",
            (
                "The RayJob spec is invalid "
                f"{obj['metadata']['namespace']}/{obj['metadata']['name']}: {invalid}"
            ),
        )
        return plan
    if status["jobDeploymentStatus"] in OVER:
        _clean(obj, status, cluster, view, plan)
        return plan
    if obj["spec"].get("suspend"):
        plan.delete += [
            child for child in (cluster, submitter) if child is not None and not is_going(child)
        ]
        status |= {"jobStatus": "", "jobDeploymentStatus": "Suspended"}
        for key in ("startTime", "rayClusterName", "jobId", "rayClusterStatus"):
            status.pop(key, None)
    else:
        _go_on(obj, status, cluster, submitter, view, plan)
    status["observedGeneration"] = obj["metadata"].get("generation", 1)
    plan.status = status
    return plan


def _unsuspendable(spec: Object) -> str:
    """Why the operator refuses `suspend: true`, in its words; it leaves such a job as it is."""
    if not spec.get("shutdownAfterJobFinishes"):
        return "a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended"
    return (
        "the ClusterSelector mode doesn't support the suspend operation"
        if spec.get("clusterSelector")
        else ""
    )


def _go_on(
    obj: Object,
    status: Object,
    cluster: Object | None,
    submitter: Object | None,
    view: View,
    plan: Plan,
) -> None:
    if status["jobDeploymentStatus"] in ("", "Suspended"):
        (suffix,) = (name.rpartition("-")[2] for name in view.names_below(obj, 1))
        name = obj["metadata"]["name"]
        started = {
            "startTime": view.time,
            "rayClusterName": f"{name}-{suffix}",
            "jobId": f"{name}-{suffix}",
        }
        status |= {"jobDeploymentStatus": "Initializing", **started}
    deadline = obj["spec"].get("activeDeadlineSeconds")
    if deadline:
        ends_at = parse_time(status["startTime"]) + deadline
        if view.now >= ends_at:
            _end(
                status,
                "Failed",
                "FAILED",
                "DeadlineExceeded",
                "The RayJob has passed the activeDeadlineSeconds",
                view,
                plan,
            )
            return
        plan.wake(ends_at)
    if cluster is None:
        plan.create.append(_cluster(obj, status["rayClusterName"]))
        plan.normal(
            "CreatedRayCluster",
            f"Created RayCluster {obj['metadata']['namespace']}/{status['rayClusterName']}",
        )
        return
    status["rayClusterStatus"] = {
        key: value for key, value in status_of(cluster).items() if key != "lastUpdateTime"
    }
    if submitter is None:
        if status_of(cluster).get("state") == "ready":
            plan.create.append(_submitter(obj, status))
            plan.normal(
                "CreatedRayJobSubmitter",
                (
                    "Created Kubernetes Job "
                    f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
                ),
            )
            status |= {"jobDeploymentStatus": "Running", "jobStatus": "PENDING"}
    elif is_true(submitter, "Complete"):
        _end(status, "Complete", "SUCCEEDED", "", "Job finished successfully.", view, plan)
    elif is_true(submitter, "Failed"):
        _end(
            status,
            "Failed",
            "FAILED",
            "AppFailed",
            "Job entrypoint command failed with exit code 1",
            view,
            plan,
        )
    elif status_of(submitter).get("ready"):
        status["jobStatus"] = "RUNNING"


def _end(
    status: Object, state: str, job_status: str, reason: str, message: str, view: View, plan: Plan
) -> None:
    status |= {
        "jobDeploymentStatus": state,
        "jobStatus": job_status,
        "endTime": view.time,
        "message": message,
    }
    if reason:
        status["reason"] = reason
    plan.wake(view.now)


def _clean(obj: Object, status: Object, cluster: Object | None, view: View, plan: Plan) -> None:
    """Take the cluster down once its time after the end is over, where that is wanted."""
    if cluster is None or is_going(cluster) or not obj["spec"].get("shutdownAfterJobFinishes"):
        return
    until = parse_time(status["endTime"]) + int(obj["spec"].get("ttlSecondsAfterFinished") or 0)
    if view.now < until:
        plan.wake(until)
        return
    plan.delete.append(cluster)
    plan.normal(
        "DeletedRayCluster",
        f"Deleted RayCluster {obj['metadata']['namespace']}/{cluster['metadata']['name']}",
    )


def _metadata(obj: Object, name: str) -> Object:
    labels = {
        "ray.io/originated-from-cr-name": obj["metadata"]["name"],
        "ray.io/originated-from-crd": "RayJob",
    }
    return {
        "name": name,
        "namespace": obj["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": owned_by(obj),
    }


def _cluster(obj: Object, name: str) -> Object:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": _metadata(obj, name),
        "spec": obj["spec"]["rayClusterSpec"],
    }


def _submitter(obj: Object, status: Object) -> Object:
    """The Job that submits: from `submitterPodTemplate`, or with the head's image."""
    spec, name = obj["spec"], obj["metadata"]["name"]
    head = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    small = {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "200Mi"},
    }
    default = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {"name": "ray-job-submitter", "image": head["image"], "resources": small}
            ],
        }
    }
    template: Object = spec.get("submitterPodTemplate") or default
    first, *rest = template["spec"]["containers"]
    if not first.get("command"):
        address = f"http://{status['rayClusterName']}-head-svc.{obj['metadata']['namespace']}.svc.cluster.local:8265"
        submit = (
            f"ray job submit --address {address} --submission-id {status['jobId']} -- "
            f"{spec.get('entrypoint', '')}"
        )
        first = {**first, "command": ["/bin/bash", "-c", submit]}
    pod = {"restartPolicy": "Never", **template["spec"], "containers": [first, *rest]}
    limit = (spec.get("submitterConfig") or {}).get("backoffLimit")
    job = {"backoffLimit": 2 if limit is None else limit, "template": {**template, "spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(obj, name), "spec": job}
