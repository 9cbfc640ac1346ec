"""Bodies and requests for the cases about users and their rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.contracts.api_client import Answer, ApiClient, until

Object = dict[str, Any]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"


def rule(verbs: str, resources: str = "", groups: Sequence[str] = ("",), **more: Any) -> Object:
    """A rule; verbs and resources are lists with spaces."""
    about = {"apiGroups": list(groups), "resources": resources.split()} if resources else {}
    return {"verbs": verbs.split(), **about, **more}


def role(name: str, *rules: Object, **more: Any) -> Object:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(name: str, role: str, user: str, kind: str = "Role") -> Object:
    """A binding for a user, or with `namespace/name` for a ServiceAccount."""
    namespace, slash, account = user.partition("/")
    subject = (
        {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        if slash
        else {"kind": "User", "name": user}
    )
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [subject],
    }


def roles(space: str, name: str = "") -> str:
    return "/".join(part for part in (f"{RBAC}/namespaces/{space}/roles", name) if part)


def bindings(space: str, name: str = "") -> str:
    return "/".join(part for part in (f"{RBAC}/namespaces/{space}/rolebindings", name) if part)


def made(answer: Answer) -> Object:
    assert answer.status == 201, answer.message
    body: Object = answer.body
    return body


def ask_for(
    api: ApiClient,
    user: str,
    verb: str,
    resource: str,
    namespace: str = "",
    groups: Sequence[str] = (),
    **more: str,
) -> Object:
    """The `status` of a SubjectAccessReview."""
    attributes = {"verb": verb, "resource": resource, "namespace": namespace, **more}
    spec = {"user": user, "groups": list(groups), "resourceAttributes": attributes}
    status: Object = made(api.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec}))[
        "status"
    ]
    return status


def until_allowed(
    api: ApiClient, user: str, verb: str, resource: str, namespace: str = "", **more: str
) -> None:
    """Wait until the request is allowed: a real server reads its roles through a cache that lags a
    moment behind.
    """
    what = f"{user} may {verb} {resource}"
    until(what, lambda: bool(ask_for(api, user, verb, resource, namespace, **more)["allowed"]))


def token_of(api: ApiClient, space: str, account: str, **spec: Any) -> str:
    path = f"/api/v1/namespaces/{space}/serviceaccounts/{account}/token"
    token: str = made(api.post(path, {"spec": spec}))["status"]["token"]
    return token
