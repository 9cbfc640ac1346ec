"""The kinds that are questions: posted, answered, and never stored.

TokenReview, SelfSubjectReview, the access reviews and the rules review; beside them TokenRequest,
the question of a ServiceAccount.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.model.access import AccessRequest, Identity
from fairlead.ports import Clock
from fairlead.wire.kube.time import render_time
from fairlead_sim.access.judge import missing_roles
from fairlead_sim.api.access import Access
from fairlead_sim.api.kube_token import ISSUER
from fairlead_sim.api.request import ReceivedRequest, decode_object
from fairlead_sim.api.tokens import BadToken, Tokens
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.rbac import render_resource_rules, render_url_rules
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.schema import typed
from fairlead_sim.schema.status import FieldError, bad_request, invalid, wrong_value
from fairlead_sim.store.admission import CREATE, Admission, Write


def _kind(group: str, kind: str, *, namespaced: bool = False) -> ResourceKind:
    return ResourceKind(
        group,
        "v1",
        kind,
        f"{kind.lower()}s",
        kind.lower(),
        namespaced=namespaced,
        verbs=("create",),
    )


_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
SELF_SUBJECT_REVIEWS: Final = _kind(_AUTHENTICATION, "SelfSubjectReview")
TOKEN_REVIEWS: Final = _kind(_AUTHENTICATION, "TokenReview")
LOCAL_ACCESS_REVIEWS: Final = _kind(_AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True)
SELF_ACCESS_REVIEWS: Final = _kind(_AUTHORIZATION, "SelfSubjectAccessReview")
SELF_RULES_REVIEWS: Final = _kind(_AUTHORIZATION, "SelfSubjectRulesReview")
ACCESS_REVIEWS: Final = _kind(_AUTHORIZATION, "SubjectAccessReview")
REVIEWS: Final = (
    SELF_SUBJECT_REVIEWS,
    TOKEN_REVIEWS,
    LOCAL_ACCESS_REVIEWS,
    SELF_ACCESS_REVIEWS,
    SELF_RULES_REVIEWS,
    ACCESS_REVIEWS,
)


_NAMELESS: Final = _kind(_AUTHORIZATION, "")
"""The real server forgets the kind when it refuses an access review."""


class Reviews:
    """Answers each kind of question."""

    def __init__(self, access: Access, tokens: Tokens, clock: Clock) -> None:
        self._access = access
        self._tokens = tokens
        self._clock = clock
        self._answers: dict[ResourceKind, Callable[[ReceivedRequest, Object], Object]] = {
            SELF_SUBJECT_REVIEWS: self._who_am_i,
            TOKEN_REVIEWS: self._token_owner,
            LOCAL_ACCESS_REVIEWS: self._may_they,
            SELF_ACCESS_REVIEWS: self._may_they,
            SELF_RULES_REVIEWS: self._what_may_i,
            ACCESS_REVIEWS: self._may_they,
        }

    def answer(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        """The question with its answer in `status`."""
        ref = request.ref
        return 201, self._answers[ref](request, _read(request, body, ref.api_version, ref.kind))

    def token(
        self,
        request: ReceivedRequest,
        body: bytes,
        account: Object,
        admission: Admission | None = None,
    ) -> tuple[int, Object]:
        """TokenRequest, asked of a ServiceAccount."""
        wish = _read(request, body, f"{_AUTHENTICATION}/v1", "TokenRequest")
        if admission is not None:
            admission(Write(CREATE, request.ref, request.who.name, wish, account, "token"))
        return 201, self._tokens.issue(account, wish)

    def _who_am_i(self, request: ReceivedRequest, review: Object) -> Object:
        metadata = {"creationTimestamp": render_time(self._clock.now())}
        return {**review, "metadata": metadata, "status": {"userInfo": _user(request.who)}}

    def _token_owner(self, request: ReceivedRequest, review: Object) -> Object:
        spec = review.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        try:
            who, audiences = self._tokens.read(spec["token"], spec.get("audiences") or (ISSUER,))
        except BadToken as error:
            return {**review, "status": {"user": {}, "error": str(error)}}
        return {
            **review,
            "status": {"authenticated": True, "user": _user(who), "audiences": list(audiences)},
        }

    def _may_they(self, request: ReceivedRequest, review: Object) -> Object:
        spec = review.get("spec") or {}
        faults = _faults(request, review)
        if faults:
            raise invalid(_NAMELESS, "", faults)
        who = request.who if request.ref is SELF_ACCESS_REVIEWS else _subject(spec)
        judgement = self._access.judge(who, _asked(spec))
        status: Object = {"allowed": judgement.is_allowed}
        if judgement.reason:
            status["reason"] = judgement.reason
        return {**review, "status": status}

    def _what_may_i(self, request: ReceivedRequest, review: Object) -> Object:
        namespace = (review.get("spec") or {}).get("namespace")
        if not namespace:
            raise bad_request("no namespace on request")
        policy = self._access.policy()
        rules, missing = (
            policy.held_rules(request.who, namespace),
            missing_roles(request.who, namespace, policy),
        )
        status = {
            "resourceRules": render_resource_rules(rules),
            "nonResourceRules": render_url_rules(rules),
            "incomplete": False,
        }
        if missing:
            status["evaluationError"] = missing
        return {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {},
            "spec": {},
            "status": status,
        }


def _read(request: ReceivedRequest, body: bytes, api_version: str, kind: str) -> Object:
    """The body as an object of the kind, which it need not name."""
    obj = (
        decode_object(body, request.http.headers.get("content-type", ""), request.ref.kind)
        if body.strip()
        else {}
    )
    found = (obj.get("apiVersion") or api_version, obj.get("kind") or kind)
    if found != (api_version, kind):
        _, _, version = found[0].rpartition("/")
        cause = (
            f"converting ({version}.{found[1]}) to "
            f"({request.ref.group.partition('.')[0]}.{kind}): unknown conversion"
        )
        raise bad_request(
            f'{found[1]} in version "{version}" cannot be handled as a {kind}: {cause}'
        )
    read, _ = typed(api_version, kind, obj)
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, **read}


def _user(who: Identity) -> Object:
    user: Object = {"username": who.name}
    if who.uid:
        user["uid"] = who.uid
    if who.groups:
        user["groups"] = list(who.groups)
    if who.extra:
        user["extra"] = {key: list(values) for key, values in who.extra.items()}
    return user


def _subject(spec: Object) -> Identity:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return Identity(
        spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra
    )


def _asked(spec: Object) -> AccessRequest:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is None:
        return AccessRequest((path or {}).get("verb", ""), path=(path or {}).get("path", ""))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return AccessRequest(**{field: resource.get(field, "") for field in fields})


def _faults(request: ReceivedRequest, review: Object) -> list[FieldError]:
    """Fields that an access review must not have, in the order of the real server."""
    spec, faults = review.get("spec") or {}, []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        faults.append(
            wrong_value(
                "spec.nonResourceAttributes",
                _go_names(path),
                "cannot be specified in combination with resourceAttributes",
            )
        )
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        faults.append(wrong_value("spec.resourceAttributes", None, why))
    if request.ref is not SELF_ACCESS_REVIEWS and not spec.get("user") and not spec.get("groups"):
        faults.append(
            wrong_value("spec.user", "", "at least one of user or group must be specified")
        )
    is_local = request.ref is LOCAL_ACCESS_REVIEWS
    metadata = {
        key: value
        for key, value in (review.get("metadata") or {}).items()
        if key != "managedFields"
    }
    namespace = metadata.pop("namespace", "") if is_local else ""
    if metadata:
        faults.append(
            wrong_value(
                "metadata",
                metadata,
                "must be empty except for namespace" if is_local else "must be empty",
            )
        )
    if is_local:
        faults += _local_faults(request, namespace or request.namespace, resource, path)
    return faults


def _local_faults(
    request: ReceivedRequest, namespace: str, resource: Object | None, path: Object | None
) -> Sequence[FieldError]:
    if namespace != request.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if resource is not None and resource.get("namespace", "") != namespace:
        return [
            wrong_value(
                "spec.resourceAttributes.namespace",
                resource.get("namespace", ""),
                "must match metadata.namespace",
            )
        ]
    return (
        [
            wrong_value(
                "spec.nonResourceAttributes",
                _go_names(path),
                "disallowed on this kind of request",
            )
        ]
        if path is not None
        else []
    )


def _go_names(path: Object) -> Object:
    """As the real server shows it: by the names of its own type."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
