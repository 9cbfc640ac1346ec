"""The training jobs of the mixed company, one in each state, with the pods and the status that
their operators would make.
"""

from __future__ import annotations

from tests.kube.kubectl import Kubectl
from tests.kube.kwok_stages import EXIT_CODE, RUN_TIME
from tests.kube.numbers.tied_pods import CORDONED, MIG_LARGE, SILENT, USER, tied, utc
from tests.kube.objects import GPU, Object, pod, pod_spec


def training_jobs() -> list[Object]:
    return [
        _mpijob("bert", workers=2, gpus=2, labels={USER: "bob"}),
        _mpijob("pair", workers=2, gpus=1),
        _mpijob("waits", workers=2, gpus=12),
        _mpijob("done", workers=1, gpus=1),
        _mpijob("slices", workers=1, gpus=1, resource=MIG_LARGE),
        _tfjob("mnist"),
        _tfjob("broken"),
    ]


def _mpijob(
    name: str, *, workers: int, gpus: int, resource: str = GPU, labels: Object | None = None
) -> Object:
    replicas = {"Launcher": _replicas(1, {}), "Worker": _replicas(workers, {resource: gpus})}
    return _training_job("v2beta1", "MPIJob", name, {"mpiReplicaSpecs": replicas}, labels)


def _tfjob(name: str) -> Object:
    return _training_job(
        "v1",
        "TFJob",
        name,
        {"tfReplicaSpecs": {"Chief": _replicas(1, {GPU: 1}), "Worker": _replicas(1, {GPU: 1})}},
    )


def _training_job(
    version: str, kind: str, name: str, spec: Object, labels: Object | None = None
) -> Object:
    metadata = {"name": name, "namespace": "research", "labels": labels or {}}
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def _replicas(count: int, limits: dict[str, int]) -> Object:
    spec = tied({"spec": pod_spec()}, "any", limits)["spec"]
    del spec["restartPolicy"], spec["nodeSelector"]
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": spec}}


def training_pods(admin: Kubectl) -> list[Object]:
    """The pods that the operators would make; `done` has none left."""
    jobs = {
        item["metadata"]["name"]: item for item in admin.get("mpijobs,tfjobs", "-n", "research")
    }
    return [
        _of(jobs["bert"], "launcher", "cpu-1", {}),
        *(
            _of(jobs["bert"], f"worker-{number}", node, {GPU: 2})
            for number, node in enumerate(("a100-1", "a100-2"))
        ),
        *(
            _of(jobs["pair"], f"worker-{number}", node, {GPU: 1})
            for number, node in enumerate(("bare-1", SILENT))
        ),
        *(_of(jobs["waits"], f"worker-{number}", "a100-1", {GPU: 12}) for number in range(2)),
        _of(jobs["slices"], "worker-0", "mig-1", {MIG_LARGE: 1}),
        _of(jobs["mnist"], "chief-0", CORDONED, {GPU: 1}),
        _of(jobs["mnist"], "worker-0", "bare-1", {}),
        *(
            _of(jobs["broken"], role, "a100-1", {GPU: 1}, {RUN_TIME: "1s", EXIT_CODE: "2"})
            for role in ("chief-0", "worker-0")
        ),
    ]


def _of(
    owner: Object, role: str, node: str, limits: dict[str, int], annotations: Object | None = None
) -> Object:
    metadata = owner["metadata"]
    word, _, index = role.partition("-")
    operator = {"MPIJob": "mpi-operator", "TFJob": "tfjob-controller"}[owner["kind"]]
    labels = {
        f"training.kubeflow.org/{key}": value
        for key, value in (("operator-name", operator), ("job-name", metadata["name"]))
    }
    if owner["kind"] == "MPIJob" or word == "chief":
        labels["training.kubeflow.org/job-role"] = "master" if word == "chief" else word
    if owner["kind"] == "TFJob":
        labels["training.kubeflow.org/replica-type"] = word
    labels["training.kubeflow.org/replica-index"] = index or "0"
    made = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    name = f"{metadata['name']}-{role}"
    return tied(
        pod(
            name,
            namespace=metadata["namespace"],
            labels=labels,
            annotations=annotations or {},
            ownerReferences=[made],
        ),
        node,
        limits,
    )


def write_job_statuses(admin: Kubectl) -> None:
    """Write the statuses that the operators would have written by now."""
    ended = {"startTime": utc(8000), "completionTime": utc(3000)}
    statuses: list[tuple[str, str, Object]] = [
        (
            "mpijobs",
            "bert",
            {"startTime": utc(4000), "conditions": conditions(4000, "Created", "Running")},
        ),
        (
            "mpijobs",
            "pair",
            {"startTime": utc(700), "conditions": conditions(700, "Created", "Running")},
        ),
        (
            "mpijobs",
            "slices",
            {"startTime": utc(90), "conditions": conditions(0, "Created", "Running")},
        ),
        ("mpijobs", "waits", {"conditions": conditions(60, "Created")}),
        ("mpijobs", "done", {**ended, "conditions": conditions(3000, "Created", "Succeeded")}),
        (
            "tfjobs",
            "mnist",
            {
                "startTime": utc(300),
                "conditions": conditions(300, "Created", "Running"),
                "replicaStatuses": {},
            },
        ),
        (
            "tfjobs",
            "broken",
            {**ended, "conditions": conditions(3000, "Created", "Failed"), "replicaStatuses": {}},
        ),
    ]
    for resource, name, status in statuses:
        admin.patch_status(resource, name, "research", status)


def conditions(ago: float, *kinds: str) -> list[Object]:
    moment = {"lastTransitionTime": utc(ago), "lastUpdateTime": utc(ago)}
    return [
        {"type": kind, "status": "True", "reason": f"Job{kind}", "message": "", **moment}
        for kind in kinds
    ]
