"""Contract: the training kinds, which are custom resources on a real cluster. The same assertions
over both worlds.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, MERGE, STRATEGIC, ApiClient
from tests.contracts.conftest import new_space
from tests.contracts.discovery import discovered
from tests.contracts.objects import Object

KINDS = {
    "mpijobs": ("v2beta1", "MPIJob", "mpiReplicaSpecs"),
    "tfjobs": ("v1", "TFJob", "tfReplicaSpecs"),
    "pytorchjobs": ("v1", "PyTorchJob", "pytorchReplicaSpecs"),
}


@pytest.fixture(autouse=True)
def kinds(request: pytest.FixtureRequest) -> None:
    """On the real server they must be installed first."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if parameters.get("api") == "real" or "both" in request.fixturenames:
        from tests.kube.crds import install_job_kinds

        install_job_kinds(request.getfixturevalue("control_plane").admin)


def path(plural: str, space: str, name: str = "", subresource: str = "") -> str:
    version = KINDS[plural][0]
    return "/".join(
        part
        for part in (f"/apis/kubeflow.org/{version}/namespaces/{space}/{plural}", name, subresource)
        if part
    )


def job(plural: str, name: str = "a", replicas: int = 1) -> Object:
    version, kind, specs = KINDS[plural]
    template = {"spec": {"containers": [{"name": "main", "image": "train:1"}]}}
    spec = {specs: {"Worker": {"replicas": replicas, "template": template}}}
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.parametrize("plural", KINDS)
def test_a_job_comes_back_without_a_status_of_its_maker(
    api: ApiClient, space: str, plural: str
) -> None:
    made = api.post(
        path(plural, space), {**job(plural), "status": {"startTime": "2026-01-05T08:00:00Z"}}
    )
    assert made.status == 201, made.message
    assert "status" not in made.body and made.body["metadata"]["generation"] == 1
    listed = api.get(path(plural, space))
    assert listed.status == 200, listed.message
    assert listed.body["items"][0]["kind"] == KINDS[plural][1]


def test_generations_and_doors(api: ApiClient, space: str) -> None:
    api.post(path("tfjobs", space), job("tfjobs"))
    target = path("tfjobs", space, "a")
    assert (
        api.patch(target, {"metadata": {"labels": {"x": "y"}}}).body["metadata"]["generation"] == 1
    )
    changed = api.patch(target, {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}})
    assert changed.body["metadata"]["generation"] == 2
    answer = api.patch(
        f"{target}/status",
        {"status": {"startTime": "2026-01-05T08:00:00Z"}, "spec": {"tfReplicaSpecs": None}},
        MERGE,
    )
    assert answer.status == 200, answer.message
    assert (
        answer.body["status"] == {"startTime": "2026-01-05T08:00:00Z"}
        and answer.body["metadata"]["generation"] == 2
    )
    assert answer.body["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 3


def test_a_replace_must_name_its_version(api: ApiClient, space: str) -> None:
    made = api.post(path("mpijobs", space), job("mpijobs")).body
    answer = api.put(path("mpijobs", space, "a"), job("mpijobs"))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message == (
        'mpijobs.kubeflow.org "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )
    assert (
        api.put(
            path("mpijobs", space, "a"),
            {**made, "metadata": {**made["metadata"], "labels": {"x": "y"}}},
        ).status
        == 200
    )


def test_strategic_merge_is_not_for_them(api: ApiClient, space: str) -> None:
    api.post(path("mpijobs", space), job("mpijobs"))
    answer = api.patch(path("mpijobs", space, "a"), {}, STRATEGIC)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
    assert answer.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    operation = {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}
    assert api.patch(path("mpijobs", space, "a"), [operation], JSON_PATCH).body["metadata"][
        "labels"
    ] == {"x": "y"}


def test_apply(api: ApiClient, space: str) -> None:
    query = {"fieldManager": "x", "force": "true"}
    assert api.patch(path("tfjobs", space, "a"), job("tfjobs"), APPLY, **query).status == 201
    again = api.patch(path("tfjobs", space, "a"), job("tfjobs", replicas=2), APPLY, **query)
    assert (again.status, again.body["spec"]["tfReplicaSpecs"]["Worker"]["replicas"]) == (200, 2)


@pytest.mark.parametrize("spec", ["text", 7, [1]])
def test_a_spec_of_another_type_is_invalid(api: ApiClient, space: str, spec: Any) -> None:
    answer = api.post(path("tfjobs", space), {**job("tfjobs"), "spec": spec})
    assert (answer.status, answer.reason) == (422, "Invalid")
    found = {str: "string", int: "integer", list: "array"}[type(spec)]
    assert (
        f'spec: Invalid value: "{found}": spec in body must be of type object: "{found}"'
    ) in answer.message


def test_a_metadata_of_another_type_is_a_bad_request(api: ApiClient, space: str) -> None:
    assert api.post(path("tfjobs", space), {**job("tfjobs"), "metadata": "x"}).status == 400


@pytest.mark.parametrize("plural", KINDS)
def test_their_tables(both: tuple[ApiClient, ApiClient], plural: str) -> None:
    def shown(api: ApiClient) -> Any:
        space = new_space(api)
        api.post(path(plural, space), job(plural))
        times = {
            "lastTransitionTime": "2026-01-05T08:00:00Z",
            "lastUpdateTime": "2026-01-05T08:00:00Z",
        }
        conditions = [{"type": kind, "status": "True", **times} for kind in ("Created", "Running")]
        answer = api.patch(
            path(plural, space, "a", "status"),
            {"status": {"conditions": conditions, "replicaStatuses": {}}},
        )
        assert answer.status == 200, answer.message
        table = api.table(path(plural, space)).body
        columns = [
            tuple(column[key] for key in ("name", "type", "format", "priority"))
            for column in table["columnDefinitions"]
        ]
        return columns, table["rows"][0]["cells"][:-1], table["rows"][0]["object"]["kind"]

    simulated, real = both
    assert shown(simulated) == shown(real)


def test_their_discovery(both: tuple[ApiClient, ApiClient]) -> None:
    simulated, real = (discovered(api) for api in both)
    for plural, (version, _, _) in KINDS.items():
        own, theirs = (
            simulated["kubeflow.org", version, plural],
            real["kubeflow.org", version, plural],
        )
        for key in ("scope", "singularResource", "shortNames", "categories", "responseKind"):
            assert own.get(key) == theirs.get(key), (plural, key)
        assert {entry["subresource"] for entry in own["subresources"]} == {
            entry["subresource"] for entry in theirs["subresources"]
        }
