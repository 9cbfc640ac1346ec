"""`AdmissionReview` v1: what an API server asks an admission webhook, and the answer that it wants.

The answer must repeat the request's uid, and a refusal is an answer like any other (HTTP 200). `object` is
whatever is written: a Pod, but a Binding where a pod is bound, and nothing where one is deleted.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from fairlead.model.pod import Pod
from fairlead.wire.kube.objects import WirePod, parse_pod

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
CREATE: Final = "CREATE"


class BadReview(ValueError):
    """The body is no AdmissionReview that can be answered; the text says why."""


class Review(Struct, frozen=True):
    """One question. `resource` has its subresource: `pods`, `pods/binding`.

    `before`, `after`: annotations; {} = no object.
    """

    uid: str
    operation: str
    resource: str
    user: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    written: Raw


class _Resource(Struct):
    resource: str = ""


class _User(Struct):
    username: str = ""


class _Meta(Struct):
    annotations: dict[str, str] | None = None


class _Annotated(Struct):
    metadata: _Meta | None = None


class _Request(Struct, rename="camel"):
    uid: str
    operation: str
    resource: _Resource
    user_info: _User
    sub_resource: str | None = None
    object: Raw = Raw(b"null")
    old_object: Raw = Raw(b"null")


class _Review(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_reviews: Final = msgspec.json.Decoder(_Review)
_annotated: Final = msgspec.json.Decoder(_Annotated | None)
_pods: Final = msgspec.json.Decoder(WirePod)


def parse_review(body: bytes) -> Review:
    """The question. Raises BadReview.

    >>> try:
    ...     parse_review(b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}')
    ... except BadReview as bad:
    ...     print(bad)
    `admission.k8s.io/v1beta1` `AdmissionReview` is not admission.k8s.io/v1 AdmissionReview
    """
    try:
        review = _reviews.decode(body)
        if (review.api_version, review.kind) != (API_VERSION, KIND):
            raise BadReview(f"`{review.api_version}` `{review.kind}` is not {API_VERSION} {KIND}")
        asked = review.request
        if asked is None or not asked.uid:
            raise BadReview("the review has no request with a uid")
        resource = f"{asked.resource.resource}/{asked.sub_resource}" if asked.sub_resource else asked.resource.resource
        before, after = _annotations(asked.old_object), _annotations(asked.object)
        return Review(asked.uid, asked.operation, resource, asked.user_info.username, before, after, asked.object)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"the body is no {KIND}: {error}") from None


def parse_written_pod(review: Review) -> Pod:
    """The pod that is to be written. Raises ValueError where nobody could run it."""
    try:
        return parse_pod(_pods.decode(review.written))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the pod cannot be read: {error}") from None


def render_allowed(review: Review, patch: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """Yes; with `patch` (JSON patch) the object is changed first."""
    answer: dict[str, Any] = {"uid": review.uid, "allowed": True}
    if patch:
        answer |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(patch)).decode()}
    return _render(answer)


def render_refused(review: Review, why: str, code: int = 403, reason: str = "Forbidden") -> bytes:
    """No; `why` reaches the person after the webhook's name."""
    return _render({"uid": review.uid, "allowed": False, "status": {"code": code, "reason": reason, "message": why}})


def _annotations(written: Raw) -> Mapping[str, str]:
    found = _annotated.decode(written)
    return (found.metadata and found.metadata.annotations) or {} if found is not None else {}


def _render(answer: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": answer})
