"""Admission of elastic quota (Kubernetes 1.36 and later; both kinds of policy are v1 there).

Only namespaces with the label `fairlead.io/quota=enforced` are concerned, which the quota
controller writes and removes. A new pod gets the scheduling gate `fairlead.io/quota`, which only
the quota controller removes; what quota decides by cannot be forged. `rules/quota/admission` has
the same logic for the webhook and the simulated cluster; tests/kube/test_quota_admission.py
compares.

DaemonSets are exempt by the account of their controller, so kube-controller-manager must run with
`--use-service-account-credentials` (kubeadm's do).
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.wire.installation.policies.policy_parts import (
    ENFORCED,
    Object,
    cel,
    is_one_of,
    is_user,
    mutating,
    on,
    refuse,
    validating,
)

OWNER_UPDATES: Final = on(
    "UPDATE",
    "*",
    groups="apps batch kubeflow.org ray.io batch.volcano.sh apps.kubedl.io",
    versions="*",
)
"""Writes of the objects that own pods."""
CHANGES_THE_USER: Final = {
    "changes-the-user": cel("""
            object.metadata.?labels[?"arena.kubeflow.org/console-user"] !=
              oldObject.metadata.?labels[?"arena.kubeflow.org/console-user"]
            """),
}


def is_trusted(accounts: OwnAccounts) -> str:
    """Fairlead's servers that write pods, and the cluster's administrators."""
    masters = 'request.userInfo.?groups.orValue([]).exists(group, group == "system:masters")'
    return f"{is_one_of(accounts.quota_writers)}\n  || {masters}"


def quota_policies(accounts: OwnAccounts) -> list[Object]:
    return [
        *mutating(
            "fairlead-quota-gate",
            "quota",
            rules=[on("CREATE", "pods")],
            conditions={
                "not-exempt": cel("""
            request.userInfo.username != "system:serviceaccount:kube-system:daemon-set-controller"
              && !request.userInfo.username.startsWith("system:node:")
            """),
            },
            applied=cel("""
            Object{
              metadata: Object.metadata{labels: {"fairlead.io/managed": "true"}},
              spec: Object.spec{schedulingGates: [Object.spec.schedulingGates{name:
                "fairlead.io/quota"}]}}
            """),
            namespaces=ENFORCED,
        ),
        # The owner: what a user of Fairlead creates has the user's id.
        *mutating(
            "fairlead-quota-stamp",
            "quota",
            rules=[
                on("CREATE", "pods"),
                on(
                    "CREATE",
                    "*",
                    groups="apps batch kubeflow.org ray.io batch.volcano.sh apps.kubedl.io",
                    versions="*",
                ),
            ],
            conditions={
                "a-user-of-fairlead": cel("""
            request.userInfo.username.startsWith("system:serviceaccount:kube-ai:")
            """),
            },
            patch=cel("""
            (has(object.metadata.labels) ? [] : [JSONPatch{op: "add", path: "/metadata/labels",
              value: {}}]) + [JSONPatch{op: "add", path: "/metadata/labels/"
              + jsonpatch.escapeKey("arena.kubeflow.org/console-user"),
              value: request.userInfo.username.substring(size("system:serviceaccount:kube-ai:"))}]
            """),
            namespaces=ENFORCED,
        ),
        # The clock of a job's deadline runs while its pods wait for quota: such a job begins
        # suspended, and the quota controller resumes it. A job that another controller looks after
        # is left to it; what a CronJob, a Cron or an Argo Workflow made is not. kuberay-operator
        # refuses a suspended RayJob that does not shut its cluster down, or that runs in a cluster
        # of others.
        *mutating(
            "fairlead-quota-deadline",
            "quota",
            rules=[on("CREATE", "jobs", groups="batch"), on("CREATE", "rayjobs", groups="ray.io")],
            conditions={
                "has-a-deadline": cel("""
            object.?spec.?activeDeadlineSeconds.orValue(0) > 0
              && !object.spec.?suspend.orValue(false)
            """),
                "can-be-suspended": cel("""
            object.kind != "RayJob" || (object.spec.?shutdownAfterJobFinishes.orValue(false)
              && object.spec.?clusterSelector.orValue({}).size() == 0)
            """),
                "no-other-controller-manages-it": cel("""
            !object.metadata.?ownerReferences.orValue([]).exists(owner,
              owner.?controller.orValue(false) && !(owner.kind in ["CronJob", "Cron", "Workflow"]))
            """),
            },
            patch=cel("""
            [JSONPatch{op: "add", path: "/spec/suspend", value: true}]
              + (has(object.metadata.annotations) ? [] : [JSONPatch{op: "add",
              path: "/metadata/annotations", value: {}}]) + [JSONPatch{op: "add",
              path: "/metadata/annotations/" + jsonpatch.escapeKey("fairlead.io/suspended-for"),
              value: "first-admission"}]
            """),
            namespaces=ENFORCED,
        ),
        *mutating(
            "fairlead-quota-training-deadline",
            "quota",
            rules=[
                on(
                    "CREATE",
                    "tfjobs pytorchjobs mpijobs",
                    groups="kubeflow.org",
                    versions="v1 v2beta1",
                )
            ],
            conditions={
                "has-a-deadline": cel("""
            object.?spec.?runPolicy.?activeDeadlineSeconds.orValue(0) > 0
              && !object.spec.runPolicy.?suspend.orValue(false)
            """),
                "no-other-controller-manages-it": cel("""
            !object.metadata.?ownerReferences.orValue([]).exists(owner,
              owner.?controller.orValue(false) && !(owner.kind in ["CronJob", "Cron", "Workflow"]))
            """),
            },
            patch=cel("""
            [JSONPatch{op: "add", path: "/spec/runPolicy/suspend", value: true}]
              + (has(object.metadata.annotations) ? [] : [JSONPatch{op: "add",
              path: "/metadata/annotations", value: {}}]) + [JSONPatch{op: "add",
              path: "/metadata/annotations/" + jsonpatch.escapeKey("fairlead.io/suspended-for"),
              value: "first-admission"}]
            """),
            namespaces=ENFORCED,
        ),
        # A write of a pod's status may change labels and annotations, and those of a Binding are
        # merged into the pod; `bindings` is the old way to bind.
        *validating(
            "fairlead-quota-guard",
            "quota",
            rules=[on("CREATE UPDATE", "pods pods/status"), on("CREATE", "pods/binding bindings")],
            conditions={
                "not-exempt": cel("""
            request.userInfo.username != "system:serviceaccount:kube-system:daemon-set-controller"
              && !request.userInfo.username.startsWith("system:node:")
            """),
            },
            variables={
                "leaf": cel("""
            namespaceObject.metadata.?annotations[?"fairlead.io/leaf"].orValue("")
            """),
                "isNew": 'object.kind == "Pod" && oldObject == null',
                "isTrusted": is_trusted(accounts),
                "labels": "object.metadata.?labels.orValue({})",
                "labelsBefore": "oldObject == null ? {} : oldObject.metadata.?labels.orValue({})",
                "annotations": "object.metadata.?annotations.orValue({})",
                "annotationsBefore": cel("""
            oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})
            """),
                "hasGate": cel("""
            object.?spec.?schedulingGates.orValue([]).exists(gate, gate.name == "fairlead.io/quota")
            """),
                "hadGate": cel("""
            oldObject != null && oldObject.?spec.?schedulingGates.orValue([]).exists(gate,
              gate.name == "fairlead.io/quota")
            """),
                "named": cel("""
            variables.labels[?"quota.scheduling.alibabacloud.com/name"].orValue(variables.leaf)
            """),
                "changedLabels": cel("""
            (variables.labels.map(key, key) + variables.labelsBefore.map(key, key)).filter(key,
              (key.startsWith("fairlead.io/") || key in [
                "quota.scheduling.alibabacloud.com/preemptible",
                  "quota.scheduling.koordinator.sh/preemptible",
                "pod-group.scheduling.sigs.k8s.io/name",
                  "pod-group.scheduling.sigs.k8s.io/min-available", "scheduling.x-k8s.io/pod-group",
                "arena.kubeflow.org/console-user"]) &&
              variables.labels[?key] != variables.labelsBefore[?key])
            """),
                "changedAnnotations": cel("""
            (variables.annotations.map(key, key) + variables.annotationsBefore.map(key,
              key)).filter(key,
              (key.startsWith("fairlead.io/") || (!variables.hadGate && key in [
                "gang.scheduling.koordinator.sh/name",
                  "gang.scheduling.koordinator.sh/min-available", "scheduling.k8s.io/group-name"]))
                  &&
              variables.annotations[?key] != variables.annotationsBefore[?key])
            """),
            },
            validations=[
                refuse(
                    "!variables.isNew || variables.hasGate",
                    "a new pod needs the scheduling gate fairlead.io/quota here",
                ),
                refuse(
                    cel("""
            !variables.isNew || variables.labels[?"fairlead.io/managed"].orValue("") == "true"
            """),
                    "a new pod needs the label fairlead.io/managed=true here",
                ),
                refuse(
                    '!variables.isNew || object.spec.?nodeName.orValue("") == ""',
                    "a new pod may not name its node here",
                ),
                refuse(
                    "!variables.hadGate || variables.hasGate\n  || "
                    + is_user(accounts.quota_controller),
                    (
                        "only Fairlead's quota controller takes the scheduling gate "
                        "fairlead.io/quota away"
                    ),
                ),
                refuse(
                    cel("""
            variables.named == variables.leaf || (oldObject != null
              && variables.labelsBefore[?"quota.scheduling.alibabacloud.com/name"] ==
              optional.of(variables.named))
            """),
                    computed=cel("""
            "the label quota.scheduling.alibabacloud.com/name names " + variables.named
              + ", and this namespace is on " + (variables.leaf == "" ? "no leaf" : variables.leaf)
            """),
                ),
                refuse(
                    cel("""
            variables.isNew || variables.isTrusted || size(variables.changedLabels) == 0
            """),
                    computed='"the label " + variables.changedLabels[0] + " may not be changed"',
                ),
                refuse(
                    cel("""
            variables.isNew || variables.isTrusted || size(variables.changedAnnotations) == 0
            """),
                    computed=cel("""
            "the annotation " + variables.changedAnnotations[0] + " may not be changed"
            """),
                ),
            ],
            namespaces=ENFORCED,
        ),
        *validating(
            "fairlead-quota-user",
            "quota",
            rules=[OWNER_UPDATES],
            conditions=CHANGES_THE_USER,
            validations=[
                refuse(
                    is_trusted(accounts),
                    "the label arena.kubeflow.org/console-user may not be changed",
                ),
            ],
            namespaces=ENFORCED,
        ),
        # Growth in place of what the tree counts. Without a tree nothing is counted; without its
        # CRD every resize is refused (failurePolicy).
        *validating(
            "fairlead-quota-resize",
            "quota",
            rules=[on("UPDATE", "pods/resize")],
            conditions={"an-ordinary-user": f"!({is_trusted(accounts)})"},
            variables={
                "managed": cel("""
            params.?spec.?root.?min.orValue({}).map(name, name)
              + params.?spec.?root.?max.orValue({}).map(name, name)
            """),
                "staying": cel("""
            object.spec.containers + object.spec.?initContainers.orValue([]).filter(each,
              each.?restartPolicy.orValue("") == "Always")
            """),
                "stayingBefore": cel("""
            oldObject.spec.containers + oldObject.spec.?initContainers.orValue([]).filter(each,
              each.?restartPolicy.orValue("") == "Always")
            """),
                # In thousandths, as numbers: quantities cannot be added up over a list.
                "grown": cel("""
            variables.managed.filter(name,
              object.spec.?resources.?requests[?name].hasValue() ?
                quantity(string(object.spec.?resources.?requests[?name].orValue("0"))).isGreaterThan(
                  quantity(string(oldObject.spec.?resources.?requests[?name].orValue("0")))) :
                variables.staying.map(each,
                  int(quantity(string(each.?resources.?requests[?name].orValue("0"))).asApproximateFloat()
                  * 1000.0 + 0.5)).sum() >
                variables.stayingBefore.map(each,
                  int(quantity(string(each.?resources.?requests[?name].orValue("0"))).asApproximateFloat()
                  * 1000.0 + 0.5)).sum())
            """),
            },
            validations=[
                refuse(
                    "size(variables.grown) == 0",
                    computed=cel("""
            "a pod may not grow here: the quota tree counts " + variables.grown[0]
            """),
                ),
            ],
            parameter={"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"},
            bound_to={
                "name": "elasticquotatree",
                "namespace": "kube-system",
                "parameterNotFoundAction": "Allow",
            },
            namespaces=ENFORCED,
        ),
    ]
