"""Three policies for shared GPUs (Kubernetes 1.36 and later, where both kinds are v1).

Pods that ask for shared GPU memory go to fairlead-scheduler; a new pod that no node can ever run is
refused; only Fairlead's accounts write what was granted to a pod. `rules/sharing/admission` has the
same logic for the webhook and the simulated cluster; tests/kube/test_deploy_admission.py compares.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.wire.installation.policies.policy_parts import (
    BEFORE_AND_AFTER,
    Object,
    cel,
    is_one_of,
    mutating,
    on,
    refuse,
    validating,
)

GRANT_KEYS: Final = cel("""
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
            ]
            """)
"""The annotations of a grant, as a list in CEL."""
_ASKS_FOR_A_SHARED_GPU: Final = cel("""
            (object.spec.containers + object.spec.?initContainers.orValue([])).exists(container,
              ["aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"].exists(name,
                quantity(string(container.?resources.?limits[?name].orValue("0"))).isGreaterThan(quantity("0"))))
            """)


def not_fairlead(accounts: OwnAccounts) -> str:
    """The writer is none of the accounts that grant GPU memory."""
    return f"!({is_one_of(accounts.grant_writers)})"


def sharing_policies(accounts: OwnAccounts) -> list[Object]:
    return [
        *mutating(
            "fairlead-gpu-scheduler",
            "scheduler",
            rules=[on("CREATE", "pods")],
            conditions={
                "asks-for-a-shared-gpu": _ASKS_FOR_A_SHARED_GPU,
                # The API server fills in default-scheduler before it asks: its writer is unknown.
                "names-no-scheduler": cel("""
            object.spec.?schedulerName.orValue("") in ["", "default-scheduler"]
            """),
            },
            applied='Object{spec: Object.spec{schedulerName: "fairlead-scheduler"}}',
        ),
        # A pod that asks for what no node can give would wait forever. Existing pods may be changed
        # as before. A pod that names a foreign scheduler is left alone.
        *validating(
            "fairlead-gpu-asks",
            "asks",
            rules=[on("CREATE", "pods")],
            conditions={
                "asks-for-a-shared-gpu": _ASKS_FOR_A_SHARED_GPU,
                "is-for-no-foreign-scheduler": cel("""
            object.spec.?schedulerName.orValue("") in ["", "default-scheduler",
              "fairlead-scheduler"]
            """),
            },
            variables={
                "containers": "object.spec.containers + object.spec.?initContainers.orValue([])",
                # Memory and core percent of each container; the largest number for one that is
                # larger.
                "parts": cel("""
            variables.containers.map(container, ["aliyun.com/gpu-mem",
              "aliyun.com/gpu-core.percentage"]
              .map(name, quantity(string(container.?resources.?limits[?name].orValue("0"))))
              .map(amount, amount.isInteger() ? amount.asInteger() : 9223372036854775807))
            """),
                "isWhole": cel("""
            variables.containers.exists(container,
              ["nvidia.com/gpu", "nvidia.com/gpu.shared", "alpha.kubernetes.io/nvidia-gpu",
                "aliyun.com/gpu"].exists(name,
                quantity(string(container.?resources.?limits[?name].orValue("0"))).isGreaterThan(quantity("0"))))
            """),
                "count": 'object.metadata.?labels[?"aliyun.com/gpu-count"].orValue("1")',
                "cards": 'variables.count.matches("^[0-9]{1,4}$") ? int(variables.count) : 0',
                "placement": cel("""
            object.metadata.?annotations[?"fairlead.io/gpu-placement"].orValue("binpack")
            """),
                "split": cel("""
            object.metadata.?annotations[?"fairlead.io/gpu-split"].orValue("per-container")
            """),
                # Texts of people as they are shown: the first 40 characters, "" as such.
                "shown": cel(r"""
            [variables.placement, variables.split, variables.count]
              .map(text, text == "" ? "\"\"" : size(text) > 40 ? text.substring(0, 40) + "…" : text)
            """),
                "partFaults": cel("""
            variables.parts.map(part,
              part[1] > 0 && part[0] == 0 ? "gpu-core needs gpu-mem"
              : part[1] > 0 && (part[1] % 5 != 0 || part[1] > 100) ? "gpu-core " + string(part[1])
                + " is not a multiple of 5 from 5 to 100"
              : part[0] % variables.cards != 0 ? "gpu-mem " + string(part[0])
                + " cannot be split over " + string(variables.cards) + " GPUs"
              : part[1] % variables.cards != 0 ? "gpu-core " + string(part[1])
                + " cannot be split over " + string(variables.cards) + " GPUs"
              : "").filter(fault, fault != "")
            """),
                "fault": cel("""
            !(variables.placement in ["binpack", "spread"])
              ? "annotation fairlead.io/gpu-placement=" + variables.shown[0]
                + " is neither binpack nor spread"
            : variables.split != "per-container" ? "annotation fairlead.io/gpu-split="
              + variables.shown[1] + " is not per-container" : variables.cards < 1
              ? "label aliyun.com/gpu-count=" + variables.shown[2] + " is not a number of GPUs"
              : variables.isWhole && variables.parts.exists(part, part[0] > 0)
              ? "asks for whole and shared GPUs; no node offers both"
              : size(variables.partFaults) > 0 ? variables.partFaults[0] : ""
            """),
            },
            validations=[
                refuse(
                    'variables.fault == ""',
                    (
                        "no node can run this pod; docs/how-to/gpu-sharing.md explains what a "
                        "pod may request of shared GPUs"
                    ),
                    computed='"no node can run this pod: " + variables.fault',
                    reason="Invalid",
                ),
            ],
        ),
        # A write of a pod's status may change annotations, and a Binding's annotations are merged
        # into the pod; `bindings` is the old way to bind.
        *validating(
            "fairlead-gpu-grants",
            "grants",
            rules=[on("CREATE UPDATE", "pods pods/status"), on("CREATE", "pods/binding bindings")],
            conditions={
                "not-fairlead": not_fairlead(accounts),
            },
            variables={
                **BEFORE_AND_AFTER,
                "changed": GRANT_KEYS
                + '.filter(key, variables.before[?key].orValue("") != '
                + 'variables.after[?key].orValue(""))',
            },
            validations=[
                refuse(
                    "size(variables.changed) == 0",
                    computed='"only Fairlead writes the annotation " + variables.changed[0]',
                ),
            ],
        ),
    ]
