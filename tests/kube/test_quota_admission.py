"""One table of admission cases, judged alike by the functions
(`tests/rules/quota/test_admission.py`) and by the policies of a real API server.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, Answer, ApiClient, until
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import DEPLOY, of_file, running_webhook
from tests.kube.programs import program
from tests.kube.quota_admission_cases import (
    ALICE,
    BESIDE,
    BIRTHS,
    BOB,
    CHANGES,
    CONTROLLER,
    DAEMONS,
    GATE,
    GROWTHS,
    KUBELET,
    LEAF,
    MANAGED,
    NEW_JOBS,
    USER,
    Birth,
    Change,
    Object,
    Who,
    merged,
)
from tests.kube.quota_definition import definition
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.turns(4, 3)

PODS = "/api/v1/namespaces/team/pods"
FREE = "/api/v1/namespaces/free/pods"
JOBS = "/apis/batch/v1/namespaces/team/jobs"
TREES = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
SPEC = {"containers": [{"name": "a", "image": "app:1"}], "schedulerName": "nobody"}


class Place:
    """A server that enforces the rules of admission. `refusing`
    is how the guard's refusal begins.
    """

    def __init__(self, name: str, api: ApiClient, refusing: str) -> None:
        self.name = name
        self.api = api
        self.refusing = refusing

    def as_(self, who: Who) -> ApiClient:
        return self.api.as_user(who.user, *who.groups)

    def bear(self, birth: Birth, path: str = PODS) -> Answer:
        return self.as_(birth.who).post(path, pod("p", birth.metadata, birth.spec), dryRun="All")

    def make(self, name: str, metadata: Object, *, admitted: bool) -> None:
        """Create a pod that waits, or that Fairlead's controller has admitted."""
        made = self.api.post(PODS, pod(name, metadata))
        assert made.status == 201, made.message
        if admitted:
            freed = ungate(self.as_(CONTROLLER), name)
            assert freed.status == 200, freed.message

    def remove(self, name: str) -> None:
        self.api.ask("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})


def pod(name: str, metadata: Object, spec: Object | None = None) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {**SPEC, **(spec or {})},
    }


def ungate(api: ApiClient, name: str) -> Answer:
    return api.patch(
        f"{PODS}/{name}", [{"op": "remove", "path": "/spec/schedulingGates/0"}], JSON_PATCH
    )


def gates(answer: Answer) -> tuple[str, ...]:
    return tuple(each["name"] for each in answer.body["spec"].get("schedulingGates", ()))


def write(api: ApiClient, name: str, change: Change) -> Answer:
    path, parts = f"{PODS}/{name}", {"labels": change.labels, "annotations": change.annotations}
    match change.how:
        case "ungate":
            return ungate(api, name)
        case "update":
            stored = api.get(path).body
            for part, values in parts.items():
                stored["metadata"][part] = merged(stored["metadata"].get(part) or {}, values)
            return api.put(path, stored)
        case "json":
            steps = [
                {"op": "add", "path": f"/metadata/{part}/{key.replace('/', '~1')}", "value": value}
                for part, values in parts.items()
                for key, value in values.items()
            ]
            return api.patch(path, steps, JSON_PATCH)
        case "apply":
            applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **parts}}
            return api.patch(path, applied, APPLY, fieldManager="t", force="true")
        case "binding" | "bindings":
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, **parts},
                "target": {"kind": "Node", "name": "n"},
            }
            return api.post(
                f"{path}/binding"
                if change.how == "binding"
                else PODS.replace("/pods", "/bindings"),
                binding,
            )
    return api.patch(f"{path}/status" if change.how == "status" else path, {"metadata": parts})


# --- the places -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as cluster:
        cluster.admin.run("apply", "-f", str(DEPLOY / "namespace.yaml"))
        cluster.admin.apply(surroundings())
        until(
            "accounts are there",
            lambda: all(has_account(cluster, namespace) for namespace in ("team", "free")),
        )
        yield cluster


def has_account(cluster: ControlPlane, namespace: str) -> bool:
    return (
        ApiClient("real", cluster.kubeconfig)
        .get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        .status
        == 200
    )


def surroundings() -> list[Object]:
    """Namespaces on and off the tree, a node, and all rights for every user."""
    rbac = "rbac.authorization.k8s.io"
    team = {
        "name": "team",
        "labels": {"fairlead.io/quota": "enforced"},
        "annotations": {"fairlead.io/leaf": LEAF},
    }
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": team},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "free"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "testers"},
            "rules": [everything],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "testers"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "testers"},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "testers"}],
        },
    ]


@pytest.fixture(scope="module", params=["policies", "webhook"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with PLACES[request.param](request.getfixturevalue("cluster")) as place:
        yield place


@contextmanager
def behind_policies(cluster: ControlPlane) -> Iterator[Place]:
    file = str(DEPLOY / "quota-admission.yaml")
    cluster.admin.run("apply", "-f", file)
    try:
        refusing = (
            "ValidatingAdmissionPolicy 'fairlead-quota-guard' with binding 'fairlead-quota-guard' "
            "denied request"
        )
        place = Place("policies", ApiClient("real", cluster.kubeconfig), refusing)
        until_in_force(place)
        yield place
    finally:
        cluster.admin.run("delete", "--ignore-not-found", "-f", file)


@contextmanager
def behind_a_webhook(cluster: ControlPlane) -> Iterator[Place]:
    with running_webhook(
        cluster, [*of_file("admission-webhook.yaml"), *of_file("quota-webhook.yaml")]
    ):
        place = Place(
            "webhook",
            ApiClient("real", cluster.kubeconfig),
            ('admission webhook "guard.quota.fairlead.io" denied the request'),
        )
        until_in_force(place)
        yield place


PLACES = {"policies": behind_policies, "webhook": behind_a_webhook}


def until_in_force(place: Place) -> None:
    """Wait until the rules apply: the API server reads policies and webhooks a moment after they
    are stored.
    """

    def is_gated() -> bool:
        born = place.bear(BIRTHS["a pod"])
        # the guard may apply first: it refuses a pod without its gate
        return born.status == 201 and gates(born) == (GATE,)

    until("pods are gated", is_gated)
    until(
        "forged names are refused",
        lambda: place.refusing in place.bear(BIRTHS["with another leaf's name"]).message,
    )
    until(
        "users are known",
        lambda: USER in place.bear(BIRTHS["by a user"]).body["metadata"].get("labels", {}),
    )


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", BIRTHS)
def test_a_new_pod(place: Place, case: str) -> None:
    birth = BIRTHS[case]
    if birth.who is KUBELET:
        birth = birth._replace(metadata={**birth.metadata, "ownerReferences": [of_node(place)]})
    answer = place.bear(birth)
    if birth.spec.get("nodeName") and birth.refused:
        assert answer.status in (403, 422)
        assert (
            birth.refused in answer.message
            or "spec.nodeName: Forbidden: cannot be set until all schedulingGates" in answer.message
        )
    elif birth.refused:
        assert (answer.status, answer.reason) == (403, "Forbidden")
        assert f"{place.refusing}: {birth.refused}" in answer.message
    else:
        assert answer.status == 201, answer.message
        assert (gates(answer), answer.body["metadata"].get("labels") or {}) == (
            birth.gates,
            birth.labels,
        )


def of_node(place: Place) -> Object:
    """What NodeRestriction requires of a mirror pod."""
    uid = place.api.get("/api/v1/nodes/n").body["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid, "controller": True}


@pytest.mark.parametrize("case", BIRTHS)
def test_off_the_tree_nothing_is_added_or_refused(place: Place, case: str) -> None:
    birth = BIRTHS[case]
    if birth.who is KUBELET:
        birth = birth._replace(metadata={**birth.metadata, "ownerReferences": [of_node(place)]})
    answer = place.bear(birth, FREE)
    assert answer.status == 201, answer.message
    assert answer.body["metadata"].get("labels", {}) == birth.metadata.get("labels", {})
    assert gates(answer) == tuple(each["name"] for each in birth.spec.get("schedulingGates", ()))


@pytest.mark.parametrize("case", CHANGES)
def test_a_change(place: Place, case: str) -> None:
    change, name = CHANGES[case], "".join(each if each.isalnum() else "-" for each in case.lower())
    place.make(name, change.before, admitted=change.admitted)
    try:
        before = place.api.get(f"{PODS}/{name}").body
        answer = write(place.as_(change.who), name, change)
        after = place.api.get(f"{PODS}/{name}").body
        if change.refused:
            assert (answer.status, answer.reason) == (403, "Forbidden"), answer.body
            assert f"{place.refusing}: {change.refused}" in answer.message
            assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        else:
            assert answer.status in (200, 201), answer.message
            assert labels(after) == merged(labels(before), change.labels)
            assert ("schedulingGates" in after["spec"]) == (
                change.how != "ungate" and not change.admitted
            )
    finally:
        place.remove(name)


def labels(obj: Object) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


@pytest.fixture(scope="module")
def counted_cpu(cluster: ControlPlane) -> Iterator[None]:
    """A tree that counts cpu."""
    cluster.admin.apply([definition()])
    api = ApiClient("real", cluster.kubeconfig)
    root = {
        "name": "root",
        "min": {"cpu": "40"},
        "max": {"cpu": "40"},
        "children": [{"name": LEAF, "namespaces": ["team"]}],
    }
    tree = {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "elasticquotatree"},
        "spec": {"root": root},
    }
    until("trees are served", lambda: api.post(TREES, tree).status in (201, 409))
    yield
    cluster.admin.run("delete", "elasticquotatree", "elasticquotatree", "-n", "kube-system")


@pytest.mark.parametrize("case", GROWTHS)
def test_a_resize(place: Place, counted_cpu: None, case: str) -> None:
    growth, name = GROWTHS[case], "grows"
    containers = [
        {"name": f"c{number}", "image": "app:1", "resources": {"requests": requests}}
        for number, requests in enumerate(growth.before)
    ]
    made = place.api.post(PODS, pod(name, {}, {"containers": containers}))
    assert made.status == 201, made.message
    try:
        changed = [
            {"name": f"c{number}", "resources": {"requests": requests}}
            for number, requests in enumerate(growth.after)
        ]
        resizing = {"spec": {"containers": changed}}

        def resize() -> Answer:
            api, path = place.as_(growth.who), f"{PODS}/{name}/resize"
            return api.ask(
                "PATCH",
                path,
                resizing,
                headers={"Content-Type": "application/strategic-merge-patch+json"},
            )

        if growth.refused:
            until("it is refused", lambda: growth.refused in resize().message)
            assert resize().status == 403
        else:
            answer = resize()
            assert answer.status == 200, answer.message
    finally:
        place.remove(name)


def test_what_a_user_makes_carries_the_users_name_and_keeps_it(place: Place) -> None:
    template = {"spec": {**SPEC, "restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": {USER: "alice"}},
        "spec": {"template": template},
    }
    made = place.as_(BOB).post(JOBS, job)
    try:
        assert (made.status, labels(made.body)[USER]) == (201, "bob"), made.message
        for who in (BOB, BESIDE):
            forged = place.as_(who).patch(f"{JOBS}/j", {"metadata": {"labels": {USER: "alice"}}})
            assert (forged.status, f"the label {USER} may not be changed" in forged.message) == (
                403,
                True,
            )
        assert (
            place.as_(BOB).patch(f"{JOBS}/j", {"metadata": {"labels": {"app": "web"}}}).status
            == 200
        )
        assert place.api.patch(f"{JOBS}/j", {"metadata": {"labels": {USER: "alice"}}}).status == 200
    finally:
        place.api.ask("DELETE", f"{JOBS}/j", {"propagationPolicy": "Background"})


@pytest.mark.parametrize(
    "case", [case for case, job in NEW_JOBS.items() if job.version == "batch/v1"]
)
def test_a_job_with_a_deadline_begins_suspended(place: Place, case: str) -> None:
    """Training jobs, whose kinds are not served here, are created in
    `tests/kube/test_quota_training.py`.
    """
    job = NEW_JOBS[case]
    owner = {
        "apiVersion": "batch/v1",
        "kind": job.controller,
        "name": "o",
        "uid": "u",
        "controller": True,
    }
    meta = {
        "name": "j",
        "annotations": job.annotations or None,
        "ownerReferences": [owner] if job.controller else [],
    }
    template = {"spec": {**SPEC, "restartPolicy": "Never"}}
    made = place.as_(ALICE).post(
        JOBS,
        {
            "apiVersion": job.version,
            "kind": job.kind,
            "metadata": meta,
            "spec": {**job.spec, "template": template},
        },
        dryRun="All",
    )
    assert made.status == 201, made.message
    marks = {"fairlead.io/suspended-for": "first-admission"} if job.begins_suspended else {}
    assert made.body["metadata"].get("annotations", {}) == {**job.annotations, **marks}
    assert made.body["spec"]["suspend"] == (job.begins_suspended or job.spec.get("suspend", False))


def test_controllers_make_pods_that_wait(cluster: ControlPlane, place: Place) -> None:
    """The pod of a real ReplicaSet is created with the gate, the
    pod of a real DaemonSet without.
    """
    template = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
    owned: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    for kind, more in (("ReplicaSet", {"replicas": 2}), ("DaemonSet", {})):
        cluster.admin.apply(
            [
                {
                    "apiVersion": "apps/v1",
                    "kind": kind,
                    "metadata": {"name": kind.lower(), "namespace": "team"},
                    "spec": {**owned, **more},
                }
            ]
        )

    def of(kind: str) -> list[Object]:
        found = place.api.get(PODS).body["items"]
        return [
            each
            for each in found
            if (each["metadata"].get("ownerReferences") or [{}])[0].get("kind") == kind
        ]

    try:
        until("pods are made", lambda: (len(of("ReplicaSet")), len(of("DaemonSet"))) == (2, 1))
        assert {labels(each).get(MANAGED) for each in of("ReplicaSet")} == {"true"}
        assert all(each["spec"]["schedulingGates"] == [{"name": GATE}] for each in of("ReplicaSet"))
        assert (
            MANAGED not in labels(of("DaemonSet")[0])
            and "schedulingGates" not in of("DaemonSet")[0]["spec"]
        )
    finally:
        cluster.admin.run("delete", "replicaset,daemonset", "--all", "-n", "team")


def test_every_row_of_the_table_is_another_user() -> None:
    users = {each.who.user for each in (*BIRTHS.values(), *CHANGES.values())}
    assert {ALICE.user, BOB.user, CONTROLLER.user, DAEMONS.user, KUBELET.user} <= users


def test_it_is_switched_off_as_on_the_page(cluster: ControlPlane, place: Place) -> None:
    """With kubectl alone: the commands of docs/how-to/quota-operations.md, typed as printed. Runs
    after all tests that need the place.
    """
    page = (DEPLOY.parent / "docs" / "how-to" / "quota-operations.md").read_text(encoding="utf-8")
    (block,) = (
        each for each in re.findall(r"```console\n(.+?)```", page, re.DOTALL) if "get pods" in each
    )
    for name in ("waits", "waits-too"):
        place.make(name, {}, admitted=False)
    script = re.sub(r"^\$ ", "", block, flags=re.MULTILINE)
    if place.name == "webhook":
        policies, webhook = (
            "-f deploy/quota-admission.yaml",
            "-f deploy/quota-webhook.yaml -l fairlead.io/admission=quota",
        )
        assert policies in script and webhook in script
        script = script.replace(policies, webhook)
    environment = {
        "HOME": str(cluster.folder),
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{program('kubectl').parent}:{os.environ['PATH']}",
    }
    subprocess.run(
        ["bash", "-euc", script],
        cwd=DEPLOY.parent,
        env=environment,
        timeout=HANG_SECONDS,
        check=True,
    )
    for name in ("waits", "waits-too"):
        assert "schedulingGates" not in place.api.get(f"{PODS}/{name}").body["spec"]
        place.remove(name)
    assert gates(place.bear(BIRTHS["a pod"])) == ()
