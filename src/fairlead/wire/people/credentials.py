"""Credentials of users: the Secret to which a token is bound, the request for the token, and the
kubeconfig with it.

A Secret of a credential is empty. It exists so that deleting it revokes one token. A credential
that `fairlead login` renews has a Role, too, by which its user may ask for a token of the own
ServiceAccount; the policy `fairlead-renewal` allows that for tokens bound to a Secret alone.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from msgspec import Struct

from fairlead.model.people.record import Credential, KeptToken, ServerAddress
from fairlead.model.people.rows import LABEL_BOUND_USER
from fairlead.settings import CONSOLE_EXTENSION
from fairlead.wire.kube.objects import WireMeta, parse_labels
from fairlead.wire.kube.time import parse_time, render_time
from fairlead.wire.people.bindings import RBAC

CREDENTIAL_TYPE: Final = "fairlead.io/credential"
LABEL_CREDENTIAL: Final = "fairlead.io/credential"
_EXPIRES: Final = "fairlead.io/expires"
_ISSUED_BY: Final = "fairlead.io/issued-by"
_NOTE: Final = "fairlead.io/note"
_RENEWED: Final = "fairlead.io/renewed"
EXEC_API: Final = "client.authentication.k8s.io/v1"
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
        _RENEWED: "true" if credential.is_renewed else "",
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
        annotations.get(_RENEWED) == "true",
    )


def render_token_request(credential: Credential, seconds: int) -> Object:
    """A TokenRequest for a token that is bound to the credential's Secret."""
    bound = {"apiVersion": "v1", "kind": "Secret", "name": credential.name, "uid": credential.uid}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds, "boundObjectRef": bound},
    }


def render_renewal_rights(credential: Credential, namespace: str) -> tuple[Object, Object]:
    """The Role and the RoleBinding by which the user renews the token.

    They go with the credential's Secret. They have no label of the user: the people controller
    would remove what it did not make.
    """
    name = f"{credential.name}:renewal"
    meta = {
        "name": name,
        "namespace": namespace,
        "labels": {LABEL_CREDENTIAL: "true"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Secret", "name": credential.name, "uid": credential.uid}
        ],
    }
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": [credential.user],
        "verbs": ["create"],
    }
    subject = {"kind": "ServiceAccount", "name": credential.user, "namespace": namespace}
    return (
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    )


def render_unbound_request() -> Object:
    """A TokenRequest that the policy refuses to a user."""
    spec = {"expirationSeconds": 600}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def parse_issued_token(answer: Any) -> tuple[str, float]:
    """The token of an answered TokenRequest, and when it ends. Raises ValueError."""
    try:
        status = answer["status"]
        return str(status["token"]), parse_time(status["expirationTimestamp"])
    except (LookupError, TypeError) as error:
        raise ValueError("the TokenRequest has no token") from error


def render_exec_credential(token: KeptToken) -> Object:
    """What kubectl reads from a credential plugin."""
    status = {"token": token.token, "expirationTimestamp": render_time(token.expires_at)}
    return {"apiVersion": EXEC_API, "kind": "ExecCredential", "status": status}


def renewing_user(file: str) -> Object:
    """The user of a kubeconfig that has no token. `file`: where the user keeps it."""
    return {
        "exec": {
            "apiVersion": EXEC_API,
            "command": "fairlead",
            "args": ["login", file],
            "interactiveMode": "Never",
            "provideClusterInfo": True,
            "installHint": "Install fairlead and put it on the PATH; it renews your token.",
        }
    }


def render_kubeconfig(
    user: str, credential: Object, namespace: str, server: ServerAddress, console: str = ""
) -> Object:
    """A kubeconfig with one context, which is named as the user.

    `credential`: the user's entry, a token or `renewing_user`. `console`: the address of the
    console, for commands that ask it; "" = unknown.
    """
    cluster: Object = {"server": server.url}
    if server.authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(server.authority).decode()
    if console:
        cluster["extensions"] = [{"name": CONSOLE_EXTENSION, "extension": {"address": console}}]
    context = {"cluster": CLUSTER_NAME, "user": user, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER_NAME, "cluster": cluster}],
        "users": [{"name": user, "user": credential}],
        "contexts": [{"name": user, "context": context}],
        "current-context": user,
    }
