"""Contract: create, replace, patch, and writes that the server refuses. The same assertions over
both worlds.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, ApiClient
from tests.contracts.objects import config_map, config_maps, deployment, deployments, job, pod, pods


def test_a_created_pod_comes_back_with_system_metadata_and_defaults(
    api: ApiClient, space: str
) -> None:
    made = api.post(pods(space), pod())
    assert made.status == 201
    metadata, spec = made.body["metadata"], made.body["spec"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert (
        metadata["generation"] == 1
        and metadata["namespace"] == space
        and metadata["resourceVersion"].isdecimal()
    )
    assert (
        made.body["status"]["phase"] == "Pending"
        and made.body["status"]["qosClass"] == "BestEffort"
    )
    assert {
        key: spec[key]
        for key in (
            "dnsPolicy",
            "restartPolicy",
            "terminationGracePeriodSeconds",
            "priority",
            "preemptionPolicy",
        )
    } == {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert (spec["serviceAccountName"], spec["enableServiceLinks"], spec["securityContext"]) == (
        "default",
        True,
        {},
    )
    assert [toleration["key"] for toleration in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    container = {
        key: value for key, value in spec["containers"][0].items() if key != "volumeMounts"
    }
    assert container == {
        "name": "main",
        "image": "train:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("reg:5000/a", "Always"),
        ("reg:5000/a:1", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(
    api: ApiClient, space: str, image: str, policy: str
) -> None:
    made = api.post(pods(space), pod(spec={"containers": [{"name": "main", "image": image}]}))
    assert made.body["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_limits_become_requests_and_decide_the_quality_of_service(
    api: ApiClient, space: str, resources: Any, quality: str
) -> None:
    made = api.post(
        pods(space),
        pod(spec={"containers": [{"name": "main", "image": "a:1", "resources": resources}]}),
    )
    assert made.status == 201, made.message
    assert made.body["status"]["qosClass"] == quality
    assert made.body["spec"]["containers"][0]["resources"]["requests"] == resources.get(
        "limits", resources.get("requests")
    )


def test_defaults_of_a_deployment(api: ApiClient, space: str) -> None:
    spec = api.post(deployments(space), deployment()).body["spec"]
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 30


def test_defaults_of_a_job(api: ApiClient, space: str) -> None:
    made = api.post(f"/apis/batch/v1/namespaces/{space}/jobs", job()).body
    spec, uid = made["spec"], made["metadata"]["uid"]
    assert (
        spec["completions"],
        spec["parallelism"],
        spec["backoffLimit"],
        spec["completionMode"],
    ) == (1, 1, 6, "NonIndexed")
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "job-name": "a",
    }


def test_kind_and_version_may_be_left_out(api: ApiClient, space: str) -> None:
    made = api.post(config_maps(space), {"metadata": {"name": "a"}})
    assert (made.status, made.body["kind"], made.body["apiVersion"]) == (201, "ConfigMap", "v1")


def test_yaml_is_understood(api: ApiClient, space: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'y'}\n"
    assert api.ask(
        "POST", config_maps(space), body, headers={"Content-Type": "application/yaml"}
    ).body["data"] == {"x": "y"}


def test_protobuf_is_understood(api: ApiClient) -> None:
    """What `kubectl create namespace` sends, as Go clients do with all built-in kinds."""
    head = (
        "6b3873000a0f0a02763112094e616d657370616365121b0a130a03666f6f12001a0022002a00320038004200"
        + "12001a020a001a002200"
    )
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    made = api.ask(
        "POST", "/api/v1/namespaces", bytes.fromhex(head), query={"dryRun": "All"}, headers=headers
    )
    assert (made.status, made.body["metadata"]["name"]) == (201, "foo")


def test_generated_names(api: ApiClient, space: str) -> None:
    made = api.post(config_maps(space), {"metadata": {"generateName": "run-"}})
    assert re.fullmatch(r"run-[bcdfghjklmnpqrstvwxz2456789]{5}", made.body["metadata"]["name"])


def test_a_second_one_already_exists(api: ApiClient, space: str) -> None:
    api.post(deployments(space), deployment())
    again = api.post(deployments(space), deployment())
    assert (again.status, again.reason, again.message) == (
        409,
        "AlreadyExists",
        ('deployments.apps "web" already exists'),
    )
    assert again.body["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/v1/namespaces/default/pods/absent", 'pods "absent" not found'),
        (
            "/apis/apps/v1/namespaces/default/deployments/absent",
            ('deployments.apps "absent" not found'),
        ),
        ("/api/v1/namespaces/nowhere/pods/absent", 'pods "absent" not found'),
        ("/api/v1/nodes/absent", 'nodes "absent" not found'),
    ],
)
def test_what_is_absent_is_not_found(api: ApiClient, path: str, message: str) -> None:
    for answer in (api.get(path), api.delete(path), api.patch(path, {})):
        assert (answer.status, answer.reason, answer.message) == (404, "NotFound", message)
        assert answer.body["kind"] == "Status" and answer.body["code"] == 404


def test_a_missing_namespace_is_not_found(api: ApiClient) -> None:
    answer = api.post(config_maps("nowhere"), config_map())
    assert (answer.status, answer.message) == (404, 'namespaces "nowhere" not found')


_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
    "or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LABEL_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (pod("A_b"), f'Pod "A_b" is invalid: metadata.name: Invalid value: "A_b": {_SUBDOMAIN}'),
        (
            pod("a" * 254),
            (
                f'Pod "{"a" * 254}" is invalid: metadata.name: Invalid value: "{"a" * 254}": '
                "must be "
                "no more than 253 characters"
            ),
        ),
        (
            pod(labels={"-x": "y"}),
            (f'Pod "a" is invalid: metadata.labels: Invalid value: "-x": {_LABEL_KEY}'),
        ),
        (
            pod(labels={"x": "a b"}),
            (f'Pod "a" is invalid: metadata.labels: Invalid value: "a b": {_LABEL_VALUE}'),
        ),
        (pod(spec={"containers": []}), 'Pod "a" is invalid: spec.containers: Required value'),
        (
            pod(spec={"containers": [{"name": "x"}]}),
            ('Pod "a" is invalid: spec.containers[0].image: Required value'),
        ),
        (
            pod(spec={"containers": [{"image": "x"}]}),
            ('Pod "a" is invalid: spec.containers[0].name: Required value'),
        ),
        (
            pod(spec={"containers": [{"name": "x", "image": "i"}, {"name": "x", "image": "i"}]}),
            'Pod "a" is invalid: spec.containers[1].name: Duplicate value: "x"',
        ),
        (
            pod("A_b", spec={"containers": []}),
            (
                f'Pod "A_b" is invalid: [metadata.name: Invalid value: "A_b": {_SUBDOMAIN}, '
                "spec.containers: Required value]"
            ),
        ),
        (
            {"metadata": {}, "spec": pod()["spec"]},
            ('Pod "" is invalid: metadata.name: Required value: name or generateName is required'),
        ),
        (
            pod(labels={"x": "y" * 64}),
            (
                f'Pod "a" is invalid: metadata.labels: Invalid value: "{"y" * 64}": must be '
                "no more "
                "than 63 bytes"
            ),
        ),
    ],
    ids=[
        "name",
        "long-name",
        "label-key",
        "label-value",
        "no-containers",
        "no-image",
        "no-container-name",
        "twice",
        "two-faults",
        "no-name",
        "long-label",
    ],
)
def test_a_broken_pod_is_invalid(api: ApiClient, space: str, body: Any, message: str) -> None:
    answer = api.post(pods(space), body)
    assert (answer.status, answer.reason, answer.message) == (422, "Invalid", message)
    assert answer.body["details"]["causes"][0]["field"] in message


def test_a_deployment_must_select_its_own_pods(api: ApiClient, space: str) -> None:
    body = deployment()
    body["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    answer = api.post(deployments(space), body)
    assert answer.message == (
        'Deployment.apps "web" is invalid: spec.template.metadata.labels: Invalid value: '
        '{"app":"web"}: '
        "`selector` does not match template `labels`"
    )


@pytest.mark.parametrize("body", [b"{", b'{"metadata": ', b"[1, 2", b"\xff\xfe"])
def test_what_cannot_be_read_is_a_bad_request(api: ApiClient, space: str, body: bytes) -> None:
    answer = api.ask("POST", config_maps(space), body)
    assert (answer.status, answer.reason) == (400, "BadRequest")


@pytest.mark.parametrize("media", ["application/json", "application/yaml"])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["lists", "objects"])
def test_a_body_without_bottom_is_a_bad_request(
    api: ApiClient, space: str, media: str, opening: bytes
) -> None:
    answer = api.ask("POST", config_maps(space), opening * 50_000, headers={"Content-Type": media})
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert api.get(config_maps(space)).status == 200, "the server lives on"


@pytest.mark.parametrize("body", [b"[1, 2]", b'"text"', b"7"])
def test_a_body_that_is_no_object_is_a_bad_request(api: ApiClient, space: str, body: bytes) -> None:
    assert api.ask("POST", config_maps(space), body).status == 400


def test_another_kind_than_the_paths_is_a_bad_request(api: ApiClient, space: str) -> None:
    assert api.post(config_maps(space), pod()).status == 400


def test_another_version_than_the_paths_is_a_bad_request(api: ApiClient, space: str) -> None:
    answer = api.post(deployments(space), {**deployment(), "apiVersion": "apps/v9"})
    assert answer.status == 400


def test_another_namespace_than_the_paths_is_a_bad_request(api: ApiClient, space: str) -> None:
    answer = api.post(config_maps(space), config_map(namespace="other"))
    assert (answer.status, answer.message) == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )


def test_another_name_than_the_paths_is_a_bad_request(api: ApiClient, space: str) -> None:
    api.post(config_maps(space), config_map())
    answer = api.put(config_maps(space, "a"), config_map("b"))
    assert (answer.status, answer.message) == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )


@pytest.mark.parametrize(
    "body",
    [{}, {"metadata": {}}, {"metadata": {"labels": {"x": "y"}}}],
    ids=["nothing", "no metadata", "no name"],
)
def test_a_replacement_names_what_it_replaces(
    api: ApiClient, space: str, body: dict[str, Any]
) -> None:
    api.post(config_maps(space), config_map())
    answer = api.put(config_maps(space, "a"), body)
    assert (answer.status, answer.message) == (
        400,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    )


def test_a_version_at_creation_is_refused(api: ApiClient, space: str) -> None:
    answer = api.post(config_maps(space), config_map(resourceVersion="1"))
    assert answer.message == "resourceVersion should not be set on objects to be created"


def test_too_large_a_body_is_refused(api: ApiClient, space: str) -> None:
    answer = api.post(config_maps(space), config_map(data={"x": "y" * (4 * 1024 * 1024)}))
    assert answer.status == 413, answer.message


def test_an_unknown_media_type_is_refused(api: ApiClient, space: str) -> None:
    answer = api.ask("POST", config_maps(space), b"x", headers={"Content-Type": "text/plain"})
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


# --- replace --------------------------------------------------------------------------------------


def test_a_stale_replace_is_a_conflict(api: ApiClient, space: str) -> None:
    made = api.post(config_maps(space), config_map()).body
    assert api.put(config_maps(space, "a"), {**made, "data": {"n": "1"}}).status == 200
    answer = api.put(config_maps(space, "a"), {**made, "data": {"n": "2"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_a_replace_that_changes_nothing_keeps_the_version(api: ApiClient, space: str) -> None:
    made = api.post(config_maps(space), config_map()).body
    assert (
        api.put(config_maps(space, "a"), made).body["metadata"]["resourceVersion"]
        == made["metadata"]["resourceVersion"]
    )


def test_a_replace_of_nothing_is_not_found(api: ApiClient, space: str) -> None:
    assert api.put(config_maps(space, "a"), config_map()).status == 404


def test_spec_and_status_have_their_own_doors(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod())
    changed = api.patch(pods(space, "a"), {"status": {"message": "mine"}})
    assert "message" not in changed.body["status"]
    answer = api.patch(
        pods(space, "a", "status"),
        {"status": {"message": "mine"}, "spec": {"activeDeadlineSeconds": 9}},
    )
    assert answer.body["status"]["message"] == "mine"
    assert "activeDeadlineSeconds" not in answer.body["spec"]


def test_a_spec_change_is_a_new_generation(api: ApiClient, space: str) -> None:
    first = api.post(deployments(space), deployment()).body["metadata"]["generation"]
    assert (
        api.patch(deployments(space, "web"), {"metadata": {"labels": {"x": "y"}}}).body["metadata"][
            "generation"
        ]
        == first
    )
    assert (
        api.patch(deployments(space, "web"), {"spec": {"minReadySeconds": 5}}).body["metadata"][
            "generation"
        ]
        == first + 1
    )


def test_a_pods_spec_is_all_but_immutable(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod())
    answer = api.patch(pods(space, "a"), {"spec": {"restartPolicy": "Never"}})
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(
        'Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than '
    )
    image = {"spec": {"containers": [{"name": "main", "image": "train:2"}]}}
    assert (
        api.patch(pods(space, "a"), image, STRATEGIC).body["spec"]["containers"][0]["image"]
        == "train:2"
    )


# --- patches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        ({"data": {"b": "2"}}, {"a": "1", "b": "2"}),
        ({"data": {"a": None, "b": "2"}}, {"b": "2"}),
        ({"data": {"absent": None}}, {"a": "1"}),
    ],
)
def test_merge_patch(api: ApiClient, space: str, patch: Any, data: Any) -> None:
    api.post(config_maps(space), config_map(data={"a": "1"}))
    assert api.patch(config_maps(space, "a"), patch, MERGE).body["data"] == data


def test_strategic_merge_finds_list_items_by_their_key(api: ApiClient, space: str) -> None:
    containers = [
        {"name": "one", "image": "a:1", "env": [{"name": "X", "value": "1"}]},
        {"name": "two", "image": "b:1"},
    ]
    body = deployment()
    body["spec"]["template"]["spec"]["containers"] = containers
    api.post(deployments(space), body)
    patch = {
        "containers": [
            {"name": "one", "env": [{"name": "Y", "value": "2"}]},
            {"name": "two", "$patch": "delete"},
        ]
    }
    answer = api.patch(
        deployments(space, "web"), {"spec": {"template": {"spec": patch}}}, STRATEGIC
    )
    assert answer.status == 200, answer.message
    (left,) = answer.body["spec"]["template"]["spec"]["containers"]
    assert left["image"] == "a:1"
    assert {(item["name"], item["value"]) for item in left["env"]} == {("X", "1"), ("Y", "2")}


def test_strategic_merge_replaces_where_the_patch_directs_it(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod(labels={"a": "1"}))
    answer = api.patch(
        pods(space, "a"), {"metadata": {"labels": {"$patch": "replace", "b": "2"}}}, STRATEGIC
    )
    assert answer.body["metadata"]["labels"] == {"b": "2"}


def test_strategic_merge_takes_finalizers_as_a_set(api: ApiClient, space: str) -> None:
    api.post(config_maps(space), config_map(finalizers=["x.io/a"]))
    both = api.patch(
        config_maps(space, "a"), {"metadata": {"finalizers": ["x.io/b"]}}, STRATEGIC
    ).body["metadata"]["finalizers"]
    assert sorted(both) == ["x.io/a", "x.io/b"]
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a", "x.io/b"]}}
    assert "finalizers" not in api.patch(config_maps(space, "a"), gone, STRATEGIC).body["metadata"]


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
        ([{"op": "replace", "path": "/data/a", "value": "3"}], {"a": "3"}),
        (
            [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/a"}],
            None,
        ),
        ([{"op": "move", "from": "/data/a", "path": "/data/b"}], {"b": "1"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/b"}], {"a": "1", "b": "1"}),
    ],
)
def test_json_patch(api: ApiClient, space: str, operations: Any, data: Any) -> None:
    api.post(config_maps(space), config_map(data={"a": "1"}))
    answer = api.patch(config_maps(space, "a"), operations, JSON_PATCH)
    assert answer.status == 200, answer.message
    assert (answer.body.get("data") or None) == data


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "9"},
        {"op": "remove", "path": "/data/absent"},
        {"op": "replace", "path": "/absent/deep", "value": "1"},
    ],
)
def test_a_json_patch_that_does_not_apply_is_invalid(
    api: ApiClient, space: str, operation: Any
) -> None:
    api.post(config_maps(space), config_map(data={"a": "1"}))
    answer = api.patch(config_maps(space, "a"), [operation], JSON_PATCH)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message == "the server rejected our request due to an error in our request"


def test_a_patch_may_name_the_version_it_is_for(api: ApiClient, space: str) -> None:
    made = api.post(config_maps(space), config_map()).body
    api.patch(config_maps(space, "a"), {"data": {"a": "1"}})
    stale = {
        "metadata": {"resourceVersion": made["metadata"]["resourceVersion"]},
        "data": {"a": "2"},
    }
    assert api.patch(config_maps(space, "a"), stale).status == 409


def test_apply_creates_and_then_merges(api: ApiClient, space: str) -> None:
    first = api.patch(
        config_maps(space, "a"), config_map(data={"a": "1"}), APPLY, fieldManager="x", force="true"
    )
    assert (first.status, first.body["data"]) == (201, {"a": "1"})
    again = api.patch(
        config_maps(space, "a"), config_map(data={"a": "2"}), APPLY, fieldManager="x", force="true"
    )
    assert (again.status, again.body["data"]) == (200, {"a": "2"})


def test_an_unknown_patch_type_is_refused(api: ApiClient, space: str) -> None:
    api.post(config_maps(space), config_map())
    answer = api.patch(config_maps(space, "a"), {}, "application/json")
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


# --- dry run and subresources ---------------------------------------------------------------------


def test_a_dry_run_changes_nothing(api: ApiClient, space: str) -> None:
    made = api.post(config_maps(space), config_map(), dryRun="All")
    assert (made.status, api.get(config_maps(space, "a")).status) == (201, 404)
    kept = api.post(config_maps(space), config_map(data={"a": "1"})).body
    assert api.patch(config_maps(space, "a"), {"data": {"a": "2"}}, dryRun="All").body["data"] == {
        "a": "2"
    }
    assert api.delete(config_maps(space, "a"), dryRun="All").status == 200
    assert api.get(config_maps(space, "a")).body == kept
    assert api.post(config_maps(space), config_map(), dryRun="All").reason == "AlreadyExists"


def test_scale_reads_and_writes_replicas(api: ApiClient, space: str) -> None:
    api.post(deployments(space), deployment())
    scale = api.get(deployments(space, "web", "scale")).body
    assert (scale["kind"], scale["apiVersion"], scale["spec"].get("replicas", 0)) == (
        "Scale",
        "autoscaling/v1",
        0,
    )
    assert scale["status"]["selector"] == "app=web"
    changed = api.patch(deployments(space, "web", "scale"), {"spec": {"replicas": 2}})
    assert changed.body["spec"]["replicas"] == 2
    assert api.get(deployments(space, "web")).body["spec"]["replicas"] == 2
    stale = {**scale, "spec": {"replicas": 3}}
    assert api.put(deployments(space, "web", "scale"), stale).status == 409


def test_a_binding_merges_its_annotations_and_a_second_one_is_a_conflict(
    api: ApiClient, space: str
) -> None:
    made = api.post(pods(space), pod("bindme", annotations={"a": "1"})).body
    binding = {
        "metadata": {"name": "bindme", "annotations": {"b": "2"}},
        "target": {"kind": "Node", "name": "node1"},
    }
    stranger = {**binding, "metadata": {**binding["metadata"], "uid": "someone-else"}}
    assert api.post(pods(space, "bindme", "binding"), stranger).status == 409
    answer = api.post(pods(space, "bindme", "binding"), binding)
    assert (answer.status, answer.body["status"]) == (201, "Success")
    bound = api.get(pods(space, "bindme")).body
    assert (
        bound["spec"]["nodeName"] == "node1" and bound["metadata"]["uid"] == made["metadata"]["uid"]
    )
    assert {key: bound["metadata"]["annotations"].get(key) for key in ("a", "b")} == {
        "a": "1",
        "b": "2",
    }
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    again = api.post(pods(space, "bindme", "binding"), binding)
    assert (again.status, again.reason) == (409, "Conflict")
    assert again.message == (
        'Operation cannot be fulfilled on pods/binding "bindme": pod bindme is already assigned '
        'to node "node1"'
    )


def test_a_gated_pod_cannot_be_bound(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod(spec={"schedulingGates": [{"name": "x.io/wait"}]}))
    answer = api.post(
        pods(space, "a", "binding"),
        {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
    )
    assert (answer.status, answer.message) == (
        409,
        (
            'Operation cannot be fulfilled on pods/binding "a": pod a has non-empty '
            ".spec.schedulingGates"
        ),
    )


# --- two writers ----------------------------------------------------------------------------------


def test_two_writers_lose_no_write(api: ApiClient, space: str) -> None:
    """Each reads, adds one and replaces; a writer that comes too late gets 409 and begins again."""
    api.post(config_maps(space), config_map(data={"n": "0"}))

    def add(times: int) -> int:
        lost = 0
        while times:
            read = api.get(config_maps(space, "a")).body
            read["data"]["n"] = str(int(read["data"]["n"]) + 1)
            answer = api.put(config_maps(space, "a"), read)
            assert answer.status in (200, 409), answer.message
            times -= answer.status == 200
            lost += answer.status == 409
        return lost

    with ThreadPoolExecutor(2) as writers:
        lost = sum(writers.map(add, (15, 15)))
    assert api.get(config_maps(space, "a")).body["data"] == {"n": "30"}
    assert lost, "the two never met: nothing was proved"
