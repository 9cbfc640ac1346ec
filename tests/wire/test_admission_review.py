"""AdmissionReviews: what is read from them, and the error for a body that is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.wire.kube.admission_review import (
    BadReview,
    parse_review,
    parse_written_pod,
    render_allowed,
    render_refused,
)


def review(**request: Any) -> bytes:
    asked = {
        "uid": "u1",
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {"username": "alice", "groups": ["a"], "extra": {}},
        "object": {
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"a": "1"}},
            "spec": {"containers": [{"name": "c"}]},
        },
        "oldObject": None,
        "dryRun": False,
        **request,
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    ).encode()


def test_what_an_api_server_sends_is_read() -> None:
    asked = parse_review(
        review(subResource="status", oldObject={"metadata": {"annotations": {"a": "0"}}})
    )
    assert (asked.uid, asked.operation, asked.resource, asked.user) == (
        "u1",
        "CREATE",
        "pods/status",
        "alice",
    )
    assert (asked.before, asked.after) == ({"a": "0"}, {"a": "1"})


@pytest.mark.parametrize("old", [None, {}, {"metadata": None}, {"metadata": {"annotations": None}}])
def test_no_annotations_are_none(old: Any) -> None:
    assert parse_review(review(oldObject=old)).before == {}


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "the body is no AdmissionReview: Input data was truncated"),
        (b"\xff\xfe", "the body is no AdmissionReview"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "`` `` is not admission.k8s.io/v1 AdmissionReview"),
        (
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
            "the review has no request with a uid",
        ),
        (review(uid=""), "the review has no request with a uid"),
        (review(userInfo=None), "Expected `object`, got `null` - at `$.request.userInfo`"),
        (
            review(object={"metadata": {"annotations": {"a": 1}}}),
            "Expected `str`, got `int` - at `$.metadata.annotations",
        ),
        (b"[" * 100_000, "the body is no AdmissionReview"),
    ],
)
def test_an_invalid_body_gets_the_reason(body: bytes, what: str) -> None:
    with pytest.raises(BadReview) as refused:
        parse_review(body)
    assert what in str(refused.value)


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text(), lambda x: st.dictionaries(st.text(), x)).map(
        lambda x: json.dumps(x).encode()
    )
)
def test_whatever_is_sent_is_read_or_gets_an_error(body: bytes) -> None:
    with pytest.raises(BadReview):
        parse_review(body)


def test_a_pod_that_cannot_be_read_gets_the_reason() -> None:
    limits = {"aliyun.com/gpu-mem": "many"}
    obj = {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}
    with pytest.raises(ValueError, match="`many`"):
        parse_written_pod(parse_review(review(object=obj)))
    with pytest.raises(ValueError) as caught:
        parse_written_pod(parse_review(review(object=None)))
    assert str(caught.value) == "the pod cannot be read: Expected `object`, got `null`"


def test_answers_repeat_the_uid() -> None:
    asked = parse_review(review())
    assert json.loads(render_allowed(asked))["response"] == {"uid": "u1", "allowed": True}
    patched = json.loads(render_allowed(asked, [{"op": "add", "path": "/a", "value": 1}]))[
        "response"
    ]
    assert patched == {
        "uid": "u1",
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d",
    }
    refused = json.loads(render_refused(asked, "no"))
    assert refused["response"] == {
        "uid": "u1",
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": "no"},
    }
    assert (refused["apiVersion"], refused["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
