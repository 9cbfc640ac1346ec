"""The requests of one submit: how many, which, and what errors of a server become.

See docs/spec/arena-cli.md#requests.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.edge.queried_cluster import cluster
from tests.edge.scripted import Reply, ScriptedServer, status

from fairlead.edge.kube.api_failure import Conflict
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.errors import Forbidden, OutsideError, RejectedObject, UserError
from fairlead.kinds.training import mpijob, tfjob
from fairlead.model.actions import CreateObject, DeleteObject, Outcome, Result, object_ref

AGGREGATED = {
    "Content-Type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
}
REVIEW, OPENAPI = (
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/openapi/v3/apis/kubeflow.org/v1",
)
PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses/high"
ALICE = Reply({"status": {"userInfo": {"username": "alice"}}}, 201)
TF_SCHEMA = {
    "components": {
        "schemas": {
            "org.kubeflow.v1.PyTorchJob": {
                "x-kubernetes-group-version-kind": [{"kind": "PyTorchJob"}],
                "properties": {"spec": {"properties": {"x": {}}}},
            },
            "org.kubeflow.v1.TFJob": {
                "x-kubernetes-group-version-kind": [{"group": "kubeflow.org", "kind": "TFJob"}],
                "properties": {
                    "spec": {"properties": {"runPolicy": {"type": "object"}, "tfReplicaSpecs": {}}},
                    "status": {},
                },
            },
        }
    }
}
TFJOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "j", "namespace": "own"},
}
TFJOBS = "/apis/kubeflow.org/v1/namespaces/own/tfjobs"


def resource(plural: str, kind: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"kind": kind},
        "scope": scope,
        "verbs": ["create", "get"],
    }


def groups(**versions: list[dict[str, Any]]) -> Reply:
    """The aggregated discovery of a cluster with `kubeflow.org`; `versions` maps versions to
    resources.
    """
    reported = [
        {"version": version, "resources": resources} for version, resources in versions.items()
    ]
    return Reply(
        {
            "kind": "APIGroupDiscoveryList",
            "items": [{"metadata": {"name": "kubeflow.org"}, "versions": reported}],
        },
        headers=AGGREGATED,
    )


SERVED = groups(
    v1=[resource("tfjobs", "TFJob"), resource("mpijobs", "MPIJob")],
    v2beta1=[resource("mpijobs", "MPIJob")],
)


def asked(server: ScriptedServer) -> Counter[str]:
    return Counter(f"{each.method} {each.path}" for each in server.seen)


def test_a_submit_costs_one_discovery_one_review_and_one_create_per_object() -> None:
    made = {
        TFJOBS: [Reply(TFJOB, 201)],
        "/api/v1/namespaces/own/configmaps": [Reply({"metadata": {}}, 201)],
    }
    script = {"/apis": [SERVED], REVIEW: [ALICE], **made}
    with cluster(**script) as (server, api):
        writer = ObjectWriter(api)
        reported = writer.served(mpijob, "", "")
        writer.apply(CreateObject(TFJOB, "default"))
        writer.apply(
            CreateObject(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "own"
            )
        )
    assert (set(reported.versions), reported.user, reported.spec_fields, reported.has_priority) == (
        {"v1", "v2beta1"},
        "alice",
        None,
        None,
    )
    assert asked(server) == Counter(
        [
            "GET /apis",
            f"POST {REVIEW}",
            f"POST {TFJOBS}",
            "POST /api/v1/namespaces/own/configmaps",
        ]
    )


TRAINING = {**TFJOB, "spec": {"runPolicy": {}, "tfReplicaSpecs": {}}}


def test_without_asking_a_submit_costs_one_review_and_one_create_per_object() -> None:
    script = {
        REVIEW: [ALICE],
        TFJOBS: [Reply(TRAINING, 201)],
        "/api/v1/namespaces/own/configmaps": [Reply({"metadata": {}}, 201)],
    }
    with cluster(**script) as (server, api):
        writer = ObjectWriter(api)
        assert (writer.submitter(), writer.submitter()) == ("alice", "alice")
        assert writer.create_unasked(tfjob, TRAINING, "default") == Outcome(made=TRAINING)
        writer.apply(
            CreateObject(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "own"
            )
        )
        [create] = server.requests_of(TFJOBS)
    assert asked(server) == Counter(
        [f"POST {REVIEW}", f"POST {TFJOBS}", "POST /api/v1/namespaces/own/configmaps"]
    )
    assert create.query["fieldValidation"] == "Strict"


@pytest.mark.parametrize(
    "answer",
    [
        status(400, "BadRequest", 'strict decoding error: unknown field "spec.runPolicy"'),
        status(403, "Forbidden", "no"),
        Reply(b"404 page not found", 404),
        status(422, "Invalid", "spec.tfReplicaSpecs: Required value"),
    ],
)
def test_a_guess_that_is_wrong_made_nothing(answer: Reply) -> None:
    with cluster(**{TFJOBS: [answer]}) as (server, api), pytest.raises(RejectedObject):
        ObjectWriter(api).create_unasked(tfjob, TRAINING, "default")
    assert asked(server) == Counter([f"POST {TFJOBS}"])


def test_a_server_that_drops_what_it_does_not_know_keeps_nothing() -> None:
    """Before 1.25 API servers silently drop unknown fields of a custom kind, and the job would
    differ from what was written.
    """
    script = {
        TFJOBS: [Reply({**TRAINING, "spec": {"tfReplicaSpecs": {}}}, 201)],
        f"{TFJOBS}/j": [Reply({})],
    }
    with cluster(**script) as (server, api), pytest.raises(RejectedObject):
        ObjectWriter(api).create_unasked(tfjob, TRAINING, "default")
    assert asked(server) == Counter([f"POST {TFJOBS}", f"DELETE {TFJOBS}/j"])


def test_a_server_in_trouble_is_no_wrong_guess() -> None:
    """It is unknown whether the object was created; a second try could only find that it exists."""
    steps = [
        status(500, "InternalError", "oh"),
        status(409, "AlreadyExists", "it is there"),
        status(409, "Conflict", "the namespace goes"),
    ]
    with cluster(**{TFJOBS: steps}) as (_, api):
        writer = ObjectWriter(api)
        ends = [writer.create_unasked(tfjob, TRAINING, "default") for _ in range(3)]
    assert [(end.result, end.reason) for end in ends] == [
        (Result.UNKNOWN, "oh"),
        (Result.THERE, "it is there"),
        (Result.REFUSED, "the namespace goes"),
    ]
    assert isinstance(ends[2].failure, Conflict)


def test_the_schema_and_the_priority_class_are_one_request_each() -> None:
    script = {
        "/apis": [SERVED],
        REVIEW: [ALICE],
        OPENAPI: [Reply(TF_SCHEMA)],
        PRIORITY: [Reply({"metadata": {"name": "high"}})],
    }
    with cluster(**script) as (server, api):
        reported = ObjectWriter(api).served(tfjob, "v1", "high")
    assert (reported.spec_fields, reported.has_priority) == (
        frozenset({"runPolicy", "tfReplicaSpecs"}),
        True,
    )
    assert sum(asked(server).values()) == 4


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        (status(404, "NotFound", ('priorityclasses.scheduling.k8s.io "high" not found')), False),
        (status(403, "Forbidden", "no"), None),
    ],
)
def test_a_priority_class_that_is_absent_or_hidden(answer: Reply, known: bool | None) -> None:
    with cluster(**{"/apis": [SERVED], REVIEW: [ALICE], PRIORITY: [answer]}) as (_, api):
        assert ObjectWriter(api).served(mpijob, "", "high").has_priority is known


@pytest.mark.parametrize(
    "answer",
    [
        status(403, "Forbidden", "no"),
        status(500, "InternalError", "oh"),
        Reply(b"<html>"),
        Reply({"components": 3}),
    ],
)
def test_what_is_not_reported_is_unknown_and_no_failure(answer: Reply) -> None:
    with cluster(**{"/apis": [SERVED], REVIEW: [answer], OPENAPI: [answer]}) as (_, api):
        reported = ObjectWriter(api).served(tfjob, "v1", "")
    assert (reported.versions, reported.user, reported.spec_fields) == (("v1",), "", None)


@pytest.mark.parametrize(
    "answer", [status(403, "Forbidden", "no"), status(500, "InternalError", "oh"), Reply(b"<html>")]
)
def test_a_server_that_does_not_report_what_it_serves_fails(answer: Reply) -> None:
    with cluster(**{"/apis": [answer], REVIEW: [ALICE]}) as (_, api), pytest.raises(OutsideError):
        ObjectWriter(api).served(tfjob, "v1", "")


def test_an_object_that_exists_is_an_answer_and_other_conflicts_are_failures() -> None:
    steps = [
        status(409, "AlreadyExists", "it is there"),
        status(409, "Conflict", "the namespace goes"),
        status(403, "Forbidden", "no"),
    ]
    with cluster(**{"/apis": [SERVED], TFJOBS: steps}) as (_, api):
        writer = ObjectWriter(api)
        there = writer.apply(CreateObject(TFJOB, "default"))
        assert (there.result, there.expect(Result.THERE).made) == (Result.THERE, None)
        for error in (Conflict, Forbidden):
            refused = writer.apply(CreateObject(TFJOB, "default"))
            assert refused.result is Result.REFUSED
            with pytest.raises(error):
                refused.expect(Result.THERE)


def test_a_kind_that_is_not_served_is_named() -> None:
    ray_job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "r"}}
    with cluster(**{"/apis": [SERVED]}) as (_, api):
        outcome = ObjectWriter(api).apply(CreateObject(ray_job, "default"))
    assert outcome.result is Result.REFUSED
    with pytest.raises(UserError) as caught:
        outcome.expect(Result.THERE)
    assert caught.value.what == "the cluster serves no RayJob of `ray.io/v1`"


def test_deleting_asks_for_all_that_belongs_to_it_and_forgives_what_is_gone() -> None:
    steps = [
        Reply({"kind": "Status", "status": "Success"}),
        status(404, "NotFound", 'tfjobs "j" not found'),
        status(500, "InternalError", "oh"),
    ]
    with cluster(**{"/apis": [SERVED], f"{TFJOBS}/j": steps}) as (server, api):
        writer = ObjectWriter(api)
        ends = [writer.apply(DeleteObject(object_ref(TFJOB))) for _ in range(3)]
    assert [end.result for end in ends] == [Result.DONE, Result.GONE, Result.UNKNOWN]
    assert ends[1].expect(Result.GONE) is ends[1]
    assert server.seen[-1].json()["propagationPolicy"] == "Background"


@pytest.mark.parametrize(
    "answer",
    [Reply([], 201), Reply(None, 201), Reply({"kind": "TFJob"}, 201), Reply(b"<html>", 201)],
)
def test_an_answer_that_is_no_object_is_reported(answer: Reply) -> None:
    with cluster(**{"/apis": [SERVED], TFJOBS: [answer]}) as (_, api):
        outcome = ObjectWriter(api).apply(CreateObject(TFJOB, "default"))
    assert outcome.result is Result.UNKNOWN
    with pytest.raises(OutsideError, match=r"\bTFJob\b"):
        outcome.expect(Result.THERE)
