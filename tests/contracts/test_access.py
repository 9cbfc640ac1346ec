"""Contract: which users may do what. The same assertions over both worlds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts import rights
from tests.contracts.api_client import APPLY, JSON_PATCH, ApiClient, until
from tests.contracts.objects import config_map, config_maps, deployment, deployments, pod, pods
from tests.contracts.rights import (
    AUTHORIZATION,
    RBAC,
    ask_for,
    binding,
    bindings,
    made,
    role,
    roles,
    rule,
    token_of,
    until_allowed,
)

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.queries.cluster_query import ClusterQuery
from fairlead.errors import Forbidden
from fairlead.model.access import AccessRequest, Binding, BindingSubject, Identity
from fairlead.model.people import rights as people_rights
from fairlead_sim.access.judge import Policy, judge
from fairlead_sim.schema.rbac import parse_rules


@pytest.fixture
def reader(api: ApiClient, space: str) -> ApiClient:
    """A user who may read pods and their logs in the space, and nothing else."""
    made(api.post(roles(space), role("reader", rule("get list watch", "pods pods/log"))))
    made(api.post(bindings(space), binding("reader", "reader", "rita")))
    until_allowed(api, "rita", "get", "pods", space)
    return api.as_user("rita")


@pytest.fixture
def owner(api: ApiClient, space: str) -> ApiClient:
    """A user who is `admin` of the space."""
    made(api.post(bindings(space), binding("owner", "admin", "olga", "ClusterRole")))
    until_allowed(api, "olga", "create", "rolebindings", space, group=rights.GROUP)
    return api.as_user("olga")


# --- what is allowed, and the words of a refusal --------------------------------------------------


def test_a_role_allows_what_its_rules_list(api: ApiClient, reader: ApiClient, space: str) -> None:
    api.post(pods(space), pod("a"))
    assert reader.get(pods(space)).status == 200
    assert reader.get(pods(space, "a")).body["metadata"]["name"] == "a"
    with reader.watch(pods(space)) as events:
        assert next(events)["object"]["metadata"]["name"] == "a"


_HERE = "/api/v1/namespaces/{}"


@pytest.mark.parametrize(
    ("method", "path", "name", "verb", "resource", "namespace"),
    [
        ("GET", "/api/v1/pods", "", "list", "pods", ""),
        ("GET", "/api/v1/pods?watch=true", "", "watch", "pods", ""),
        ("GET", "/api/v1/namespaces/elsewhere/pods", "", "list", "pods", "elsewhere"),
        ("GET", "/api/v1/nodes/n", "n", "get", "nodes", ""),
        ("GET", _HERE, "{}", "get", "namespaces", "{}"),
        ("GET", f"{_HERE}/secrets/s", "s", "get", "secrets", "{}"),
        ("GET", f"{_HERE}/secrets?fieldSelector=metadata.name%3Ds", "s", "list", "secrets", "{}"),
        ("POST", f"{_HERE}/pods", "", "create", "pods", "{}"),
        ("PUT", f"{_HERE}/pods/a", "a", "update", "pods", "{}"),
        ("PATCH", f"{_HERE}/pods/a/status", "a", "patch", "pods/status", "{}"),
        ("DELETE", f"{_HERE}/pods/a", "a", "delete", "pods", "{}"),
        ("DELETE", f"{_HERE}/pods", "", "deletecollection", "pods", "{}"),
        ("POST", f"{_HERE}/pods/a/eviction", "a", "create", "pods/eviction", "{}"),
        ("POST", f"{_HERE}/pods/a/binding", "a", "create", "pods/binding", "{}"),
        (
            "POST",
            f"{_HERE}/serviceaccounts/default/token",
            "default",
            "create",
            "serviceaccounts/token",
            "{}",
        ),
        (
            "PUT",
            "/apis/apps/v1/namespaces/{}/deployments/w/scale",
            "w",
            "update",
            "deployments/scale.apps",
            "{}",
        ),
        ("GET", "/apis/no.such/v1/things", "", "list", "things.no.such", ""),
    ],
)
def test_what_no_rule_allows_is_forbidden(
    reader: ApiClient,
    space: str,
    method: str,
    path: str,
    name: str,
    verb: str,
    resource: str,
    namespace: str,
) -> None:
    """`resource` is written `plural[/subresource][.group]`."""
    answer = reader.ask(
        method, path.format(space), {} if method in ("POST", "PUT", "PATCH") else None
    )
    assert (answer.status, answer.reason) == (403, "Forbidden")
    place, _, group = resource.partition(".")
    subject = (
        place.partition("/")[0]
        + (f".{group}" if group else "")
        + ((f' "{name.format(space)}"') if name else "")
    )
    where = f'in the namespace "{namespace.format(space)}"' if namespace else "at the cluster scope"
    assert answer.message == (
        f'{subject} is forbidden: User "rita" cannot {verb} resource "{place}" in API group '
        f'"{group}" {where}'
    )


@pytest.mark.parametrize("path", ["/nowhere", "/metrics"])
def test_paths_are_forbidden_too(reader: ApiClient, path: str) -> None:
    answer = reader.get(path)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == f'forbidden: User "rita" cannot get path "{path}"'


def test_everybody_who_is_known_may_look_what_is_served(reader: ApiClient) -> None:
    assert [
        reader.get(path).status
        for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version")
    ] == [200] * 5


def test_no_user_may_look(api: ApiClient) -> None:
    answer = api.as_stranger().get("/api/v1/namespaces/default/pods/a/log")
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        'pods "a" is forbidden: User "system:anonymous" cannot get resource "pods/log" in API '
        'group "" in the namespace "default"'
    )
    assert api.as_stranger().get("/apis").message == (
        'forbidden: User "system:anonymous" cannot get path "/apis"'
    )


def test_an_apply_that_makes_the_object_takes_the_right_to_create(
    api: ApiClient, space: str
) -> None:
    made(api.post(roles(space), role("patcher", rule("patch get", "configmaps"))))
    made(api.post(bindings(space), binding("patcher", "patcher", "paul")))
    until_allowed(api, "paul", "patch", "configmaps", space)
    api.post(config_maps(space), config_map("there"))
    paul = api.as_user("paul")
    assert (
        paul.patch(
            config_maps(space, "there"), config_map("there"), APPLY, fieldManager="t", force="true"
        ).status
        == 200
    )
    refused = paul.patch(config_maps(space, "new"), config_map("new"), APPLY, fieldManager="t")
    assert (refused.status, refused.message) == (
        403,
        (
            'configmaps "new" is forbidden: User "paul" cannot create resource "configmaps" in '
            f'API group "" in the namespace "{space}"'
        ),
    )


def test_a_name_in_a_rule_is_that_object_alone(api: ApiClient, space: str) -> None:
    made(
        api.post(
            roles(space),
            role("one", rule("get update list", "configmaps", resourceNames=["mine"])),
        )
    )
    made(api.post(bindings(space), binding("one", "one", "nina")))
    until_allowed(api, "nina", "get", "configmaps", space, name="mine")
    nina = api.as_user("nina")
    api.post(config_maps(space), config_map("mine"))
    assert [nina.get(config_maps(space, name)).status for name in ("mine", "theirs")] == [200, 403]
    assert nina.get(config_maps(space)).status == 403
    assert nina.get(config_maps(space), fieldSelector="metadata.name=mine").status == 200


def test_a_cluster_role_in_a_role_binding_is_for_its_namespace(api: ApiClient, space: str) -> None:
    made(api.post(bindings(space), binding("viewer", "view", "vera", "ClusterRole")))
    until_allowed(api, "vera", "list", "deployments", space, group="apps")
    vera = api.as_user("vera")
    assert vera.get(deployments(space)).status == 200
    assert vera.get(deployments("default")).status == 403
    assert vera.get(f"/api/v1/namespaces/{space}/secrets").status == 403
    assert vera.post(deployments(space), deployment()).status == 403


def test_what_is_taken_back_is_gone(api: ApiClient, reader: ApiClient, space: str) -> None:
    api.delete(bindings(space, "reader"))
    until("the right is gone", lambda: reader.get(pods(space)).status == 403)


def test_a_role_that_does_not_exist_is_named_in_the_refusal(api: ApiClient, space: str) -> None:
    made(api.post(bindings(space), binding("ghost", "never-made", "gina")))
    wanted = (
        'pods is forbidden: User "gina" cannot list resource "pods" in API group "" in the '
        f'namespace "{space}": '
        'RBAC: role.rbac.authorization.k8s.io "never-made" not found'
    )
    gina = api.as_user("gina")
    until("the refusal names the role", lambda: gina.get(pods(space)).message == wanted)
    status = made(
        gina.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": space}})
    )["status"]
    assert status["evaluationError"] == 'role.rbac.authorization.k8s.io "never-made" not found'
    made(api.post(roles(space), role("creator", rule("create", "roles", [rights.GROUP]))))
    made(api.post(bindings(space), binding("creator", "creator", "gina")))
    until_allowed(api, "gina", "create", "roles", space, group=rights.GROUP)
    refused = gina.post(roles(space), role("r", rule("get", "pods")))
    assert refused.message.endswith(
        'not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}; resolution '
        "errors: "
        '[roles.rbac.authorization.k8s.io "never-made" not found]'
    )


def test_a_researcher_reads_the_own_namespace_whole_and_no_pod_elsewhere(
    api: ApiClient, space: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What `fairlead quota why` reads: pods, and each kind that may own them."""
    allowed = people_rights.ROLES[people_rights.RESEARCHER_ROLE]
    rules = [rule(" ".join(each.verbs), " ".join(each.resources), each.groups) for each in allowed]
    made(api.post(roles(space), role("researcher", *rules)))
    made(api.post(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "bob"}}))
    made(api.post(bindings(space), binding("researcher", "researcher", f"{space}/bob")))
    until_allowed(api, f"system:serviceaccount:{space}:bob", "list", "pods", space)
    api.post(pods(space), pod("a"))
    api.post(deployments(space), deployment("web"))
    token = token_of(api, space, "bob")

    with KubeBlocking(connection_with(api.kubeconfig, token, tmp_path)) as blocking:
        query = ClusterQuery(blocking)
        whole = query.read_all(with_warnings=False)
        assert whole.sources["pods"].is_forbidden
        assert caplog.messages == []
        part = query.read_namespace(space)
        with pytest.raises(Forbidden, match=r'cannot list resource "pods".* namespace "default"'):
            query.read_namespace("default")
    assert [each.name for each in part.pods] == ["a"]
    assert ("Deployment", "web") in {(each.kind, each.name) for each in part.workloads}
    assert {"pods", "events", "jobs.batch", "replicasets"} <= part.sources.keys()
    assert [each for each in part.sources.values() if each.is_unread] == []


def connection_with(kubeconfig: Path, token: str, folder: Path) -> Connection:
    """To the same server with another credential."""
    document = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    document["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    found = find_connection(str(path), env={})
    assert found is not None
    return found


# --- roles and bindings as objects ----------------------------------------------------------------


def test_rights_one_has_may_be_given_away(owner: ApiClient, space: str) -> None:
    assert (
        owner.post(
            roles(space),
            role("r", rule("get list", "pods"), rule("update", "deployments/scale", ["apps"])),
        ).status
        == 201
    )
    assert owner.post(bindings(space), binding("r", "r", "bob")).status == 201
    assert owner.post(bindings(space), binding("v", "view", "bob", "ClusterRole")).status == 201


def test_rights_one_lacks_may_not(owner: ApiClient, space: str) -> None:
    wanted = role(
        "r",
        rule("get list", "nodes pods/status pods", ["", "x"]),
        rule("get", "nodes", resourceNames=["a", "b"]),
    )
    answer = owner.post(roles(space), wanted)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "olga" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC '
        "permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], ResourceNames:["a"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["nodes"], ResourceNames:["b"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}\n'
        '{APIGroups:["x"], Resources:["nodes"], Verbs:["get" "list"]}\n'
        '{APIGroups:["x"], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{APIGroups:["x"], Resources:["pods/status"], Verbs:["get" "list"]}'
    )


def test_nor_be_bound(owner: ApiClient, space: str) -> None:
    answer = owner.post(bindings(space), binding("x", "cluster-admin", "olga", "ClusterRole"))
    assert answer.status == 403
    assert answer.message == (
        'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "olga" '
        '(groups=["system:authenticated"]) is attempting to grant '
        'RBAC permissions not currently held:\n{APIGroups:["*"], Resources:["*"], '
        'Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
    )
    answer = owner.post(bindings(space), binding("x", "nowhere", "olga", "ClusterRole"))
    assert (answer.status, answer.message) == (
        404,
        ('rolebindings.rbac.authorization.k8s.io "nowhere" not found'),
    )


def test_nor_come_in_by_an_update(api: ApiClient, owner: ApiClient, space: str) -> None:
    made(api.post(roles(space), role("r", rule("get", "nodes"))))
    # the patch changes no rights
    assert owner.patch(roles(space, "r"), {"metadata": {"finalizers": []}}).status == 200
    refused = owner.patch(
        roles(space, "r"), [{"op": "add", "path": "/rules/0/verbs/-", "value": "list"}], JSON_PATCH
    )
    assert (
        refused.status == 403
        and ('{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}') in refused.message
    )
    assert owner.patch(roles(space, "r"), {"rules": [rule("get", "pods")]}).status == 200


def test_a_user_that_may_escalate_or_bind_may(api: ApiClient, space: str) -> None:
    group = [rights.GROUP]
    rules = (
        rule("create escalate", "roles", group),
        rule("create", "rolebindings", group),
        rule("bind", "clusterroles", group, resourceNames=["admin"]),
    )
    made(api.post(roles(space), role("boss", *rules)))
    made(api.post(bindings(space), binding("boss", "boss", "ben")))
    until_allowed(api, "ben", "create", "roles", space, group=rights.GROUP)
    ben = api.as_user("ben")
    assert ben.post(roles(space), role("all", rule("*", "*", ["*"]))).status == 201
    assert ben.post(bindings(space), binding("a", "admin", "bob", "ClusterRole")).status == 201
    assert ben.post(bindings(space), binding("e", "edit", "bob", "ClusterRole")).status == 403


def test_only_a_user_that_may_do_everything_gathers_roles(api: ApiClient, space: str) -> None:
    name = f"maker-{space}"
    made(
        api.post(f"{RBAC}/clusterroles", role(name, rule("create", "clusterroles", [rights.GROUP])))
    )
    made(api.post(f"{RBAC}/clusterrolebindings", binding(name, name, "mia", "ClusterRole")))
    until_allowed(api, "mia", "create", "clusterroles", group=rights.GROUP)
    gathers = {"clusterRoleSelectors": [{"matchLabels": {"never": space}}]}
    answer = api.as_user("mia").post(
        f"{RBAC}/clusterroles", role(f"all-{space}", aggregationRule=gathers)
    )
    message = (
        f'clusterroles.rbac.authorization.k8s.io "all-{space}" is forbidden: must have '
        "cluster-admin privileges to use the aggregationRule"
    )
    assert (answer.status, answer.message) == (403, message)


def test_a_gathered_role_has_the_rules_of_its_parts(api: ApiClient, space: str) -> None:
    gathers = {"clusterRoleSelectors": [{"matchLabels": {"part-of": space}}]}
    made(api.post(f"{RBAC}/clusterroles", role(f"whole-{space}", aggregationRule=gathers)))
    for number, verb in enumerate(("get", "list")):
        part = role(f"part-{number}-{space}", rule(verb, "things", ["x"]))
        made(
            api.post(
                f"{RBAC}/clusterroles",
                {**part, "metadata": {**part["metadata"], "labels": {"part-of": space}}},
            )
        )
    path = f"{RBAC}/clusterroles/whole-{space}"
    until(
        "both rules are there",
        lambda: (
            api.get(path).body["rules"]
            == [rule("get", "things", ["x"]), rule("list", "things", ["x"])]
        ),
    )
    api.delete(f"{RBAC}/clusterroles/part-0-{space}")
    until("one is gone", lambda: api.get(path).body["rules"] == [rule("list", "things", ["x"])])


@pytest.mark.parametrize("change", [{"name": "other"}, {"kind": "ClusterRole"}])
def test_the_role_of_a_binding_stays(api: ApiClient, space: str, change: dict[str, str]) -> None:
    made(api.post(bindings(space), binding("b", "r", "bob")))
    answer = api.patch(bindings(space, "b"), {"roleRef": change})
    reported = {
        "APIGroup": rights.GROUP,
        "Kind": change.get("kind", "Role"),
        "Name": change.get("name", "r"),
    }
    shown = "{" + ",".join(f'"{key}":"{value}"' for key, value in reported.items()) + "}"
    message = (
        f'RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef: Invalid value: {shown}: '
        "cannot change roleRef"
    )
    assert (answer.status, answer.message) == (422, message)


def test_a_binding_is_completed(api: ApiClient, space: str) -> None:
    body = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "Group", "name": "g"}],
    }
    stored = made(api.post(bindings(space), body))
    assert stored["roleRef"]["apiGroup"] == stored["subjects"][0]["apiGroup"] == rights.GROUP
    assert api.put(
        bindings(space, "b"), {**body, "subjects": [{"kind": "User", "name": "u"}]}
    ).body["subjects"] == [{"kind": "User", "name": "u", "apiGroup": rights.GROUP}]


_FAULTY: list[tuple[str, dict[str, Any]]] = [
    (
        "rolebindings",
        {
            "roleRef": {"kind": "Thing", "name": ""},
            "subjects": [{"kind": "User"}, {"kind": "What", "name": "x"}],
        },
    ),
    (
        "rolebindings",
        {
            "roleRef": {"apiGroup": "x", "kind": "Role", "name": "a/b"},
            "subjects": [{"kind": "ServiceAccount", "name": "s", "apiGroup": "a"}],
        },
    ),
    (
        "rolebindings",
        {
            "roleRef": {"kind": "Role", "name": ".."},
            "subjects": [{"kind": "ServiceAccount", "name": "Not_a_name"}],
        },
    ),
    (
        "rolebindings",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "Group", "name": "g", "apiGroup": "no"}],
        },
    ),
    (
        "clusterrolebindings",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "s"}],
        },
    ),
    (
        "roles",
        {"rules": [{}, {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}]},
    ),
    ("roles", {"rules": [{"verbs": ["get"], "apiGroups": [""]}]}),
    ("clusterroles", {"rules": [{"nonResourceURLs": ["/x"]}], "aggregationRule": {}}),
]


@pytest.mark.parametrize(("plural", "body"), _FAULTY)
def test_faults_are_reported_in_the_same_words(
    both: tuple[ApiClient, ApiClient], plural: str, body: dict[str, Any]
) -> None:
    scope = RBAC if plural.startswith("cluster") else f"{RBAC}/namespaces/default"
    simulated, real = (
        api.post(f"{scope}/{plural}", {"metadata": {"name": "faulty"}, **body}) for api in both
    )
    assert (simulated.status, simulated.message, simulated.body["details"]) == (
        422,
        real.message,
        real.body["details"],
    )


# --- objects that exist from the start ------------------------------------------------------------


def test_the_bootstrap_roles_are_the_real_ones(both: tuple[ApiClient, ApiClient]) -> None:
    simulated, real = both
    for plural in ("clusterroles", "clusterrolebindings"):
        found = {
            item["metadata"]["name"]: item
            for item in simulated.get(f"{RBAC}/{plural}").body["items"]
        }
        own = {
            name: item
            for name, item in found.items()
            if "kubernetes.io/bootstrapping" in item["metadata"].get("labels", {})
        }
        assert {
            "cluster-admin",
            "system:basic-user",
            "system:discovery",
            "system:public-info-viewer",
        } <= set(own)
        for name, item in own.items():
            theirs = real.get(f"{RBAC}/{plural}/{name}").body
            for field in ("labels", "annotations"):
                assert item["metadata"].get(field) == theirs["metadata"].get(field), name
            for field in ("rules", "aggregationRule", "roleRef", "subjects"):
                assert item.get(field) == theirs.get(field), f"{name}: {field}"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_namespaces_that_stay(api: ApiClient, name: str) -> None:
    answer = api.delete(f"/api/v1/namespaces/{name}")
    assert (answer.status, answer.message) == (
        403,
        (f'namespaces "{name}" is forbidden: this namespace may not be deleted'),
    )


# --- reviews of access ----------------------------------------------------------------------------


def test_a_review_names_the_binding(api: ApiClient, reader: ApiClient, space: str) -> None:
    status = ask_for(api, "rita", "get", "pods", space)
    assert status == {
        "allowed": True,
        "reason": (
            f'RBAC: allowed by RoleBinding "reader/{space}" of Role "reader" to User "rita"'
        ),
    }
    assert ask_for(api, "rita", "get", "secrets", space) == {"allowed": False}
    assert ask_for(api, "anybody", "get", "secrets", groups=["system:masters"]) == {"allowed": True}


def test_one_asks_for_oneself(reader: ApiClient, space: str) -> None:
    def may(verb: str, resource: str) -> bool:
        spec = {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": space}}
        return bool(
            made(reader.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": spec}))[
                "status"
            ]["allowed"]
        )

    assert [may("list", "pods"), may("delete", "pods"), may("list", "secrets")] == [
        True,
        False,
        False,
    ]
    path = {"nonResourceAttributes": {"path": "/apis/x", "verb": "get"}}
    assert (
        made(reader.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": path}))["status"][
            "allowed"
        ]
        is True
    )


def test_asking_for_others_takes_a_right(reader: ApiClient) -> None:
    spec = {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    assert reader.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec}).status == 403


def test_a_local_review_is_for_its_namespace(owner: ApiClient, space: str) -> None:
    path = f"{AUTHORIZATION}/namespaces/{space}/localsubjectaccessreviews"
    attributes = {"verb": "get", "resource": "pods", "namespace": space}
    assert (
        made(owner.post(path, {"spec": {"user": "olga", "resourceAttributes": attributes}}))[
            "status"
        ]["allowed"]
        is True
    )
    elsewhere = {**attributes, "namespace": "default"}
    assert owner.post(
        path, {"spec": {"user": "olga", "resourceAttributes": elsewhere}}
    ).message.endswith("must match metadata.namespace")


def test_the_rules_one_has(reader: ApiClient, space: str) -> None:
    status = made(
        reader.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": space}})
    )["status"]
    assert {
        "verbs": ["get", "list", "watch"],
        "apiGroups": [""],
        "resources": ["pods", "pods/log"],
    } in status["resourceRules"]
    assert any("/openapi/*" in item["nonResourceURLs"] for item in status["nonResourceRules"])
    assert status["incomplete"] is False
    assert len(status["resourceRules"]) == 3  # its own, and the two of system:basic-user


_QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("subjectaccessreviews", {"spec": {}}),
    ("selfsubjectaccessreviews", {"metadata": {"name": "x"}, "spec": {}}),
    (
        "selfsubjectaccessreviews",
        {
            "spec": {
                "resourceAttributes": {},
                "nonResourceAttributes": {"path": "/x", "verb": "get"},
            }
        },
    ),
    (
        "namespaces/default/localsubjectaccessreviews",
        {"spec": {"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods"}}},
    ),
    (
        "namespaces/default/localsubjectaccessreviews",
        {"metadata": {"namespace": "x"}, "spec": {"user": "a", "resourceAttributes": {}}},
    ),
    (
        "namespaces/default/localsubjectaccessreviews",
        {"spec": {"user": "a", "nonResourceAttributes": {"verb": "get", "path": "/x"}}},
    ),
    ("selfsubjectrulesreviews", {"spec": {}}),
    (
        "selfsubjectrulesreviews",
        {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"},
    ),
]


@pytest.mark.parametrize(("plural", "body"), _QUESTIONS)
def test_a_question_that_makes_no_sense(
    both: tuple[ApiClient, ApiClient], plural: str, body: dict[str, Any]
) -> None:
    simulated, real = (api.post(f"{AUTHORIZATION}/{plural}", body) for api in both)
    assert (simulated.status, simulated.message) == (real.status, real.message)
    assert simulated.body.get("details") == real.body.get("details")
    assert simulated.status >= 400


def test_questions_are_not_kept(api: ApiClient) -> None:
    assert api.get(f"{AUTHORIZATION}/selfsubjectaccessreviews").status == 405


# --- the evaluator against the real one -----------------------------------------------------------

_VERBS = ("get", "list", "create", "delete", "*")
_GROUPS = ("", "apps", "batch", "*")
_RESOURCES = (
    "pods",
    "pods/log",
    "pods/status",
    "deployments",
    "deployments/status",
    "*/status",
    "*/log",
    "jobs",
    "*",
)
_NAMES = ("a", "b")
_URLS = ("/healthz", "/healthz/*", "/api/*", "/a*", "*", "/x/y")
ROLES, QUESTIONS = 30, 20


def _some(dice: random.Random, choices: tuple[str, ...], most: int = 2) -> list[str]:
    return sorted(dice.sample(choices, dice.randint(1, most)))


def _random_rule(dice: random.Random) -> dict[str, Any]:
    if dice.random() < 0.2:
        return {"verbs": _some(dice, ("get", "post", "*")), "nonResourceURLs": _some(dice, _URLS)}
    names = {"resourceNames": _some(dice, _NAMES, 1)} if dice.random() < 0.3 else {}
    return {
        "verbs": _some(dice, _VERBS),
        "apiGroups": _some(dice, _GROUPS),
        "resources": _some(dice, _RESOURCES, 3),
        **names,
    }


def _random_request(dice: random.Random) -> AccessRequest:
    if dice.random() < 0.2:
        return AccessRequest(
            dice.choice(("get", "post")),
            path=dice.choice(("/healthz", "/healthz/x", "/api", "/api/v1", "/x/y", "/x/yz")),
        )
    return AccessRequest(
        dice.choice(_VERBS[:-1]),
        dice.choice(_GROUPS[:-1]),
        dice.choice(("pods", "deployments", "jobs")),
        dice.choice(("", "", "status", "log")),
        namespace=dice.choice(("", "default")),
        name=dice.choice(("", "a", "b")),
    )


def _asked_of(api: ApiClient, user: str, request: AccessRequest) -> bool:
    if request.path:
        about: dict[str, Any] = {
            "nonResourceAttributes": {"path": request.path, "verb": request.verb}
        }
    else:
        fields = ("verb", "group", "resource", "subresource", "namespace", "name")
        about = {"resourceAttributes": {field: getattr(request, field) for field in fields}}
    return bool(
        made(api.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {"user": user, **about}}))[
            "status"
        ]["allowed"]
    )


def test_the_rules_are_read_as_the_real_server_reads_them(request: pytest.FixtureRequest) -> None:
    """Random rules and requests; the pure evaluator alone is compared, so one real server is
    enough.
    """
    api = ApiClient("real", request.getfixturevalue("control_plane").kubeconfig)
    dice = random.Random("rights")
    decided = []
    for number in range(ROLES):
        name, user = f"drawn-{number}", f"drawn-user-{number}"
        rules = [_random_rule(dice) for _ in range(dice.randint(1, 3))]
        marked = [*rules, {"verbs": ["drawn"], "apiGroups": ["drawn"], "resources": ["drawn"]}]
        made(api.post(f"{RBAC}/clusterroles", role(name, *marked)))
        made(api.post(f"{RBAC}/clusterrolebindings", binding(name, name, user, "ClusterRole")))
        until_allowed(api, user, "drawn", "drawn", group="drawn")
        bound = Binding(name, "", "ClusterRole", name, (BindingSubject("User", user),))
        policy = Policy({("", name): parse_rules({"rules": rules})}, [bound])
        for _ in range(QUESTIONS):
            asked = _random_request(dice)
            own = judge(Identity(user), asked, policy).is_allowed
            assert own is _asked_of(api, user, asked), f"{asked} under {rules}"
            decided.append(own)
    assert 0.1 < sum(decided) / len(decided) < 0.9, "the draw decides nothing"
