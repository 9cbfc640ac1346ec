"""One table of admission cases, judged alike by the functions, the policies on a real API server,
the webhook behind one, and the laptop.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, Answer, ApiClient, until
from tests.contracts.simulated import simulated_server
from tests.kube.admission_cases import (
    AGENT,
    ALICE,
    ASKED,
    ATTEMPTS,
    EXTENDER,
    ON_MASTERS,
    OWN,
    SENT,
    STRANGERS,
    Asking,
    Attempt,
    Object,
    part,
    result,
    spec,
)
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import DEPLOY, POLICIES, of_file, running_webhook, webhook_objects

from fairlead.model.keys import GRANT_ANNOTATIONS
from fairlead.rules.sharing.admission import (
    GRANT_WRITERS,
    refuse_asking,
    refuse_grants,
    scheduler_for,
)
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.kube.objects import WirePod, parse_pod
from fairlead_sim.scenario.scenario import Scenario

PODS = "/api/v1/namespaces/default/pods"
BY_POLICY = (
    "ValidatingAdmissionPolicy 'fairlead-gpu-grants' with binding 'fairlead-gpu-grants' denied "
    "request"
)
BY_WEBHOOK = 'admission webhook "grants.gpushare.fairlead.io" denied the request'
GRANTS, ASKS = "grants", "asks"
"""The word in the names of policies and webhooks that separates refusals about grants from refusals
about what a pod requests.
"""
MASTERS = "system:masters"
NOTHING_TO_GUARD = {"status": 200, "bindings": 404}
"""On the laptop a write of the status changes nothing else, and pods are bound only by their
subresource.
"""


class Place:
    """A server that enforces the rules of admission. `refusing` is how a refusal begins."""

    def __init__(self, name: str, api: ApiClient, refusing: str) -> None:
        self.name = name
        self.api = api
        self.refusing = refusing

    def send(self, pod_spec: Object) -> str:
        answer = self.api.post(PODS, pod("p", {}, pod_spec), dryRun="All")
        assert answer.status == 201, answer.message
        return str(answer.body["spec"]["schedulerName"])

    def attempt(self, name: str, attempt: Attempt) -> tuple[Answer, dict[str, str]]:
        """The answer to the attempt, and the pod's annotations afterwards."""
        if attempt.how != "create":
            made = self.api.as_user(EXTENDER, MASTERS).post(PODS, pod(name, attempt.before))
            assert made.status == 201, made.message
        try:
            answer = write(self.api.as_user(attempt.user, MASTERS), name, attempt)
            return answer, (self.api.get(f"{PODS}/{name}").body.get("metadata") or {}).get(
                "annotations"
            ) or {}
        finally:
            self.api.ask("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})


def pod(name: str, annotations: dict[str, str], pod_spec: Object | None = None) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": pod_spec or spec(part(), schedulerName="nobody"),
    }


def write(api: ApiClient, name: str, attempt: Attempt) -> Answer:
    path, change = f"{PODS}/{name}", {"metadata": {"annotations": attempt.after}}
    match attempt.how:
        case "create":
            return api.post(PODS, pod(name, result(attempt)))
        case "update":
            stored = api.get(path).body
            stored["metadata"]["annotations"] = result(attempt)
            return api.put(path, stored)
        case "merge":
            return api.patch(path, change)
        case "json":
            steps = [
                {"op": "replace", "path": f"/metadata/annotations/{key}", "value": value}
                for key, value in attempt.after.items()
            ]
            return api.patch(path, steps, JSON_PATCH)
        case "apply":
            applied = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "annotations": attempt.after},
            }
            return api.patch(path, applied, APPLY, fieldManager="t", force="true")
        case "status":
            return api.patch(f"{path}/status", change)
    binding = {
        "metadata": {"name": name, "annotations": attempt.after},
        "target": {"kind": "Node", "name": "n"},
    }
    where = f"{path}/binding" if attempt.how == "binding" else "/api/v1/namespaces/default/bindings"
    return api.post(where, {"apiVersion": "v1", "kind": "Binding", **binding})


# --- the places -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as cluster:
        cluster.admin.run("apply", "-f", str(DEPLOY / "namespace.yaml"))
        yield cluster


@pytest.fixture(scope="module", params=["policies", "webhook", "laptop"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    opened = on_the_laptop(tmp_path_factory.mktemp("laptop")) if request.param == "laptop" else None
    with opened or PLACES[request.param](request.getfixturevalue("cluster")) as place:
        yield place


@contextmanager
def behind_policies(cluster: ControlPlane) -> Iterator[Place]:
    cluster.admin.run("apply", "-f", str(POLICIES))
    try:
        place = Place("policies", ApiClient("real", cluster.kubeconfig), BY_POLICY)
        until_in_force(place)
        yield place
    finally:
        cluster.admin.run("delete", "-f", str(POLICIES))


@contextmanager
def behind_a_webhook(cluster: ControlPlane) -> Iterator[Place]:
    with running_webhook(cluster, webhook_objects()):
        place = Place("webhook", ApiClient("real", cluster.kubeconfig), BY_WEBHOOK)
        until_in_force(place)
        yield place


@contextmanager
def on_the_laptop(folder: Path) -> Iterator[Place]:
    world = sharing_world(Scenario(title="no nodes", node_pools=()), 1, 1_767_600_000.0)
    with simulated_server(folder, world.clock, cluster=world.cluster) as server:
        yield Place("laptop", ApiClient("simulated", server.kubeconfig), BY_POLICY)


PLACES = {"policies": behind_policies, "webhook": behind_a_webhook}


def until_in_force(place: Place) -> None:
    """Wait until the rules apply: the API server reads policies and webhooks a moment after they
    are stored.
    """
    forged = pod("forged", {"ALIYUN_COM_GPU_MEM_IDX": "0"})
    until(
        "grants are refused",
        lambda: place.refusing in place.api.post(PODS, forged, dryRun="All").message,
    )
    until("pods are sent", lambda: place.send(SENT["it asks for memory"][0]) == OWN)
    malformed = asking(ASKED["core alone"])
    until(
        "what no node can run is refused",
        lambda: place.api.post(PODS, malformed, dryRun="All").status == 422,
    )


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SENT)
def test_a_pod_is_sent_to_its_scheduler(place: Place, case: str) -> None:
    pod_spec, scheduler = SENT[case]
    assert place.send(pod_spec) == scheduler


@pytest.mark.parametrize("case", SENT)
def test_the_function_agrees(case: str) -> None:
    pod_spec, scheduler = SENT[case]
    written = msgspec.json.encode(pod("p", {}, {"schedulerName": "default-scheduler", **pod_spec}))
    assert scheduler_for(parse_pod(msgspec.json.decode(written, type=WirePod))) == scheduler


def asking(case: Asking) -> Object:
    made = pod("p", case.annotations, case.spec)
    return {**made, "metadata": {**made["metadata"], "labels": case.labels}}


@pytest.mark.parametrize("case", ASKED)
def test_a_pod_that_no_node_can_run_is_refused(place: Place, case: str) -> None:
    answer = place.api.post(PODS, asking(ASKED[case]), dryRun="All")
    if fault := ASKED[case].fault:
        assert (answer.status, answer.reason) == (422, "Invalid")
        message = f"{place.refusing.replace(GRANTS, ASKS)}: no node can run this pod: {fault}"
        if place.name == "webhook":
            assert message in answer.message
        else:
            assert answer.message == f'pods "p" is forbidden: {message}'
            assert answer.body["details"] == {
                "name": "p",
                "kind": "pods",
                "causes": [{"message": message}],
            }
    else:
        assert answer.status == 201, answer.message


@pytest.mark.parametrize("case", ASKED)
def test_the_function_refuses_the_same_pods(case: str) -> None:
    written = msgspec.json.encode(asking(ASKED[case]))
    refusal = refuse_asking(parse_pod(msgspec.json.decode(written, type=WirePod)))
    assert (refusal.reason if refusal else "").removeprefix("no node can run this pod: ") == ASKED[
        case
    ].fault


def test_a_pod_that_is_there_already_may_be_changed(place: Place) -> None:
    """Only a pod's creation is judged: a stored pod may be older than the policy."""
    old = asking(ASKED["two cards"])
    assert place.api.post(PODS, old).status == 201
    try:
        answer = place.api.patch(
            f"{PODS}/p", {"metadata": {"labels": {"aliyun.com/gpu-count": "two"}}}
        )
        assert answer.status == 200, answer.message
    finally:
        place.api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize("case", ATTEMPTS)
def test_a_writer_is_refused_or_not(place: Place, case: str) -> None:
    attempt = ATTEMPTS[case]
    answer, annotations = place.attempt(case.replace(" ", "-").replace(",", "").lower(), attempt)
    if place.name == "laptop" and attempt.how in NOTHING_TO_GUARD:
        assert (answer.status, annotations) == (NOTHING_TO_GUARD[attempt.how], attempt.before)
    elif attempt.refused:
        assert (answer.status, answer.reason) == (403, "Forbidden")
        assert (
            f"{place.refusing}: only Fairlead writes the annotation {attempt.refused}"
        ) in answer.message
        assert annotations == attempt.before
    else:
        assert answer.status in (200, 201), answer.message
        assert annotations == result(attempt)


@pytest.mark.parametrize("case", ATTEMPTS)
def test_the_function_refuses_the_same(case: str) -> None:
    attempt = ATTEMPTS[case]
    refusal = refuse_grants(attempt.before, result(attempt), attempt.user)
    assert (refusal.reason if refusal else "").removeprefix(
        "only Fairlead writes the annotation "
    ) == attempt.refused


def test_the_table_is_wide_enough() -> None:
    writers = {EXTENDER, ON_MASTERS, AGENT}
    assert {attempt.user for attempt in ATTEMPTS.values()} == {ALICE, *STRANGERS, *writers}
    assert writers == GRANT_WRITERS


@pytest.mark.parametrize("file", ["gpushare-admission.yaml", "gpushare-webhook.yaml"])
def test_the_files_name_every_grant_and_every_writer(file: str) -> None:
    text = json.dumps(of_file(file))
    kind = "ValidatingAdmissionPolicy" if "admission" in file else "ValidatingWebhookConfiguration"
    (grants,) = (
        each
        for each in of_file(file)
        if (each["kind"], each["metadata"]["name"]) == (kind, "fairlead-gpu-grants")
    )
    where: Any = grants["spec"] if "spec" in grants else grants["webhooks"][0]
    listed = " ".join(
        each["expression"] for each in (*where["matchConditions"], *where.get("variables", ()))
    )
    assert {key for key in GRANT_ANNOTATIONS if f'"{key}"' in listed} == set(GRANT_ANNOTATIONS)
    assert {user for user in GRANT_WRITERS if f'"{user}"' in listed} == GRANT_WRITERS
    assert listed.count("system:serviceaccount:") == len(GRANT_WRITERS)
    assert OWN in text


def test_without_the_webhook_only_pods_that_share_gpus_are_refused(cluster: ControlPlane) -> None:
    asks, plain = pod("p", {}, SENT["it asks for memory"][0]), pod("p", {})
    with running_webhook(cluster, webhook_objects()) as webhook:
        api = ApiClient("real", cluster.kubeconfig)
        until(
            "pods are sent",
            lambda: (
                api.post(PODS, asks, dryRun="All").body.get("spec", {}).get("schedulerName") == OWN
            ),
        )
        webhook.stop()
        until("it is gone", lambda: api.post(PODS, asks, dryRun="All").status == 500)
        refused = api.post(PODS, asks, dryRun="All")
        assert 'failed calling webhook "scheduler.gpushare.fairlead.io"' in refused.message
        assert api.post(PODS, pod("p", {"ALIYUN_COM_GPU_MEM_IDX": "0"}), dryRun="All").status == 500
        assert api.post(PODS, plain, dryRun="All").status == 201
        assert (
            api.post(PODS, pod("p", {}, SENT["another scheduler by name"][0]), dryRun="All").status
            == 201
        )
        assert (
            api.as_user(EXTENDER, MASTERS)
            .post(PODS, pod("p", {"ALIYUN_COM_GPU_MEM_IDX": "0"}), dryRun="All")
            .status
            == 201
        )
