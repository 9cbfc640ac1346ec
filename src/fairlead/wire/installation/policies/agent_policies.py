"""Policies about what the agent of a node may write: its own Node, and marks on its pods.

On pods of that node it writes that they have their cards. Needs Kubernetes 1.32 or later: from then
on the token of a pod names its node.

An intruder on one node can then not change another, nor grant memory to a pod.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.wire.installation.policies.policy_parts import (
    BEFORE_AND_AFTER,
    Object,
    cel,
    is_user,
    on,
    refuse,
    validating,
)

_OWN_NODE: Final = {
    "own": cel("""
            has(request.userInfo.extra)
              && "authentication.kubernetes.io/node-name" in request.userInfo.extra
              ? request.userInfo.extra["authentication.kubernetes.io/node-name"][0] : ""
            """),
}
"""The node that the token names; "" = it names none."""
_CHANGED: Final = {
    **BEFORE_AND_AFTER,
    "annotations": cel("""
            variables.before.filter(key, variables.before[?key].orValue("") !=
                variables.after[?key].orValue(""))
              + variables.after.filter(key, variables.before[?key].orValue("") !=
                variables.after[?key].orValue(""))
            """),
}
"""The keys of changed annotations; an empty value is as none."""


def agent_policies(accounts: OwnAccounts) -> list[Object]:
    own_namespace = accounts.node_namespace
    is_agent = {"is-a-node-agent": is_user(accounts.node_agent)}
    return [
        *validating(
            "fairlead-node-agent-pods",
            "node-agent",
            rules=[on("CREATE UPDATE", "pods pods/status")],
            conditions=is_agent,
            variables={**_OWN_NODE, **_CHANGED},
            validations=[
                refuse(
                    cel("""
            object.spec.?nodeName.orValue("") == variables.own && variables.own != ""
            """),
                    computed=cel("""
            "the node agent of node `" + variables.own + "` writes only on pods of that node"
            """),
                ),
                refuse(
                    f'oldObject != null || (object.metadata.namespace == "{own_namespace}"'
                    '\n  && object.metadata.name == "fairlead-cdi-test-" + variables.own)',
                    "a node agent makes no pod but the one that tests its container runtime",
                ),
                # A label can put a pod behind a Service of Fairlead's.
                refuse(
                    cel("""
            oldObject != null || (object.metadata.?labels.orValue({}).all(key,
              key == "app.kubernetes.io/name"
              && object.metadata.labels[key] == "fairlead-cdi-test")
              && [object.metadata.?finalizers, object.metadata.?ownerReferences].all(each,
                each.orValue([]).size() == 0))
            """),
                    "the pod that tests the container runtime has its one label, and no owner",
                ),
                # Only what the agent writes, and what the API server itself adds.
                # Other fields are refused.
                refuse(
                    cel("""
            oldObject != null || object.spec.map(key, key).all(key, key in ["nodeName",
              "restartPolicy", "automountServiceAccountToken",
              "enableServiceLinks", "terminationGracePeriodSeconds", "containers", "tolerations",
                "serviceAccountName", "serviceAccount",
              "dnsPolicy", "schedulerName", "securityContext", "priority", "priorityClassName",
                "preemptionPolicy"])
            """),
                    (
                        "the pod that tests the container runtime has no account, no volumes and "
                        "no rights"
                    ),
                ),
                refuse(
                    cel("""
            oldObject != null || (object.spec.?serviceAccountName.orValue("default") == "default"
              && object.spec.?automountServiceAccountToken.orValue(true) == false
              && object.spec.?priorityClassName.orValue("") == ""
              && object.spec.?securityContext.orValue({}).size() == 0
              && object.spec.containers.size() == 1
              && object.spec.containers[0].map(key, key).all(key, key in ["name", "image",
                "resources", "command", "args",
                "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"])
              && object.spec.containers[0].?terminationMessagePath.orValue("/dev/termination-log")
                == "/dev/termination-log")
            """),
                    (
                        "the pod that tests the container runtime has no account, no volumes and "
                        "no rights"
                    ),
                ),
                refuse(
                    cel("""
            oldObject == null || variables.annotations.all(key,
              key in ["ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSIGN_TIME",
              "scheduler.framework.gpushare.assigned", "scheduler.framework.gpushare.assign-time"])
            """),
                    "a node agent may mark on a pod that it has its GPUs, and nothing else",
                ),
                refuse(
                    cel("""
            oldObject == null || (object.spec == oldObject.spec
              && object.?status == oldObject.?status
              && object.metadata.?labels == oldObject.metadata.?labels
                && object.metadata.?finalizers == oldObject.metadata.?finalizers
              && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences)
            """),
                    "a node agent changes nothing of a pod but annotations",
                ),
            ],
        ),
        # Without this it could take away any pod of Fairlead's own: RBAC knows no names that depend
        # on a node.
        *validating(
            "fairlead-node-agent-deletes",
            "node-agent",
            rules=[on("DELETE", "pods")],
            conditions=is_agent,
            variables=_OWN_NODE,
            validations=[
                refuse(
                    f'variables.own != "" && oldObject.metadata.namespace == "{own_namespace}"'
                    '\n  && oldObject.metadata.name == "fairlead-cdi-test-" + variables.own',
                    "a node agent deletes no pod but the one that tests its container runtime",
                ),
            ],
        ),
        *validating(
            "fairlead-node-agent-nodes",
            "node-agent",
            rules=[on("CREATE UPDATE", "nodes nodes/status")],
            conditions=is_agent,
            variables={**_OWN_NODE, **_CHANGED},
            validations=[
                refuse(
                    'object.metadata.name == variables.own && variables.own != ""',
                    computed=cel("""
            "the node agent of node `" + variables.own + "` writes only on that node"
            """),
                ),
                refuse(
                    cel("""
            variables.annotations.all(key, key in ["fairlead.io/gpus", "fairlead.io/gpu-identity",
              "fairlead.io/gpu-mem-unit"])
            """),
                    (
                        "a node agent may write annotations about its GPUs on its node, and no "
                        "other annotation"
                    ),
                ),
                refuse(
                    cel("""
            [oldObject.metadata.?labels.orValue({}), object.metadata.?labels.orValue({})].all(each,
              each.all(key, key in ["fairlead.io/gpu-isolation", "aliyun.accelerator/nvidia_name",
                "aliyun.accelerator/nvidia_mem", "aliyun.accelerator/nvidia_count"]
                || oldObject.metadata.?labels[?key].orValue("") ==
                  object.metadata.?labels[?key].orValue("")))
            """),
                    "a node agent writes on its node the labels of its GPUs, and no other",
                ),
                # Addresses and the kubelet's port among them: with those an API server could be
                # led to another machine.
                refuse(
                    cel("""
            object.metadata.?finalizers == oldObject.metadata.?finalizers
              && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
              && [object.?status.orValue({}), oldObject.?status.orValue({})].all(each, each.all(key,
                key in ["capacity", "allocatable", "conditions"]
                  || object.?status[?key] == oldObject.?status[?key]))
            """),
                    "a node agent changes nothing else of its node",
                ),
                refuse(
                    cel("""
            object.spec == oldObject.spec
              && [[object.?status.capacity, oldObject.?status.capacity],
                [object.?status.allocatable, oldObject.?status.allocatable]]
                .all(pair, pair.all(each, each.orValue({}).all(key,
                  key in ["aliyun.com/gpu-count", "aliyun.com/gpu-mem",
                    "aliyun.com/gpu-core.percentage", "nvidia.com/gpu"]
                  || pair[0].orValue({})[?key] == pair[1].orValue({})[?key])))
            """),
                    "a node agent changes nothing of its node but the counts of its GPUs",
                ),
                refuse(
                    cel("""
            [[object, oldObject], [oldObject, object]].all(pair,
              pair[0].?status.conditions.orValue([]).all(each,
              each.type == "GPUShareReady" || each in pair[1].?status.conditions.orValue([])))
            """),
                    (
                        "a node agent may write the condition GPUShareReady of its node, and no "
                        "other"
                    ),
                ),
            ],
        ),
    ]
