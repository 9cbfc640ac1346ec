"""`AdmissionReview` v1: the request of an API server to an admission webhook, and its answer.

The answer must repeat the request's uid; a refusal is an answer with HTTP 200. `object` is the
object that is written: a Pod, a Binding when a pod is bound, null when it is deleted.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from fairlead.model.pod import Pod
from fairlead.model.quota.written import Writer, WrittenObject, written_job
from fairlead.model.resources import Amounts
from fairlead.wire.kube.objects import WirePod, parse_pod
from fairlead.wire.kube.quantity import parse_amounts

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
CREATE: Final = "CREATE"


class BadReview(ValueError):
    """The body is no AdmissionReview that can be answered; the text has the reason."""


class Review(Struct, frozen=True):
    """One request. `resource` includes the subresource: `pods`, `pods/binding`.

    `before`, `after`: annotations; {} = no object. `written`: the new object, `replaced`: the
    present object, as JSON; `null` = none.
    """

    uid: str
    operation: str
    resource: str
    user: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    written: Raw
    replaced: Raw = Raw(b"null")
    groups: tuple[str, ...] = ()
    namespace: str = ""

    @property
    def writer(self) -> Writer:
        return Writer(self.user, self.groups)


class _Resource(Struct):
    resource: str = ""


class _User(Struct):
    username: str = ""
    groups: list[str] | None = None


class _Meta(Struct):
    annotations: dict[str, str] | None = None


class _Annotated(Struct):
    metadata: _Meta | None = None


class _Labelled(Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Gate(Struct):
    name: str = ""


class _Asked(Struct):
    requests: dict[str, str | int | float] | None = None


class _Part(Struct, rename="camel"):
    resources: _Asked | None = None
    restart_policy: str | None = None


class _Spec(Struct, rename="camel"):
    scheduling_gates: list[_Gate] | None = None
    node_name: str | None = None
    containers: list[_Part] | None = None
    init_containers: list[_Part] | None = None
    resources: _Asked | None = None


class _Object(Struct):
    metadata: _Labelled | None = None


class _Pod(_Object):
    spec: _Spec | None = None


class _Request(Struct, rename="camel"):
    uid: str
    operation: str
    resource: _Resource
    user_info: _User
    sub_resource: str | None = None
    namespace: str | None = None
    object: Raw = Raw(b"null")
    old_object: Raw = Raw(b"null")


class _Review(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_reviews: Final = msgspec.json.Decoder(_Review)
_annotated: Final = msgspec.json.Decoder(_Annotated | None)
_pods: Final = msgspec.json.Decoder(WirePod)
_objects: Final = msgspec.json.Decoder(_Object | None)
_anything: Final = msgspec.json.Decoder()
_gated: Final = msgspec.json.Decoder(_Pod | None)


def parse_review(body: bytes) -> Review:
    """The request. Raises BadReview.

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
        resource = (
            f"{asked.resource.resource}/{asked.sub_resource}"
            if asked.sub_resource
            else asked.resource.resource
        )
        before, after = _annotations(asked.old_object), _annotations(asked.object)
        return Review(
            uid=asked.uid,
            operation=asked.operation,
            resource=resource,
            user=asked.user_info.username,
            before=before,
            after=after,
            written=asked.object,
            replaced=asked.old_object,
            groups=tuple(asked.user_info.groups or ()),
            namespace=asked.namespace or "",
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"the body is no {KIND}: {error}") from None


def parse_written_pod(review: Review) -> Pod:
    """The pod that is to be written. Raises ValueError for a pod that no node could run."""
    try:
        return parse_pod(_pods.decode(review.written))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the pod cannot be read: {error}") from None


def parse_written(review: Review) -> tuple[WrittenObject, WrittenObject]:
    """The fields that quota checks, before and after. Raises ValueError for a malformed object.

    For an object that is no pod: its labels and annotations, and the deadline of a job.
    """
    if "/" not in review.resource and review.resource != "pods":
        return _owning(review.replaced), _owning(review.written)
    decoder = (
        _gated
        if review.resource.partition("/")[0] == "pods" and review.resource != "pods/binding"
        else _objects
    )
    try:
        return _written_object(decoder.decode(review.replaced)), _written_object(
            decoder.decode(review.written)
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the object cannot be read: {error}") from None


def _owning(written: Raw) -> WrittenObject:
    try:
        labelled = _written_object(_objects.decode(written))
        return written_job(_anything.decode(written), labelled.labels, labelled.annotations)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the object cannot be read: {error}") from None


def _written_object(found: _Object | None) -> WrittenObject:
    metadata = (found and found.metadata) or _Labelled()
    spec = (isinstance(found, _Pod) and found.spec) or _Spec()
    gates = tuple(gate.name for gate in spec.scheduling_gates or ())
    return WrittenObject(
        metadata.labels or {},
        metadata.annotations or {},
        gates,
        spec.node_name or "",
        _requests(spec),
    )


def _requests(spec: _Spec) -> Amounts:
    """The summed requests of regular containers and sidecars; the pod's `spec.resources` wins."""
    total: dict[str, int] = {}
    staying = (part for part in spec.init_containers or () if part.restart_policy == "Always")
    for part in (*(spec.containers or ()), *staying):
        for name, amount in parse_amounts(
            part.resources.requests if part.resources else None
        ).items():
            total[name] = total.get(name, 0) + amount
    return {**total, **parse_amounts(spec.resources.requests if spec.resources else None)}


def render_allowed(
    review: Review, patch: Sequence[Mapping[str, Any]] = (), warnings: Sequence[str] = ()
) -> bytes:
    """The answer yes; `patch` (JSON patch) changes the object first.

    The user sees the `warnings`.
    """
    answer: dict[str, Any] = {"uid": review.uid, "allowed": True}
    if warnings:
        answer["warnings"] = list(warnings)
    if patch:
        answer |= {
            "patchType": "JSONPatch",
            "patch": base64.b64encode(msgspec.json.encode(patch)).decode(),
        }
    return _render(answer)


def render_refused(review: Review, why: str, code: int = 403, reason: str = "Forbidden") -> bytes:
    """The answer no; the user sees `why` after the webhook's name."""
    return _render(
        {
            "uid": review.uid,
            "allowed": False,
            "status": {"code": code, "reason": reason, "message": why},
        }
    )


def _annotations(written: Raw) -> Mapping[str, str]:
    found = _annotated.decode(written)
    return (found.metadata and found.metadata.annotations) or {} if found is not None else {}


def _render(answer: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": answer})
