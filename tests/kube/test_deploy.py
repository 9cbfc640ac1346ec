"""The files of `deploy/`: a real API server and the laptop's accept them, they contain exactly the
rights that are needed, and what they start works.

At work means: a stock kube-scheduler with the shipped configuration, and Fairlead's extender beside
it. Both use the shipped account with only its rights, while the shipped policies are in force. Only
addresses and credentials differ from the Deployment's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.api_client import ApiClient
from tests.contracts.rights import AUTHORIZATION, ask_for, made, until_allowed
from tests.contracts.simulated import simulated_server
from tests.kube import objects
from tests.kube.addresses import free_port
from tests.kube.admission_cases import EXTENDER
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_monitors
from tests.kube.deployed import DEPLOY, FILES, Object, of_file, of_kind
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.kwok_stages import READY_DELAY
from tests.kube.programs import program
from tests.kube.servers import FAIRLEAD, READY_SECONDS, environment, running
from tests.kube.sharing_words import as_real, pod, ready
from tests.kube.used_rights import unused
from tests.waiting import wait_until

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

CARD = NodePool(name="card", cpu=32, memory="128Gi", gpu_model="Tesla T4", gpus=1, shared=True)
SYSTEM, NODE_SPACE = "fairlead-system", "fairlead-nodes"
READER = f"system:serviceaccount:{SYSTEM}:fairlead-reader"
EXPORTER = f"system:serviceaccount:{SYSTEM}:fairlead-cluster-exporter"
GPU_EXPORTER = f"system:serviceaccount:{NODE_SPACE}:fairlead-gpu-exporter"
WEBHOOK = f"system:serviceaccount:{SYSTEM}:fairlead-admission-webhook"
PEOPLE = f"system:serviceaccount:{SYSTEM}:fairlead-people-controller"
QUOTA = f"system:serviceaccount:{SYSTEM}:fairlead-quota-controller"
RECORDER = f"system:serviceaccount:{SYSTEM}:fairlead-usage-recorder"
LEASES = "coordination.k8s.io/leases"
EVERYWHERE = {
    "list /nodes",
    "watch /nodes",
    *(f"{verb} /pods" for verb in ("get", "list", "watch", "patch")),
}
EVERYWHERE |= {"create /pods/binding", "create /events"}
TREES = "scheduling.sigs.k8s.io/elasticquotatrees"
SUSPENDED = (
    "batch/jobs",
    "kubeflow.org/mpijobs",
    "kubeflow.org/tfjobs",
    "kubeflow.org/pytorchjobs",
    "ray.io/rayjobs",
)
QUOTA_EVERYWHERE = {
    f"{verb} {what}"
    for verb in ("list", "watch")
    for what in (
        *(
            "/pods",
            "/nodes",
            "/namespaces",
            "apps/deployments",
            "apps/replicasets",
            "apps/statefulsets",
            "batch/cronjobs",
            *SUSPENDED,
        ),
        *(
            "policy/poddisruptionbudgets",
            "ray.io/rayclusters",
            "apps.kubedl.io/crons",
            "batch.volcano.sh/jobs",
        ),
        *(
            "scheduling.x-k8s.io/podgroups",
            "scheduling.volcano.sh/podgroups",
            "kai.alibabacloud.com/trainingjobs",
        ),
        "sparkoperator.k8s.io/sparkapplications",
        "fairlead.io/usergroups",
    )
}
QUOTA_EVERYWHERE |= {
    f"patch {what}" for what in ("/pods", "/pods/status", "/namespaces", *SUSPENDED)
}
QUOTA_EVERYWHERE |= {"delete /pods", "create /pods/eviction", "create /events"}
RBAC = "rbac.authorization.k8s.io"
PEOPLE_EVERYWHERE = {
    f"{verb} {what}"
    for verb in ("list", "watch")
    for what in (
        *("/pods", "/namespaces", "batch/jobs", "kubeflow.org/mpijobs", "kubeflow.org/tfjobs"),
        *("kubeflow.org/pytorchjobs", "ray.io/rayjobs", "batch.volcano.sh/jobs"),
        *("kai.alibabacloud.com/trainingjobs", "sparkoperator.k8s.io/sparkapplications"),
    )
}
PEOPLE_EVERYWHERE |= {
    f"{verb} {RBAC}/{what}"
    for verb in ("list", "watch", "create", "patch", "delete")
    for what in ("rolebindings", "clusterrolebindings")
}
PEOPLE_EVERYWHERE |= {
    f"bind {RBAC}/clusterroles fairlead-{role}"
    for role in ("researcher", "researcher-cluster", "admin", "credentials")
}
WEBHOOK_EVERYWHERE = {"get /namespaces", "list /namespaces", "list /pods", f"get {TREES}"}
WEBHOOK_EVERYWHERE |= {"list fairlead.io/users", "list fairlead.io/usergroups"}
WEBHOOK_EVERYWHERE |= {
    f"{verb} admissionregistration.k8s.io/{kind}webhookconfigurations fairlead-{name}"
    for verb in ("get", "patch")
    for kind, names in (
        ("mutating", ("gpu-scheduler", "quota-gate")),
        ("validating", ("gpu-grants", "quota-guard", "quota-tree", "people")),
    )
    for name in names
}
READ = {
    f"{verb} {what}"
    for verb in ("list", "watch")
    for what in (
        *(
            "/nodes",
            "/pods",
            "/events",
            "kubeflow.org/mpijobs",
            "kubeflow.org/tfjobs",
            "kubeflow.org/pytorchjobs",
        ),
        *(
            "batch.volcano.sh/jobs",
            "kai.alibabacloud.com/trainingjobs",
            "sparkoperator.k8s.io/sparkapplications",
        ),
        *("ray.io/rayjobs", "scheduling.sigs.k8s.io/elasticquotatrees"),
        # the owners of pods, for the plan of quota
        *(
            "/namespaces",
            "policy/poddisruptionbudgets",
            "batch/jobs",
            "batch/cronjobs",
            "ray.io/rayclusters",
            "apps.kubedl.io/crons",
        ),
        *("apps/deployments", "apps/replicasets", "apps/statefulsets"),
        *("scheduling.x-k8s.io/podgroups", "scheduling.volcano.sh/podgroups"),
    )
}
READ |= {
    f"get {what}"  # the page of one job in the console
    for what in (
        *(
            "/pods/log",
            "kubeflow.org/mpijobs",
            "kubeflow.org/tfjobs",
            "kubeflow.org/pytorchjobs",
            "ray.io/rayjobs",
        ),
        *(
            "batch.volcano.sh/jobs",
            "kai.alibabacloud.com/trainingjobs",
            "sparkoperator.k8s.io/sparkapplications",
        ),
    )
}
READ |= {"list /services", "list serving.kserve.io/inferenceservices"}  # the page of serving jobs
OF_DATA = {"list /persistentvolumeclaims"} | {
    f"list data.fluid.io/{kind}"
    for kind in (
        *("datasets", "dataloads", "alluxioruntimes", "jindoruntimes", "juicefsruntimes"),
        *("thinruntimes", "goosefsruntimes", "efcruntimes", "vineyardruntimes"),
    )
}
OF_DATA |= {"list apps/daemonsets"}  # the page of components
READ |= OF_DATA  # the page of data sets
EXPORTED = {
    right
    for right in READ - OF_DATA
    if not right.startswith("get ")
    and not right.endswith((" /events", " /services", " serving.kserve.io/inferenceservices"))
}
OF_A_NODE = {
    *(f"{verb} /pods" for verb in ("list", "watch")),
    "list resource.k8s.io/resourceslices",
}
RIGHTS = {
    (EXTENDER, "default"): EVERYWHERE,
    (EXTENDER, "kube-system"): {*EVERYWHERE, "list /configmaps", "watch /configmaps"},
    (EXTENDER, SYSTEM): {
        *EVERYWHERE,
        f"create {LEASES}",
        *(f"{verb} {LEASES} fairlead-gpushare" for verb in ("get", "update")),
    },
    (READER, "default"): READ,
    (EXPORTER, "default"): EXPORTED,
    (EXPORTER, "kube-system"): {*EXPORTED, "list /configmaps", "watch /configmaps"},
    (EXPORTER, SYSTEM): {
        *EXPORTED,
        f"create {LEASES}",
        *(f"{verb} {LEASES} fairlead-cluster-exporter" for verb in ("get", "update")),
    },
    (RECORDER, "default"): EXPORTED,
    (RECORDER, "kube-system"): {*EXPORTED, "list /configmaps", "watch /configmaps"},
    (RECORDER, SYSTEM): {
        *EXPORTED,
        f"create {LEASES}",
        *(f"{verb} {LEASES} fairlead-usage-recorder" for verb in ("get", "update")),
    },
    (GPU_EXPORTER, "default"): OF_A_NODE,
    (GPU_EXPORTER, NODE_SPACE): {*OF_A_NODE, "get /configmaps fairlead-gpu-counters"},
    (WEBHOOK, "default"): WEBHOOK_EVERYWHERE,
    (WEBHOOK, SYSTEM): {
        *WEBHOOK_EVERYWHERE,
        "create /secrets",
        *(f"{verb} /secrets fairlead-admission-webhook" for verb in ("get", "patch")),
    },
    (QUOTA, "default"): QUOTA_EVERYWHERE,
    (QUOTA, "kube-system"): {
        *QUOTA_EVERYWHERE,
        f"list {TREES}",
        f"watch {TREES}",
        f"patch {TREES}/status",
    },
    (QUOTA, SYSTEM): {
        *QUOTA_EVERYWHERE,
        f"create {LEASES}",
        *(f"{verb} {LEASES} fairlead-quota" for verb in ("get", "update")),
    },
    (PEOPLE, "default"): PEOPLE_EVERYWHERE,
    (PEOPLE, "kube-system"): {*PEOPLE_EVERYWHERE, f"list {TREES}", f"watch {TREES}"},
    (PEOPLE, SYSTEM): {
        *PEOPLE_EVERYWHERE,
        f"create {LEASES}",
        *(f"{verb} {LEASES} fairlead-people" for verb in ("get", "update")),
    },
    (PEOPLE, "kube-ai"): {
        *PEOPLE_EVERYWHERE,
        *(
            f"{verb} fairlead.io/{what}"
            for what in ("users", "usergroups")
            for verb in ("list", "watch", "patch")
        ),
        *(f"patch fairlead.io/{what}/status" for what in ("users", "usergroups")),
        *(f"{verb} /serviceaccounts" for verb in ("list", "watch", "create", "delete")),
    },
}
"""All rights of each account, beyond those of every account: verb, group/resource, and the name
where the right is for one object only.
"""

REFUSED = [
    *(
        "get secrets",
        "list secrets",
        "create pods",
        "update pods",
        "create pods/exec",
        "create pods/eviction",
        "create serviceaccounts/token",
    ),
    *(
        "patch nodes",
        "delete nodes",
        "update nodes/status",
        "update configmaps",
        "create configmaps",
        "delete events",
        "patch deployments.apps",
    ),
    *(
        "update leases.coordination.k8s.io",
        "delete leases.coordination.k8s.io",
        "impersonate users",
        "impersonate serviceaccounts",
    ),
    *(
        "bind clusterroles.rbac.authorization.k8s.io",
        "escalate clusterroles.rbac.authorization.k8s.io",
        "* *",
    ),
    *(
        "create rolebindings.rbac.authorization.k8s.io",
        "update validatingadmissionpolicies.admissionregistration.k8s.io",
    ),
    *(
        "delete mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "approve certificatesigningrequests.certificates.k8s.io",
    ),
]
"""What the account of scheduler and extender may not do, even with all rights of kube-scheduler."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A cluster with the namespaces, and nothing else of Fairlead's."""
    with running_control_plane(audited=[GPU_EXPORTER]) as cluster:
        cluster.admin.run("apply", "-f", str(DEPLOY / "namespace.yaml"))
        # a dry run of a file creates no namespace that its next object is in
        cluster.admin.apply([objects.namespace("kube-ai")])
        yield cluster


@pytest.fixture(scope="module")
def rights(cluster: ControlPlane) -> dict[str, Any]:
    """The accounts' rights before kube-scheduler's roles are applied: exactly `RIGHTS`."""
    for file in (
        "admission-webhook.yaml",
        "gpushare-extender.yaml",
        "quota-controller.yaml",
        "people-controller.yaml",
        "reader.yaml",
        "cluster-exporter.yaml",
        "usage-recorder.yaml",
    ):
        cluster.admin.run("apply", "-f", str(DEPLOY / file))
    for file in ("gpu-exporter.yaml", "gpu-exporter-rights.yaml"):
        cluster.admin.run("apply", "-f", str(DEPLOY / file))
    api = ApiClient("real", cluster.kubeconfig)
    until_allowed(api, EXTENDER, "create", "events", "default")
    until_allowed(api, READER, "list", "pods", "default")
    until_allowed(api, EXPORTER, "list", "pods", "default")
    until_allowed(api, RECORDER, "list", "pods", "default")
    until_allowed(api, QUOTA, "create", "events", "default")
    until_allowed(api, PEOPLE, "list", "pods", "default")
    until_allowed(api, GPU_EXPORTER, "list", "pods", "default")
    return {user + namespace: rights_of(api, user, namespace) for user, namespace in RIGHTS}


@pytest.fixture(scope="module")
def deployed(cluster: ControlPlane, rights: dict[str, Any]) -> ControlPlane:
    """Every file but the webhook's is applied (the policies are), and nodes exist."""
    world = sharing_world(Scenario(title="one card", node_pools=(CARD,)), 1, 1_767_600_000.0)
    labels = {"kubernetes.io/os": "linux"}
    plain = [as_real(plain_node(f"plain-{number}", labels)) for number in (1, 2)]
    master = as_real(plain_node("master", {**labels, "node-role.kubernetes.io/control-plane": ""}))
    cluster.admin.create([*(as_real(node) for node in world.cluster.list(NODES)), *plain, master])
    wait_until("the nodes are ready", lambda: len(ready(cluster)) == 4)
    for file in FILES:
        if file not in ("gpushare-webhook.yaml", "quota-webhook.yaml"):
            cluster.admin.run("apply", "-f", str(DEPLOY / file))
    return cluster


def plain_node(name: str, labels: dict[str, str]) -> Object:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def rights_of(api: ApiClient, user: str, namespace: str) -> set[str]:
    """All rights of the account there, beyond those of a new account of its namespace."""
    return _all_rights(api, user, namespace) - _all_rights(
        api, f"system:serviceaccount:{SYSTEM}:nobody", namespace
    )


def _all_rights(api: ApiClient, user: str, namespace: str) -> set[str]:
    acting = api.as_user(
        user, "system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated"
    )
    status = made(
        acting.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}})
    )["status"]
    assert not status["incomplete"] or not status.get("evaluationError"), status
    return {
        f"{verb} {group}/{resource} {name}".strip()
        for rule in status["resourceRules"]
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", [""])
        for resource in rule.get("resources", ())
        for name in rule.get("resourceNames", [""])
    }


# --- the files ------------------------------------------------------------------------------------


STORED_WITH_A_WARNING = (
    "console-admission.yaml",
    # The laptop enforces no NetworkPolicy.
    *(file for file in FILES if any(each["kind"] == "NetworkPolicy" for each in of_file(file))),
    "account-admission.yaml",
    "gpushare-admission.yaml",
    "node-agent-admission.yaml",
    "people-admission.yaml",
    # It evaluates no CEL.
    "people.yaml",
    "people-webhook.yaml",
    "gpushare-webhook.yaml",
    "quota-admission.yaml",
    "quota-webhook.yaml",
)


@pytest.mark.parametrize("file", FILES)
def test_a_real_server_takes_the_file_without_a_warning(cluster: ControlPlane, file: str) -> None:
    printed = cluster.admin.run(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--warnings-as-errors",
        "--force-conflicts",
        "-f",
        str(DEPLOY / file),
    )
    assert len(printed.splitlines()) == len(of_file(file))


def test_the_operator_of_prometheus_and_autoscaling_take_their_files(cluster: ControlPlane) -> None:
    install_monitors(cluster.admin)
    for file, count in (("prometheus/servicemonitor.yaml", 7), ("autoscaling/hpa.yaml", 2)):
        printed = cluster.admin.run(
            "create",
            "--dry-run=server",
            "--validate=strict",
            "--warnings-as-errors",
            "-f",
            str(DEPLOY / file),
        )
        assert len(printed.splitlines()) == count


def test_the_laptop_takes_every_file_and_gives_it_back(tmp_path: Path) -> None:
    world = sharing_world(Scenario(title="no nodes", node_pools=()), 1, 1_767_600_000.0)
    with simulated_server(tmp_path, world.clock, cluster=world.cluster) as server:
        kubectl = Kubectl(program("kubectl"), server.kubeconfig, tmp_path)
        # The laptop has the CRD of the quota tree from its start; kubectl asks for --server-side
        # over it.
        first = ("namespace.yaml", "people.yaml")
        files = [*first, *(file for file in FILES if file not in (*first, "quota-crd.yaml"))]
        for file in files:
            flags = () if file in STORED_WITH_A_WARNING else ("--warnings-as-errors",)
            kubectl.run("apply", *flags, "-f", str(DEPLOY / file))
            assert "created" not in kubectl.run("apply", *flags, "-f", str(DEPLOY / file))
        with pytest.raises(
            KubectlError, match="stores this admission policy and never enforces it"
        ):
            kubectl.run(
                "apply",
                "--warnings-as-errors",
                "--server-side",
                "--force-conflicts",
                "--dry-run=server",
                "-f",
                str(DEPLOY / "gpushare-admission.yaml"),
            )
        for file in reversed(files[1:]):
            kubectl.run("delete", "--wait=false", "-f", str(DEPLOY / file))
            assert kubectl.run("get", "--ignore-not-found", "-f", str(DEPLOY / file)) == ""


ROOT = ("gpu-exporter.yaml", "node-agent.yaml")
"""Their containers use directories that belong to root."""


@pytest.mark.parametrize(
    "file",
    [file for file in FILES if any("template" in each.get("spec", {}) for each in of_file(file))],
)
def test_every_container_has_the_least_that_it_works_with(file: str) -> None:
    for each in of_file(file):
        pod_spec = each.get("spec", {}).get("template", {}).get("spec")
        for container in (pod_spec or {}).get("containers", ()):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"]
            assert pod_spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert (rights["allowPrivilegeEscalation"], rights["capabilities"]["drop"]) == (
                False,
                ["ALL"],
            )
            assert not rights.get("privileged")
            assert pod_spec["securityContext"].get("runAsNonRoot") or file in ROOT


# --- rights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("user", "namespace"), RIGHTS)
def test_an_account_may_do_exactly_what_it_needs(
    rights: dict[str, Any], user: str, namespace: str
) -> None:
    assert rights[user + namespace] == RIGHTS[user, namespace]


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_scheduler_needs_not_it_may_not(deployed: ControlPlane, what: str) -> None:
    api = ApiClient("real", deployed.kubeconfig)
    until_allowed(
        api,
        EXTENDER,
        "get",
        "leases",
        SYSTEM,
        group="coordination.k8s.io",
        name="fairlead-scheduler",
    )
    verb, _, named = what.partition(" ")
    resource, _, group = named.partition(".")
    name, _, subresource = resource.partition("/")
    for namespace in ("", "default", "kube-system", SYSTEM):
        answer = ask_for(
            api,
            EXTENDER,
            verb,
            name,
            namespace,
            group="*" if name == "*" else group,
            subresource=subresource,
        )
        assert not answer["allowed"], answer


# --- at work --------------------------------------------------------------------------------------


POD = "fairlead-scheduler-0"


class Beside:
    """The two containers of the Deployment's pod, as processes on this machine."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.port = free_port()
        token = cluster.admin.run(
            "create", "token", "fairlead-scheduler", "-n", SYSTEM, "--duration=2h"
        ).strip()
        self.kubeconfig = write_kubeconfig(
            cluster.folder / "shipped.kubeconfig",
            cluster.server,
            cluster.authority,
            token_user(token),
        )
        scheduler, extender = containers()
        (listen,) = (word for word in extender["command"] if word.startswith("--listen="))
        (own_name,) = (
            each["name"]
            for each in extender["env"]
            if each["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
        )
        set_here = {
            listen: f"--listen=127.0.0.1:{self.port}",
            f"--identity=$({own_name})": f"--identity={POD}",
        }
        command = [set_here.get(word, word) for word in extender["command"][1:]]
        self.extender = Component(
            "shipped-extender",
            [*FAIRLEAD, *command, f"--kubeconfig={self.kubeconfig}"],
            cluster.logs / "shipped-extender.log",
            environment(),
        )
        config = cluster.folder / "shipped-scheduler.yaml"
        config.write_text(yaml.safe_dump(self._configuration()))
        serving = free_port()
        flags = [
            f"--{what}-kubeconfig={self.kubeconfig}" for what in ("authentication", "authorization")
        ]
        flags += [f"--config={config}", "--bind-address=127.0.0.1", f"--secure-port={serving}"]
        assert scheduler["command"] == ["kube-scheduler", "--config=/etc/fairlead/scheduler.yaml"]
        self.scheduler = Component(
            "shipped-scheduler",
            [program("kube-scheduler"), *flags],
            cluster.logs / "shipped-scheduler.log",
            environment(),
        )

    def _configuration(self) -> Object:
        text = of_kind(of_file("gpushare-scheduler.yaml"), "ConfigMap")["data"]["scheduler.yaml"]
        assert "http://127.0.0.1:12345/" in text
        config: Object = yaml.safe_load(text.replace(":12345/", f":{self.port}/"))
        return {**config, "clientConnection": {"kubeconfig": str(self.kubeconfig)}}

    def start_extender(self) -> None:
        self.extender.start()
        self.extender.wait_until(
            lambda: "scheduler extender of" in self.extender.log_tail(), READY_SECONDS
        )


def containers() -> list[Object]:
    found: list[Object] = of_kind(of_file("gpushare-scheduler.yaml"), "Deployment")["spec"][
        "template"
    ]["spec"]["containers"]
    return found


@pytest.mark.parametrize("file", ["gpushare-scheduler.yaml", "gpushare-control-plane.yaml"])
def test_the_extender_is_not_starved(file: str) -> None:
    """With 100m the kernel gives the extender a tenth of a core beside busy neighbours, and a
    single binding takes 4 ms of a core.
    """
    found = [
        each
        for kind in ("Deployment", "DaemonSet")
        for obj in of_file(file)
        if obj["kind"] == kind
        for each in _containers(obj)
    ]
    (extender,) = [each for each in found if "scheduler-extender" in each["command"]]
    assert extender["resources"]["requests"]["cpu"] == "500m"


def _containers(workload: Object) -> list[Object]:
    inside: list[Object] = workload["spec"]["template"]["spec"]["containers"]
    return inside


@pytest.fixture(scope="module")
def beside(deployed: ControlPlane) -> Iterator[Beside]:
    beside = Beside(deployed)
    with ExitStack() as leaving:
        leaving.callback(beside.extender.stop)
        beside.start_extender()
        leaving.callback(beside.scheduler.stop)
        beside.scheduler.start()
        yield beside


def found(cluster: ControlPlane, name: str) -> Object:
    return next(
        (
            each
            for each in cluster.admin.get("pods", "-n", "default")
            if each["metadata"]["name"] == name
        ),
        {},
    )


def is_placed(cluster: ControlPlane, name: str) -> bool:
    return bool(found(cluster, name).get("spec", {}).get("nodeName"))


def reported(cluster: ControlPlane, name: str) -> str:
    conditions = found(cluster, name).get("status", {}).get("conditions", ())
    return next(
        (each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), ""
    )


def test_three_fit_on_a_card_and_the_fourth_gets_the_reason(
    deployed: ControlPlane, beside: Beside
) -> None:
    names = ["n1", "n2", "n3", "n4"]
    deployed.admin.create([pod(name, 4) for name in names])
    wait_until("three are placed", lambda: sum(is_placed(deployed, name) for name in names) == 3)
    (last,) = (name for name in names if not is_placed(deployed, name))
    wait_until(
        "the fourth gets the reason",
        lambda: "Insufficient aliyun.com/gpu-mem" in reported(deployed, last),
    )
    described = ("describe", "pod", last, "-n", "default")
    wait_until(
        "with numbers",
        lambda: "need 4 GiB, largest free 2 GiB" in deployed.admin.run(*described),
    )
    grants = [
        json.loads(found(deployed, name)["metadata"]["annotations"]["fairlead.io/gpu-allocation"])
        for name in names
        if name != last
    ]
    assert [grant["c0"][0]["mib"] for grant in grants] == [4308, 4308, 4308]
    assert (
        deployed.admin.get(
            "leases", "-n", SYSTEM, "--field-selector=metadata.name=fairlead-gpushare"
        )[0]["spec"]["holderIdentity"]
        == POD
    )


def test_the_pods_of_the_files_run_with_the_policies_in_force(
    deployed: ControlPlane, beside: Beside
) -> None:
    for workload in (
        "deployment/fairlead-scheduler",
        "deployment/fairlead-console",
        "deployment/fairlead-cluster-exporter",
    ):
        deployed.admin.run("rollout", "status", workload, "-n", SYSTEM, "--timeout=60s", seconds=70)
    deployed.admin.run(
        "rollout",
        "status",
        "daemonset/fairlead-gpushare-extender",
        "-n",
        NODE_SPACE,
        "--timeout=60s",
        seconds=70,
    )
    spread = {
        each["spec"]["nodeName"]
        for each in deployed.admin.get(
            "pods", "-n", SYSTEM, "-l", "app.kubernetes.io/name=fairlead-scheduler"
        )
    }
    assert len(spread) == 2


def test_agent_and_exporter_leave_a_node_in_maintenance_and_come_back(
    deployed: ControlPlane, beside: Beside
) -> None:
    """A process that resets a card must be the only one that has it open."""
    (card,) = (node["metadata"]["name"] for node in deployed.admin.get("nodes", "-l", "cgpu"))
    names = {"fairlead-node-agent", "fairlead-gpu-exporter"}

    def there() -> set[str]:
        pods = deployed.admin.get(
            "pods", "-n", NODE_SPACE, "--field-selector", f"spec.nodeName={card}"
        )
        return {pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in pods} & names

    wait_until("both are there", lambda: there() == names)
    deployed.admin.run("label", "node", card, "fairlead.io/gpu-maintenance=")
    wait_until("both have left", lambda: not there())
    deployed.admin.run("label", "node", card, "fairlead.io/gpu-maintenance-")
    wait_until("both are back", lambda: there() == names)


def test_without_the_extender_shared_pods_wait_and_others_do_not(
    deployed: ControlPlane, beside: Beside
) -> None:
    deployed.admin.run("delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0")
    beside.extender.stop()
    deployed.admin.create([pod("shared", 4), pod("plain", 0)])
    wait_until("the plain one is placed", lambda: is_placed(deployed, "plain"))
    wait_until(
        "the shared one gets the reason",
        lambda: "connection refused" in reported(deployed, "shared"),
    )
    assert not is_placed(deployed, "shared")
    beside.start_extender()
    wait_until("the shared one is placed", lambda: is_placed(deployed, "shared"))


def test_a_pod_placed_by_hand_is_adopted_or_reported(
    deployed: ControlPlane, beside: Beside
) -> None:
    deployed.admin.run("delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0")
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "unhealthy-gpu-plain-1", "namespace": "kube-system"},
    }
    # a pod that already runs is not adopted: its kubelet would not check again
    starting = {"annotations": {READY_DELAY: "1m"}}
    by_hand = [pod("fits", 4, **starting), pod("fits-not", 12, **starting)]
    for each in by_hand:
        each["spec"]["nodeName"] = "card-1"
    deployed.admin.create([config_map, *by_hand])
    wait_until(
        "it has a card",
        lambda: (
            "fairlead.io/gpu-allocation"
            in found(deployed, "fits")["metadata"].get("annotations", {})
        ),
    )
    events = (
        "events",
        "-n",
        "default",
        "--field-selector",
        "involvedObject.name=fits-not,reason=GPUShareNotPlaced",
    )
    wait_until("the other is reported", lambda: len(deployed.admin.get(*events)) == 1)


def test_the_default_scheduler_asks_the_extender_as_on_the_page(
    deployed: ControlPlane, beside: Beside
) -> None:
    deployed.admin.run("delete", "pods", "--all", "-n", "default", "--force", "--grace-period=0")
    deployed.admin.run(
        "delete",
        "-f",
        str(DEPLOY / "gpushare-admission.yaml"),
        "-l",
        "fairlead.io/admission=scheduler",
    )
    deployed.components["kube-scheduler"].stop()
    page = (DEPLOY.parent / "docs" / "how-to" / "gpu-sharing.md").read_text(encoding="utf-8")
    (diff,) = (
        block
        for block in re.findall(r"```diff\n(.+?)```", page, re.DOTALL)
        if "KubeSchedulerConfiguration" in block
    )
    text = "\n".join(line[1:] for line in diff.splitlines())
    kubeconfig = str(deployed.folder / "kube-scheduler.kubeconfig")
    config = deployed.folder / "documented-scheduler.yaml"
    config.write_text(
        text.replace("/etc/kubernetes/scheduler.conf", kubeconfig).replace(
            ":12345/", f":{beside.port}/"
        )
    )
    argv = [program("kube-scheduler"), f"--config={config}", "--secure-port=0"]
    scheduler = Component(
        "documented-scheduler", argv, deployed.logs / "documented-scheduler.log", environment()
    )
    try:
        scheduler.start()
        wait_until("pods stay with it", lambda: sent_to(deployed) == "default-scheduler")
        deployed.admin.create([pod("shared", 4), pod("plain", 0)])
        wait_until(
            "both are placed",
            lambda: is_placed(deployed, "shared") and is_placed(deployed, "plain"),
        )
        assert "fairlead.io/gpu-allocation" in found(deployed, "shared")["metadata"]["annotations"]
    finally:
        scheduler.stop()
        deployed.start_component("kube-scheduler")


def sent_to(cluster: ControlPlane) -> str:
    made = cluster.admin.run(
        "create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod("asks", 4))
    )
    return str(json.loads(made)["spec"]["schedulerName"])


def test_no_right_was_refused(deployed: ControlPlane, beside: Beside) -> None:
    """The last of these tests: it reads the logs of the others."""
    for component in (beside.extender, beside.scheduler):
        log = component.log.read_text(encoding="utf-8", errors="replace")
        assert "forbidden" not in log.lower(), component.name


@pytest.mark.parametrize("file", ["cluster-exporter.yaml", "console.yaml"])
def test_the_readers_rights_are_enough(deployed: ControlPlane, file: str) -> None:
    spec = of_kind(of_file(file), "Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    token = deployed.admin.run("create", "token", spec["serviceAccountName"], "-n", SYSTEM).strip()
    kubeconfig = write_kubeconfig(
        deployed.folder / "reader.kubeconfig",
        deployed.server,
        deployed.authority,
        token_user(token),
    )
    elsewhere = ("--listen=", "--store=", "--secrets-folder=")
    verb, *flags = (word for word in container["command"][1:] if not word.startswith(elsewhere))
    if verb == "console":
        flags.append(f"--store=sqlite:///{deployed.folder / 'store'}")
    with running(
        verb, *flags, f"--kubeconfig={kubeconfig}", log=deployed.logs / f"shipped-{verb}.log"
    ) as server:
        assert server.is_ready()
        assert "forbidden" not in server.log().lower()


def test_the_gpu_exporter_asks_with_the_patch_and_the_rights_of_its_page(
    cluster: ControlPlane, rights: dict[str, Any]
) -> None:
    """The patch as printed, on the shipped DaemonSet; then the process that it names, on invented
    cards.
    """
    page = (DEPLOY.parent / "docs" / "how-to" / "gpu-exporter.md").read_text(encoding="utf-8")
    (patch,) = re.findall(
        (
            r"patch daemonset fairlead-gpu-exporter "
            r"--type=json -p '(.+?)'"
        ),
        page,
        re.DOTALL,
    )
    counters = "DCGM_FI_DEV_SM_CLOCK, gauge, of the ConfigMap"
    cluster.admin.run(
        "create",
        "configmap",
        "fairlead-gpu-counters",
        "-n",
        NODE_SPACE,
        f"--from-literal=metrics={counters}",
    )
    patched = (
        "patch",
        "daemonset",
        "fairlead-gpu-exporter",
        "-n",
        NODE_SPACE,
        "--type=json",
        "-p",
        patch,
        "-o",
        "json",
    )
    spec = json.loads(cluster.admin.run(*patched))["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is True
    token = cluster.admin.run(
        "create", "token", spec["serviceAccountName"], "-n", NODE_SPACE
    ).strip()
    kubeconfig = write_kubeconfig(
        cluster.folder / "gpu-exporter.kubeconfig",
        cluster.server,
        cluster.authority,
        token_user(token),
    )
    verb, *flags = (
        word for word in spec["containers"][0]["command"][1:] if not word.startswith("--listen=")
    )
    more = ("--sim-gpus=1xTesla-T4", "--backend=sim", f"--kubeconfig={kubeconfig}")
    with running(verb, *flags, *more, log=cluster.logs / "shipped-gpu-exporter.log") as server:
        wait_until(
            "the page is of the ConfigMap's counters",
            lambda: b"DCGM_FI_DEV_SM_CLOCK of the ConfigMap" in server.get("/metrics"),
        )
        assert "forbidden" not in server.log().lower()
        wait_until(
            "each right of the account was used",
            lambda: not unused(cluster, "fairlead-gpu-exporter", NODE_SPACE)[1],
        )
