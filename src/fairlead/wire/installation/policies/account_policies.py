"""Policies about what the accounts of the scheduler and of the quota controller may write
(Kubernetes 1.30 and later).

RBAC gives a right to patch an object, not a field of it. With these policies a stolen token of
either account changes no image, no label and no status beyond what its owner writes.
docs/concepts/security.md lists every account.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.installation.policies.policy_parts import (
    BEFORE_AND_AFTER,
    WORKLOAD_UPDATES,
    Object,
    cel,
    is_one_of,
    is_user,
    on,
    refuse,
    validating,
)

_KUBERNETES: Final = ("kube-system", "kube-public", "kube-node-lease")


def account_policies(accounts: OwnAccounts) -> list[Object]:
    is_controller = {"is-the-quota-controller": is_user(accounts.quota_controller)}
    spaces = (*_KUBERNETES, accounts.namespace, accounts.node_namespace, USERS_NAMESPACE)
    own = ", ".join(f'"{each}"' for each in spaces)
    return [
        *validating(
            "fairlead-scheduler-writes",
            "accounts",
            rules=[on("UPDATE", "pods pods/status"), on("CREATE", "pods/binding bindings")],
            conditions={"is-the-scheduler": is_one_of([accounts.scheduler, accounts.extender])},
            variables={
                **BEFORE_AND_AFTER,
                "annotations": cel("""
            variables.before.filter(key, variables.before[?key] != variables.after[?key])
              + variables.after.filter(key, variables.before[?key] != variables.after[?key])
            """),
            },
            validations=[
                refuse(
                    cel("""
            variables.annotations.all(key, key in [
               "fairlead.io/gpu-allocation", "fairlead.io/gpu-retry",
               "scheduler.framework.gpushare.allocation",
               "scheduler.framework.gpushare.assigned",
               "scheduler.framework.gpushare.assume-time",
               "scheduler.framework.gpushare.assign-time",
               "gpushare.alibabacloud.com/core-percentage",
               "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD", "ALIYUN_COM_GPU_MEM_DEV",
               "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
                 "ALIYUN_COM_GPU_MEM_ASSIGN_TIME",
               "topology.kubernetes.io/gpu-group"])
            """),
                    "the scheduler writes the annotations of a pod's grant, and no other",
                ),
                refuse(
                    cel("""
            oldObject == null
              ? object.metadata.?labels.orValue({}).size() == 0
              : object.metadata.?labels == oldObject.metadata.?labels
                && object.metadata.?finalizers == oldObject.metadata.?finalizers
                && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
                  && object.spec == oldObject.spec
            """),
                    (
                        "the scheduler changes nothing of a pod but its grant, its node and its "
                        "status"
                    ),
                ),
                refuse(
                    cel("""
            oldObject == null || [object.?status.orValue({}), oldObject.?status.orValue({})]
              .all(each, each.all(key, key in ["conditions", "nominatedNodeName",
                "resourceClaimStatuses", "extendedResourceClaimStatus", "observedGeneration"]
                || object.?status[?key] == oldObject.?status[?key]))
            """),
                    (
                        "the scheduler writes conditions and the nominated node of a pod's "
                        "status, and nothing else"
                    ),
                ),
            ],
        ),
        *validating(
            "fairlead-quota-namespaces",
            "accounts",
            rules=[on("UPDATE", "namespaces")],
            conditions=is_controller,
            variables={
                "labels": cel("""
            [oldObject.metadata.?labels.orValue({}), object.metadata.?labels.orValue({})]
            """),
                "annotations": cel("""
            [oldObject.metadata.?annotations.orValue({}), object.metadata.?annotations.orValue({})]
            """),
            },
            validations=[
                refuse(
                    cel("""
            variables.labels.all(each, each.all(key, key == "fairlead.io/quota"
                || variables.labels[0][?key] == variables.labels[1][?key]))
              && variables.annotations.all(each, each.all(key, key == "fairlead.io/leaf"
                  || variables.annotations[0][?key] == variables.annotations[1][?key]))
            """),
                    (
                        "the quota controller writes the label fairlead.io/quota and the "
                        "annotation fairlead.io/leaf of a namespace, and no other"
                    ),
                ),
                refuse(
                    cel("""
            object.spec == oldObject.spec
              && object.metadata.?finalizers == oldObject.metadata.?finalizers
              && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
            """),
                    "the quota controller changes nothing else of a namespace",
                ),
            ],
        ),
        *validating(
            "fairlead-quota-pods",
            "accounts",
            rules=[on("UPDATE", "pods pods/status")],
            conditions=is_controller,
            variables={
                "gates": cel("""
            [object.spec.?schedulingGates.orValue([]), oldObject.spec.?schedulingGates.orValue([])]
            """),
                "status": "[object.?status.orValue({}), oldObject.?status.orValue({})]",
                "conditions": cel("""
            [variables.status[0].?conditions.orValue([]),
              variables.status[1].?conditions.orValue([])]
            """),
            },
            validations=[
                refuse(
                    cel("""
            object.metadata.?labels == oldObject.metadata.?labels
              && object.metadata.?annotations == oldObject.metadata.?annotations
              && object.metadata.?finalizers == oldObject.metadata.?finalizers
              && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
              && [object.spec, oldObject.spec].all(each, each.all(key, key == "schedulingGates"
                || object.spec[?key] == oldObject.spec[?key]))
              && variables.gates[0].all(gate, gate in variables.gates[1])
              && variables.gates[1].all(gate, gate.name == "fairlead.io/quota"
                || gate in variables.gates[0])
            """),
                    (
                        "the quota controller takes the gate fairlead.io/quota off a pod, and "
                        "changes nothing else of it"
                    ),
                ),
                refuse(
                    cel("""
            variables.status.all(each, each.all(key, key in ["conditions", "observedGeneration"]
                || variables.status[0][?key] == variables.status[1][?key]))
              && [variables.conditions, [variables.conditions[1],
                variables.conditions[0]]].all(pair, pair[0].all(each,
                each.type in ["fairlead.io/QuotaAdmitted", "PodScheduled"] || each in pair[1]))
            """),
                    (
                        "the quota controller may write the condition fairlead.io/QuotaAdmitted "
                        "of a pod, and nothing else of its status"
                    ),
                ),
            ],
        ),
        # Quota takes pods of no leaf: a holder of this account's token must not end the cluster's
        # own pods, nor Fairlead's.
        *validating(
            "fairlead-quota-ends",
            "accounts",
            rules=[on("DELETE", "pods"), on("CREATE", "pods/eviction")],
            conditions=is_controller,
            validations=[
                refuse(
                    f"!(request.namespace in [{own}])",
                    "the quota controller ends no pod of the cluster's own namespaces",
                ),
                refuse(
                    cel("""
            request.operation != "DELETE" || oldObject.spec.?nodeName.orValue("") == ""
            """),
                    (
                        "the quota controller deletes a pod only while it is on no node; others "
                        "it evicts"
                    ),
                ),
            ],
        ),
        *validating(
            "fairlead-quota-workloads",
            "accounts",
            rules=WORKLOAD_UPDATES,
            conditions=is_controller,
            variables={
                "policies": cel("""
            [dyn(object).spec.?runPolicy.orValue({}), dyn(oldObject).spec.?runPolicy.orValue({})]
            """),
                "annotations": cel("""
            [object.metadata.?annotations.orValue({}), oldObject.metadata.?annotations.orValue({})]
            """),
            },
            validations=[
                refuse(
                    cel("""
            [dyn(object).spec, dyn(oldObject).spec].all(each, each.all(key,
                key in ["suspend", "parallelism", "runPolicy"]
                || dyn(object).spec[?key] == dyn(oldObject).spec[?key]))
              && variables.policies.all(each, each.all(key, key == "suspend"
                  || variables.policies[0][?key] == variables.policies[1][?key]))
            """),
                    (
                        "the quota controller suspends a job, resumes it and sets its "
                        "parallelism, and changes nothing else of it"
                    ),
                ),
                refuse(
                    cel("""
            variables.annotations.all(each, each.all(key, key.startsWith("fairlead.io/")
                || variables.annotations[0][?key] == variables.annotations[1][?key]))
              && object.metadata.?labels == oldObject.metadata.?labels
                && object.metadata.?finalizers == oldObject.metadata.?finalizers
              && object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences
            """),
                    "the quota controller writes only its own annotations of a job",
                ),
            ],
        ),
    ]
