"""What the agent of a node may write, on the real API server: its own node's GPUs, and that pods there have their cards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.contracts.api_client import MERGE, STRATEGIC, Answer, ApiClient
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import rights_of_agents
from tests.kube.objects import namespace, share_node
from tests.waiting import wait_until

Object = dict[str, Any]
SYSTEM, ACCOUNT = "fairlead-system", "fairlead-node-agent"
ASSIGNED = {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "scheduler.framework.gpushare.assigned": "true"}
COUNT = "aliyun.com/gpu-count"
TIMES = {"ALIYUN_COM_GPU_MEM_ASSIGN_TIME": "1", "scheduler.framework.gpushare.assign-time": "1"}


class Case(NamedTuple):
    """A merge patch of `target` (kind/name), and the words with which it is refused; "" = it is done."""

    target: str
    patch: Object
    refusal: str = ""
    subresource: str = ""


def annotated(**said: str | None) -> Object:
    return {"metadata": {"annotations": said}}


CASES = {
    "its-pods-have-their-cards": Case("pod/here", annotated(**ASSIGNED, **TIMES)),
    "not-those-of-another-node": Case("pod/there", annotated(**ASSIGNED), "writes only on pods of that node"),
    "not-one-that-is-nowhere": Case("pod/nowhere", annotated(**ASSIGNED), "writes only on pods of that node"),
    "no-grant": Case("pod/here", annotated(**{"fairlead.io/gpu-allocation": "{}"}), "and nothing else"),
    "no-other-annotation": Case("pod/here", annotated(team="mine"), "and nothing else"),
    "no-label-of-a-pod": Case("pod/here", {"metadata": {"labels": {"team": "mine"}}}, "changes nothing of a pod but annotations"),
    "no-owner-of-a-pod": Case("pod/here", {"metadata": {"finalizers": ["fairlead.test/keep"]}}, "changes nothing of a pod but annotations"),
    "no-image": Case("pod/here", {"spec": {"activeDeadlineSeconds": 5}}, "changes nothing of a pod but annotations"),
    "inventory": Case("node/own", annotated(**{"fairlead.io/gpus": "[]", "fairlead.io/gpu-identity": "guarded"})),
    "no-other-annotation-of-a-node": Case("node/own", annotated(team="mine"), "and no other annotation"),
    "labels-of-gpus": Case("node/own", {"metadata": {"labels": {"fairlead.io/gpu-isolation": "none"}}}),
    "not-whether-they-are-shared": Case("node/own", {"metadata": {"labels": {"cgpu": "false"}}}, "and no other"),
    "not-gone-either": Case("node/own", {"metadata": {"labels": {"cgpu": None}}}, "and no other"),
    "not-another-node": Case("node/other", annotated(**{"fairlead.io/gpus": "[]"}), "writes only on that node"),
    "not-whether-it-takes-pods": Case("node/own", {"spec": {"unschedulable": True}}, "changes nothing of its node but"),
    "count": Case(
        "node/own", {"status": {"capacity": {"aliyun.com/gpu-count": "3"}, "allocatable": {"aliyun.com/gpu-count": "3"}}}, "", "status"
    ),
    "counts": Case("node/own", {"status": {"allocatable": {"nvidia.com/gpu": "0", "aliyun.com/gpu-mem": "14"}}}, "", "status"),
    "no-other-resource": Case("node/own", {"status": {"capacity": {"cpu": "800"}}}, "changes nothing of its node but", "status"),
    "condition": Case("node/own", {"status": {"conditions": [{"type": "GPUShareReady", "status": "True"}]}}, "", "status"),
    "not-where-it-is": Case(
        "node/own", {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}}, "changes nothing else of its node", "status"
    ),
    "not-its-kubelet's-port": Case(
        "node/own", {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 4444}}}}, "changes nothing else of its node", "status"
    ),
    "not-its-images": Case(
        "node/own", {"status": {"images": [{"names": ["mine"], "sizeBytes": 1}]}}, "changes nothing else of its node", "status"
    ),
    "not-its-finalizers": Case("node/own", {"metadata": {"finalizers": ["fairlead.test/keep"]}}, "changes nothing else of its node"),
    "no-other-condition": Case("node/own", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "and no other", "status"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        made.admin.apply([namespace(SYSTEM), share_node("own"), share_node("other")])
        made.admin.apply(rights_of_agents())
        made.admin.create([pod("here", "own"), pod("there", "other"), pod("nowhere", "")])
        made.admin.create([pod("agent-own", "own", SYSTEM, ACCOUNT)])
        yield made


@pytest.fixture(scope="module")
def agent(cluster: ControlPlane) -> ApiClient:
    """Who has the token of the agent's pod on node `own`."""
    words = ("--bound-object-kind=Pod", "--bound-object-name=agent-own")
    found = user(cluster, cluster.admin.run("create", "token", ACCOUNT, "-n", SYSTEM, *words))
    other = CASES["not-another-node"]
    wait_until("the policies are in force", lambda: other.refusal in write(found, other).message, 60)
    return found


def user(cluster: ControlPlane, token: str) -> ApiClient:
    return ApiClient("real", cluster.kubeconfig).as_stranger(token.strip())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_it_may_write(agent: ApiClient, case: Case) -> None:
    answer = write(agent, case)
    assert answer.status == (403 if case.refusal else 200), answer.message
    assert case.refusal in answer.message


def test_a_token_that_names_no_node_writes_nothing(cluster: ControlPlane, agent: ApiClient) -> None:
    nobody = user(cluster, cluster.admin.run("create", "token", ACCOUNT, "-n", SYSTEM))
    for name in ("its-pods-have-their-cards", "inventory", "count"):
        answer = write(nobody, CASES[name])
        assert (answer.status, "of node `` writes only on" in answer.message) == (403, True), answer.message


def test_it_makes_the_pod_that_tests_its_runtime_and_no_other(agent: ApiClient) -> None:
    test = {**pod("fairlead-cdi-test-own", "own", SYSTEM)}
    test["spec"] |= {"automountServiceAccountToken": False}
    path = f"/api/v1/namespaces/{SYSTEM}/pods"
    assert agent.ask("POST", path, test).status == 201
    assert agent.ask("GET", f"{path}/fairlead-cdi-test-own").status == 200
    assert agent.ask("DELETE", f"{path}/fairlead-cdi-test-own").status in (200, 202)
    for other, told in (
        (pod("mine", "own", SYSTEM), "makes no pod but the one"),
        (pod("x", "other", SYSTEM), "writes only on pods of that node"),
    ):
        answer = agent.ask("POST", path, other)
        assert (answer.status, told in answer.message) == (403, True), answer.message
    assert agent.ask("POST", "/api/v1/namespaces/default/pods", pod("fairlead-cdi-test-own", "own")).status == 403


RIGHTS: dict[str, Object] = {
    "an account": {"serviceAccountName": "fairlead-quota"},
    "its own account": {"serviceAccountName": ACCOUNT},
    "a token": {"automountServiceAccountToken": True},
    "the node's disk": {"volumes": [{"name": "all", "hostPath": {"path": "/"}}]},
    "the node's network": {"hostNetwork": True},
    "the node's processes": {"hostPID": True},
    "the node's memory": {"hostIPC": True},
    "all rights": {"containers": [{"name": "main", "image": "none", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]},
    "a second container": {"containers": [{"name": "main", "image": "none"}, {"name": "other", "image": "none"}]},
    "a container before": {
        "initContainers": [{"name": "other", "image": "none", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]
    },
    "kernel settings": {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]}},
}


@pytest.mark.parametrize("more", RIGHTS.values(), ids=RIGHTS)
def test_the_pod_that_tests_the_runtime_has_no_rights(cluster: ControlPlane, agent: ApiClient, more: Object) -> None:
    """Who has broken into a node could else be whoever he wants in Fairlead's namespace."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "fairlead-quota", "namespace": SYSTEM}}
    cluster.admin.apply([account])
    test = pod("fairlead-cdi-test-own", "own", SYSTEM)
    test["spec"] |= {"automountServiceAccountToken": False, **more}
    answer = agent.ask("POST", f"/api/v1/namespaces/{SYSTEM}/pods", test)
    assert (answer.status, "no account, no volumes and no rights" in answer.message) == (403, True), answer.message


def test_it_deletes_no_other_pod(cluster: ControlPlane, agent: ApiClient) -> None:
    cluster.admin.create([pod("extender", "own", SYSTEM), pod("fairlead-cdi-test-other", "other", SYSTEM)])
    for name in ("extender", "fairlead-cdi-test-other"):
        answer = agent.ask("DELETE", f"/api/v1/namespaces/{SYSTEM}/pods/{name}")
        assert (answer.status, "deletes no pod but the one" in answer.message) == (403, True), answer.message


def test_others_are_not_bound_by_it(cluster: ControlPlane, agent: ApiClient) -> None:
    cluster.admin.run("label", "node", "other", "team=mine")
    cluster.admin.run("annotate", "pod", "there", "-n", "default", "team=mine")


def write(by: ApiClient, case: Case) -> Answer:
    kind, _, name = case.target.partition("/")
    path = f"/api/v1/namespaces/default/pods/{name}" if kind == "pod" else f"/api/v1/nodes/{name}"
    content = STRATEGIC if case.subresource else MERGE
    return by.ask("PATCH", f"{path}/{case.subresource}".rstrip("/"), case.patch, headers={"Content-Type": content})


def pod(name: str, node: str, place: str = "default", account: str = "default") -> Object:
    spec: Object = {"containers": [{"name": "main", "image": "none"}], "serviceAccountName": account, "terminationGracePeriodSeconds": 0}
    spec |= {"nodeName": node} if node else {"schedulerName": "nobody"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": place}, "spec": spec}
