"""What `sharing_policies` do, for servers 1.28 to 1.35.

Older servers have no `matchConditions`.

The API server sends only such pods: new ones that name a resource of shared GPUs and no foreign
scheduler, and writes of grants by others. While the webhook does not answer, those are refused
(`failurePolicy: Fail`), and nothing else is.
"""

from __future__ import annotations

from fairlead.wire.installation.policy_parts import Object, cel, on, webhook, webhook_configuration


def sharing_webhooks() -> list[Object]:
    return [
        webhook_configuration(
            "MutatingWebhookConfiguration",
            "fairlead-gpu-scheduler",
            "scheduler",
            [
                webhook(
                    "scheduler.gpushare.fairlead.io",
                    "/scheduler",
                    rules=[on("CREATE", "pods")],
                    conditions={
                        "names-a-shared-gpu": cel("""
            (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers
              : [])).exists(container,
              has(container.resources) && has(container.resources.limits) &&
              ["aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"].exists(name,
                name in container.resources.limits))
            """),
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
                    rules=[
                        on("CREATE UPDATE", "pods pods/status"),
                        on("CREATE", "pods/binding bindings"),
                    ],
                    conditions={
                        "not-fairlead": cel("""
            !(request.userInfo.username in [
              "system:serviceaccount:fairlead-system:fairlead-scheduler",
              "system:serviceaccount:fairlead-system:fairlead-node-agent"])
            """),
                        "changes-a-grant": cel("""
            ["fairlead.io/gpu-allocation",
             "scheduler.framework.gpushare.allocation",
             "scheduler.framework.gpushare.assigned",
             "scheduler.framework.gpushare.assume-time",
             "scheduler.framework.gpushare.assign-time",
             "gpushare.alibabacloud.com/core-percentage",
             "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD", "ALIYUN_COM_GPU_MEM_DEV",
             "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
               "ALIYUN_COM_GPU_MEM_ASSIGN_TIME",
             "topology.kubernetes.io/gpu-group"
            ].exists(key,
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
                    rules=[on("CREATE", "pods")],
                    conditions={
                        "names-a-shared-gpu": cel("""
            (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers
              : [])).exists(container,
              has(container.resources) && has(container.resources.limits) &&
              ["aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"].exists(name,
                name in container.resources.limits))
            """),
                        "names-no-foreign-scheduler": cel("""
            !has(object.spec.schedulerName) || object.spec.schedulerName in ["",
              "default-scheduler", "fairlead-scheduler"]
            """),
                    },
                ),
            ],
        ),
    ]
