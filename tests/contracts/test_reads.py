"""Contract: get, list, selectors, pages, access, and missing objects. The same assertions over both
worlds.
"""

from __future__ import annotations

import json

import pytest
from tests.contracts.api_client import STRATEGIC, ApiClient
from tests.contracts.objects import config_map, config_maps, deployment, deployments, pod, pods
from tests.edge.kubeconfigs import connection_of

from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.queries.job_query import JobQuery


def names(answer: object) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]  # type: ignore[attr-defined]


def test_a_list_has_its_kind_and_its_items_have_none(api: ApiClient, space: str) -> None:
    for name in ("b", "a"):
        api.post(config_maps(space), config_map(name))
    answer = api.get(config_maps(space))
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert answer.body["metadata"]["resourceVersion"].isdecimal()
    assert [name for name in names(answer) if name in ("a", "b")] == ["a", "b"]
    assert all("kind" not in item for item in answer.body["items"])


def test_an_empty_list_has_items(api: ApiClient, space: str) -> None:
    assert api.get(pods(space)).body["items"] == []
    assert api.get(pods("nowhere")).body["items"] == []


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("app", ["a", "b", "c"]),
        ("app=web", ["a"]),
        ("app==web", ["a"]),
        ("app!=web", ["b", "c", "d"]),
        ("app in (web,api)", ["a", "b"]),
        ("app notin (web, api)", ["c", "d"]),
        ("!app", ["d"]),
        ("app,tier", ["b"]),
        ("app,!tier", ["a", "c"]),
        ("size>5", ["b"]),
        ("size<5", ["a"]),
        ("app=", ["c"]),
        ("app in (web,),tier!=x", ["a", "c"]),
        ("example.com/x=y", ["d"]),
        (" app = web ", ["a"]),
        ("nothing=at-all", []),
    ],
)
def test_label_selectors(api: ApiClient, space: str, selector: str, chosen: list[str]) -> None:
    labels = {
        "a": {"app": "web", "size": "3"},
        "b": {"app": "api", "tier": "back", "size": "9"},
        "c": {"app": ""},
        "d": {"example.com/x": "y"},
    }
    for name, given in labels.items():
        api.post(pods(space), pod(name, labels=given))
    assert names(api.get(pods(space), labelSelector=selector)) == chosen


@pytest.mark.parametrize(
    "selector",
    [
        "app in web",
        "app=(",
        "=web",
        "app in (web",
        "a b",
        "app=web,",
        "size>big",
        "app,,tier",
    ],
)
def test_broken_label_selectors_are_bad_requests(api: ApiClient, space: str, selector: str) -> None:
    answer = api.get(pods(space), labelSelector=selector)
    assert (answer.status, answer.reason) == (400, "BadRequest"), answer.body


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a", ["b"]),
        ("spec.nodeName=n1", ["b"]),
        ("spec.nodeName=", ["a"]),
        ("status.phase=Pending", ["a", "b"]),
        ("status.phase!=Pending", []),
        ("spec.schedulerName==nobody,metadata.name=b", ["b"]),
    ],
)
def test_field_selectors(api: ApiClient, space: str, selector: str, chosen: list[str]) -> None:
    api.post(pods(space), pod("a"))
    api.post(pods(space), pod("b", spec={"nodeName": "n1"}))
    assert names(api.get(pods(space), fieldSelector=selector)) == chosen


@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/nodes", "/apis/apps/v1/deployments"])
def test_fields_that_no_selector_supports_are_bad_requests(api: ApiClient, path: str) -> None:
    answer = api.get(path, fieldSelector="spec.color=red")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "spec.color" in answer.message


def test_events_are_found_by_their_object(api: ApiClient, space: str) -> None:
    event = {
        "metadata": {"name": "e.1"},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": space, "uid": "u-1"},
        "reason": "Started",
        "message": "x",
        "type": "Normal",
    }
    path = f"/api/v1/namespaces/{space}/events"
    made = api.post(path, event)
    assert made.status == 201, made.message
    assert names(
        api.get(
            path,
            fieldSelector="involvedObject.kind=Pod,involvedObject.name=a,involvedObject.uid=u-1",
        )
    ) == ["e.1"]
    assert names(api.get(path, fieldSelector="involvedObject.name=b")) == []


# --- pages ----------------------------------------------------------------------------------------


def test_a_list_in_pages_is_the_list_as_it_was_at_the_first_page(
    api: ApiClient, space: str
) -> None:
    for name in "abcde":
        api.post(pods(space), pod(name))
    first = api.get(pods(space), limit=2)
    assert names(first) == ["a", "b"] and first.body["metadata"]["remainingItemCount"] == 3
    api.delete(pods(space, "c"))
    api.post(pods(space), pod("cc"))
    second = api.get(pods(space), **{"limit": 2, "continue": first.body["metadata"]["continue"]})
    assert names(second) == ["c", "d"]
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]
    last = api.get(pods(space), **{"limit": 2, "continue": second.body["metadata"]["continue"]})
    assert names(last) == ["e"] and not last.body["metadata"].get("continue")


def test_a_page_that_holds_all_is_not_continued(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod())
    assert "continue" not in api.get(pods(space), limit=500).body["metadata"]


def test_a_page_of_a_selection_counts_nothing(api: ApiClient, space: str) -> None:
    for name in "abc":
        api.post(pods(space), pod(name, labels={"x": "y"}))
    assert (
        "remainingItemCount"
        not in api.get(pods(space), limit=1, labelSelector="x").body["metadata"]
    )


def test_a_made_up_continue_token_is_a_bad_request(api: ApiClient, space: str) -> None:
    answer = api.get(pods(space), **{"limit": 1, "continue": "!!!"})
    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_a_version_that_is_no_number_is_refused(api: ApiClient, space: str) -> None:
    assert api.get(pods(space), resourceVersion="abc").status == 400


# --- access, and missing objects ------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1/pods", "/openapi/v3"])
def test_an_unknown_token_is_unauthorized(api: ApiClient, path: str) -> None:
    answer = api.as_stranger("nobody-knows-me").get(path)
    assert (answer.status, answer.reason, answer.message) == (401, "Unauthorized", "Unauthorized")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/version"])
def test_health_and_version_are_public(api: ApiClient, path: str) -> None:
    assert api.as_stranger().get(path).status == 200


def test_the_version_is_of_this_release(api: ApiClient) -> None:
    version = api.get("/version").body
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/dragons",
        "/api/v1/namespaces/default/dragons/a",
        "/apis/nobody.io/v1/things",
        "/api/v1/namespaces/default/pods/a/tail",
    ],
)
def test_unknown_paths_are_not_found(api: ApiClient, path: str) -> None:
    answer = api.get(path)
    assert answer.status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/pods"),
        ("PUT", "/api/v1/namespaces/default/pods"),
        ("POST", "/api/v1/nodes/a"),
    ],
)
def test_verbs_that_a_path_does_not_have(api: ApiClient, method: str, path: str) -> None:
    answer = api.ask(method, path, {"metadata": {"name": "a"}})
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")


def test_an_unsupported_form_is_not_acceptable(api: ApiClient) -> None:
    answer = api.ask("GET", "/api/v1/pods", headers={"Accept": "text/html"})
    assert (answer.status, answer.reason) == (406, "NotAcceptable")


def test_metadata_alone(api: ApiClient, space: str) -> None:
    api.post(config_maps(space), config_map(data={"a": "1"}))
    as_metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    accept = {"Accept": f"{as_metadata},application/json"}
    answer = api.ask("GET", config_maps(space), headers=accept)
    assert answer.body["kind"] == "PartialObjectMetadataList"
    assert all("data" not in item for item in answer.body["items"])
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    one = api.ask("GET", config_maps(space, "a"), headers=accept).body
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "a")


def test_what_was_stored_comes_back_letter_by_letter(api: ApiClient, space: str) -> None:
    malformed = {"a": "<img src=x onerror=alert(1)>", "b": "中文 ✓", "c": '"\\\n\t\u2028'}
    api.post(config_maps(space), config_map(data=malformed))
    assert api.get(config_maps(space, "a")).body["data"] == malformed


def test_an_update_keeps_what_strategic_merge_did_not_name(api: ApiClient, space: str) -> None:
    api.post(deployments(space), deployment())
    before = api.get(deployments(space, "web")).body["spec"]
    api.patch(deployments(space, "web"), {"metadata": {"annotations": {"a": "b"}}}, STRATEGIC)
    assert json.dumps(
        api.get(deployments(space, "web")).body["spec"], sort_keys=True
    ) == json.dumps(before, sort_keys=True)


def test_events_of_one_second_are_read_in_the_order_in_which_they_were_written(
    api: ApiClient, space: str
) -> None:
    """For `arena get -e`: the API's times are in seconds, and the writer of an event may choose its
    name.
    """
    at, words = "2026-01-05T08:00:00Z", ["Zebra", "Apple", "Mango", "Kiwi", "Berry", "Yuzu"]
    for number, word in enumerate(words):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"p.{9 - number}", "namespace": space},
            "involvedObject": {"kind": "Pod", "namespace": space, "name": "p", "uid": "the-pod"},
            "reason": word,
            "type": "Normal",
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        assert api.post(f"/api/v1/namespaces/{space}/events", event).status == 201
    with KubeBlocking(connection_of(api.kubeconfig)) as blocking:
        (found,) = JobQuery(blocking).read_events([(space, "the-pod")])
    assert [event.reason for event in found] == words
