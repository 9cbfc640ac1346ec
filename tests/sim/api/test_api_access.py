"""Tokens and rights as a server sees them: the world's clock, one signing key over restarts, and an
administrator whose checks cost nothing.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.asgi import TOKEN, ask
from tests.sim.objects import StillClock
from tests.sim.small_world import small_world

from fairlead_sim.access import judge as access
from fairlead_sim.access.roles import install_roles
from fairlead_sim.api.server import ApiServer
from fairlead_sim.objects.resources import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    ELASTIC_QUOTA_TREES,
    NAMESPACES,
    RESOURCES,
    SERVICE_ACCOUNTS,
)
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.store.accounts import Accounts
from fairlead_sim.store.cluster import StoredCluster

KEY = b"a key of the test's own"
TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"


@pytest.fixture
def cluster() -> StoredCluster:
    cluster = StoredCluster(StillClock())
    install_roles(cluster)
    Accounts(cluster)
    return cluster


def server(cluster: StoredCluster, key: bytes = KEY) -> ApiServer:
    return ApiServer(cluster, cluster.clock, [TOKEN], signing_key=key)


async def token_of(app: ApiServer, seconds: int = 600) -> str:
    body = json.dumps({"spec": {"expirationSeconds": seconds}}).encode()
    status, answer = await ask(app, "POST", TOKENS, body, {"content-type": "application/json"})
    assert status == 201, answer
    return str(answer["status"]["token"])


async def is_let_in(app: ApiServer, token: str) -> bool:
    return (await ask(app, "GET", "/api", token=token))[0] == 200


async def test_a_token_lives_by_the_clock_of_its_world(cluster: StoredCluster) -> None:
    app = server(cluster)
    token = await token_of(app)
    cluster.clock.at += 599  # type: ignore[attr-defined]
    assert await is_let_in(app, token)
    cluster.clock.at += 2  # type: ignore[attr-defined]
    assert not await is_let_in(app, token)
    body = json.dumps({"spec": {"token": token}}).encode()
    _, review = await ask(app, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    assert review["status"]["error"] == "[invalid bearer token, service account token has expired]"


async def test_equal_lives_give_equal_tokens(cluster: StoredCluster) -> None:
    first = await token_of(server(cluster))
    assert await token_of(server(cluster)) == first
    assert await token_of(server(cluster, b"another")) != first


async def test_a_token_outlives_its_server_if_the_key_does(cluster: StoredCluster) -> None:
    token = await token_of(server(cluster))
    assert await is_let_in(server(cluster), token)
    assert not await is_let_in(server(cluster, b"another"), token)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
async def test_a_token_of_ones_own_making_opens_nothing(
    cluster: StoredCluster, algorithm: str
) -> None:
    app = server(cluster)
    header, claims, signature = (await token_of(app)).split(".")
    forged = base64.urlsafe_b64encode(json.dumps({"alg": algorithm}).encode()).decode().rstrip("=")
    for token in (
        f"{forged}.{claims}.",
        f"{forged}.{claims}.{signature}",
        f"{header}.{claims}.",
        f".{claims}.{signature}",
        "..",
        ".",
    ):
        assert not await is_let_in(app, token)


async def test_the_administrator_costs_no_look_at_the_roles(
    cluster: StoredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("the roles were read")

    app = server(cluster)
    monkeypatch.setattr("fairlead_sim.api.access.Access.policy", refuse)
    assert (await ask(app, "GET", "/api/v1/pods"))[0] == 200
    assert (await ask(app, "GET", "/api/v1/pods", headers={"impersonate-user": "bob"}))[0] == 500


async def test_the_roles_are_read_again_only_after_one_was_written(
    cluster: StoredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []

    class Counted(access.Policy):
        def __init__(self, *arguments: Any) -> None:
            reads.append(1)
            super().__init__(*arguments)

    app = server(cluster)
    monkeypatch.setattr("fairlead_sim.api.access.Policy", Counted)
    bob = {"impersonate-user": "bob"}
    for _ in range(3):
        assert (await ask(app, "GET", "/api/v1/pods", headers=bob))[0] == 403
    assert len(reads) == 1
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert (await ask(app, "GET", "/api/v1/pods", headers=bob))[0] == 403
    assert len(reads) == 1
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"}
    binding = {
        "metadata": {"name": "bob"},
        "roleRef": role,
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    cluster.create({"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", **binding})
    assert (await ask(app, "GET", "/api/v1/pods", headers=bob))[0] == 200
    assert len(reads) == 2


async def test_a_flood_of_written_roles_is_caught_up_with() -> None:
    cluster = StoredCluster(StillClock(), log_capacity=5)
    install_roles(cluster)
    app = server(cluster)
    bob = {"impersonate-user": "bob"}
    assert (await ask(app, "GET", "/api", headers=bob))[0] == 200
    for number in range(20):
        cluster.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": f"r{number}"},
            }
        )
    assert (await ask(app, "GET", "/api", headers=bob))[0] == 200


async def test_without_roles_only_the_administrator_does_anything() -> None:
    app = server(StoredCluster(StillClock()))
    assert (await ask(app, "GET", "/api/v1/pods"))[0] == 200
    assert (await ask(app, "GET", "/api", headers={"impersonate-user": "bob"}))[0] == 403


async def test_a_list_is_continued_by_users_that_may_begin_it(cluster: StoredCluster) -> None:
    app = server(cluster)
    _, page = await ask(app, "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1")
    token = page["metadata"]["continue"]
    bound = {"kind": "User", "name": "bob"}
    rbac = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    binding = {
        "metadata": {"name": "bob", "namespace": "default"},
        "roleRef": rbac,
        "subjects": [bound],
    }
    cluster.create({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", **binding})
    bob = {"impersonate-user": "bob"}
    path = f"/api/v1/namespaces/default/configmaps?limit=1&continue={token}"
    status, answer = await ask(app, "GET", path, headers=bob)
    assert (status, answer["message"]) == (
        400,
        "continue key is not valid: it is that of another list",
    )
    assert (
        await ask(
            app, "GET", f"/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1&continue={token}"
        )
    )[0] == 200


# --- what every namespace has ---------------------------------------------------------------------


def test_the_authority_exists_once_a_server_serves_the_world() -> None:
    cluster = StoredCluster(StillClock())
    accounts = Accounts(cluster)
    namespaces = [item["metadata"]["name"] for item in cluster.list(NAMESPACES)]
    assert [item["metadata"]["namespace"] for item in cluster.list(SERVICE_ACCOUNTS)] == namespaces
    assert cluster.list(CONFIG_MAPS) == []
    accounts.publish("first")
    accounts.publish("second")
    assert [item["data"] for item in cluster.list(CONFIG_MAPS)] == [{"ca.crt": "second"}] * len(
        namespaces
    )


def test_a_namespace_that_goes_gets_nothing_back() -> None:
    cluster = StoredCluster(StillClock())
    Accounts(cluster).publish("pem")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert cluster.get(CONFIG_MAPS, "team", "kube-root-ca.crt") is not None
    cluster.delete(NAMESPACES, None, "team")
    assert cluster.get(NAMESPACES, None, "team") is None
    assert cluster.list(SERVICE_ACCOUNTS, "team") == cluster.list(CONFIG_MAPS, "team") == []


def test_roles_that_people_changed_stay_changed() -> None:
    cluster = StoredCluster(StillClock())
    install_roles(cluster)
    view = cluster.get(CLUSTER_ROLES, None, "system:discovery")
    assert view is not None
    cluster.update({**view, "rules": []})
    install_roles(cluster)
    changed = cluster.get(CLUSTER_ROLES, None, "system:discovery")
    assert changed is not None and changed["rules"] == []


# --- the roles that operators bring ---------------------------------------------------------------

JOB_KINDS = [ref for ref in RESOURCES if ref.is_custom and ref is not ELASTIC_QUOTA_TREES]


@pytest.mark.parametrize(("role", "may_write"), [("view", False), ("edit", True), ("admin", True)])
@pytest.mark.parametrize("ref", JOB_KINDS, ids=lambda ref: ref.plural)
async def test_the_roles_of_a_world_cover_the_kinds_of_its_operators(
    ref: ResourceKind, role: str, may_write: bool
) -> None:
    """The request has the rights of a ServiceAccount of one namespace, by an aggregated role; it is
    not a review.
    """
    cluster = small_world().cluster
    app = server(cluster)
    rbac, account = (
        "rbac.authorization.k8s.io",
        {"kind": "ServiceAccount", "name": "default", "namespace": "default"},
    )
    bound = {
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
        "subjects": [account],
    }
    cluster.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "default"},
            **bound,
        }
    )
    as_account = {
        "impersonate-user": "system:serviceaccount:default:default",
        "content-type": "application/json",
    }
    path = f"/apis/{ref.api_version}/namespaces/default/{ref.plural}"
    body = json.dumps(
        {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"name": "a"}, "spec": {}}
    ).encode()
    assert (await ask(app, "GET", path, headers=as_account))[0] == 200
    assert (await ask(app, "GET", path.replace("/default/", "/kube-system/"), headers=as_account))[
        0
    ] == 403
    assert (await ask(app, "POST", path, body, as_account))[0] == (201 if may_write else 403)
    assert (await ask(app, "DELETE", f"{path}/a", headers=as_account))[0] == (
        200 if may_write else 403
    )
