"""Validation of quota trees for every server, and what `quota_policies` do, for servers older than
1.36 (1.29 and later: older ones know no optional fields in `matchConditions`).

While the webhook does not answer, the tree cannot be written, and in namespaces with the label
`fairlead.io/quota=enforced` no pod is created (`failurePolicy: Fail`).
"""

from __future__ import annotations

from typing import Final

from fairlead.wire.installation.policies.policy_parts import (
    ENFORCED,
    Object,
    cel,
    on,
    webhook,
    webhook_configuration,
)
from fairlead.wire.installation.policies.quota_policies import CHANGES_THE_USER, OWNER_UPDATES

_NOT_EXEMPT: Final = {
    "not-exempt": cel("""
            request.userInfo.username != "system:serviceaccount:kube-system:daemon-set-controller"
              && !request.userInfo.username.startsWith("system:node:")
            """),
}


def quota_webhooks(namespace: str) -> list[Object]:
    return [
        webhook_configuration(
            "ValidatingWebhookConfiguration",
            "fairlead-quota-tree",
            "tree",
            [
                webhook(
                    "quota-tree.fairlead.io",
                    "/quota-tree",
                    namespace,
                    rules=[
                        on(
                            "CREATE UPDATE DELETE",
                            "elasticquotatrees",
                            groups="scheduling.sigs.k8s.io",
                            versions="v1beta1",
                        )
                    ],
                ),
            ],
        ),
        webhook_configuration(
            "MutatingWebhookConfiguration",
            "fairlead-quota-gate",
            "quota",
            [
                webhook(
                    "gate.quota.fairlead.io",
                    "/quota-gate",
                    namespace,
                    rules=[on("CREATE", "pods")],
                    conditions=_NOT_EXEMPT,
                    namespaces=ENFORCED,
                    seconds=2,
                    is_repeated=True,
                ),
                webhook(
                    "stamp.quota.fairlead.io",
                    "/quota-gate",
                    namespace,
                    rules=[
                        on(
                            "CREATE",
                            "*",
                            groups="apps batch kubeflow.org ray.io batch.volcano.sh apps.kubedl.io",
                            versions="*",
                        )
                    ],
                    conditions={
                        "a-user-of-fairlead": cel("""
            request.userInfo.username.startsWith("system:serviceaccount:kube-ai:")
            """),
                    },
                    namespaces=ENFORCED,
                    seconds=2,
                    is_repeated=True,
                ),
                webhook(
                    "deadline.quota.fairlead.io",
                    "/quota-gate",
                    namespace,
                    rules=[
                        on("CREATE", "jobs", groups="batch"),
                        on(
                            "CREATE",
                            "tfjobs pytorchjobs mpijobs",
                            groups="kubeflow.org",
                            versions="v1 v2beta1",
                        ),
                        on("CREATE", "rayjobs", groups="ray.io"),
                    ],
                    conditions={
                        "has-a-deadline": cel("""
            object.spec.?activeDeadlineSeconds.orValue(0) > 0
              || object.spec.?runPolicy.?activeDeadlineSeconds.orValue(0) > 0
            """),
                    },
                    namespaces=ENFORCED,
                    seconds=2,
                    is_repeated=True,
                ),
            ],
        ),
        webhook_configuration(
            "ValidatingWebhookConfiguration",
            "fairlead-quota-guard",
            "quota",
            [
                webhook(
                    "guard.quota.fairlead.io",
                    "/quota-guard",
                    namespace,
                    rules=[
                        on("CREATE UPDATE", "pods pods/status"),
                        on("UPDATE", "pods/resize"),
                        on("CREATE", "pods/binding bindings"),
                    ],
                    conditions=_NOT_EXEMPT,
                    namespaces=ENFORCED,
                    seconds=2,
                ),
                webhook(
                    "user.quota.fairlead.io",
                    "/quota-guard",
                    namespace,
                    rules=[OWNER_UPDATES],
                    conditions=CHANGES_THE_USER,
                    namespaces=ENFORCED,
                    seconds=2,
                ),
            ],
        ),
    ]
