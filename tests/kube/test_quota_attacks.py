"""Attacks by a user who may write pods, Deployments and Jobs of his own namespace and wants more
than his leaf allows.

The leaf is full, and one pod waits. The API server itself, RBAC or Fairlead's policies refuse an
attack with a message; or the attack is accepted and gains nothing: the pod still waits, no other
pod is stopped, and no write leaves a quota node above its max.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, STRATEGIC, Answer, ApiClient
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.quota_line import (
    QuotaController,
    big_node,
    bounded,
    deployment,
    enforce,
    install,
    job,
    running_controller,
    settled,
)
from tests.kube.quota_truth import QuotaTruth, quota_condition
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 0)

Object = dict[str, Any]
ROOT = bounded(
    "root", 10, 10, children=[bounded("team", 4, 4, ["team"]), bounded("other", 6, 6, ["other"])]
)
PODS = "/api/v1/namespaces/team/pods"
JOBS = "/apis/batch/v1/namespaces/team/jobs"
SCALE = "/apis/apps/v1/namespaces/team/deployments/full/scale"
WAITS = f"{PODS}/waits"
MALLORY = "mallory"
GATED = "only Fairlead's quota controller takes the scheduling gate fairlead.io/quota away"
NOT_HIS = 'User "mallory" cannot'
RIGHTS = [
    {
        "apiGroups": [""],
        "resources": [
            "pods",
            "pods/log",
            "pods/exec",
            "pods/attach",
            "pods/ephemeralcontainers",
            "pods/resize",
            "configmaps",
        ],
        "verbs": ["*"],
    },
    {
        "apiGroups": ["apps"],
        "resources": ["deployments", "deployments/scale", "replicasets", "statefulsets"],
        "verbs": ["*"],
    },
    {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "verbs": ["*"]},
]
ADMITTED = {
    "type": "fairlead.io/QuotaAdmitted",
    "status": "True",
    "reason": "Admitted",
    "message": "by myself",
}
CLAIMS = {
    "type": "fairlead.io/QuotaAdmitted",
    "status": "False",
    "reason": "WaitingForEvictions",
    "message": "before all others",
}


class Attack(NamedTuple):
    """`refused`: the message of the refusal; "" = it is accepted and gains nothing."""

    do: Callable[[ApiClient], Answer]
    refused: str = ""


def pod(
    name: str, metadata: Object | None = None, spec: Object | None = None, **more: Any
) -> Object:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "2"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **(spec or {})},
        **more,
    }


def make(
    metadata: Object | None = None, spec: Object | None = None, path: str = PODS, **more: Any
) -> Callable[[ApiClient], Answer]:
    return lambda api: api.post(path, pod("attack", metadata, spec, **more))


def change(
    body: Any, kind: str = "application/merge-patch+json", path: str = WAITS, **query: str
) -> Callable[[ApiClient], Answer]:
    return lambda api: api.patch(path, body, kind, **query)


def replaced(part: str, value: Any) -> Callable[[ApiClient], Answer]:
    """Write the whole pod again, with another `part` of its spec."""

    def put(api: ApiClient) -> Answer:
        stored = api.get(WAITS).body
        stored["spec"][part] = value
        return api.put(WAITS, stored)

    return put


def of_full(api: ApiClient) -> Object:
    """A pod of the full leaf that runs."""
    found: list[Object] = api.get(PODS, labelSelector="app=full").body["items"]
    return next(each for each in found if "schedulingGates" not in each["spec"])


def of_running(body: Any, part: str = "", kind: str = STRATEGIC) -> Callable[[ApiClient], Answer]:
    return lambda api: api.patch(f"{PODS}/{of_full(api)['metadata']['name']}{part}", body, kind)


def owner(kind: str, version: str) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "name": "x",
        "uid": "5f4a0ef4-0b52-4a5b-8b52-0f2f7d6f0001",
        "controller": True,
    }


def forged_job(api: ApiClient) -> Answer:
    """A Job whose annotations claim that Fairlead suspended it,
    so that Fairlead would resume it.
    """
    made = job("attack", "team", 2, "2", suspend=True)
    made["metadata"]["annotations"] = {"fairlead.io/suspended-for": "other/somebody"}
    return api.post(JOBS, made)


def resumed_job(api: ApiClient) -> Answer:
    """A Job that its owner suspends and resumes again and again."""
    answer = api.post(JOBS, job("attack", "team", 2, "2", suspend=True))
    for suspend in (False, True, False):
        answer = api.patch(f"{JOBS}/attack", {"spec": {"suspend": suspend}})
        time.sleep(0.2)
    return answer


def binding(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": "only"},
    }


IMMUTABLE = "pod updates may not change fields other than"
MAY_NOT_NAME = "may not name its node|nodeName: Forbidden: cannot be set until all schedulingGates"
ATTACKS: dict[str, Attack] = {
    "takes the gate away by JSON patch": Attack(
        change([{"op": "remove", "path": "/spec/schedulingGates"}], JSON_PATCH), GATED
    ),
    "takes the gate away by merge patch": Attack(
        change({"spec": {"schedulingGates": None}}), GATED
    ),
    "takes the gate away by strategic patch": Attack(
        change(
            {"spec": {"schedulingGates": [{"$patch": "delete", "name": "fairlead.io/quota"}]}},
            STRATEGIC,
        ),
        GATED,
    ),
    "takes the gate away by update": Attack(replaced("schedulingGates", []), GATED),
    "puts another gate in its place": Attack(
        change({"spec": {"schedulingGates": [{"name": "mine/gate"}]}}), "only deletion is allowed"
    ),
    "applies the pod without its gate": Attack(
        change(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": {}},
            APPLY,
            fieldManager="m",
            force="true",
        )
    ),
    "takes the gate away over pods/ephemeralcontainers": Attack(
        change(
            {
                "spec": {"schedulingGates": None},
                "metadata": {"labels": {"fairlead.io/managed": None}},
            },
            path=f"{WAITS}/ephemeralcontainers",
        )
    ),
    "names a node": Attack(change({"spec": {"nodeName": "only"}}), IMMUTABLE),
    "is born on a node": Attack(make(spec={"nodeName": "only"}), MAY_NOT_NAME),
    "binds the pod": Attack(lambda api: api.post(f"{WAITS}/binding", binding("waits")), NOT_HIS),
    "binds the pod in the old way": Attack(
        lambda api: api.post("/api/v1/namespaces/team/bindings", binding("waits")), NOT_HIS
    ),
    "is labelled as not managed": Attack(
        change({"metadata": {"labels": {"fairlead.io/managed": None}}}),
        "fairlead.io/managed may not be",
    ),
    "is not preemptible any more": Attack(
        of_running(
            {"metadata": {"labels": {"quota.scheduling.alibabacloud.com/preemptible": "false"}}}
        ),
        "preemptible may not be changed",
    ),
    "is another user's": Attack(
        of_running({"metadata": {"labels": {"arena.kubeflow.org/console-user": "bob"}}}),
        "may not be changed",
    ),
    "names another leaf": Attack(
        make({"labels": {"quota.scheduling.alibabacloud.com/name": "other"}}),
        "names other, and this namespace",
    ),
    "claims to be a DaemonSet's": Attack(
        make({"ownerReferences": [owner("DaemonSet", "evil.example/v1")]})
    ),
    "claims to be static": Attack(
        make({"annotations": {"kubernetes.io/config.mirror": "x"}}), "spec.nodeName"
    ),
    "claims to be static, on a node": Attack(
        make(
            {
                "annotations": {"kubernetes.io/config.mirror": "x"},
                "ownerReferences": [owner("Node", "v1")],
            },
            {"nodeName": "only"},
        ),
        MAY_NOT_NAME,
    ),
    "goes to kube-system": Attack(make(path="/api/v1/namespaces/kube-system/pods"), NOT_HIS),
    "goes to another team": Attack(make(path="/api/v1/namespaces/other/pods"), NOT_HIS),
    "is born admitted": Attack(make(status={"phase": "Succeeded", "conditions": [ADMITTED]})),
    "is born with a claim": Attack(make(status={"conditions": [CLAIMS]})),
    "writes a claim": Attack(
        change({"status": {"conditions": [CLAIMS]}}, STRATEGIC, f"{WAITS}/status"), NOT_HIS
    ),
    "writes a claim into the pod": Attack(change({"status": {"conditions": [CLAIMS]}}, STRATEGIC)),
    "claims to have ended": Attack(
        of_running({"status": {"phase": "Succeeded"}}, "/status"), NOT_HIS
    ),
    "takes the namespace off": Attack(
        change(
            {"metadata": {"labels": {"fairlead.io/quota": None}}}, path="/api/v1/namespaces/team"
        ),
        NOT_HIS,
    ),
    "raises the max": Attack(
        change(
            {"spec": {"root": {"max": {"cpu": "99"}}}},
            path="/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees/elasticquotatree",
        ),
        NOT_HIS,
    ),
    "evicts another team's pod": Attack(
        lambda api: api.post("/api/v1/namespaces/other/pods/theirs/eviction", {}), NOT_HIS
    ),
    "forges a Job that we suspended": Attack(forged_job),
    "suspends and resumes a Job": Attack(resumed_job),
    "has an ephemeral container that asks": Attack(
        of_running(
            {
                "spec": {
                    "ephemeralContainers": [
                        {"name": "more", "image": "app:1", "resources": {"requests": {"cpu": "8"}}}
                    ]
                }
            },
            "/ephemeralcontainers",
        ),
        "cannot be set for an Ephemeral Container|Forbidden",
    ),
    "grows in place": Attack(
        of_running(
            {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}},
            "/resize",
        ),
        "a pod may not grow here: the quota tree counts cpu|without support for resize",
    ),
    "grows while it waits": Attack(
        change(
            {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}},
            STRATEGIC,
            f"{WAITS}/resize",
        ),
        "a pod may not grow here: the quota tree counts cpu",
    ),
    "grows by update": Attack(replaced("overhead", {"cpu": "4"}), "Forbidden|may not change"),
    "comes in numbers": Attack(change({"spec": {"replicas": 30}}, path=SCALE)),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        made.admin.create([big_node("only", 56)])
        yield made


@pytest.fixture(scope="module")
def api(cluster: ControlPlane) -> ApiClient:
    return ApiClient("real", cluster.kubeconfig)


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> Iterator[QuotaController]:
    with running_controller(cluster, ROOT) as made:
        yield made


@pytest.fixture(scope="module")
def truth(
    cluster: ControlPlane, api: ApiClient, controller: QuotaController
) -> Iterator[QuotaTruth]:
    """Both leaves are full, and a pod of each waits."""
    rbac = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "worker"},
        "rules": RIGHTS,
    }
    held = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "worker", "namespace": "team"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "worker"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": MALLORY}],
    }
    cluster.admin.apply([role, held])
    made = QuotaTruth(cluster, ROOT)
    try:
        cluster.admin.create(
            [deployment("full", "team", 2, "2"), deployment("theirs", "other", 3, "2")]
        )
        settled(made, {"team": 2, "other": 3})
        assert api.post(PODS, pod("waits")).status == 201
        wait_until("it is reported", lambda: made.reasons("team") == {"OverMax": 1})
        yield made
        assert made.faults == []
        assert controller.component.is_running
    finally:
        made.stop()


@pytest.mark.long
@pytest.mark.parametrize("case", ATTACKS)
def test_nothing_is_gained(api: ApiClient, truth: QuotaTruth, case: str) -> None:
    attack = ATTACKS[case]
    stopped = set(truth.stopped)
    answer = attack.do(api.as_user(MALLORY))
    try:
        if attack.refused:
            assert answer.status in (403, 409, 422), answer.body
            assert any(each in answer.message for each in attack.refused.split("|")), answer.message
        else:
            assert answer.status in (200, 201), answer.body
            time.sleep(0.6)
        waits = api.get(WAITS).body
        assert [each["name"] for each in waits["spec"]["schedulingGates"]] == ["fairlead.io/quota"]
        assert "nodeName" not in waits["spec"]
        assert waits["metadata"]["labels"]["fairlead.io/managed"] == "true"
        assert quota_condition(waits)["reason"] == "OverMax"
        theirs = {
            name
            for uid, name in truth.stopped.items()
            if uid not in stopped and name.startswith("other/")
        }
        assert theirs == set(), "another team's pods were stopped"
        assert truth.running()["other"] == 3
        assert truth.running()["team"] <= 2
        assert truth.faults == []
    finally:
        tidy(api, truth)


def tidy(api: ApiClient, truth: QuotaTruth) -> None:
    api.ask("DELETE", f"{JOBS}/attack", {"propagationPolicy": "Background"})
    api.ask("DELETE", f"{PODS}/attack", {"gracePeriodSeconds": 0})
    api.patch(SCALE, {"spec": {"replicas": 2}})
    wait_until(
        "all is as before",
        lambda: (
            truth.running() == {"team": 2, "other": 3}
            and truth.waiting() == {"team": 1}
            and truth.is_quiet()
        ),
        8,
    )


def test_an_account_that_could_bind_cannot_bind_what_waits(
    api: ApiClient, truth: QuotaTruth
) -> None:
    """This holds even for an administrator: no user can bind a pod with a gate."""
    answer = api.post(f"{WAITS}/binding", binding("waits"))
    assert answer.status in (403, 409, 422), answer.body
    assert "schedulingGates" in answer.message


def test_a_critical_pod_goes_first_in_its_own_leaf_and_takes_nothing_of_another(
    api: ApiClient, truth: QuotaTruth
) -> None:
    """A user who may name a priority class may use it: his own leaf pays for it."""
    assert (
        api.as_user(MALLORY)
        .post(PODS, pod("critical", spec={"priorityClassName": "system-node-critical"}))
        .status
        == 201
    )

    # its own gate is checked, too: before it is admitted, two pods wait already, itself and `waits`
    def runs() -> bool:
        gates = api.get(f"{PODS}/critical").body["spec"].get("schedulingGates", [])
        as_reported = truth.running() == {"team": 2, "other": 3} and truth.waiting() == {"team": 2}
        return not gates and as_reported and truth.is_quiet()

    wait_until("it runs", runs, 60)
    assert {name.partition("/")[0] for name in truth.stopped.values()} <= {"team"}
    assert truth.faults == []


def test_a_pod_that_changes_its_owner_is_counted_still(api: ApiClient, truth: QuotaTruth) -> None:
    """Its new owner reference names a DaemonSet of a kind that the garbage collector does not know.
    Its ReplicaSet makes another pod, which waits.
    """
    name = of_full(api)["metadata"]["name"]
    disowned = api.as_user(MALLORY).patch(
        f"{PODS}/{name}", {"metadata": {"ownerReferences": [owner("DaemonSet", "evil.example/v1")]}}
    )
    assert disowned.status == 200, disowned.body
    wait_until("its ReplicaSet makes another", lambda: truth.waiting() == {"team": 3}, 60)
    time.sleep(1.0)
    assert truth.running() == {"team": 2, "other": 3}
    assert name in {each["metadata"]["name"] for each in api.get(PODS).body["items"]}
    assert truth.faults == []


def test_a_forged_owner_from_before_the_tree_is_counted_or_collected(
    cluster: ControlPlane, api: ApiClient, controller: QuotaController, truth: QuotaTruth
) -> None:
    """The pods are created before the policy: one names a DaemonSet that does not exist, one a
    DaemonSet of a kind that is not served, and one a node that exists.
    """
    cluster.admin.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}}])
    path = "/api/v1/namespaces/later/pods"

    def until_made(made: Object) -> None:
        wait_until("it is made", lambda: api.post(path, made).status in (201, 409))

    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": "only",
        "uid": api.get("/api/v1/nodes/only").body["metadata"]["uid"],
        "controller": True,
    }
    for name, above in (
        ("gone", owner("DaemonSet", "apps/v1")),
        ("odd", owner("DaemonSet", "evil.example/v1")),
        ("noded", node),
    ):
        until_made(pod(name, {"ownerReferences": [above]}))
    children = [*ROOT["children"], bounded("later", 0, 4, ["later"])]
    enforce(cluster, {**ROOT, "children": children})
    wait_until("the collector takes one", lambda: api.get(f"{path}/gone").status == 404, 30)

    def used() -> Object:
        tree = api.get(
            "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees/elasticquotatree"
        ).body
        found: Object = next(
            (each for each in tree["status"]["nodes"] if each["name"] == "later"), {}
        )
        return found.get("used", {})

    wait_until("the others are charged", lambda: used() == {"cpu": "4"}, 60)
