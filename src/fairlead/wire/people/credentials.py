"""Credentials of users: the Secret to which a token is bound, the request for the token, and the
kubeconfig with it.

A Secret of a credential is empty. It exists so that deleting it revokes one token.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from msgspec import Struct

from fairlead.model.people.record import Credential, ServerAddress
from fairlead.model.people.rows import LABEL_BOUND_USER
from fairlead.wire.kube.objects import WireMeta, parse_labels
from fairlead.wire.kube.time import parse_time, render_time

CREDENTIAL_TYPE: Final = "fairlead.io/credential"
LABEL_CREDENTIAL: Final = "fairlead.io/credential"
_EXPIRES: Final = "fairlead.io/expires"
_ISSUED_BY: Final = "fairlead.io/issued-by"
_NOTE: Final = "fairlead.io/note"
CLUSTER_NAME: Final = "kubernetes"
Object = dict[str, Any]


class WireSecretHead(Struct, gc=False):
    """A Secret without what it holds."""

    metadata: WireMeta


def render_credential(credential: Credential, namespace: str) -> Object:
    """The Secret. It belongs to its user, and goes with the user's object."""
    annotations = {
        _EXPIRES: render_time(credential.expires_at),
        _ISSUED_BY: credential.issued_by,
        _NOTE: credential.note,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": credential.name,
            "namespace": namespace,
            "labels": {LABEL_BOUND_USER: credential.user, LABEL_CREDENTIAL: "true"},
            "annotations": {key: text for key, text in annotations.items() if text},
        },
        "type": CREDENTIAL_TYPE,
    }


def expiry_patch(expires_at: float) -> Object:
    """A merge patch with the time that the API server granted."""
    return {"metadata": {"annotations": {_EXPIRES: render_time(expires_at)}}}


def parse_credential(wire: WireSecretHead) -> Credential:
    meta = wire.metadata
    annotations = meta.annotations or {}
    issued_at = meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0
    try:
        expires_at = parse_time(annotations.get(_EXPIRES) or "")
    except ValueError:
        expires_at = issued_at
    return Credential(
        meta.name or "",
        parse_labels(meta.labels).get(LABEL_BOUND_USER, ""),
        issued_at,
        expires_at,
        annotations.get(_ISSUED_BY) or "",
        annotations.get(_NOTE) or "",
        meta.uid or "",
    )


def render_token_request(credential: Credential, seconds: int) -> Object:
    """A TokenRequest for a token that is bound to the credential's Secret."""
    bound = {"apiVersion": "v1", "kind": "Secret", "name": credential.name, "uid": credential.uid}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds, "boundObjectRef": bound},
    }


def render_kubeconfig(user: str, token: str, namespace: str, server: ServerAddress) -> Object:
    """A kubeconfig with one context, which is named as the user."""
    cluster: Object = {"server": server.url}
    if server.authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(server.authority).decode()
    context = {"cluster": CLUSTER_NAME, "user": user, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER_NAME, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": user, "context": context}],
        "current-context": user,
    }
