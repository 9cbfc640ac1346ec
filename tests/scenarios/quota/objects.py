"""A scenario as objects of the Kubernetes API, as a user would write them.

The labels of a pod show its workload: `app` is the workload's name, and `played` marks all objects
of a scenario.
"""

from __future__ import annotations

from typing import Any, Final

from tests.scenarios.quota.files import Scenario, ScenarioBudget, ScenarioWorkload

from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import Amounts

Object = dict[str, Any]
PLAYED: Final = "played"
GPU: Final = "nvidia.com/gpu"
GPU_MEMORY: Final = "aliyun.com/gpu-mem"
GPU_COUNT: Final = "aliyun.com/gpu-count"
NODES: Final = ("scenario-gpus", "scenario-shared")
VERSIONS: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "MPIJob": "kubeflow.org/v2beta1",
    "Pod": "v1",
}
PLURALS: Final = {kind: f"{kind.lower()}s" for kind in VERSIONS}
GANG: Final = "pod-group.scheduling.sigs.k8s.io/name"
GANG_SIZE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
PREEMPTIBLE: Final = "quota.scheduling.alibabacloud.com/preemptible"


def tree_object(root: QuotaNode) -> Object:
    metadata = {"name": "elasticquotatree", "namespace": "kube-system"}
    api = "scheduling.sigs.k8s.io/v1beta1"
    return {
        "apiVersion": api,
        "kind": "ElasticQuotaTree",
        "metadata": metadata,
        "spec": {"root": node_object(root)},
    }


def node_object(node: QuotaNode) -> Object:
    found: Object = {"name": node.name, "min": _written(node.min), "max": _written(node.max)}
    if node.namespaces:
        found["namespaces"] = list(node.namespaces)
    if node.attributes:
        found["attributes"] = dict(node.attributes)
    if node.children:
        found["children"] = [node_object(child) for child in node.children]
    return found


def _written(amounts: Amounts) -> Object:
    return {
        name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()
    }


def namespaces(scenario: Scenario) -> list[Object]:
    """The namespaces of all trees of the scenario, and of workloads outside of them."""
    trees = [scenario.root(), *(scenario.root(step.tree) for step in scenario.steps if step.tree)]
    names = {space for tree in trees for leaf in tree.leaves() for space in leaf.namespaces}
    names |= {scenario.namespace(workload) for step in scenario.steps for workload in step.add}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in sorted(names)
    ]


def priority_classes(scenario: Scenario) -> list[Object]:
    classes = {
        (name, each.priority, each.never_preempts)
        for step in scenario.steps
        for each in step.add
        if (name := _class(each))
    }
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        | ({"preemptionPolicy": "Never"} if is_never else {})
        for name, value, is_never in sorted(classes)
    ]


def _class(workload: ScenarioWorkload) -> str:
    """The name of the workload's PriorityClass; "" = none."""
    if workload.never_preempts:
        return f"priority-{workload.priority}-never"
    return f"priority-{workload.priority}" if workload.priority else ""


def nodes() -> list[Object]:
    """Two cluster nodes with more capacity than any tree: one with whole GPUs, one that shares
    them.
    """
    host = {"cpu": "256", "memory": "1024Gi", "pods": "500"}
    more: dict[str, Object] = {
        NODES[0]: {GPU: "64"},
        NODES[1]: {GPU_MEMORY: "512", GPU_COUNT: "16"},
    }
    return [_node(name, {**host, **more[name]}) for name in NODES]


def _node(name: str, amounts: Object) -> Object:
    """A node that KWOK simulates: the annotation makes it Ready."""
    labels = {"kubernetes.io/hostname": name, **({"cgpu": "true"} if GPU_MEMORY in amounts else {})}
    metadata = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def budget_object(scenario: Scenario, budget: ScenarioBudget) -> Object:
    """A budget for the pods of one workload; `allows` of them may be unavailable."""
    leaf, _, app = budget.workload.partition("/")
    metadata = {
        "name": budget.name,
        "namespace": scenario.leaf_namespace(leaf),
        "labels": {PLAYED: "yes"},
    }
    spec = {"maxUnavailable": budget.allows, "selector": {"matchLabels": {"app": app}}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
    }


def workload_objects(scenario: Scenario, workload: ScenarioWorkload) -> list[Object]:
    space = scenario.namespace(workload)
    labels = {"app": workload.name, PLAYED: "yes"}
    metadata = {"name": workload.name, "namespace": space, "labels": labels}
    template = {
        "metadata": {"labels": {**labels, **_wishes(workload)}},
        "spec": _pod_spec(scenario, workload),
    }
    if workload.kind == "Pod":
        return [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **template["metadata"],
                    "name": f"{workload.name}-{n}",
                    "namespace": space,
                },
            }
            | {"spec": template["spec"]}
            for n in range(workload.replicas)
        ]
    spec = _spec(workload, template, labels)
    return [
        {
            "apiVersion": VERSIONS[workload.kind],
            "kind": workload.kind,
            "metadata": metadata,
            "spec": spec,
        }
    ]


def _wishes(workload: ScenarioWorkload) -> dict[str, str]:
    found: dict[str, str] = {}
    if workload.preemptible is not None:
        found[PREEMPTIBLE] = str(workload.preemptible).lower()
    if workload.gang and workload.kind == "Pod":
        found |= {GANG: workload.name, GANG_SIZE: str(workload.gang)}
    return found


def _pod_spec(scenario: Scenario, workload: ScenarioWorkload) -> Object:
    asked = scenario.quantities(workload)
    name = "pytorch" if workload.kind == "PyTorchJob" else "main"
    container = {
        "name": name,
        "image": "train:9h",
        "resources": {"requests": asked, "limits": asked},
    }
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": 1}
    if name := _class(workload):
        spec["priorityClassName"] = name
    if workload.gate:
        spec["schedulingGates"] = [{"name": workload.gate}]
    if workload.kind in ("Job", "Pod"):
        spec["restartPolicy"] = "Never"
    return spec


def _spec(workload: ScenarioWorkload, template: Object, labels: dict[str, str]) -> Object:
    selector = {"matchLabels": labels}
    match workload.kind:
        case "Deployment":
            return {"replicas": workload.replicas, "selector": selector, "template": template}
        case "StatefulSet":
            parallel = {"serviceName": workload.name, "podManagementPolicy": "Parallel"}
            return {
                "replicas": workload.replicas,
                "selector": selector,
                "template": template,
                **parallel,
            }
        case "DaemonSet":
            return {"selector": selector, "template": template}
        case "Job":
            return {
                "parallelism": workload.replicas,
                "completions": workload.replicas,
                "backoffLimit": 0,
                "template": template,
            }
        case "PyTorchJob":
            return {
                "pytorchReplicaSpecs": _roles("Master", workload.replicas, template),
                "runPolicy": {"cleanPodPolicy": "None"},
            }
        case "MPIJob":
            roles = _roles("Launcher", workload.replicas, template)
            return {
                "slotsPerWorker": 1,
                "mpiReplicaSpecs": roles,
                "runPolicy": {"cleanPodPolicy": "Running"},
            }
    raise AssertionError(f"no manifest of a {workload.kind} is written here")


def _roles(first: str, pods: int, template: Object) -> Object:
    one = {"restartPolicy": "Never", "template": template}
    return {
        first: {"replicas": 1, **one},
        **({"Worker": {"replicas": pods - 1, **one}} if pods > 1 else {}),
    }
