"""Contract: how objects are deleted. The same assertions over both worlds."""

from __future__ import annotations

import pytest
from tests.contracts.api_client import ApiClient, until
from tests.contracts.objects import config_map, config_maps, deployment, deployments, pod, pods


def test_a_pod_without_a_node_goes_at_once_and_is_shown_a_last_time(
    api: ApiClient, space: str
) -> None:
    api.post(pods(space), pod())
    answer = api.delete(pods(space, "a"))
    assert (answer.status, answer.body["kind"]) == (200, "Pod")
    assert api.get(pods(space, "a")).status == 404


def test_other_kinds_answer_with_a_status(api: ApiClient, space: str) -> None:
    uid = api.post(config_maps(space), config_map()).body["metadata"]["uid"]
    answer = api.delete(config_maps(space, "a"))
    assert (answer.status, answer.body["status"]) == (200, "Success")
    assert answer.body["details"] == {"name": "a", "kind": "configmaps", "uid": uid}


def test_a_bound_pod_gets_its_grace(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod(spec={"nodeName": "no-such-node"}))
    going = api.delete(pods(space, "a")).body["metadata"]
    assert (
        going["deletionGracePeriodSeconds"] == 30
        and going["deletionTimestamp"] > going["creationTimestamp"]
    )
    shorter = api.delete(pods(space, "a"), {"gracePeriodSeconds": 5}).body["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    api.delete(pods(space, "a"), gracePeriodSeconds=0)
    assert api.get(pods(space, "a")).status == 404


def test_finalizers_hold_an_object(api: ApiClient, space: str) -> None:
    api.post(config_maps(space), config_map(finalizers=["x.io/hold"]))
    going = api.delete(config_maps(space, "a"))
    assert going.body["metadata"]["deletionTimestamp"]
    assert api.get(config_maps(space, "a")).status == 200
    api.patch(config_maps(space, "a"), {"metadata": {"finalizers": None}})
    assert api.get(config_maps(space, "a")).status == 404


def test_preconditions(api: ApiClient, space: str) -> None:
    made = api.post(config_maps(space), config_map()).body["metadata"]
    answer = api.delete(config_maps(space, "a"), {"preconditions": {"uid": "someone-else"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition '
        "(someone-else) does not match the UID in record "
        f"({made['uid']}). The object might have been deleted and then recreated"
    )
    answer = api.delete(config_maps(space, "a"), {"preconditions": {"resourceVersion": "1"}})
    assert answer.message == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the '
        "precondition (1) does not match the ResourceVersion "
        f"in record ({made['resourceVersion']}). The object might have been modified"
    )
    good = {"preconditions": {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}}
    assert api.delete(config_maps(space, "a"), good).status == 200


def test_a_selection_goes_together(api: ApiClient, space: str) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        api.post(pods(space), pod(name, labels={"set": label}))
    answer = api.delete(pods(space), labelSelector="set=x")
    assert answer.status == 200 and [item["metadata"]["name"] for item in answer.body["items"]] == [
        "a",
        "b",
    ]
    assert [item["metadata"]["name"] for item in api.get(pods(space)).body["items"]] == ["c"]


def test_nothing_goes_in_all_namespaces_at_once(api: ApiClient, space: str) -> None:
    api.post(config_maps(space), config_map())
    answer = api.delete("/api/v1/configmaps", labelSelector="no-such-label")
    assert (answer.status, answer.reason, answer.message) == (
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
    assert api.get(config_maps(space, "a")).status == 200


def _owned(api: ApiClient, space: str) -> None:
    owner = api.post(deployments(space), deployment()).body
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": owner["metadata"]["uid"],
    }
    api.post(config_maps(space), config_map("owned", ownerReferences=[reference]))


def test_what_was_owned_goes_in_the_background(api: ApiClient, space: str) -> None:
    _owned(api, space)
    api.delete(deployments(space, "web"))
    until("the dependant is gone", lambda: api.get(config_maps(space, "owned")).status == 404)


def test_orphans_stay(api: ApiClient, space: str) -> None:
    _owned(api, space)
    api.delete(deployments(space, "web"), {"propagationPolicy": "Orphan"})
    until("the owner is gone", lambda: api.get(deployments(space, "web")).status == 404)
    until(
        "the reference is gone",
        lambda: "ownerReferences" not in api.get(config_maps(space, "owned")).body["metadata"],
    )


def test_a_namespace_goes_with_its_content(api: ApiClient, space: str) -> None:
    api.post(config_maps(space), config_map())
    answer = api.delete(f"/api/v1/namespaces/{space}")
    assert answer.body["metadata"]["name"] == space
    until("the namespace is gone", lambda: api.get(f"/api/v1/namespaces/{space}").status == 404)
    assert api.get(config_maps(space, "a")).status == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_cannot_go(api: ApiClient, name: str) -> None:
    answer = api.delete(f"/api/v1/namespaces/{name}")
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def test_an_eviction_of_a_pod_without_a_budget(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod())
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a", "namespace": space},
    }
    rehearsed = api.post(
        pods(space, "a", "eviction"), {**eviction, "deleteOptions": {"dryRun": ["All"]}}
    )
    assert (rehearsed.status, api.get(pods(space, "a")).status) == (201, 200)
    answer = api.post(pods(space, "a", "eviction"), eviction)
    assert (answer.status, answer.body["status"]) == (201, "Success")
    assert api.get(pods(space, "a")).status == 404


def test_an_eviction_is_a_condition_of_the_pod(api: ApiClient, space: str) -> None:
    """As one sees while a finalizer holds the pod; what is only tried leaves nothing."""
    api.post(pods(space), pod(finalizers=["example.com/hold"]))
    eviction = {"metadata": {"name": "a", "namespace": space}}

    def noted() -> list[tuple[str, ...]]:
        found = api.get(pods(space, "a")).body["status"].get("conditions", ())
        return [
            tuple(each[key] for key in ("status", "reason", "message"))
            for each in found
            if each["type"] == "DisruptionTarget"
        ]

    other = {"deleteOptions": {"preconditions": {"uid": "another"}}}
    for tried in ({"deleteOptions": {"dryRun": ["All"]}}, other):
        api.post(pods(space, "a", "eviction"), {**eviction, **tried})
        assert noted() == []
    api.post(pods(space, "a", "eviction"), eviction)
    assert noted() == [("True", "EvictionByEvictionAPI", "Eviction API: evicting")]
    api.patch(pods(space, "a"), {"metadata": {"finalizers": None}})


def test_an_eviction_against_a_disruption_budget(api: ApiClient, space: str) -> None:
    budgets = f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"
    budget = {
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    assert api.post(budgets, budget).status == 201
    api.post(pods(space), pod(labels={"app": "x"}, spec={"nodeName": "no-such-node"}))
    ready = [{"type": "Ready", "status": "True"}]
    api.patch(pods(space, "a", "status"), {"status": {"phase": "Running", "conditions": ready}})
    # the real server's controllers compute the status; the simulated server has none here
    if api.name == "simulated":
        status = {
            "observedGeneration": 1,
            "disruptionsAllowed": 0,
            "desiredHealthy": 1,
            "currentHealthy": 1,
            "expectedPods": 1,
        }
        api.patch(f"{budgets}/guard/status", {"status": status})
    until(
        "the budget counts the pod",
        lambda: api.get(f"{budgets}/guard").body.get("status", {}).get("currentHealthy") == 1,
    )
    eviction = {"metadata": {"name": "a", "namespace": space}, "deleteOptions": {"dryRun": ["All"]}}
    answer = api.post(pods(space, "a", "eviction"), eviction)
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert answer.body["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget guard needs 1 healthy pods and has 1 currently",
        }
    ]
    assert api.get(pods(space, "a")).status == 200
