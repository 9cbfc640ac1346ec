"""An extender that stands still between its decision and its request binds nothing afterwards.

The request is held at a proxy and the process frozen, until another extender has taken the Lease
and granted the same memory. Then the request reaches the API server. The clocks of the two are an
hour ahead and an hour behind.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from threading import Thread
from typing import Any

import pytest
from tests.contracts.api_client import ApiClient
from tests.contracts.api_client import until as until_real
from tests.kube.clocks import HOUR
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import of_file
from tests.kube.extender import SYSTEM, USER, Extender
from tests.kube.fault_proxy import held_back, running_fault_proxy
from tests.kube.objects import namespace, share_node
from tests.waiting import wait_until

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/fairlead-gpushare"
CONTROLLER = f"system:serviceaccount:{SYSTEM}:fairlead-quota-controller"
MASTERS = "system:masters"
NODE = "frozen-leader"
GRANT = {"fairlead.io/gpu-allocation": '{"c":{"0":10}}'}
TERMS = [
    each
    for each in of_file("account-admission.yaml")
    if each["metadata"]["name"] in ("fairlead-scheduler-term", "fairlead-quota-term")
]


def pod(name: str, **spec: Any) -> Object:
    limits = {"limits": {"aliyun.com/gpu-mem": "10"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "c", "image": "a:1", "resources": limits}],
            **spec,
        },
    }


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane with the two policies, which are gone afterwards."""
    control_plane.admin.apply([namespace(SYSTEM), share_node(NODE, gpus=1), *TERMS])
    try:
        yield control_plane
    finally:
        remove_policies(control_plane)
        control_plane.admin.run("delete", "lease", "--all", "-n", SYSTEM)
        control_plane.admin.run("delete", "node", NODE)


def remove_policies(cluster: ControlPlane) -> None:
    names = [each["metadata"]["name"] for each in TERMS if each["kind"].endswith("Policy")]
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        cluster.admin.run("delete", kind, *names)


@pytest.fixture(scope="module")
def api(cluster: ControlPlane) -> ApiClient:
    return ApiClient("real", cluster.kubeconfig)


@pytest.fixture
def pods(cluster: ControlPlane) -> Iterator[list[str]]:
    names: list[str] = []
    yield names
    cluster.admin.run("delete", "pod", "-n", "default", "--force", "--grace-period=0", *names)


def asked(pod: Object) -> Object:
    meta = pod["metadata"]
    return {
        "PodName": meta["name"],
        "PodNamespace": "default",
        "PodUID": meta["uid"],
        "Node": NODE,
    }


def test_what_it_decided_before_another_took_the_lease_is_refused(
    cluster: ControlPlane, api: ApiClient, pods: list[str]
) -> None:
    pods += ["decided-before", "decided-after"]
    before, after = (api.post(PODS, pod(name)).body for name in pods)
    with ExitStack() as leaving:
        proxy = leaving.enter_context(running_fault_proxy(cluster, acting=USER))
        first, second = (
            Extender(cluster, f"frozen-{name}", server=proxy.server, clock=clock)
            for name, clock in (("first", HOUR), ("second", -HOUR))
        )
        for each in (first, second):
            leaving.callback(each.component.stop)
            each.start()
        binding = proxy.plan(held_back("binding"))

        def ask() -> None:
            with suppress(OSError, http.client.HTTPException):
                first.ask("bind", asked(before), seconds=40)

        asking = Thread(target=ask)
        asking.start()
        wait_until("the binding is on its way", lambda: binding.strikes == 1, 30)
        first.component.freeze()
        leaving.callback(asking.join)
        leaving.callback(first.component.thaw)
        wait_until(
            "the second extender has the Lease and binds",
            lambda: not second.ask("bind", asked(after)).get("Error"),
            60,
        )
        proxy.release(binding)
        assert binding.answered == 403
        first.component.thaw()
        bound = {name: api.get(f"{PODS}/{name}").body for name in pods}
        assert [each["spec"].get("nodeName") for each in bound.values()] == [None, NODE]
        assert "annotations" not in bound["decided-before"]["metadata"]
        wait_until("the first one answers", lambda: not asking.is_alive(), 60)
        assert not api.get(f"{PODS}/decided-before").body["spec"].get("nodeName")


def test_the_api_server_compares_the_term_of_each_write_with_the_lease(
    cluster: ControlPlane, api: ApiClient, pods: list[str]
) -> None:
    """A later term is not refused: the API server may see the Lease a moment late. Nor is a term of
    another Lease: the API server may still compare with one that was deleted.
    """
    api.ask("DELETE", LEASE)
    lease = {"holderIdentity": "a", "leaseDurationSeconds": 4, "leaseTransitions": 5}
    meta = {"name": "fairlead-gpushare", "namespace": SYSTEM}
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    made = api.post(LEASE.rpartition("/")[0], {**kind, "metadata": meta, "spec": lease})
    uid = made.body["metadata"]["uid"]
    acting = api.as_user(USER, MASTERS)

    def bind(name: str, annotations: Object, manager: str) -> int:
        body = {"metadata": {"name": name, "annotations": annotations}}
        body["target"] = {"kind": "Node", "name": NODE}
        path = f"{PODS}/{name}/binding"
        query = {"fieldManager": manager, "dryRun": "All"} if manager else {"dryRun": "All"}
        return acting.post(path, {"apiVersion": "v1", "kind": "Binding", **body}, **query).status

    pods += ["term", "adopted"]
    api.post(PODS, pod("term"))
    api.post(PODS, pod("adopted", nodeName=NODE))
    until_real("the term counts", lambda: bind("term", GRANT, f"fairlead-gpushare-4-{uid}") == 403)
    for manager, status in {
        "": 403,
        "fairlead": 403,
        "fairlead-gpushare-": 403,
        "fairlead-gpushare-9": 403,
        f"fairlead-gpushare--{uid}": 403,
        f"fairlead-quota-9-{uid}": 403,
        f"fairlead-gpushare-5-{uid}": 201,
        f"fairlead-gpushare-10-{uid}": 201,
        "fairlead-gpushare-4-11111111-2222-3333-4444-555555555555": 201,
    }.items():
        assert bind("term", GRANT, manager) == status, manager
    assert bind("term", {}, "") == 201  # kube-scheduler itself, a pod without shared GPUs
    for term, status in {4: 403, 5: 200}.items():
        patch = {"metadata": {"annotations": GRANT}}
        manager = f"fairlead-gpushare-{term}-{uid}"
        answer = acting.patch(f"{PODS}/adopted", patch, fieldManager=manager, dryRun="All")
        assert answer.status == status, term
    touched = {"metadata": {"annotations": {"fairlead.io/gpu-retry": "1"}}}
    assert acting.patch(f"{PODS}/adopted", touched, dryRun="All").status == 200
    assert (
        api.as_user("system:kube-scheduler", MASTERS).patch(f"{PODS}/adopted", patch).status == 200
    )


def test_the_quota_controller_writes_only_in_the_term_of_the_lease(
    cluster: ControlPlane, api: ApiClient, pods: list[str]
) -> None:
    """Without a Lease nothing is compared."""
    path = LEASE.replace("gpushare", "quota")
    pods += ["gated", "victim"]
    api.post(PODS, pod("gated", schedulingGates=[{"name": "fairlead.io/quota"}]))
    api.post(PODS, pod("victim"))
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "turned"}}
    main = {"containers": [{"name": "c", "image": "a:1"}], "restartPolicy": "Never"}
    api.post(JOBS, {**job, "spec": {"suspend": True, "template": {"spec": main}}})
    acting = api.as_user(CONTROLLER, MASTERS)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "victim"}}
    waits = {"type": "fairlead.io/QuotaAdmitted", "status": "False"}
    patches = {
        f"{PODS}/gated": {"spec": {"schedulingGates": None}},
        f"{PODS}/gated/status": {"status": {"conditions": [waits]}},
        f"{JOBS}/turned": {"spec": {"suspend": False}},
        "/api/v1/namespaces/default": {"metadata": {"annotations": {"fairlead.io/leaf": "a"}}},
    }

    def write(manager: str) -> set[int]:
        query = {"fieldManager": manager, "dryRun": "All"}
        answers = [acting.patch(place, patch, **query) for place, patch in patches.items()]
        answers.append(acting.post(f"{PODS}/victim/eviction", eviction, **query))
        return {each.status for each in answers}

    try:
        assert write("fairlead") == {200, 201}
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        meta = {"name": "fairlead-quota", "namespace": SYSTEM}
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 5, "leaseTransitions": 2}
        made = api.post(path.rpartition("/")[0], {**kind, "metadata": meta, "spec": spec})
        uid = made.body["metadata"]["uid"]
        until_real("the term counts", lambda: write(f"fairlead-quota-1-{uid}") == {403})
        assert write("fairlead") == {403}
        for term in (2, 3):
            assert write(f"fairlead-quota-{term}-{uid}") == {200, 201}, term
    finally:
        api.delete(f"{JOBS}/turned", propagationPolicy="Background")


def test_after_a_new_installation_the_terms_of_the_former_lease_do_not_count(
    cluster: ControlPlane, api: ApiClient, pods: list[str]
) -> None:
    """An API server whose policies were deleted and written again may still see that Lease."""
    pods.append("again")
    api.post(PODS, pod("again"))
    acting = api.as_user(USER, MASTERS)

    def bind(manager: str) -> int:
        body = {"metadata": {"name": "again", "annotations": GRANT}}
        body["target"] = {"kind": "Node", "name": NODE}
        path, query = f"{PODS}/again/binding", {"fieldManager": manager, "dryRun": "All"}
        return acting.post(path, {"apiVersion": "v1", "kind": "Binding", **body}, **query).status

    def lease(term: int) -> str:
        api.ask("DELETE", LEASE)
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 4, "leaseTransitions": term}
        meta = {"name": "fairlead-gpushare", "namespace": SYSTEM}
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        made = api.post(LEASE.rpartition("/")[0], {**kind, "metadata": meta, "spec": spec})
        return str(made.body["metadata"]["uid"])

    former = lease(7)
    until_real("the term counts", lambda: bind(f"fairlead-gpushare-6-{former}") == 403)
    remove_policies(cluster)
    until_real("the policy is gone", lambda: bind("any") == 201)
    uid = lease(0)
    cluster.admin.apply(TERMS)
    until_real("the policy is back", lambda: bind("any") == 403)
    assert bind(f"fairlead-gpushare-0-{uid}") == 201
