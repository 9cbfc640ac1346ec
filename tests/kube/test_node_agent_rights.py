"""What Fairlead's accounts may write on the real API server, where a policy limits them.

The agent of a node writes its own node's GPUs, and that pods there have their cards. The scheduler
writes grants. The quota controller writes gates, its condition, namespaces of leaves, and whether
jobs are suspended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.contracts.api_client import MERGE, STRATEGIC, Answer, ApiClient
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds
from tests.kube.deployed import of_file, rights_of_agents
from tests.kube.objects import namespace, share_node
from tests.waiting import wait_until

Object = dict[str, Any]
SYSTEM, NODE_SPACE, ACCOUNT = "fairlead-system", "fairlead-nodes", "fairlead-node-agent"
ASSIGNED = {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "scheduler.framework.gpushare.assigned": "true"}
COUNT = "aliyun.com/gpu-count"
TIMES = {"ALIYUN_COM_GPU_MEM_ASSIGN_TIME": "1", "scheduler.framework.gpushare.assign-time": "1"}


class Case(NamedTuple):
    """A merge patch of `target` (kind/name), and the words with which it is refused; "" = it is
    accepted.
    """

    target: str
    patch: Object
    refusal: str = ""
    subresource: str = ""


def annotated(**printed: str | None) -> Object:
    return {"metadata": {"annotations": printed}}


CASES = {
    "its-pods-have-their-cards": Case("pod/here", annotated(**ASSIGNED, **TIMES)),
    "not-those-of-another-node": Case(
        "pod/there", annotated(**ASSIGNED), "writes only on pods of that node"
    ),
    "not-one-that-is-nowhere": Case(
        "pod/nowhere", annotated(**ASSIGNED), "writes only on pods of that node"
    ),
    "no-grant": Case(
        "pod/here", annotated(**{"fairlead.io/gpu-allocation": "{}"}), "and nothing else"
    ),
    "no-other-annotation": Case("pod/here", annotated(team="mine"), "and nothing else"),
    "no-label-of-a-pod": Case(
        "pod/here",
        {"metadata": {"labels": {"team": "mine"}}},
        "changes nothing of a pod but annotations",
    ),
    "no-owner-of-a-pod": Case(
        "pod/here",
        {"metadata": {"finalizers": ["fairlead.test/keep"]}},
        "changes nothing of a pod but annotations",
    ),
    "no-image": Case(
        "pod/here",
        {"spec": {"activeDeadlineSeconds": 5}},
        "changes nothing of a pod but annotations",
    ),
    "inventory": Case(
        "node/own", annotated(**{"fairlead.io/gpus": "[]", "fairlead.io/gpu-identity": "guarded"})
    ),
    "no-other-annotation-of-a-node": Case(
        "node/own", annotated(team="mine"), "and no other annotation"
    ),
    "labels-of-gpus": Case(
        "node/own", {"metadata": {"labels": {"fairlead.io/gpu-isolation": "none"}}}
    ),
    "not-whether-they-are-shared": Case(
        "node/own", {"metadata": {"labels": {"cgpu": "false"}}}, "and no other"
    ),
    "not-gone-either": Case("node/own", {"metadata": {"labels": {"cgpu": None}}}, "and no other"),
    "not-another-node": Case(
        "node/other", annotated(**{"fairlead.io/gpus": "[]"}), "writes only on that node"
    ),
    "not-whether-it-takes-pods": Case(
        "node/own", {"spec": {"unschedulable": True}}, "changes nothing of its node but"
    ),
    "count": Case(
        "node/own",
        {
            "status": {
                "capacity": {"aliyun.com/gpu-count": "3"},
                "allocatable": {"aliyun.com/gpu-count": "3"},
            }
        },
        "",
        "status",
    ),
    "counts": Case(
        "node/own",
        {"status": {"allocatable": {"nvidia.com/gpu": "0", "aliyun.com/gpu-mem": "14"}}},
        "",
        "status",
    ),
    "no-other-resource": Case(
        "node/own",
        {"status": {"capacity": {"cpu": "800"}}},
        "changes nothing of its node but",
        "status",
    ),
    "condition": Case(
        "node/own",
        {"status": {"conditions": [{"type": "GPUShareReady", "status": "True"}]}},
        "",
        "status",
    ),
    "not-where-it-is": Case(
        "node/own",
        {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}},
        "changes nothing else of its node",
        "status",
    ),
    "not-its-kubelet's-port": Case(
        "node/own",
        {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 4444}}}},
        "changes nothing else of its node",
        "status",
    ),
    "not-its-images": Case(
        "node/own",
        {"status": {"images": [{"names": ["mine"], "sizeBytes": 1}]}},
        "changes nothing else of its node",
        "status",
    ),
    "not-its-finalizers": Case(
        "node/own",
        {"metadata": {"finalizers": ["fairlead.test/keep"]}},
        "changes nothing else of its node",
    ),
    "no-other-condition": Case(
        "node/own",
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        "and no other",
        "status",
    ),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        made.admin.apply(
            [namespace(SYSTEM), namespace(NODE_SPACE), share_node("own"), share_node("other")]
        )
        made.admin.apply(rights_of_agents())
        made.admin.create([pod("here", "own"), pod("there", "other"), pod("nowhere", "")])
        made.admin.create([pod("agent-own", "own", NODE_SPACE, ACCOUNT)])
        made.admin.apply([namespace("team")])
        for file in ("gpushare-extender.yaml", "quota-controller.yaml", "account-admission.yaml"):
            made.admin.apply(
                [
                    each
                    for each in of_file(file)
                    if each["kind"] not in ("Deployment", "PodDisruptionBudget")
                ]
            )
        gated = pod("gated", "")
        gated["spec"]["schedulingGates"] = [
            {"name": "fairlead.io/quota"},
            {"name": "another.test/gate"},
        ]
        install_job_kinds(made.admin)
        mpijob = {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "job", "namespace": "default"},
        }
        made.admin.create(
            [
                gated,
                pod("ours", "own", SYSTEM),
                pod("agent", "own", NODE_SPACE),
                job("job"),
                {**mpijob, "spec": {"mpiReplicaSpecs": launcher("none")}},
            ]
        )
        yield made


@pytest.fixture(scope="module")
def agent(cluster: ControlPlane) -> ApiClient:
    """A client with the token of the agent's pod on node `own`."""
    words = ("--bound-object-kind=Pod", "--bound-object-name=agent-own")
    found = user(cluster, cluster.admin.run("create", "token", ACCOUNT, "-n", NODE_SPACE, *words))
    other = CASES["not-another-node"]
    wait_until(
        "the policies are in force", lambda: other.refusal in write(found, other).message, 60
    )
    return found


def user(cluster: ControlPlane, token: str) -> ApiClient:
    return ApiClient("real", cluster.kubeconfig).as_stranger(token.strip())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_it_may_write(agent: ApiClient, case: Case) -> None:
    answer = write(agent, case)
    assert answer.status == (403 if case.refusal else 200), answer.message
    assert case.refusal in answer.message


def test_a_token_that_names_no_node_writes_nothing(cluster: ControlPlane, agent: ApiClient) -> None:
    unknown = user(cluster, cluster.admin.run("create", "token", ACCOUNT, "-n", NODE_SPACE))
    for name in ("its-pods-have-their-cards", "inventory", "count"):
        answer = write(unknown, CASES[name])
        assert (answer.status, "of node `` writes only on" in answer.message) == (403, True), (
            answer.message
        )


def test_it_makes_the_pod_that_tests_its_runtime_and_no_other(agent: ApiClient) -> None:
    test = {**pod("fairlead-cdi-test-own", "own", NODE_SPACE)}
    test["spec"] |= {"automountServiceAccountToken": False}
    path = f"/api/v1/namespaces/{NODE_SPACE}/pods"
    assert agent.ask("POST", path, test).status == 201
    assert agent.ask("GET", f"{path}/fairlead-cdi-test-own").status == 200
    assert agent.ask("DELETE", f"{path}/fairlead-cdi-test-own").status in (200, 202)
    for other, reported in (
        (pod("mine", "own", NODE_SPACE), "makes no pod but the one"),
        (pod("x", "other", NODE_SPACE), "writes only on pods of that node"),
    ):
        answer = agent.ask("POST", path, other)
        assert (answer.status, reported in answer.message) == (403, True), answer.message
    for space in ("default", SYSTEM):
        elsewhere = pod("fairlead-cdi-test-own", "own", space)
        answer = agent.ask("POST", f"/api/v1/namespaces/{space}/pods", elsewhere)
        assert answer.status == 403, answer.message


def one(**more: Any) -> Object:
    """One container with more than the agent writes."""
    return {"containers": [{"name": "main", "image": "none", **more}]}


RIGHTS: dict[str, Object] = {
    "an account": {"serviceAccountName": "fairlead-quota"},
    "its own account": {"serviceAccountName": ACCOUNT},
    "a token": {"automountServiceAccountToken": True},
    "the node's disk": {"volumes": [{"name": "all", "hostPath": {"path": "/"}}]},
    "the node's network": {"hostNetwork": True},
    "the node's processes": {"hostPID": True},
    "the node's memory": {"hostIPC": True},
    "all rights": {
        "containers": [
            {
                "name": "main",
                "image": "none",
                "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},
            }
        ]
    },
    "a second container": {
        "containers": [{"name": "main", "image": "none"}, {"name": "other", "image": "none"}]
    },
    "a container before": {
        "initContainers": [
            {
                "name": "other",
                "image": "none",
                "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},
            }
        ]
    },
    "a variable": one(env=[{"name": "A", "value": "b"}]),
    "a variable of a Secret": one(
        env=[
            {
                "name": "A",
                "valueFrom": {
                    "secretKeyRef": {"name": "fairlead-admission-webhook", "key": "tls.key"}
                },
            }
        ]
    ),
    "all of a Secret": one(envFrom=[{"secretRef": {"name": "fairlead-admission-webhook"}}]),
    "all of a ConfigMap": one(envFrom=[{"configMapRef": {"name": "kube-root-ca.crt"}}]),
    "the password of a registry": {"imagePullSecrets": [{"name": "registry"}]},
    "a Secret as a file": {
        "volumes": [{"name": "all", "secret": {"secretName": "fairlead-admission-webhook"}}]
    },
    "a token as a file": {
        "volumes": [
            {"name": "all", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
        ],
    },
    "a privileged container": one(securityContext={"privileged": True}),
    "a probe": one(livenessProbe={"httpGet": {"port": 80, "host": "169.254.169.254"}}),
    "a hook": one(lifecycle={"preStop": {"httpGet": {"port": 80, "host": "169.254.169.254"}}}),
    "a port of the node": one(ports=[{"containerPort": 80, "hostPort": 80}]),
    "a message from elsewhere": one(terminationMessagePath="/etc/shadow"),
    "names of its own": {"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}]},
    "another resolver": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.9.9.9"]}},
    "a shared process table": {"shareProcessNamespace": True},
    "the priority of the system": {"priorityClassName": "system-node-critical"},
    "kernel settings": {
        "securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]}
    },
}


@pytest.mark.parametrize("more", RIGHTS.values(), ids=RIGHTS)
def test_the_pod_that_tests_the_runtime_has_no_rights(
    cluster: ControlPlane, agent: ApiClient, more: Object
) -> None:
    """Otherwise an intruder on a node could become any account in Fairlead's namespace."""
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "fairlead-quota", "namespace": NODE_SPACE},
    }
    cluster.admin.apply([account])
    test = pod("fairlead-cdi-test-own", "own", NODE_SPACE)
    test["spec"] |= {"automountServiceAccountToken": False, **more}
    answer = agent.ask("POST", f"/api/v1/namespaces/{NODE_SPACE}/pods", test)
    assert (answer.status, "no account, no volumes and no rights" in answer.message) == (
        403,
        True,
    ), answer.message


META: dict[str, Object] = {
    "a label of the webhook's Service": {
        "labels": {"app.kubernetes.io/name": "fairlead-admission-webhook"}
    },
    "another label": {"labels": {"app.kubernetes.io/name": "fairlead-cdi-test", "team": "mine"}},
    "a finalizer": {"finalizers": ["fairlead.test/keep"]},
}


@pytest.mark.parametrize("more", META.values(), ids=META)
def test_the_pod_that_tests_the_runtime_stands_behind_no_service(
    agent: ApiClient, more: Object
) -> None:
    test = pod("fairlead-cdi-test-own", "own", NODE_SPACE)
    test["spec"] |= {"automountServiceAccountToken": False}
    test["metadata"] |= more
    answer = agent.post(f"/api/v1/namespaces/{NODE_SPACE}/pods", test, dryRun="All")
    assert (answer.status, "has its one label, and no owner" in answer.message) == (403, True), (
        answer.message
    )


EPHEMERAL = [{"name": "other", "image": "none"}]


def test_it_adds_no_container_to_a_pod_that_runs(agent: ApiClient) -> None:
    patch = {"spec": {"ephemeralContainers": EPHEMERAL}}
    answer = agent.ask(
        "PATCH",
        "/api/v1/namespaces/default/pods/here/ephemeralcontainers",
        patch,
        headers={"Content-Type": STRATEGIC},
    )
    assert answer.status == 403, answer.message


def test_it_deletes_no_other_pod(cluster: ControlPlane, agent: ApiClient) -> None:
    cluster.admin.create(
        [pod("extender", "own", NODE_SPACE), pod("fairlead-cdi-test-other", "other", NODE_SPACE)]
    )
    for name in ("extender", "fairlead-cdi-test-other"):
        answer = agent.ask("DELETE", f"/api/v1/namespaces/{NODE_SPACE}/pods/{name}")
        assert (answer.status, "deletes no pod but the one" in answer.message) == (403, True), (
            answer.message
        )


def test_others_are_not_bound_by_it(cluster: ControlPlane, agent: ApiClient) -> None:
    cluster.admin.run("label", "node", "other", "team=mine")
    cluster.admin.run("annotate", "pod", "there", "-n", "default", "team=mine")


def launcher(image: str) -> Object:
    return {
        "Launcher": {
            "replicas": 1,
            "template": {"spec": {"containers": [{"name": "main", "image": image}]}},
        }
    }


SUSPENDED = {
    "spec": {"suspend": True},
    "metadata": {"annotations": {"fairlead.io/suspended-for": "team/big"}},
}
CONDITION = {
    "type": "fairlead.io/QuotaAdmitted",
    "status": "False",
    "reason": "OverMax",
    "message": "no",
}
READY = {"type": "Ready", "status": "False", "reason": "Mine"}
OTHER_NODES = {"spec": {"template": {"spec": {"nodeSelector": {"node": "mine"}}}}}
SCHEDULER_CASES = {
    "a grant": Case("pod/nowhere", annotated(**{"fairlead.io/gpu-allocation": "{}"})),
    "not another annotation": Case(
        "pod/nowhere", annotated(team="mine"), "annotations of a pod's grant, and no other"
    ),
    "not whether an autoscaler may end it": Case(
        "pod/nowhere",
        annotated(**{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}),
        "and no other",
    ),
    "not a label": Case(
        "pod/nowhere", {"metadata": {"labels": {"app": "mine"}}}, "nothing of a pod but its grant"
    ),
    "not an image": Case(
        "pod/nowhere",
        {"spec": {"containers": [{"name": "main", "image": "mine"}]}},
        "nothing of a pod but its grant",
    ),
    "not a finalizer": Case(
        "pod/nowhere",
        {"metadata": {"finalizers": ["fairlead.test/keep"]}},
        "nothing of a pod but its grant",
    ),
}
QUOTA_CASES = {
    "the gate": Case("pod/gated", {"spec": {"schedulingGates": [{"name": "another.test/gate"}]}}),
    "not another's gate": Case(
        "pod/gated",
        {"spec": {"schedulingGates": []}},
        "takes the gate fairlead.io/quota off a pod",
    ),
    "not a pod's image": Case(
        "pod/nowhere",
        {"spec": {"containers": [{"name": "main", "image": "mine"}]}},
        "and changes nothing else of it",
    ),
    "not a pod's label": Case(
        "pod/nowhere", {"metadata": {"labels": {"app": "mine"}}}, "and changes nothing else of it"
    ),
    "not a pod's annotation": Case(
        "pod/nowhere", annotated(team="mine"), "and changes nothing else of it"
    ),
    "its condition": Case("pod/nowhere", {"status": {"conditions": [CONDITION]}}, "", "status"),
    "not whether a pod is ready": Case(
        "pod/here", {"status": {"conditions": [READY]}}, "nothing else of its status", "status"
    ),
    "not a pod's address": Case(
        "pod/here", {"status": {"podIP": "10.9.9.9"}}, "nothing else of its status", "status"
    ),
    "a leaf's namespace": Case(
        "namespace/team", {"metadata": {"labels": {"fairlead.io/quota": "enforced"}}}
    ),
    "its leaf": Case("namespace/team", annotated(**{"fairlead.io/leaf": "research"})),
    "not what its pods may": Case(
        "namespace/team",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
        "of a namespace, and no other",
    ),
    "not another annotation of it": Case(
        "namespace/team", annotated(team="mine"), "of a namespace, and no other"
    ),
    "a suspend": Case("job/job", SUSPENDED),
    "parallelism": Case("job/job", {"spec": {"parallelism": 1}}),
    "not where a job runs": Case("job/job", OTHER_NODES, "changes nothing else of it"),
    "a suspend of an MPIJob": Case("mpijob/job", {"spec": {"runPolicy": {"suspend": True}}}),
    "not an MPIJob's image": Case(
        "mpijob/job",
        {"spec": {"mpiReplicaSpecs": launcher("mine")}},
        "changes nothing else of it",
    ),
    "not what an MPIJob leaves": Case(
        "mpijob/job",
        {"spec": {"runPolicy": {"cleanPodPolicy": "None"}}},
        "changes nothing else of it",
    ),
    "not how often a job tries": Case(
        "job/job", {"spec": {"backoffLimit": 99}}, "changes nothing else of it"
    ),
    "not a job's label": Case(
        "job/job", {"metadata": {"labels": {"team": "mine"}}}, "only its own annotations"
    ),
    "not another's annotation of a job": Case(
        "job/job", annotated(team="mine"), "only its own annotations"
    ),
}


@pytest.fixture(scope="module")
def scheduler(cluster: ControlPlane) -> ApiClient:
    return writer(cluster, "fairlead-scheduler", SCHEDULER_CASES["not another annotation"])


@pytest.fixture(scope="module")
def quota(cluster: ControlPlane) -> ApiClient:
    return writer(cluster, "fairlead-quota-controller", QUOTA_CASES["not a pod's annotation"])


def writer(cluster: ControlPlane, account: str, refused: Case) -> ApiClient:
    found = user(cluster, cluster.admin.run("create", "token", account, "-n", SYSTEM))
    wait_until(
        "the policies are in force", lambda: refused.refusal in write(found, refused).message, 60
    )
    return found


@pytest.mark.parametrize("case", SCHEDULER_CASES.values(), ids=SCHEDULER_CASES)
def test_what_the_scheduler_may_write(scheduler: ApiClient, case: Case) -> None:
    answer = write(scheduler, case)
    assert answer.status == (403 if case.refusal else 200), answer.message
    assert case.refusal in answer.message


def test_a_binding_carries_a_grant_and_nothing_else(
    scheduler: ApiClient, cluster: ControlPlane
) -> None:
    cluster.admin.create([pod("bound", "")])
    path = "/api/v1/namespaces/default/pods/bound/binding"
    bind = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "own"}}
    for more, reported in (
        ({"annotations": {"team": "mine"}}, "and no other"),
        ({"labels": {"app": "mine"}}, "nothing of a pod but"),
    ):
        answer = scheduler.ask("POST", path, {**bind, "metadata": {"name": "bound", **more}})
        assert (answer.status, reported in answer.message) == (403, True), answer.message
    granted = {"name": "bound", "annotations": {"ALIYUN_COM_GPU_MEM_IDX": "0"}}
    assert scheduler.ask("POST", path, {**bind, "metadata": granted}).status == 201


@pytest.mark.parametrize("case", QUOTA_CASES.values(), ids=QUOTA_CASES)
def test_what_the_quota_controller_may_write(quota: ApiClient, case: Case) -> None:
    answer = write(quota, case)
    assert answer.status == (403 if case.refusal else 200), answer.message
    assert case.refusal in answer.message


def test_quota_ends_no_pod_of_the_cluster_itself(quota: ApiClient, cluster: ControlPlane) -> None:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "ours", "namespace": SYSTEM},
    }
    answer = quota.ask("POST", f"/api/v1/namespaces/{SYSTEM}/pods/ours/eviction", eviction)
    assert (answer.status, "of the cluster's own namespaces" in answer.message) == (403, True), (
        answer.message
    )
    for path, reported in (
        (f"/api/v1/namespaces/{SYSTEM}/pods/ours", "of the cluster's own namespaces"),
        (f"/api/v1/namespaces/{NODE_SPACE}/pods/agent", "of the cluster's own namespaces"),
        ("/api/v1/namespaces/default/pods/here", "only while it is on no node"),
    ):
        answer = quota.ask("DELETE", path)
        assert (answer.status, reported in answer.message) == (403, True), answer.message
    cluster.admin.create([pod("unbound", "")])
    assert quota.ask("DELETE", "/api/v1/namespaces/default/pods/unbound").status == 200


def job(name: str) -> Object:
    template = {
        "spec": {
            "containers": [{"name": "main", "image": "none"}],
            "restartPolicy": "Never",
            "schedulerName": "nobody",
        }
    }
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"parallelism": 2, "suspend": True, "template": template},
    }


PLACES = {
    "pod": "/api/v1/namespaces/default/pods",
    "node": "/api/v1/nodes",
    "namespace": "/api/v1/namespaces",
}
PLACES |= {
    "mpijob": "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs",
    "job": "/apis/batch/v1/namespaces/default/jobs",
}


def write(by: ApiClient, case: Case) -> Answer:
    kind, _, name = case.target.partition("/")
    path = f"{PLACES[kind]}/{name}"
    content = STRATEGIC if case.subresource or "containers" in case.patch.get("spec", {}) else MERGE
    return by.ask(
        "PATCH",
        f"{path}/{case.subresource}".rstrip("/"),
        case.patch,
        headers={"Content-Type": content},
    )


def pod(name: str, node: str, place: str = "default", account: str = "default") -> Object:
    spec: Object = {
        "containers": [{"name": "main", "image": "none"}],
        "serviceAccountName": account,
        "terminationGracePeriodSeconds": 0,
    }
    spec |= {"nodeName": node} if node else {"schedulerName": "nobody"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": place},
        "spec": spec,
    }
