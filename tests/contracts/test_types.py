"""Contract: fields that a kind does not have, values of the wrong type, quantities. The same
assertions over both worlds.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contracts.api_client import MERGE, ApiClient
from tests.contracts.objects import (
    Object,
    config_map,
    config_maps,
    deployment,
    deployments,
    pod,
    pods,
)

POD = 'Pod in version "v1" cannot be handled as a Pod: '
QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def container(**more: Any) -> Object:
    return {"containers": [{"name": "main", "image": "train:1", **more}]}


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        ({"color": 1}, ["spec.color"]),
        ({"color": 1, **container(size=2)}, ["spec.containers[0].size", "spec.color"]),
        (container(resources={"limit": {"cpu": "1"}}), ["spec.containers[0].resources.limit"]),
    ],
)
def test_unknown_fields(api: ApiClient, space: str, spec: Object, unknown: list[str]) -> None:
    reported = [f'unknown field "{path}"' for path in unknown]
    strict = api.post(pods(space), pod(spec=spec), fieldValidation="Strict")
    assert (strict.status, strict.message) == (
        400,
        f"{POD}strict decoding error: {', '.join(reported)}",
    )
    warned = api.post(pods(space), pod("b", spec=spec))
    assert warned.status == 201 and reported[-1].replace('"', '\\"') in warned.headers["warning"]
    ignored = api.post(pods(space), pod("c", spec=spec), fieldValidation="Ignore")
    assert ignored.status == 201 and "warning" not in ignored.headers
    assert "color" not in warned.body["spec"]


def test_unknown_fields_of_a_patch(api: ApiClient, space: str) -> None:
    api.post(deployments(space), deployment())
    answer = api.patch(
        deployments(space, "web"), {"spec": {"replica": 3}}, MERGE, fieldValidation="Strict"
    )
    assert answer.status in (400, 422) and 'unknown field "spec.replica"' in answer.message


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"containers": {"a": 1}},
            (
                "json: cannot unmarshal object into Go struct field PodSpec.spec.containers "
                "of type "
                "[]v1.Container"
            ),
        ),
        (
            {"containers": "a"},
            (
                "json: cannot unmarshal string into Go struct field PodSpec.spec.containers "
                "of type "
                "[]v1.Container"
            ),
        ),
        (
            {"nodeName": 1},
            (
                "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type "
                "string"
            ),
        ),
        (
            {"priority": "1"},
            (
                "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type "
                "int32"
            ),
        ),
        (
            {"priority": 1.5},
            (
                "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority "
                "of type "
                "int32"
            ),
        ),
        (
            {"hostNetwork": "yes"},
            (
                "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork "
                "of type "
                "bool"
            ),
        ),
        (
            {"activeDeadlineSeconds": True},
            (
                "json: cannot unmarshal bool into Go struct field "
                "PodSpec.spec.activeDeadlineSeconds of type int64"
            ),
        ),
        (
            container(ports=[{"containerPort": "80"}]),
            (
                "json: cannot unmarshal string into Go struct field "
                "ContainerPort.spec.containers.ports.containerPort of type int32"
            ),
        ),
        (container(resources={"limits": {"cpu": "abc"}}), QUANTITY),
    ],
)
def test_wrong_types(api: ApiClient, space: str, spec: Object, why: str) -> None:
    answer = api.post(pods(space), pod(spec=spec))
    assert (answer.status, answer.reason, answer.message) == (400, "BadRequest", POD + why)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            {**pod(), "metadata": "x"},
            (
                "json: cannot unmarshal string into Go struct field "
                "Pod.metadata of type v1.ObjectMeta"
            ),
        ),
        (
            {**pod(), "spec": "x"},
            "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            pod(labels={"a": 1}),
            (
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of "
                "type string"
            ),
        ),
        (
            pod(finalizers="x"),
            (
                "json: cannot unmarshal string into Go struct field "
                "ObjectMeta.metadata.finalizers of "
                "type []string"
            ),
        ),
        (
            pod(creationTimestamp="yesterday"),
            (
                'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse '
                '"yesterday" as "2006"'
            ),
        ),
    ],
)
def test_wrong_types_further_up(api: ApiClient, space: str, body: Object, why: str) -> None:
    answer = api.post(pods(space), body)
    assert (answer.status, answer.message) == (400, POD + why)


def test_bytes_must_be_base64(api: ApiClient, space: str) -> None:
    answer = api.post(
        f"/api/v1/namespaces/{space}/secrets", {"metadata": {"name": "a"}, "data": {"a": "!!"}}
    )
    assert answer.message == (
        'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0'
    )


def test_nulls_are_left_out(api: ApiClient, space: str) -> None:
    body = {**config_map(data={"a": "1"}, creationTimestamp=None, labels=None), "binaryData": None}
    made = api.post(config_maps(space), body)
    assert made.status == 201 and made.body["metadata"]["creationTimestamp"]
    assert "labels" not in made.body["metadata"] and "binaryData" not in made.body


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("1.5", "1500m"),
        (1.5, "1500m"),
        (2, "2"),
        ("2000m", "2"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1e3", "1e3"),
        ("0.0001n", "1m"),
        ("12345678901", "12345678901"),
        ("0", "0"),
        ("0.1", "100m"),
        (".5", "500m"),
    ],
)
def test_quantities_are_made_canonical(api: ApiClient, space: str, written: Any, kept: str) -> None:
    made = api.post(pods(space), pod(spec=container(resources={"limits": {"memory": written}})))
    assert made.status == 201, made.message
    assert made.body["spec"]["containers"][0]["resources"]["limits"]["memory"] == kept


@pytest.mark.parametrize("written", ["", "1 Gi", "1gi", "--1", "1.2.3", "1Kii", "one", "1ki"])
def test_what_is_no_quantity(api: ApiClient, space: str, written: str) -> None:
    answer = api.post(pods(space), pod(spec=container(resources={"limits": {"memory": written}})))
    assert answer.status == 400, answer.body


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        (
            {"limits": {"cpu": "-5"}},
            ('limits[cpu]: Invalid value: "-5": must be greater than or equal to 0'),
        ),
        ({"limits": {GPU: "500m"}}, f'limits[{GPU}]: Invalid value: "500m": must be an integer'),
        (
            {"limits": {GPU: "1"}, "requests": {GPU: "2"}},
            (f'requests: Invalid value: "2": must be equal to {GPU} limit of 1'),
        ),
        (
            {"requests": {GPU: "2"}},
            "limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            ('requests: Invalid value: "2": must be less than or equal to cpu limit of 1'),
        ),
    ],
)
def test_amounts_that_make_no_sense(
    api: ApiClient, space: str, resources: Object, why: str
) -> None:
    answer = api.post(pods(space), pod(spec=container(resources=resources)))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert f"spec.containers[0].resources.{why}" in answer.message


def test_a_restart_policy_that_does_not_exist(api: ApiClient, space: str) -> None:
    answer = api.post(pods(space), pod(spec={"restartPolicy": "Sometimes"}))
    assert answer.message == (
        'Pod "a" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported '
        'values: "Always", "OnFailure", "Never"'
    )


def test_a_job_may_not_restart_for_ever(api: ApiClient, space: str) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "train:1"}]}}
    answer = api.post(
        f"/apis/batch/v1/namespaces/{space}/jobs",
        {"metadata": {"name": "a"}, "spec": {"template": template}},
    )
    assert answer.message == (
        'Job.batch "a" is invalid: spec.template.spec.restartPolicy: Required value: valid '
        'values: "OnFailure", "Never"'
    )
