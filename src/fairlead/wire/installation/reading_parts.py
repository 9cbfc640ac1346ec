"""Objects of the parts that only read: the console's account, cluster exporter, GPU exporter."""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import Installation
from fairlead.settings import (
    CLUSTER_EXPORTER_LEASE,
    CLUSTER_EXPORTER_PORT,
    GPU_EXPORTER_PORT,
    GPU_EXPORTER_PORT_NAME,
)
from fairlead.wire.data.data_load import DATA_LOAD
from fairlead.wire.data.fluid import RUNTIMES
from fairlead.wire.installation.object_parts import (
    CLUSTER_CRITICAL,
    DRIVER_VARIABLES,
    LOCKED,
    NODE_NAME,
    NON_ROOT,
    POD_NAME,
    TRACING_ROOT,
    Object,
    PartPlace,
    account,
    cluster_rights,
    daemon_set,
    deployment,
    disruption_budget,
    gpu_nodes,
    grant,
    host_folders,
    lease_grants,
    network_policy,
    port,
    probes,
    pull_secrets,
    requests,
    rights,
    service,
    spread,
    withheld_gpu_rights,
)
from fairlead.wire.names import FLUID_DATASETS, FLUID_GROUP

READER: Final = "fairlead-reader"
_EXPORTER: Final = "fairlead-cluster-exporter"
_GPU_EXPORTER: Final = "fairlead-gpu-exporter"
_TRAINING: Final = (
    ("kubeflow.org", "mpijobs tfjobs pytorchjobs"),
    ("ray.io", "rayjobs"),
    ("batch.volcano.sh", "jobs"),
    ("kai.alibabacloud.com", "trainingjobs"),
    ("sparkoperator.k8s.io", "sparkapplications"),
)
_OWNERS: Final = (
    ("", "namespaces"),
    ("apps", "deployments replicasets statefulsets"),
    ("batch", "jobs cronjobs"),
    ("policy", "poddisruptionbudgets"),
    ("ray.io", "rayclusters"),
    ("apps.kubedl.io", "crons"),
    ("scheduling.x-k8s.io scheduling.volcano.sh", "podgroups"),
)
"""What quota asks of the owners of pods. It is read only if there is a quota tree."""
_FLUID: Final = " ".join((FLUID_DATASETS, DATA_LOAD[2], *(each[2] for each in RUNTIMES)))
_PRIVILEGED_ROOT: Final = {"runAsUser": 0, "privileged": True, "readOnlyRootFilesystem": True}
"""The kubelet's socket belongs to root, and only a privileged container may open /dev/kmsg."""


def reader(chosen: Installation) -> list[Object]:
    """The account of the console, and its rights to read."""
    owner = PartPlace(READER, chosen.namespace)
    rules = [
        grant("", "nodes pods events", "list watch"),
        *followed(),
        # The page of serving jobs. Without services it has no addresses.
        grant("", "services", "list"),
        grant("serving.kserve.io", "inferenceservices", "list"),
        # The page of data sets.
        grant("", "persistentvolumeclaims", "list"),
        grant(FLUID_GROUP, _FLUID, "list"),
        # The page of components.
        grant("apps", "daemonsets", "list"),
        # Log and object of one job. Without them, those two tabs name the missing right.
        grant("", "pods/log", "get"),
        *(grant(group, resources, "get") for group, resources in _TRAINING),
    ]
    cluster_role, cluster_binding = cluster_rights(READER, owner, rules)
    return [account(owner), cluster_role, *withheld_gpu_rights(READER, owner), cluster_binding]


def cluster_exporter(chosen: Installation) -> list[Object]:
    """Metrics of the cluster.

    The replica that holds the Lease prints them, so that no sum counts a GPU twice.

    Prometheus scrapes the pods (the endpoints of the Service), not the Service's one address.
    """
    owner = PartPlace(_EXPORTER, chosen.namespace)
    rules = [grant("", "nodes pods", "list watch"), *followed()]
    reads = f"{_EXPORTER}-reads"
    return [
        account(owner),
        *cluster_rights(_EXPORTER, owner, rules, binding=reads),
        *withheld_gpu_rights(_EXPORTER, owner, binding=reads),
        *rights(_EXPORTER, owner, chosen.namespace, lease_grants(CLUSTER_EXPORTER_LEASE)),
        deployment(owner, chosen.replicas, _cluster_exporter_pod(chosen)),
        disruption_budget(owner),
        service(owner, "metrics", CLUSTER_EXPORTER_PORT, is_labelled=True),
        *network_policy(owner, chosen, CLUSTER_EXPORTER_PORT),
    ]


def _cluster_exporter_pod(chosen: Installation) -> Object:
    container = {
        "name": "exporter",
        "image": chosen.image,
        "command": [
            "fairlead",
            "cluster-exporter",
            f"--listen=:{CLUSTER_EXPORTER_PORT}",
            "--leader-elect",
            "--identity=$(POD_NAME)",
            f"--lease-namespace={chosen.namespace}",
            *sources(chosen),
        ],
        "env": [POD_NAME, NODE_NAME],
        **port("metrics", CLUSTER_EXPORTER_PORT),
        **probes("metrics"),
        **requests("100m", "256Mi"),
        "securityContext": LOCKED,
    }
    return {
        "serviceAccountName": _EXPORTER,
        **pull_secrets(chosen),
        "priorityClassName": CLUSTER_CRITICAL,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        **spread(_EXPORTER),
        "securityContext": NON_ROOT,
        "containers": [container],
    }


def gpu_exporter(chosen: Installation) -> list[Object]:
    """Metrics of each node's GPUs.

    It sends nothing to the API server: its account has no rights and no token.
    """
    owner = PartPlace(_GPU_EXPORTER, chosen.node_namespace)
    return [
        account(owner, has_token=False),
        daemon_set(owner, _gpu_exporter_pod(chosen), most_unavailable="10%"),
        *network_policy(owner, chosen, GPU_EXPORTER_PORT),
    ]


def _gpu_exporter_pod(chosen: Installation) -> Object:
    kernel_log = (("kmsg", "/dev/kmsg", "CharDevice", True),) if chosen.kernel_log else ()
    mounts, volumes = host_folders(
        ("device-plugins", "/var/lib/kubelet/device-plugins", "", True),
        ("pod-resources", "/var/lib/kubelet/pod-resources", "", True),
        # The node agent's grants file: which card a pod has of shared memory.
        ("state", "/var/lib/fairlead/gpu", "DirectoryOrCreate", True),
        # What the memory guard counts in each container.
        ("run", "/run/fairlead/gpu", "DirectoryOrCreate", True),
        *kernel_log,
    )
    command = ["fairlead", "gpu-exporter", f"--listen=:{GPU_EXPORTER_PORT}", "--kubernetes"]
    container = {
        "name": _GPU_EXPORTER,
        "image": chosen.image,
        "command": command if chosen.kernel_log else [*command, "--kmsg=off"],
        "env": [NODE_NAME, *DRIVER_VARIABLES],
        **port(GPU_EXPORTER_PORT_NAME, GPU_EXPORTER_PORT),
        **probes(GPU_EXPORTER_PORT_NAME),
        # A process takes 73 MiB with eight cards (docs/project/performance.md). If a node runs out
        # of memory, it first ends processes that use more than they request.
        **requests("50m", "96Mi", "256Mi"),
        "securityContext": _PRIVILEGED_ROOT if chosen.kernel_log else TRACING_ROOT,
        "volumeMounts": mounts,
    }
    return {
        "serviceAccountName": _GPU_EXPORTER,
        **pull_secrets(chosen),
        "automountServiceAccountToken": False,
        "priorityClassName": "system-node-critical",
        **runtime(chosen),
        # NVML names processes by the node's pids. Without them a card's only holder gets the
        # card's values, and shared cards none.
        "hostPID": True,
        **gpu_nodes(),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": volumes,
    }


def gpu_exporter_rights(chosen: Installation) -> list[Object]:
    """Rights for flags of the GPU exporter that read the API server.

    Each exporter reads the pods and slices of its own node; RBAC cannot limit it to those.
    """
    owner = PartPlace(_GPU_EXPORTER, chosen.node_namespace)
    everywhere = [
        grant("", "pods", "list watch"),
        grant("resource.k8s.io", "resourceslices", "list"),
    ]
    own = [grant("", "configmaps", "get", "fairlead-gpu-counters")]
    return [
        *cluster_rights(_GPU_EXPORTER, owner, everywhere, is_labelled=True),
        *rights(_GPU_EXPORTER, owner, owner.namespace, own, is_labelled=True),
    ]


def runtime(chosen: Installation) -> Object:
    """The RuntimeClass of pods that load the GPU driver, where an installation names one."""
    return {"runtimeClassName": chosen.runtime_class} if chosen.runtime_class else {}


def followed() -> list[Object]:
    tree = ("scheduling.sigs.k8s.io", "elasticquotatrees")
    return [
        grant(group, resources, "list watch") for group, resources in (*_TRAINING, tree, *_OWNERS)
    ]


def sources(chosen: Installation) -> list[str]:
    """Flags of console and cluster exporter: where GPU values and series come from."""
    flags = [f"--gpu-exporter-namespace={chosen.node_namespace}"]
    flags += [f"--gpu-source={chosen.gpu_source}"] if chosen.gpu_source else []
    return [*flags, f"--prometheus={chosen.prometheus}"] if chosen.prometheus else flags
