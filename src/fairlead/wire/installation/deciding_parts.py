"""Objects of the deciding parts: extender, node agent, quota controller, admission webhook.

The scheduler is here, too.

The names of accounts are part of the admission rules (`model/installation`): only the accounts of
scheduler, extender and node agent write grants.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import Installation
from fairlead.settings import (
    NODE_AGENT_PORT,
    QUOTA_CONTROLLER_POD,
    QUOTA_CONTROLLER_PORT,
    QUOTA_LEASE,
    SHARE_LEASE,
)
from fairlead.wire.installation.object_parts import (
    ALL_CARDS,
    ANYWHERE,
    CLUSTER_CRITICAL,
    CONTROL_PLANE,
    KUBE_SYSTEM,
    LINUX,
    LOCKED,
    NODE_NAME,
    NON_ROOT,
    POD_NAME,
    TRACING_ROOT,
    Object,
    PartPlace,
    account,
    bound_cluster_role,
    bound_role,
    cluster_rights,
    controller_pod,
    daemon_set,
    deployment,
    disruption_budget,
    gpu_nodes,
    grant,
    host_folders,
    lease_grants,
    namespace_flags,
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
from fairlead.wire.installation.policies.policy_parts import WEBHOOK_SERVICE
from fairlead.wire.installation.reading_parts import runtime
from fairlead.wire.names import PEOPLE_GROUP, USER_GROUPS, USERS

_SCHEDULER: Final = "fairlead-scheduler"
_EXTENDER: Final = "fairlead-gpushare-extender"
_CONTROL_PLANE: Final = "fairlead-gpushare-control-plane"
"""Roles of the extender on machines of the control plane: both files can be applied."""
_AGENT: Final = "fairlead-node-agent"
_MPS_CONTROL: Final = {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"}
"""NVIDIA's runtime adds the driver's library, and with `compute` the control program of MPS."""
_WEBHOOK: Final = WEBHOOK_SERVICE
_EXTENDER_PORT: Final = 12345
"""Of the extender in pods, as kube-scheduler's configuration names it."""
_SCHEDULER_PORT: Final = 10259
"""Of kube-scheduler, for probes and metrics: its default."""
_WEBHOOK_PORT: Final = 8443
_DRAIN_SECONDS: Final = 5
_ADMISSION: Final = "admissionregistration.k8s.io"
_TREES: Final = "scheduling.sigs.k8s.io"

_LEADER_ELECTION: Final = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  # at its end it gives the Lease back, and the other one looks this often
  retryPeriod: 400ms
  resourceName: fairlead-scheduler
  resourceNamespace: """
_PROFILES: Final = """
profiles:
- schedulerName: fairlead-scheduler
extenders:
- urlPrefix: "http://127.0.0.1:12345/gpushare-scheduler"
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  bindVerb: bind
  weight: 5
  httpTimeout: 10s
  nodeCacheCapable: true
  # never true: without the extender pods would be placed by the sum of a node's cards
  ignorable: false
  managedResources:
  - {name: aliyun.com/gpu-mem, ignoredByScheduler: false}
  - {name: aliyun.com/gpu-core.percentage, ignoredByScheduler: false}
"""


def extender(chosen: Installation) -> list[Object]:
    """Account and rights of the extender beside Fairlead's own kube-scheduler."""
    owner = PartPlace(_SCHEDULER, chosen.namespace)
    return [account(owner), *_extender_rights(_EXTENDER, owner, chosen)]


def _extender_rights(name: str, owner: PartPlace, chosen: Installation) -> list[Object]:
    """What the extender's calls need, and no more. `name`: of the roles."""
    rules = [
        grant("", "nodes", "list watch"),
        # patch: the grant of a pod that another scheduler placed.
        grant("", "pods", "get list watch patch"),
        grant("", "pods/binding", "create"),
        grant("", "events", "create"),
    ]
    return [
        *cluster_rights(name, owner, rules),
        *withheld_gpu_rights(name, owner),
        # The replica that holds the Lease has the ledger that counts.
        *rights(name, owner, chosen.namespace, lease_grants(SHARE_LEASE)),
    ]


def scheduler(chosen: Installation) -> list[Object]:
    """A kube-scheduler of its own with the extender beside it on the pod's loopback.

    It needs no access to machines of the control plane. Its image should be of the API server's
    minor version.
    """
    place = PartPlace(_SCHEDULER, chosen.namespace)
    configuration = f"{_LEADER_ELECTION}{chosen.namespace}{_PROFILES}"
    return [
        bound_cluster_role(f"{_SCHEDULER}-as-kube-scheduler", "system:kube-scheduler", place),
        bound_cluster_role(f"{_SCHEDULER}-as-volume-scheduler", "system:volume-scheduler", place),
        # kube-scheduler reads there which clients it may answer on its metrics port.
        bound_role(
            f"{_SCHEDULER}-authentication-reader",
            "extension-apiserver-authentication-reader",
            place,
            KUBE_SYSTEM,
        ),
        # kube-scheduler's leader election.
        *rights(_SCHEDULER, place, place.namespace, lease_grants(_SCHEDULER)),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": place.meta,
            "data": {"scheduler.yaml": configuration},
        },
        deployment(place, chosen.replicas, _scheduler_pod(chosen)),
        disruption_budget(place),
        *network_policy(place, chosen, _SCHEDULER_PORT, _EXTENDER_PORT),
    ]


def _scheduler_pod(chosen: Installation) -> Object:
    kube_scheduler = {
        "name": "kube-scheduler",
        "image": chosen.kube_scheduler_image,
        "command": ["kube-scheduler", "--config=/etc/fairlead/scheduler.yaml"],
        **port("metrics", _SCHEDULER_PORT),
        **probes(_SCHEDULER_PORT, "/livez", scheme="HTTPS"),
        **requests("100m", "128Mi"),
        "securityContext": LOCKED,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/fairlead", "readOnly": True}],
    }
    beside = {
        "name": "extender",
        "image": chosen.image,
        # Beyond the pod it answers probes and Prometheus; filter, prioritize, preempt and bind are
        # answered on the pod's loopback alone.
        "command": _extender_command(f":{_EXTENDER_PORT}", chosen),
        "env": [POD_NAME],
        **port("extender", _EXTENDER_PORT),
        **probes("extender"),
        **requests("500m", "256Mi"),
        "securityContext": LOCKED,
    }
    return {
        "serviceAccountName": _SCHEDULER,
        **pull_secrets(chosen),
        "priorityClassName": CLUSTER_CRITICAL,
        "nodeSelector": LINUX,
        "tolerations": [CONTROL_PLANE],
        **spread(_SCHEDULER),
        "securityContext": NON_ROOT,
        "containers": [kube_scheduler, beside],
        "volumes": [{"name": "config", "configMap": {"name": _SCHEDULER}}],
    }


def control_plane_extender(chosen: Installation) -> list[Object]:
    """The extender alone, on the loopback of each machine that runs a kube-scheduler.

    It uses the network of its node, so its account is not the one of `extender`.
    """
    owner = PartPlace(_EXTENDER, chosen.node_namespace)
    container = {
        "name": "extender",
        "image": chosen.image,
        "command": _extender_command(f"127.0.0.1:{_EXTENDER_PORT}", chosen),
        "env": [POD_NAME],
        **probes(_EXTENDER_PORT, host="127.0.0.1"),
        **requests("500m", "256Mi"),
        "securityContext": LOCKED,
    }
    pod = {
        "serviceAccountName": _EXTENDER,
        **pull_secrets(chosen),
        "priorityClassName": CLUSTER_CRITICAL,
        "hostNetwork": True,
        "nodeSelector": {**LINUX, CONTROL_PLANE["key"]: ""},
        "tolerations": [CONTROL_PLANE],
        "securityContext": NON_ROOT,
        "containers": [container],
    }
    return [
        account(owner),
        *_extender_rights(_CONTROL_PLANE, owner, chosen),
        daemon_set(owner, pod),
    ]


def _extender_command(address: str, chosen: Installation) -> list[str]:
    lease = ["--identity=$(POD_NAME)", f"--lease-namespace={chosen.namespace}"]
    return ["fairlead", "scheduler-extender", f"--listen={address}", *lease]


def node_agent(chosen: Installation) -> list[Object]:
    """The agent of each node with GPUs: its only device plugin. Policies bound what it writes,
    because RBAC alone cannot.

    `--over-grant=evict` also needs `create` of `pods/eviction`. No policy can limit that to a node,
    because an eviction does not contain the node of its pod; so the right is left out.
    """
    owner = PartPlace(_AGENT, chosen.node_namespace)
    rules = [
        grant("", "nodes", "list watch patch"),
        grant("", "nodes/status", "patch"),
        grant("", "pods", "list watch patch"),
        grant("", "events", "create"),
    ]
    # The pod fairlead-cdi-test-<node> shows once what the container runtime supports.
    trial = [grant("", "pods", "create get delete")]
    return [
        account(owner),
        *cluster_rights(_AGENT, owner, rules),
        *withheld_gpu_rights(_AGENT, owner),
        *rights(_AGENT, owner, owner.namespace, trial),
        # The next agent waits until the one before it has ended: its files have a lock.
        daemon_set(owner, _agent_pod(chosen), most_unavailable="10%"),
        *network_policy(owner, chosen, NODE_AGENT_PORT),
    ]


def _agent_pod(chosen: Installation) -> Object:
    mounts, volumes = host_folders(
        ("device-plugins", "/var/lib/kubelet/device-plugins", "", False),
        ("pod-resources", "/var/lib/kubelet/pod-resources", "", True),
        ("cdi", "/var/run/cdi", "DirectoryOrCreate", False),
        ("state", "/var/lib/fairlead/gpu", "DirectoryOrCreate", False),
        ("run", "/run/fairlead/gpu", "DirectoryOrCreate", False),
        ("mps", "/run/nvidia/mps", "DirectoryOrCreate", False),
    )
    container = {
        "name": "agent",
        "image": chosen.image,
        "command": [
            "fairlead",
            "device-plugin",
            f"--listen=:{NODE_AGENT_PORT}",
            "--backend=nvml",
            f"--test-image={chosen.image}",
            f"--namespace={chosen.node_namespace}",
        ],
        "env": [NODE_NAME, ALL_CARDS, _MPS_CONTROL],
        **port("metrics", NODE_AGENT_PORT),
        **probes("metrics"),
        **requests("20m", "96Mi"),
        "securityContext": TRACING_ROOT,
        "volumeMounts": mounts,
    }
    return {
        "serviceAccountName": _AGENT,
        **pull_secrets(chosen),
        "priorityClassName": "system-node-critical",
        **runtime(chosen),
        # The watchdog looks at processes of the node.
        "hostPID": True,
        **gpu_nodes(),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": volumes,
    }


def quota_controller(chosen: Installation) -> list[Object]:
    """The quota controller: the replica that holds the Lease works. While none runs, pods of the
    tree's namespaces wait, and running pods are left alone.
    """
    place = PartPlace(QUOTA_CONTROLLER_POD, chosen.namespace)
    trees = [
        grant(_TREES, "elasticquotatrees", "list watch"),
        grant(_TREES, "elasticquotatrees/status", "patch"),
    ]
    return [
        account(place),
        *cluster_rights(QUOTA_CONTROLLER_POD, place, _quota_rules()),
        # The one tree of a cluster is in kube-system.
        *rights(QUOTA_CONTROLLER_POD, place, KUBE_SYSTEM, trees),
        *rights(QUOTA_CONTROLLER_POD, place, place.namespace, lease_grants(QUOTA_LEASE)),
        deployment(
            place,
            chosen.replicas,
            controller_pod(place, chosen, QUOTA_CONTROLLER_PORT, requests("200m", "256Mi")),
        ),
        disruption_budget(place),
        *network_policy(place, chosen, QUOTA_CONTROLLER_PORT),
    ]


def _quota_rules() -> list[Object]:
    return [
        # What it follows.
        grant("", "nodes", "list watch"),
        grant("apps", "replicasets deployments statefulsets", "list watch"),
        grant("batch", "cronjobs", "list watch"),
        grant("policy", "poddisruptionbudgets", "list watch"),
        grant("ray.io", "rayclusters", "list watch"),
        grant("apps.kubedl.io", "crons", "list watch"),
        grant("scheduling.x-k8s.io scheduling.volcano.sh", "podgroups", "list watch"),
        grant("batch.volcano.sh", "jobs", "list watch"),
        grant("kai.alibabacloud.com", "trainingjobs", "list watch"),
        grant("sparkoperator.k8s.io", "sparkapplications", "list watch"),
        # The caps of their users.
        grant(PEOPLE_GROUP, USER_GROUPS, "list watch"),
        # The label and annotation of a leaf's namespaces.
        grant("", "namespaces", "list watch patch"),
        # A patch removes the gate. A pod that no node takes is deleted, so that it waits at the
        # gate again.
        grant("", "pods", "list watch patch delete"),
        grant("", "pods/status", "patch"),
        grant("", "pods/eviction", "create"),
        # Suspended and resumed.
        grant("batch", "jobs", "list watch patch"),
        grant("kubeflow.org", "mpijobs tfjobs pytorchjobs", "list watch patch"),
        grant("ray.io", "rayjobs", "list watch patch"),
        # Its reports.
        grant("", "events", "create"),
    ]


def admission_webhook(chosen: Installation) -> list[Object]:
    """The server that webhook configurations name. It makes its own certificate and writes the
    authority into those configurations.
    """
    place = PartPlace(_WEBHOOK, chosen.namespace)
    secret = [
        # A right to create cannot be limited to a name.
        grant("", "secrets", "create"),
        grant("", "secrets", "get patch", _WEBHOOK),
    ]
    mutating, validating = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    everywhere = [
        # The configurations into which the certificate's authority is written.
        grant(_ADMISSION, mutating, "get patch", "fairlead-gpu-scheduler fairlead-quota-gate"),
        grant(
            _ADMISSION,
            validating,
            "get patch",
            "fairlead-gpu-grants fairlead-quota-guard fairlead-quota-tree fairlead-people",
        ),
        # What a request leaves open: the leaf of a namespace, the resources that the tree counts,
        # whether pods run in a namespace that moves, what pods use.
        grant("", "namespaces", "get list"),
        grant("", "pods", "list"),
        grant(_TREES, "elasticquotatrees", "get"),
        # Whether a group exists, a leaf has one, and a user is the last administrator.
        grant(PEOPLE_GROUP, f"{USERS} {USER_GROUPS}", "list"),
    ]
    return [
        account(place),
        *rights(_WEBHOOK, place, place.namespace, secret),
        *cluster_rights(_WEBHOOK, place, everywhere),
        deployment(place, chosen.replicas, _webhook_pod(chosen)),
        disruption_budget(place),
        service(place, "https", 443),
        *network_policy(place, chosen, _WEBHOOK_PORT, clients=ANYWHERE),
    ]


def _webhook_pod(chosen: Installation) -> Object:
    container = {
        "name": "webhook",
        "image": chosen.image,
        "command": ["fairlead", "admission-webhook"],
        "args": [f"--listen=:{_WEBHOOK_PORT}", *namespace_flags(chosen)],
        **port("https", _WEBHOOK_PORT),
        **probes("https", scheme="HTTPS"),
        # Until the API server's node no longer sends requests here: one without an answer refuses
        # the object that it is about.
        "lifecycle": {"preStop": {"sleep": {"seconds": _DRAIN_SECONDS}}},
        # A review has 8 MiB at most, and of a quota tree no more than 2 MiB are read.
        **requests("50m", "96Mi", "512Mi"),
        "securityContext": LOCKED,
    }
    return {
        "serviceAccountName": _WEBHOOK,
        **pull_secrets(chosen),
        "priorityClassName": CLUSTER_CRITICAL,
        "nodeSelector": LINUX,
        **spread(_WEBHOOK),
        "securityContext": NON_ROOT,
        "containers": [container],
    }
