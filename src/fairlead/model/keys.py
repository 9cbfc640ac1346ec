"""Labels and annotations that rules read.

They are in this module because rules may not import `wire`; `wire.names` re-exports them.
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
ANNOTATION_GPU_IDENTITY: Final = "fairlead.io/gpu-identity"
LABEL_GPU_MODEL: Final = "aliyun.accelerator/nvidia_name"
LABEL_GPU_CARD_MEMORY: Final = "aliyun.accelerator/nvidia_mem"
LABEL_GPU_CARD_COUNT: Final = "aliyun.accelerator/nvidia_count"
LABEL_GPU_PRODUCT: Final = "nvidia.com/gpu.product"
LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
ANNOTATION_REQUESTED_GPUS: Final = "requestGPUsOfJobOwner"
ANNOTATION_MIRROR: Final = "kubernetes.io/config.mirror"
ANNOTATION_SUSPEND: Final = "scheduling.x-k8s.io/suspend"

# Quota (docs/spec/quota.md#attributes, docs/spec/quota.md#gates-and-admission)
QUOTA_GATE: Final = "fairlead.io/quota"
QUOTA_CONDITION: Final = "fairlead.io/QuotaAdmitted"
LABEL_QUOTA: Final = "fairlead.io/quota"
"""On a namespace, with the value `enforced`: its new pods get the quota gate."""
QUOTA_ENFORCED: Final = "enforced"
ANNOTATION_LEAF: Final = "fairlead.io/leaf"
LABEL_MANAGED: Final = "fairlead.io/managed"
LABEL_QUOTA_NAME: Final = "quota.scheduling.alibabacloud.com/name"
LABELS_PREEMPTIBLE: Final = (
    "quota.scheduling.alibabacloud.com/preemptible",
    "quota.scheduling.koordinator.sh/preemptible",
)
LABEL_POD_GROUP: Final = "pod-group.scheduling.sigs.k8s.io/name"
LABEL_POD_GROUP_SIZE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
LABEL_GANG: Final = "scheduling.x-k8s.io/pod-group"
LABEL_OLD_GANG: Final = "pod-group.scheduling.sigs.k8s.io"
GANG_VOLCANO: Final = "scheduling.k8s.io/group-name"
GANG_KOORDINATOR: Final = "gang.scheduling.koordinator.sh/name"
GANG_KOORDINATOR_SIZE: Final = "gang.scheduling.koordinator.sh/min-available"
"""Other forms of a gang. The first two are labels, the others annotations; for the first three, a
PodGroup of that name has the number of pods.
"""
LABEL_USER: Final = "arena.kubeflow.org/console-user"
LABEL_SERVING_NAME: Final = "servingName"
LABEL_SERVING_TYPE: Final = "servingType"
ANNOTATION_USERNAME: Final = "arena.kubeflow.org/username"
"""The user of a pod that was submitted without signing in."""
ANNOTATION_SUSPENDED_FOR: Final = "fairlead.io/suspended-for"
FIRST_ADMISSION: Final = "first-admission"
NO_NODE: Final = "no-node"
OVER_MAX: Final = "over-max"
"""Value of the annotation on a suspended job: the unit that room was made for, or one of these
words: the job has a deadline and was not yet admitted; no node has taken its pods; or a quota node
above its max is drained.
"""
ANNOTATION_SUSPENDED_PRIORITY: Final = "fairlead.io/suspended-priority"
ANNOTATION_PARALLELISM: Final = "fairlead.io/parallelism"
ANNOTATION_LOWERED: Final = "fairlead.io/lowered-parallelism"
ANNOTATION_SURGE: Final = "fairlead.io/surge"
ANNOTATION_ADOPT_RUNNING: Final = "fairlead.io/adopt-running"
LEND_LIMIT: Final = "alibabacloud.com/lendlimit"
PREEMPT_POLICY: Final = "preempt-policy"
RECLAIM_SCOPE: Final = "fairlead.io/reclaim-scope"
USER_CAP: Final = "fairlead.io/user-cap"
USER_ORDER: Final = "fairlead.io/user-order"
QUEUE: Final = "fairlead.io/queue"
DRAIN_OVER_MAX: Final = "fairlead.io/drain-over-max"
SURGE_WAIT: Final = "fairlead.io/surge-wait"
REFUSED_VICTIM_WAIT: Final = "fairlead.io/refused-victim-wait"
UNBOUND_RETURN: Final = "fairlead.io/unbound-return"
STUCK_AFTER: Final = "fairlead.io/stuck-after"
LONGEST_GRACE: Final = "fairlead.io/longest-grace"
BARE_PODS_PREEMPTIBLE: Final = "fairlead.io/bare-pods-preemptible"
MAX_JOBS: Final = "kube-queue/max-jobs"

# Sharing a GPU: what users set on a pod
# (docs/spec/gpu-sharing.md#pod-annotations-labels-and-environment). `resources.GPU_COUNT` is the
# label that splits a pod over GPUs.
ANNOTATION_GPU_PLACEMENT: Final = "fairlead.io/gpu-placement"
ANNOTATION_GPU_SPLIT: Final = "fairlead.io/gpu-split"

# Sharing a GPU: what only Fairlead writes on a pod
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

# Operations (docs/spec/operations.md#record)
LABEL_OPERATION: Final = "fairlead.io/operation"
"""On a ConfigMap: it is the record of an operation. The value is the operation's kind."""
ANNOTATION_OPERATION: Final = "fairlead.io/operation"
"""On an object: the id of the operation that created it."""
