"""Every name of other programs, once: labels, annotations, resources, API groups.

Other code uses the constant, never the text. Names that rules need are in `model/resources` and
`model/keys`; this module re-exports them, so that wire code imports all names from here.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import HELM_NAMESPACE
from fairlead.model.keys import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_CORE_PERCENTAGE,
    ANNOTATION_GPU_ASSIGN_TIME,
    ANNOTATION_GPU_ASSIGNED,
    ANNOTATION_GPU_ASSUME_TIME,
    ANNOTATION_GPU_DEVICE,
    ANNOTATION_GPU_INDEX,
    ANNOTATION_GPU_PLACEMENT,
    ANNOTATION_GPU_POD,
    ANNOTATION_GPU_SPLIT,
    ANNOTATION_GPU_UNIT,
    ANNOTATION_MIRROR,
    ANNOTATION_OPERATION,
    ANNOTATION_REFERENCE_ALLOCATION,
    ANNOTATION_REFERENCE_ASSIGN_TIME,
    ANNOTATION_REFERENCE_ASSIGNED,
    ANNOTATION_REFERENCE_ASSUME_TIME,
    ANNOTATION_REQUESTED_GPUS,
    ANNOTATION_SUSPEND,
    ANNOTATION_TOPOLOGY_GROUP,
    ANNOTATION_USERNAME,
    GANG_KOORDINATOR,
    GANG_KOORDINATOR_SIZE,
    GANG_VOLCANO,
    GRANT_ANNOTATIONS,
    LABEL_GPU_CARD_COUNT,
    LABEL_GPU_CARD_MEMORY,
    LABEL_GPU_MODEL,
    LABEL_GPU_PLACEMENT,
    LABEL_GPU_PRODUCT,
    LABEL_GPU_SCHEDULE,
    LABEL_HOSTNAME,
    LABEL_ISOLATION,
    LABEL_NO_ISOLATION,
    LABEL_OPERATION,
    LABEL_ROLE,
    LABEL_ROLE_PREFIX,
    LABEL_SERVING_NAME,
    LABEL_SERVING_TYPE,
    LABEL_SHARED,
    LABEL_SHARED_ALIAS,
    QUOTA_GATE,
)
from fairlead.model.resources import (
    ALIYUN_GPU,
    GPU_CORE,
    GPU_COUNT,
    GPU_MEMORY,
    MIG_PREFIX,
    NVIDIA_GPU,
)

__all__ = ["ALIYUN_GPU", "GPU_CORE", "GPU_COUNT", "GPU_MEMORY", "MIG_PREFIX", "NVIDIA_GPU"]
__all__ += [
    "ANNOTATION_GPU_UNIT",
    "ANNOTATION_OPERATION",
    "LABEL_GPU_CARD_COUNT",
    "LABEL_GPU_CARD_MEMORY",
    "LABEL_GPU_MODEL",
    "LABEL_GPU_PRODUCT",
    "LABEL_GPU_SCHEDULE",
    "LABEL_HOSTNAME",
    "LABEL_ISOLATION",
    "LABEL_OPERATION",
    "LABEL_ROLE",
    "LABEL_ROLE_PREFIX",
    "LABEL_SERVING_NAME",
    "LABEL_SERVING_TYPE",
]
__all__ += ["ANNOTATION_REQUESTED_GPUS", "ANNOTATION_SUSPEND", "ANNOTATION_USERNAME", "QUOTA_GATE"]
__all__ += [
    "ANNOTATION_GPU_PLACEMENT",
    "ANNOTATION_GPU_SPLIT",
    "LABEL_GPU_PLACEMENT",
    "LABEL_SHARED",
    "LABEL_SHARED_ALIAS",
]
__all__ += [
    "ANNOTATION_ALLOCATION",
    "ANNOTATION_REFERENCE_ALLOCATION",
    "ANNOTATION_REFERENCE_ASSIGNED",
    "ANNOTATION_REFERENCE_ASSUME_TIME",
]
__all__ += [
    "ANNOTATION_CORE_PERCENTAGE",
    "ANNOTATION_GPU_INDEX",
    "ANNOTATION_GPU_POD",
    "ANNOTATION_REFERENCE_ASSIGN_TIME",
]
__all__ += [
    "ANNOTATION_GPU_ASSIGNED",
    "ANNOTATION_GPU_ASSIGN_TIME",
    "ANNOTATION_GPU_ASSUME_TIME",
    "ANNOTATION_GPU_DEVICE",
]
__all__ += [
    "ANNOTATION_TOPOLOGY_GROUP",
    "GRANT_ANNOTATIONS",
    "LABEL_ISOLATION",
    "LABEL_NO_ISOLATION",
]

PREFIX: Final = "fairlead.io/"

# Nodes (docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory)
LABEL_GPU_PRODUCT_MEMORY: Final = "nvidia.com/gpu.memory"
LABEL_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
LABEL_ZONE: Final = "topology.kubernetes.io/zone"
ANNOTATION_GPUS: Final = "fairlead.io/gpus"
ANNOTATION_GPU_RETRY: Final = "fairlead.io/gpu-retry"
"""On a waiting pod for which there is room now: any change makes kube-scheduler try the pod again.
"""
ANNOTATION_WANTED_BY: Final = "fairlead.io/wanted-by"
"""On the extender's Lease: the extender replica that kube-scheduler calls and that wants the Lease.
"""
UNHEALTHY_GPUS_NAMESPACE: Final = "kube-system"
UNHEALTHY_GPUS_PREFIX: Final = "unhealthy-gpu-"
UNHEALTHY_GPUS_KEY: Final = "gpus"
LABEL_TOPOLOGY_NODE: Final = "nodename"
GPU_SCHEDULE_TOPOLOGY: Final = "topology"
TOPOLOGY_NAMESPACE: Final = "kube-system"

# Pods (docs/spec/gpu-sharing.md#pod-annotations-labels-and-environment)
ANNOTATION_GPU_LIMIT_MIB: Final = "fairlead.io/gpu-mem-limit-mib"
ANNOTATION_TOPOLOGY_VISIBLE: Final = "topology.kubernetes.io/gpu-visible"

# Jobs (docs/spec/arena-cli.md#names-and-labels, docs/spec/arena-cli.md#pods-of-a-job)
ANNOTATION_TENSORBOARD: Final = PREFIX + "tensorboard"
"""On a job: the name of its TensorBoard Service, so that showing the job needs no search."""
ANNOTATION_SUPERVISED: Final = "job-supervisor.kube-ai.io/job-status"
"""On a TrainingJob: `timeout` when it waited too long for spot instances."""
ANNOTATION_SSH_SECRET: Final = "arena.kubeflow.org/ssh-secret"
ANNOTATION_SPOT: Final = "job-supervisor.kube-ai.io/spot-instance"
ANNOTATION_SPOT_WAIT: Final = "job-supervisor.kube-ai.io/max-wait-time"
LABEL_SUBMITTER: Final = "arena.kubeflow.org/uid"  # md5 of the user name
LABEL_ISOLATE_USER: Final = "arena.kubeflow.org/isolate-user"
"""On a namespace: `true` shows people their own jobs only."""
LABEL_CONSOLE_USER: Final = "arena.kubeflow.org/console-user"
LABEL_JOB_NAME: Final = "training.kubeflow.org/job-name"
LABEL_JOB_ROLE: Final = "training.kubeflow.org/job-role"
LABEL_RAY_CLUSTER: Final = "ray.io/cluster"
LABEL_RAY_GROUP: Final = "ray.io/group"
LABEL_RAY_NODE_TYPE: Final = "ray.io/node-type"
LABEL_BATCH_JOB: Final = "batch.kubernetes.io/job-name"
LABEL_ELASTIC_JOB: Final = "training-job-name"  # et-operator, as the two below
LABEL_ELASTIC_ROLE: Final = "training-job-role"
LABEL_VOLCANO_JOB: Final = "volcano.sh/job-name"
LABEL_VOLCANO_TASK: Final = "volcano.sh/task-spec"
# written by arena: `driver` on the pods of the first task
LABEL_VOLCANO_ROLE: Final = "volcano-role"
LABEL_SPARK_APP: Final = "sparkoperator.k8s.io/app-name"
LABEL_SPARK_ROLE: Final = "spark-role"
LABEL_CRON: Final = "kubedl.io/cron-name"
LABEL_OPERATOR: Final = "training.kubeflow.org/operator-name"
LABEL_REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
LABEL_REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
LABEL_OLD_TF_JOB: Final = "tf-job-name"  # tf-operator 1, as the two below
LABEL_OLD_TF_ROLE: Final = "tf-replica-type"
LABEL_OLD_TF_INDEX: Final = "tf-replica-index"
LABEL_OLD_PYTORCH_JOB: Final = "pytorch-job-name"  # pytorch-operator 0.7
LABEL_OLD_PYTORCH_ROLE: Final = "pytorch-replica-type"
LABEL_OLD_MPI_JOB: Final = "mpi_job_name"  # mpi-operator up to 0.2: MPIJob v1alpha1 and v1alpha2
LABEL_OLD_MPI_ROLE: Final = "mpi_role_type"
LABEL_EARLY_MPI_JOB: Final = "mpi-job-name"  # mpi-operator 0.2.3: MPIJob v1
LABEL_EARLY_MPI_ROLE: Final = "mpi-job-role"

# Serving jobs and data (docs/spec/arena-cli.md#serving-jobs)
LABEL_SERVING_VERSION: Final = "servingVersion"
ANNOTATION_DATA_DESCRIPTION: Final = "description"
ANNOTATION_DATA_OWNER: Final = "owner"
FLUID_GROUP: Final = "data.fluid.io"
FLUID_DATASETS: Final = "datasets"

# Quota (docs/spec/quota.md#the-elasticquotatree-object, docs/spec/quota.md#units-and-gangs)
QUOTA_GROUP: Final = "scheduling.sigs.k8s.io"
QUOTA_VERSION: Final = "v1beta1"
QUOTA_PLURAL: Final = "elasticquotatrees"
QUOTA_TREE_NAME: Final = "elasticquotatree"
QUOTA_TREE_NAMESPACE: Final = "kube-system"

# Users and groups (docs/spec/people.md#objects)
PEOPLE_GROUP: Final = "fairlead.io"
PEOPLE_VERSION: Final = "v1"
USERS: Final = "users"
USER_GROUPS: Final = "usergroups"
VENDOR_PEOPLE_API: Final = "data.kubeai.alibabacloud.com/v1"
"""Users and groups of ACK's console, which are read on import only."""

KEPT_ANNOTATION_PREFIXES: Final = (
    PREFIX,
    HELM_NAMESPACE,
    "ALIYUN_COM_GPU_",
    "scheduler.framework.gpushare.",
    "gpushare.alibabacloud.com/",
    "topology.kubernetes.io/gpu-",
    "arena.kubeflow.org/",
    ANNOTATION_REQUESTED_GPUS,
    ANNOTATION_SUSPEND,
    ANNOTATION_MIRROR,
    GANG_VOLCANO,
    GANG_KOORDINATOR,
    GANG_KOORDINATOR_SIZE,
    "modelSource",
)
"""Prefixes of the annotations that the model keeps.

All others (last-applied configurations, notes of tools) are dropped while decoding.
"""
