"""The truth about one training job, from kubectl's answers, by code that shares nothing with
Fairlead's.

Pods are found by their owners, never by a label. Their status word is the one that kubectl prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.kube.kubectl import Kubectl
from tests.kube.objects import GPU

Object = dict[str, Any]

CHIEF_ROLES = ("launcher", "master")
"""What both operators write as `job-role` on the chief's pod."""


@dataclass(frozen=True)
class PodTruth:
    status: str
    node: str
    host_ip: str
    gpus: int
    is_chief: bool


@dataclass(frozen=True)
class JobTruth:
    """`node` is the host IP of a chief that is past Pending;
    `ended` is None while the job lives.
    """

    uid: str
    status: str
    requested: int
    allocated: int
    pods: dict[str, PodTruth]
    node: str
    started: float | None
    ended: float | None


@dataclass(frozen=True)
class JobObjects:
    """The job as stored, and its pods."""

    job: Object
    pods: list[Object]

    def condition(self, type_: str) -> Object:
        """The condition of this type; {} when there is none."""
        return next(
            (
                each
                for each in self.job.get("status", {}).get("conditions") or ()
                if each["type"] == type_
            ),
            {},
        )

    def has(self, type_: str) -> bool:
        return bool(self.condition(type_).get("status") == "True")

    @property
    def chief(self) -> Object | None:
        """Of several, the newest past Pending, else the newest: a batch Job waits seconds before it
        tries again, so no two have the same age.
        """
        chiefs = [
            pod
            for pod in self.pods
            if pod["metadata"]["labels"].get("training.kubeflow.org/job-role") in CHIEF_ROLES
        ]
        begun = [pod for pod in chiefs if pod["status"]["phase"] != "Pending"]
        return max(
            begun or chiefs, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None
        )


def read_job(admin: Kubectl, resource: str, name: str, namespace: str) -> JobObjects | None:
    """Read the job in one request; None when no such job exists."""
    found = admin.get(f"{resource},jobs,pods", "-n", namespace)
    job = next(
        (
            obj
            for obj in found
            if obj["kind"] not in ("Job", "Pod") and obj["metadata"]["name"] == name
        ),
        None,
    )
    if job is None:
        return None
    owners = {job["metadata"]["uid"]}
    owners |= {
        obj["metadata"]["uid"] for obj in found if obj["kind"] == "Job" and _owners(obj) & owners
    }
    return JobObjects(job, [obj for obj in found if obj["kind"] == "Pod" and _owners(obj) & owners])


def job_truth(admin: Kubectl, resource: str, name: str, namespace: str) -> JobTruth:
    """What kubectl shows of the job now; AssertionError when it does not exist."""
    objects = read_job(admin, resource, name, namespace)
    assert objects is not None, f"{resource}/{name} is gone"
    job, pods, chief = objects.job, objects.pods, objects.chief
    words = _status_words(admin, namespace)
    started, ended = (
        _seconds(job.get("status", {}).get(key)) for key in ("startTime", "completionTime")
    )
    return JobTruth(
        uid=job["metadata"]["uid"],
        status=_status(objects),
        requested=sum(
            replica.get("replicas", 1) * _gpus(replica["template"]) for replica in _replicas(job)
        ),
        allocated=sum(
            _gpus(pod)
            for pod in pods
            if pod["spec"].get("nodeName") and pod["status"]["phase"] in ("Pending", "Running")
        ),
        pods={
            pod["metadata"]["name"]: _pod(pod, words.get(pod["metadata"]["name"], ""), chief)
            for pod in pods
        },
        node=chief["status"].get("hostIP", "")
        if chief and chief["status"]["phase"] != "Pending"
        else "",
        started=started,
        ended=ended,
    )


def left_of_jobs(admin: Kubectl, namespace: str) -> Sequence[str]:
    """Objects of the namespace besides those that every namespace has, as KIND/NAME."""
    found = admin.get(
        "mpijobs,tfjobs,pytorchjobs,jobs,pods,services,secrets,configmaps", "-n", namespace
    )
    return [
        f"{obj['kind']}/{obj['metadata']['name']}"
        for obj in found
        if obj["metadata"]["name"] != "kube-root-ca.crt"
    ]


def _status(objects: JobObjects) -> str:
    for type_, word in (
        ("Failed", "FAILED"),
        ("Succeeded", "SUCCEEDED"),
        ("Suspended", "SUSPENDED"),
        ("Restarting", "RESTARTING"),
    ):
        if objects.has(type_):
            return word
    waits = any(
        pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]
        for pod in objects.pods
    )
    return "RUNNING" if objects.has("Running") and not waits else "PENDING"


def _replicas(job: Object) -> Iterable[Object]:
    (found,) = (value for key, value in job["spec"].items() if key.endswith("ReplicaSpecs"))
    replicas: dict[str, Object] = found
    return replicas.values()


def _gpus(pod: Object) -> int:
    return sum(
        int(container.get("resources", {}).get("limits", {}).get(GPU, 0))
        for container in pod["spec"]["containers"]
    )


def _owners(obj: Object) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}


def _pod(pod: Object, status: str, chief: Object | None) -> PodTruth:
    return PodTruth(
        status=status,
        node=pod["spec"].get("nodeName", ""),
        host_ip=pod["status"].get("hostIP", ""),
        gpus=_gpus(pod),
        is_chief=chief is not None and pod["metadata"]["uid"] == chief["metadata"]["uid"],
    )


def _status_words(admin: Kubectl, namespace: str) -> dict[str, str]:
    lines = admin.run("get", "pods", "-n", namespace, "--no-headers").splitlines()
    return {cells[0]: cells[2] for cells in (line.split() for line in lines)}


def _seconds(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()
