"""Labels and annotations that rules read. They stand here because rules may not import `wire`; `wire.names` re-exports them."""

from __future__ import annotations

from typing import Final

LABEL_GPU_SCHEDULE: Final = "ack.node.gpu.schedule"
LABEL_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
LABEL_ROLE: Final = "kubernetes.io/role"
ANNOTATION_GPU_UNIT: Final = "fairlead.io/gpu-mem-unit"
LABEL_GPU_MODEL: Final = "aliyun.accelerator/nvidia_name"
LABEL_GPU_PRODUCT: Final = "nvidia.com/gpu.product"
ANNOTATION_REQUESTED_GPUS: Final = "requestGPUsOfJobOwner"
ANNOTATION_SUSPEND: Final = "scheduling.x-k8s.io/suspend"
QUOTA_GATE: Final = "fairlead.io/quota"
