"""Contract: identities of users. Tokens of ServiceAccounts, impersonation, and the objects of every
namespace. The same over both worlds.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import kubernetes
import pytest
from tests.contracts.api_client import ApiClient, until
from tests.contracts.objects import config_map, config_maps, pod, pods
from tests.contracts.rights import (
    AUTHENTICATION,
    RBAC,
    binding,
    bindings,
    made,
    role,
    roles,
    rule,
    token_of,
    until_allowed,
)

ISSUER = "https://kubernetes.default.svc"


def accounts(space: str, name: str = "", subresource: str = "") -> str:
    return "/".join(
        part for part in (f"/api/v1/namespaces/{space}/serviceaccounts", name, subresource) if part
    )


@pytest.fixture
def robot(api: ApiClient, space: str) -> str:
    """The name of a ServiceAccount in the space."""
    made(api.post(accounts(space), {"metadata": {"name": "robot"}}))
    return "robot"


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return decoded


def review(api: ApiClient, token: str, **spec: Any) -> dict[str, Any]:
    status: dict[str, Any] = made(
        api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token, **spec}})
    )["status"]
    return status


def user_of(api: ApiClient) -> dict[str, Any]:
    user: dict[str, Any] = made(api.post(f"{AUTHENTICATION}/selfsubjectreviews", {}))["status"][
        "userInfo"
    ]
    return user


# --- tokens ---------------------------------------------------------------------------------------


def test_a_token_contains_its_user(api: ApiClient, space: str, robot: str) -> None:
    answer = made(api.post(accounts(space, robot, "token"), {"spec": {"expirationSeconds": 1200}}))
    uid = api.get(accounts(space, robot)).body["metadata"]["uid"]
    assert (answer["kind"], answer["metadata"]["name"], answer["metadata"]["uid"]) == (
        "TokenRequest",
        robot,
        uid,
    )
    assert answer["spec"] == {
        "audiences": [ISSUER],
        "expirationSeconds": 1200,
        "boundObjectRef": None,
    }
    claims = claims_of(answer["status"]["token"])
    assert claims["exp"] - claims["iat"] == 1200 and claims["iat"] == claims["nbf"]
    assert (claims["iss"], claims["aud"], claims["sub"]) == (
        ISSUER,
        [ISSUER],
        f"system:serviceaccount:{space}:{robot}",
    )
    assert claims["kubernetes.io"] == {
        "namespace": space,
        "serviceaccount": {"name": robot, "uid": uid},
    }
    assert claims["jti"] != claims_of(token_of(api, space, robot))["jti"]


def test_with_it_one_is_the_account(api: ApiClient, space: str, robot: str) -> None:
    made(api.post(roles(space), role("r", rule("get list", "configmaps"))))
    made(api.post(bindings(space), binding("r", "r", f"{space}/{robot}")))
    token = token_of(api, space, robot)
    name = f"system:serviceaccount:{space}:{robot}"
    until_allowed(api, name, "get", "configmaps", space)
    acting = api.as_stranger(token)
    user = user_of(acting)
    assert user["username"] == name
    assert user["uid"] == api.get(accounts(space, robot)).body["metadata"]["uid"]
    assert user["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{space}",
        "system:authenticated",
    ]
    assert user["extra"] == {
        "authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]
    }
    api.post(config_maps(space), config_map("a"))
    assert acting.get(config_maps(space, "a")).status == 200
    refused = acting.delete(config_maps(space, "a"))
    message = (
        f'configmaps "a" is forbidden: User "{name}" cannot delete resource "configmaps" in API '
        f'group "" in the namespace "{space}"'
    )
    assert (refused.status, refused.message) == (403, message)


def test_the_groups_of_accounts_can_be_bound(api: ApiClient, space: str, robot: str) -> None:
    made(api.post(roles(space), role("r", rule("list", "pods"))))
    subject = {
        "kind": "Group",
        "apiGroup": "rbac.authorization.k8s.io",
        "name": f"system:serviceaccounts:{space}",
    }
    made(api.post(bindings(space), {**binding("r", "r", "x"), "subjects": [subject]}))
    acting = api.as_stranger(token_of(api, space, robot))
    until("the binding is known", lambda: acting.get(pods(space)).status == 200)


def test_a_review_knows_the_token(api: ApiClient, space: str, robot: str) -> None:
    status = review(api, token_of(api, space, robot))
    assert status["authenticated"] is True and status["audiences"] == [ISSUER]
    assert status["user"]["username"] == f"system:serviceaccount:{space}:{robot}"


def test_a_token_for_others_is_not_for_the_server(api: ApiClient, space: str, robot: str) -> None:
    token = token_of(api, space, robot, audiences=["vault"])
    assert api.as_stranger(token).get("/api").status == 401
    message = (
        '[invalid bearer token, token audiences ["vault"] is invalid for the target audiences '
        f'["{ISSUER}"]]'
    )
    assert review(api, token) == {"user": {}, "error": message}
    assert review(api, token, audiences=["other", "vault"])["audiences"] == ["vault"]


@pytest.mark.parametrize("forge", [lambda token: token + "x", lambda token: token[:-6] + "AAAAAA"])
def test_a_forged_token_is_reported_as_such(
    api: ApiClient, space: str, robot: str, forge: Any
) -> None:
    forged = forge(token_of(api, space, robot))
    assert api.as_stranger(forged).get("/api").status == 401
    assert review(api, forged) == {
        "user": {},
        "error": "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]",
    }


def test_anything_else_is_no_token(api: ApiClient) -> None:
    assert review(api, "guessed") == {"user": {}, "error": "invalid bearer token"}
    answer = api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {}})
    assert (answer.status, answer.message) == (
        400,
        "token is required for TokenReview in authentication",
    )


def test_the_account_made_anew_is_another(api: ApiClient, space: str, robot: str) -> None:
    """The real server checks a token that it has just seen only every ten seconds; it sees this
    token for the first time.
    """
    token, uid = (
        token_of(api, space, robot),
        api.get(accounts(space, robot)).body["metadata"]["uid"],
    )
    api.delete(accounts(space, robot))
    until("the account is gone", lambda: api.get(accounts(space, robot)).status == 404)
    made(api.post(accounts(space), {"metadata": {"name": robot}}))
    now = api.get(accounts(space, robot)).body["metadata"]["uid"]
    message = f"[invalid bearer token, service account UID ({now}) does not match claim ({uid})]"
    assert review(api, token) == {"user": {}, "error": message}
    assert api.as_stranger(token).get("/api").status == 401


def test_without_its_account_it_is_void(api: ApiClient, space: str, robot: str) -> None:
    token = token_of(api, space, robot)
    api.delete(accounts(space, robot))
    until("the account is gone", lambda: api.get(accounts(space, robot)).status == 404)
    assert review(api, token) == {
        "user": {},
        "error": (f'[invalid bearer token, serviceaccounts "{robot}" not found]'),
    }


def test_a_token_is_void_without_what_it_is_bound_to(
    api: ApiClient, space: str, robot: str
) -> None:
    made(api.post(pods(space), pod("a", spec={"serviceAccountName": robot})))
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "a"}
    seen, unseen = (token_of(api, space, robot, boundObjectRef=bound) for _ in range(2))
    extra = review(api, seen)["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["a"]
    assert (
        claims_of(seen)["kubernetes.io"]["pod"]["uid"]
        == extra["authentication.kubernetes.io/pod-uid"][0]
    )
    api.delete(pods(space, "a"), gracePeriodSeconds=0)
    until("the pod is gone", lambda: api.get(pods(space, "a")).status == 404)
    void = {
        "user": {},
        "error": "[invalid bearer token, service account token has been invalidated]",
    }
    # The real server looks pods up in a cache, and remembers what it accepted for ten seconds.
    until("the token is void", lambda: review(api, unseen) == void)


_WISHES: list[tuple[str, dict[str, Any]]] = [
    ("default", {"spec": {"expirationSeconds": 599}}),
    ("default", {"spec": {"expirationSeconds": 1 << 33}}),
    ("default", {"spec": {"boundObjectRef": {"kind": "Thing", "apiVersion": "v1", "name": "x"}}}),
    ("default", {"spec": {"boundObjectRef": {"kind": "Thing", "apiVersion": "x/v1", "name": "x"}}}),
    ("default", {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "x"}}}),
    (
        "default",
        {
            "spec": {
                "boundObjectRef": {
                    "kind": "ConfigMap",
                    "apiVersion": "v1",
                    "name": "kube-root-ca.crt",
                }
            }
        },
    ),
    ("default", {"metadata": {"name": "abc"}, "spec": {}}),
    ("absent", {"spec": {}}),
]


@pytest.mark.parametrize(("name", "body"), _WISHES)
def test_a_token_that_cannot_be_had(
    both: tuple[ApiClient, ApiClient], name: str, body: dict[str, Any]
) -> None:
    simulated, real = (api.post(accounts("default", name, "token"), body) for api in both)
    assert (simulated.status, simulated.message) == (real.status, real.message)
    assert simulated.body.get("details") == real.body.get("details")
    assert simulated.status >= 400


def test_a_token_is_for_the_account_that_was_meant(api: ApiClient, space: str, robot: str) -> None:
    answer = api.post(accounts(space, robot, "token"), {"metadata": {"uid": "x"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert (
        "the UID in the token request (x) does not match the UID of the service account"
    ) in answer.message


def test_the_official_client_asks_for_a_token_and_uses_it(
    api: ApiClient, space: str, robot: str
) -> None:
    admin = kubernetes.config.new_client_from_config(str(api.kubeconfig))
    core = kubernetes.client.CoreV1Api(admin)
    made_token = core.create_namespaced_service_account_token(
        robot, space, {"spec": {"audiences": None, "expirationSeconds": 3600}}
    )
    assert made_token.status.expiration_timestamp > made_token.metadata.creation_timestamp
    settings = kubernetes.client.Configuration(
        admin.configuration.host, {"authorization": f"Bearer {made_token.status.token}"}
    )
    settings.ssl_ca_cert = admin.configuration.ssl_ca_cert
    acting = kubernetes.client.ApiClient(settings)
    review = kubernetes.client.V1SelfSubjectAccessReview(
        spec={"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": space}}
    )
    answer = kubernetes.client.AuthorizationV1Api(acting).create_self_subject_access_review(review)
    assert answer.status.allowed is False
    with pytest.raises(kubernetes.client.exceptions.ApiException) as refused:
        kubernetes.client.CoreV1Api(acting).list_namespaced_pod(space)
    assert refused.value.status == 403


# --- impersonation --------------------------------------------------------------------------------


def test_the_administrator_acts_as_any_user(api: ApiClient) -> None:
    assert user_of(api.as_user("bob")) == {"username": "bob", "groups": ["system:authenticated"]}
    assert user_of(api.as_user("bob", "dev", "ops", uid="7")) == {
        "username": "bob",
        "uid": "7",
        "groups": ["dev", "ops", "system:authenticated"],
    }
    account = user_of(api.as_user("system:serviceaccount:default:default"))
    assert account["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    extra = api.ask(
        "POST",
        f"{AUTHENTICATION}/selfsubjectreviews",
        {},
        headers={"Impersonate-User": "bob", "Impersonate-Extra-Team%2Fa": "x"},
    )
    assert extra.body["status"]["userInfo"]["extra"] == {"team/a": ["x"]}


def test_groups_alone_are_no_user(api: ApiClient) -> None:
    answer = api.ask("GET", "/api", headers={"Impersonate-Group": "dev"})
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.endswith("without impersonating a user name")


@pytest.mark.parametrize(
    ("user", "groups", "cannot"),
    [
        (
            "alice",
            (),
            ('impersonate-on:user-info:list resource "pods" in API group "" in the namespace "{}"'),
        ),
        (
            "alice",
            ("dev",),
            ('impersonate-on:user-info:list resource "pods" in API group "" in the namespace "{}"'),
        ),
        (
            "system:serviceaccount:x:y",
            (),
            (
                'impersonate-on:serviceaccount:list resource "pods" in API group "" in the '
                "namespace "
                '"{}"'
            ),
        ),
        (
            "system:node:n",
            (),
            (
                'impersonate-on:arbitrary-node:list resource "pods" in API group "" in the '
                "namespace "
                '"{}"'
            ),
        ),
    ],
)
def test_others_need_a_right_for_it(
    api: ApiClient, space: str, robot: str, user: str, groups: tuple[str, ...], cannot: str
) -> None:
    acting = api.as_stranger(token_of(api, space, robot)).as_user(user, *groups)
    answer = acting.get(pods(space))
    message = (
        f'pods is forbidden: User "system:serviceaccount:{space}:{robot}" cannot '
        f"{cannot.format(space)}"
    )
    assert (answer.status, answer.message) == (403, message)


def test_a_user_that_may_act_as_another_acts_as_no_third(
    api: ApiClient, space: str, robot: str
) -> None:
    name = f"as-alice-{space}"
    rules = (
        rule("impersonate", "users", resourceNames=["alice"]),
        rule("impersonate", "groups", resourceNames=["dev"]),
    )
    made(api.post(f"{RBAC}/clusterroles", role(name, *rules)))
    made(
        api.post(
            f"{RBAC}/clusterrolebindings", binding(name, name, f"{space}/{robot}", "ClusterRole")
        )
    )
    user = f"system:serviceaccount:{space}:{robot}"
    until_allowed(api, user, "impersonate", "users", name="alice")
    acting = api.as_stranger(token_of(api, space, robot))
    assert user_of(acting.as_user("alice", "dev"))["groups"] == ["dev", "system:authenticated"]
    assert acting.as_user("alice", "ops").get("/api").status == 403
    assert acting.as_user("bob").get("/api").status == 403
    refused = acting.as_user("alice").get(pods(space))
    assert refused.message.startswith('pods is forbidden: User "alice" cannot list')


# --- what every namespace has ---------------------------------------------------------------------


def test_an_account_and_the_authority_come_with_the_namespace_and_come_back(
    api: ApiClient, space: str
) -> None:
    authority = config_maps(space, "kube-root-ca.crt")
    until(
        "both are there",
        lambda: (
            api.get(accounts(space, "default")).status == 200 and api.get(authority).status == 200
        ),
    )
    assert set(api.get(authority).body["data"]) == {"ca.crt"}
    assert "kubernetes.io/description" in api.get(authority).body["metadata"]["annotations"]
    uid = api.get(accounts(space, "default")).body["metadata"]["uid"]
    api.delete(accounts(space, "default"))
    api.delete(authority)
    until(
        "both are back",
        lambda: (
            api.get(accounts(space, "default")).status == 200 and api.get(authority).status == 200
        ),
    )
    assert api.get(accounts(space, "default")).body["metadata"]["uid"] != uid
    data = api.get(authority).body["data"]
    api.patch(authority, {"data": {"ca.crt": "changed"}})
    until("it is as it was", lambda: bool(api.get(authority).body["data"] == data))


def test_a_pod_runs_as_an_account_that_exists(api: ApiClient, space: str, robot: str) -> None:
    plain = made(api.post(pods(space), pod("a")))["spec"]
    assert (plain["serviceAccountName"], plain["serviceAccount"]) == ("default", "default")
    named = made(api.post(pods(space), pod("b", spec={"serviceAccountName": robot})))["spec"]
    assert (named["serviceAccountName"], named["serviceAccount"]) == (robot, robot)
    answer = api.post(pods(space), pod("c", spec={"serviceAccountName": "absent"}))
    message = (
        f'pods "c" is forbidden: error looking up service account {space}/absent: serviceaccount '
        '"absent" not found'
    )
    assert (answer.status, answer.message) == (403, message)


def test_pull_secrets_of_the_account_are_the_pods(api: ApiClient, space: str) -> None:
    made(
        api.post(
            accounts(space),
            {"metadata": {"name": "puller"}, "imagePullSecrets": [{"name": "registry"}]},
        )
    )
    own = {"serviceAccountName": "puller", "imagePullSecrets": [{"name": "mine"}]}
    until(
        "the account is known",
        lambda: (
            api.post(
                pods(space), pod("a", spec={"serviceAccountName": "puller"}), dryRun="All"
            ).status
            == 201
        ),
    )
    assert made(api.post(pods(space), pod("a", spec={"serviceAccountName": "puller"})))["spec"][
        "imagePullSecrets"
    ] == [{"name": "registry"}]
    assert made(api.post(pods(space), pod("b", spec=own)))["spec"]["imagePullSecrets"] == [
        {"name": "mine"}
    ]
