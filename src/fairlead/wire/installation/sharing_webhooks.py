"""What `sharing_policies` do, for servers 1.28 to 1.35.

Older servers have no `matchConditions`.

The API server sends only such pods: new ones that name a resource of shared GPUs and no foreign
scheduler, and writes of grants by others. While the webhook does not answer, those are refused
(`failurePolicy: Fail`), and nothing else is.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.wire.installation.policies.policy_parts import (
    Object,
    cel,
    on,
    webhook,
    webhook_configuration,
)
from fairlead.wire.installation.policies.sharing_policies import GRANT_KEYS, not_fairlead

_NAMES_A_SHARED_GPU: Final = cel("""
            (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers
              : [])).exists(container,
              has(container.resources) && has(container.resources.limits) &&
              ["aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"].exists(name,
                name in container.resources.limits))
            """)


def sharing_webhooks(accounts: OwnAccounts) -> list[Object]:
    return [
        webhook_configuration(
            "MutatingWebhookConfiguration",
            "fairlead-gpu-scheduler",
            "scheduler",
            [
                webhook(
                    "scheduler.gpushare.fairlead.io",
                    "/scheduler",
                    accounts.namespace,
                    rules=[on("CREATE", "pods")],
                    conditions={
                        "names-a-shared-gpu": _NAMES_A_SHARED_GPU,
                        "names-no-scheduler": cel("""
            !has(object.spec.schedulerName) || object.spec.schedulerName in ["",
              "default-scheduler"]
            """),
                    },
                    is_repeated=True,
                ),
            ],
        ),
        webhook_configuration(
            "ValidatingWebhookConfiguration",
            "fairlead-gpu-grants",
            "grants",
            [
                webhook(
                    "grants.gpushare.fairlead.io",
                    "/grants",
                    accounts.namespace,
                    rules=[
                        on("CREATE UPDATE", "pods pods/status"),
                        on("CREATE", "pods/binding bindings"),
                    ],
                    conditions={
                        "not-fairlead": not_fairlead(accounts),
                        "changes-a-grant": GRANT_KEYS
                        + cel("""
            .exists(key,
              (has(object.metadata.annotations) && key in object.metadata.annotations
                ? object.metadata.annotations[key] : "") !=
              (oldObject != null && has(oldObject.metadata.annotations)
                && key in oldObject.metadata.annotations
                ? oldObject.metadata.annotations[key] : ""))
            """),
                    },
                ),
                webhook(
                    "asks.gpushare.fairlead.io",
                    "/asks",
                    accounts.namespace,
                    rules=[on("CREATE", "pods")],
                    conditions={
                        "names-a-shared-gpu": _NAMES_A_SHARED_GPU,
                        "names-no-foreign-scheduler": cel("""
            !has(object.spec.schedulerName) || object.spec.schedulerName in ["",
              "default-scheduler", "fairlead-scheduler"]
            """),
                    },
                ),
            ],
        ),
    ]
