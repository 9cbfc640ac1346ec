"""The identity behind a request's token: an administrator, or a ServiceAccount.

A ServiceAccount's token comes from TokenRequest.

A token lives by the clock of the world that issued it, not by the wall's: at `--speed 60` one that
is good for an hour is good for a minute. And it is bound to the uid of its account: delete the
account, make it anew, and old tokens are void.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Final

from fairlead.model.access import AUTHENTICATED, MASTERS, Identity, account_groups, account_name
from fairlead.ports import Clock
from fairlead.wire.kube.time import render_time
from fairlead_sim.api.kube_token import (
    ISSUER,
    Claims,
    KubernetesClaim,
    Named,
    looks_like_token,
    parse_token,
    render_token,
    token_id,
)
from fairlead_sim.api.versions import Versions
from fairlead_sim.objects.resources import NODES, PODS, SECRETS, SERVICE_ACCOUNTS
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import bad_request, conflict, invalid, not_found, wrong_value

ADMIN: Final = Identity("fairlead-admin", groups=(MASTERS, AUTHENTICATED))
DEFAULT_SECONDS: Final = 3600
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"
_REQUEST: Final = ResourceKind(
    "authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", "tokenrequest"
)
_INVALID: Final = "invalid bearer token"


class BadToken(Exception):
    """Why a token is invalid, as TokenReview reports it."""


class Tokens:
    """Issues and reads tokens. `key` signs them: a program that knows it can act as any account."""

    def __init__(
        self, store: Versions, clock: Clock, admin_tokens: Sequence[str], key: bytes
    ) -> None:
        self._store = store
        self._clock = clock
        self._admin_tokens = [token.encode() for token in admin_tokens]
        self._key = key
        self._issued = 0

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self, token: str, audiences: Sequence[str] = (ISSUER,)
    ) -> tuple[Identity, tuple[str, ...]]:
        """The account of the token, and which of the audiences it is for. Raises BadToken."""
        given = token.encode()
        if any(hmac.compare_digest(given, known) for known in self._admin_tokens):
            return ADMIN, tuple(audiences)
        claims = parse_token(token, self._key)
        if claims is None:
            known_form = f"[{_INVALID}, go-jose/go-jose: error in cryptographic primitive]"
            raise BadToken(known_form if looks_like_token(token) else _INVALID)
        meant = tuple(audience for audience in claims.aud if audience in audiences)
        if not meant:
            detail = (
                f"token audiences {_quoted(claims.aud)} is invalid for the target audiences "
                f"{_quoted(audiences)}"
            )
            raise BadToken(f"[{_INVALID}, {detail}]")
        why = self._why_void(claims)
        if why:
            raise BadToken(f"[{_INVALID}, {why}]")
        return _identity(claims), meant

    def _why_void(self, claims: Claims) -> str:
        bound = claims.bound
        if self._clock.now() > claims.exp:
            return "service account token has expired"
        account = self._found(SERVICE_ACCOUNTS, bound.namespace, bound.serviceaccount.name)
        if account is None:
            return f'serviceaccounts "{bound.serviceaccount.name}" not found'
        if account["metadata"]["uid"] != bound.serviceaccount.uid:
            return (
                f"service account UID ({account['metadata']['uid']}) does not match claim "
                f"({bound.serviceaccount.uid})"
            )
        for ref, named in ((PODS, bound.pod), (SECRETS, bound.secret)):
            if named is not None and self._uid(ref, bound.namespace, named.name) != named.uid:
                return "service account token has been invalidated"
        is_of_node = bound.node is not None and bound.pod is None
        if (
            is_of_node
            and bound.node is not None
            and self._uid(NODES, None, bound.node.name) != bound.node.uid
        ):
            return "service account token has been invalidated"
        return ""

    def _found(self, ref: ResourceKind, namespace: str | None, name: str) -> Object | None:
        return self._store.get(ref, namespace, name)

    def _uid(self, ref: ResourceKind, namespace: str | None, name: str) -> str:
        found = self._found(ref, namespace, name)
        return str(found["metadata"]["uid"]) if found else ""

    # --- issuing ----------------------------------------------------------------------------------

    def issue(self, account: Object, wish: Object) -> Object:
        """The answer to a TokenRequest for a ServiceAccount.

        Raises 400, 404, 409 or 422 for what cannot be had.
        """
        metadata, spec = account["metadata"], wish.get("spec") or {}
        _check_addressed(wish.get("metadata") or {}, metadata)
        seconds = spec.get("expirationSeconds") or DEFAULT_SECONDS
        _check_duration(seconds)
        audiences, reference = tuple(spec.get("audiences") or (ISSUER,)), spec.get("boundObjectRef")
        now, self._issued = self._clock.now(), self._issued + 1
        claims = Claims(
            aud=audiences,
            exp=int(now) + seconds,
            iat=int(now),
            iss=ISSUER,
            jti=token_id(self._issued, now, metadata["uid"]),
            bound=self._bound(metadata, reference),
            nbf=int(now),
            sub=account_name(metadata["namespace"], metadata["name"]),
        )
        detail = {key: metadata[key] for key in ("name", "namespace", "uid")}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {**detail, "creationTimestamp": render_time(now)},
            "spec": {
                "audiences": list(audiences),
                "expirationSeconds": seconds,
                "boundObjectRef": reference,
            },
            "status": {
                "token": render_token(claims, self._key),
                "expirationTimestamp": render_time(now + seconds),
            },
        }

    def _bound(self, account: Object, reference: Object | None) -> KubernetesClaim:
        namespace = account["namespace"]
        bound = KubernetesClaim(namespace, Named(account["name"], account["uid"]))
        if not reference:
            return bound
        kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
        ref = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}.get(kind)
        if ref is None or reference.get("apiVersion") != "v1":
            version = reference.get("apiVersion", "")
            raise bad_request(
                "cannot bind token to object of type "
                f"{'/' if '/' not in version else ''}{version}, Kind={kind}"
            )
        found = self._found(ref, None if kind == "Node" else namespace, name)
        if found is None:
            raise not_found(ref, name)
        named = Named(name, found["metadata"]["uid"])
        if reference.get("uid") and reference["uid"] != named.uid:
            detail = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the "
                "UID in record."
            )
            place = ResourceKind("", reference["apiVersion"], kind, kind, kind)
            raise conflict(
                place, name, f"{detail} The object might have been deleted and then recreated"
            )
        if kind == "Pod":
            return self._bound_to_pod(bound, found, named)
        return KubernetesClaim(
            namespace,
            bound.serviceaccount,
            secret=named if kind == "Secret" else None,
            node=named if kind == "Node" else None,
        )

    def _bound_to_pod(self, bound: KubernetesClaim, pod: Object, named: Named) -> KubernetesClaim:
        account, node = bound.serviceaccount.name, pod["spec"].get("nodeName")
        if pod["spec"].get("serviceAccountName") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with '
                "different serviceaccount name."
            )
        at = Named(node, self._uid(NODES, None, node)) if node else None
        return KubernetesClaim(bound.namespace, bound.serviceaccount, pod=named, node=at)


def _identity(claims: Claims) -> Identity:
    bound = claims.bound
    extra = {_CREDENTIAL: (f"JTI={claims.jti}",)}
    for what, named in (("pod", bound.pod), ("node", bound.node)):
        if named is not None:
            extra[f"authentication.kubernetes.io/{what}-name"] = (named.name,)
            extra[f"authentication.kubernetes.io/{what}-uid"] = (named.uid,)
    return Identity(
        claims.sub,
        bound.serviceaccount.uid,
        (*account_groups(bound.namespace), AUTHENTICATED),
        extra,
    )


def _check_addressed(asked: Object, account: Object) -> None:
    for field in ("name", "namespace"):
        if asked.get(field) and asked[field] != account[field]:
            detail = f"must match the service account {field} if specified"
            raise invalid(
                _REQUEST, account["name"], [wrong_value(f"metadata.{field}", asked[field], detail)]
            )
    if asked.get("uid") and asked["uid"] != account["uid"]:
        detail = (
            f"the UID in the token request ({asked['uid']}) does not match the UID of the service "
            f"account ({account['uid']})"
        )
        raise conflict(
            ResourceKind("authentication.k8s.io", "v1", "TokenRequest", "TokenRequest", ""),
            account["name"],
            detail,
        )


def _check_duration(seconds: int) -> None:
    detail = ""
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
    if detail:
        raise invalid(_REQUEST, "", [wrong_value("spec.expirationSeconds", seconds, detail)])


def _quoted(values: Sequence[str]) -> str:
    detail = " ".join(f'"{value}"' for value in values)
    return f"[{detail}]"
