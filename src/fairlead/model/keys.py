"""Labels and annotations that rules read.

They stand here because rules may not import `wire`; `wire.names` re-exports them.
"""

from __future__ import annotations

from typing import Final

LABEL_GPU_SCHEDULE: Final = "ack.node.gpu.schedule"
LABEL_GPU_PLACEMENT: Final = "ack.node.gpu.placement"
LABEL_SHARED: Final = "cgpu"
LABEL_SHARED_ALIAS: Final = "gpushare"
LABEL_ISOLATION: Final = "fairlead.io/gpu-isolation"
LABEL_NO_ISOLATION: Final = "cgpu.disable.isolation"
LABEL_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
LABEL_ROLE: Final = "kubernetes.io/role"
ANNOTATION_GPU_UNIT: Final = "fairlead.io/gpu-mem-unit"
LABEL_GPU_MODEL: Final = "aliyun.accelerator/nvidia_name"
LABEL_GPU_PRODUCT: Final = "nvidia.com/gpu.product"
ANNOTATION_REQUESTED_GPUS: Final = "requestGPUsOfJobOwner"
ANNOTATION_SUSPEND: Final = "scheduling.x-k8s.io/suspend"
QUOTA_GATE: Final = "fairlead.io/quota"

# Sharing a GPU, what people write on a pod (sharing contract 1.4). The label that splits a pod over GPUs is
# `resources.GPU_COUNT`.
ANNOTATION_GPU_PLACEMENT: Final = "fairlead.io/gpu-placement"
ANNOTATION_GPU_SPLIT: Final = "fairlead.io/gpu-split"

# Sharing a GPU, what Fairlead writes on a pod, and nobody else
ANNOTATION_ALLOCATION: Final = "fairlead.io/gpu-allocation"
ANNOTATION_REFERENCE_ALLOCATION: Final = "scheduler.framework.gpushare.allocation"
ANNOTATION_REFERENCE_ASSIGNED: Final = "scheduler.framework.gpushare.assigned"
ANNOTATION_REFERENCE_ASSUME_TIME: Final = "scheduler.framework.gpushare.assume-time"
ANNOTATION_REFERENCE_ASSIGN_TIME: Final = "scheduler.framework.gpushare.assign-time"
ANNOTATION_CORE_PERCENTAGE: Final = "gpushare.alibabacloud.com/core-percentage"
ANNOTATION_GPU_INDEX: Final = "ALIYUN_COM_GPU_MEM_IDX"
ANNOTATION_GPU_POD: Final = "ALIYUN_COM_GPU_MEM_POD"
ANNOTATION_GPU_DEVICE: Final = "ALIYUN_COM_GPU_MEM_DEV"
ANNOTATION_GPU_ASSIGNED: Final = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ANNOTATION_GPU_ASSUME_TIME: Final = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
ANNOTATION_GPU_ASSIGN_TIME: Final = "ALIYUN_COM_GPU_MEM_ASSIGN_TIME"
ANNOTATION_TOPOLOGY_GROUP: Final = "topology.kubernetes.io/gpu-group"
GRANT_ANNOTATIONS: Final = (
    ANNOTATION_ALLOCATION,
    ANNOTATION_REFERENCE_ALLOCATION,
    ANNOTATION_REFERENCE_ASSIGNED,
    ANNOTATION_REFERENCE_ASSUME_TIME,
    ANNOTATION_REFERENCE_ASSIGN_TIME,
    ANNOTATION_CORE_PERCENTAGE,
    ANNOTATION_GPU_INDEX,
    ANNOTATION_GPU_POD,
    ANNOTATION_GPU_DEVICE,
    ANNOTATION_GPU_ASSIGNED,
    ANNOTATION_GPU_ASSUME_TIME,
    ANNOTATION_GPU_ASSIGN_TIME,
    ANNOTATION_TOPOLOGY_GROUP,
)
