"""What may be saved of objects: everything that a simulated cluster needs, and nothing that could
be a secret.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.wire.kube.kept_objects import KEPT_KINDS, kept_object

SECRET = "hunter2"
Object = dict[str, Any]

METADATA: Object = {
    "name": "x",
    "namespace": "n",
    "uid": "u",
    "resourceVersion": "7",
    "labels": {"app": "x"},
    "creationTimestamp": "2026-01-05T08:00:00Z",
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": f'{{"env": "{SECRET}"}}',
        "team.example.com/token": SECRET,
        "deployment.kubernetes.io/revision": "3",
        "arena.kubeflow.org/username": "anna",
    },
    "managedFields": [{"fieldsV1": SECRET}],
}
CONTAINER: Object = {
    "name": "main",
    "image": "train:1",
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
    "command": ["sh", "-c", f"login {SECRET}"],
    "args": [SECRET],
    "env": [
        {"name": "PASSWORD", "value": SECRET},
        {"name": "OTHER", "valueFrom": {"secretKeyRef": {"name": SECRET}}},
    ],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "volumeMounts": [{"mountPath": SECRET}],
    "lifecycle": {"postStart": {"exec": {"command": [SECRET]}}},
    "livenessProbe": {"httpGet": {"httpHeaders": [{"value": SECRET}]}},
    "somethingNew": SECRET,
}
POD_SPEC: Object = {
    "nodeName": "gpu-1",
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "restartPolicy": "Always"}],
    "ephemeralContainers": [CONTAINER],
    "volumes": [
        {"name": "v", "secret": {"secretName": SECRET}},
        {"name": "d", "downwardAPI": SECRET},
    ],
    "imagePullSecrets": [{"name": SECRET}],
    "hostAliases": [SECRET],
    "schedulingGates": [{"name": "gate"}],
}
TEMPLATE: Object = {"metadata": METADATA, "spec": POD_SPEC}
ENDED: Object = {
    "terminated": {
        "exitCode": 1,
        "reason": "Error",
        "message": f"the program printed {SECRET}",
        "startedAt": "s",
        "finishedAt": "f",
    }
}
POD_STATUS: Object = {
    "phase": "Running",
    "conditions": [{"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [
        {
            "name": "main",
            "restartCount": 2,
            "state": ENDED,
            "lastState": ENDED,
            "volumeMounts": SECRET,
        }
    ],
    "ephemeralContainerStatuses": [{"name": SECRET}],
}
ROLES: Object = {"Worker": {"replicas": 2, "template": TEMPLATE, "somethingNew": SECRET}}
PLANTED: dict[str, Object] = {
    "Namespace": {"spec": {"x": SECRET}, "status": {"phase": "Active"}},
    "PriorityClass": {"value": 10, "description": SECRET},
    "Node": {
        "spec": {"configSource": SECRET, "unschedulable": True},
        "status": {"images": [SECRET], "capacity": {"cpu": "1"}},
    },
    "ElasticQuotaTree": {"spec": {"root": {"name": "root"}}, "extra": SECRET},
    "PodDisruptionBudget": {"spec": {"minAvailable": 1}},
    "Deployment": {
        "spec": {"replicas": 2, "selector": {}, "template": TEMPLATE},
        "status": {"replicas": 2},
    },
    "ReplicaSet": {"spec": {"replicas": 2, "selector": {}, "template": TEMPLATE}},
    "StatefulSet": {
        "spec": {
            "replicas": 2,
            "template": TEMPLATE,
            "volumeClaimTemplates": [{"metadata": {"annotations": {"a": SECRET}}}],
        },
    },
    "DaemonSet": {"spec": {"template": TEMPLATE}},
    "ControllerRevision": {
        "revision": 3,
        "data": {"spec": {"template": {**TEMPLATE, "$patch": "replace"}, "new": SECRET}},
    },
    "Job": {"spec": {"completions": 3, "template": TEMPLATE}, "status": {"succeeded": 1}},
    "CronJob": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"metadata": METADATA, "spec": {"template": TEMPLATE}},
        }
    },
    "MPIJob": {"spec": {"slotsPerWorker": 2, "mpiReplicaSpecs": ROLES, "sshAuthMountPath": SECRET}},
    "TFJob": {"spec": {"tfReplicaSpecs": ROLES}},
    "PyTorchJob": {"spec": {"pytorchReplicaSpecs": ROLES}},
    "Pod": {"spec": POD_SPEC, "status": POD_STATUS},
}


def planted(kind: str) -> Object:
    kept = next(each for each in KEPT_KINDS if each.kind == kind)
    api_version = f"{kept.group}/{kept.versions[0]}" if kept.group else kept.versions[0]
    return {"apiVersion": api_version, "kind": kind, "metadata": METADATA, **PLANTED[kind]}


@pytest.mark.parametrize("kind", [kept.kind for kept in KEPT_KINDS])
def test_no_planted_secret_is_kept(kind: str) -> None:
    obj = planted(kind)
    assert SECRET in json.dumps(obj), "the test plants nothing"
    kept = kept_object(obj)
    assert kept is not None
    assert SECRET not in json.dumps(kept)
    assert kept["metadata"]["annotations"] == {
        "deployment.kubernetes.io/revision": "3",
        "arena.kubeflow.org/username": "anna",
    }
    assert "resourceVersion" not in kept["metadata"] and "managedFields" not in kept["metadata"]


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap", "ServiceAccount", "Event", "Role"])
def test_other_kinds_are_not_kept_at_all(kind: str) -> None:
    assert (
        kept_object({"apiVersion": "v1", "kind": kind, "metadata": METADATA, "data": {"a": SECRET}})
        is None
    )


def test_a_namesake_of_another_group_is_not_the_kind() -> None:
    assert kept_object({**planted("Job"), "apiVersion": "batch.volcano.sh/v1alpha1"}) is None


def test_what_scheduling_needs_is_kept() -> None:
    kept = kept_object(planted("Pod"))
    assert kept is not None
    spec = kept["spec"]
    assert {
        key: spec[key]
        for key in ("nodeName", "nodeSelector", "tolerations", "affinity", "schedulingGates")
    } == {
        key: POD_SPEC[key]
        for key in ("nodeName", "nodeSelector", "tolerations", "affinity", "schedulingGates")
    }
    assert spec["containers"] == [{key: CONTAINER[key] for key in ("name", "image", "resources")}]
    assert kept["status"]["containerStatuses"][0]["state"]["terminated"] == {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": "s",
        "finishedAt": "f",
    }


@pytest.mark.parametrize(
    ("command", "kept_of_it"),
    [
        (["/usr/sbin/sshd", "-De", SECRET], ["/usr/sbin/sshd"]),
        (["/usr/sbin/sshd -p hunter2"], None),
        (["train", SECRET], None),
        ([], None),
        (SECRET, None),
        ([{"a": SECRET}], None),
    ],
)
def test_of_a_command_only_the_word_for_an_ssh_server_is_kept(
    command: Any, kept_of_it: list[str] | None
) -> None:
    spec = {"containers": [{"name": "main", "command": command}]}
    kept = kept_object({"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": spec})
    assert kept is not None
    assert kept["spec"]["containers"][0].get("command") == kept_of_it


def test_a_template_is_the_same_wherever_it_stands() -> None:
    """Otherwise a Deployment would not recognize its own ReplicaSet, and would begin a rollout."""
    deployment, replica_set = kept_object(planted("Deployment")), kept_object(planted("ReplicaSet"))
    revision = kept_object(planted("ControllerRevision"))
    assert deployment and replica_set and revision
    assert deployment["spec"]["template"] == replica_set["spec"]["template"]
    assert revision["data"]["spec"]["template"] == {
        **deployment["spec"]["template"],
        "$patch": "replace",
    }


@pytest.mark.parametrize(
    "spec", [None, [], "text", {"containers": "text"}, {"containers": [None, 3]}]
)
def test_objects_of_a_wrong_shape_do_no_harm(spec: Any) -> None:
    kept = kept_object({"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": spec})
    assert kept is not None
    assert not kept.get("spec", {}).get("containers")
