"""Which users may do what: rules, bindings, and missing roles. tests/contracts/test_access.py
compares the same evaluator with a real server.
"""

from __future__ import annotations

import pytest

from fairlead.model.access import (
    AUTHENTICATED,
    MASTERS,
    AccessRequest,
    Binding,
    BindingSubject,
    Identity,
    PolicyRule,
    named_account,
)
from fairlead_sim.access.judge import EVERYTHING, Policy, allows, judge, uncovered

PODS = PolicyRule(verbs=("get", "list"), groups=("",), resources=("pods",))
ALICE = Identity("alice", groups=("dev", AUTHENTICATED))


def get(
    resource: str = "pods",
    subresource: str = "",
    *,
    group: str = "",
    namespace: str = "a",
    name: str = "",
) -> AccessRequest:
    return AccessRequest("get", group, resource, subresource, namespace, name)


def bound(
    subject: BindingSubject, namespace: str = "a", kind: str = "Role", role: str = "reader"
) -> Binding:
    return Binding("b", namespace, kind, role, (subject,))


def policy(*bindings: Binding) -> Policy:
    """Role `reader` in namespace `a`, and ClusterRole `reader`, which also lists nodes."""
    nodes = PolicyRule(verbs=("list",), groups=("",), resources=("nodes",))
    return Policy({("a", "reader"): (PODS,), ("", "reader"): (PODS, nodes)}, bindings)


@pytest.mark.parametrize(
    ("rule", "request_", "is_allowed"),
    [
        pytest.param(PODS, get(), True, id="the resource"),
        pytest.param(PODS, get(name="x"), True, id="any name of it"),
        pytest.param(PODS, get("nodes"), False, id="another resource"),
        pytest.param(PODS, get(group="metrics.k8s.io"), False, id="the same name in another group"),
        pytest.param(PODS, get("pods", "log"), False, id="a resource is not its subresources"),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods/log",)),
            get(),
            False,
            id="a subresource is not its resource",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("*/log",)),
            get("pods", "log"),
            True,
            id="that subresource of everything",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("*/log",)),
            get("pods", "status"),
            False,
            id="another subresource",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods/*",)),
            get("pods", "log"),
            False,
            id="there is no such star",
        ),
        pytest.param(
            PolicyRule(("*",), ("*",), ("*",)), get("pods", "log", group="x"), True, id="everything"
        ),
        pytest.param(
            PolicyRule(("*",), ("*",), ("*",)),
            AccessRequest("get", path="/x"),
            False,
            id="but no path",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",), ("x",)),
            get(name="x"),
            True,
            id="the named one",
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",), ("x",)), get(name="y"), False, id="another one"
        ),
        pytest.param(
            PolicyRule(("get",), ("",), ("pods",), ("x",)),
            get(),
            False,
            id="all are more than the named one",
        ),
        pytest.param(
            PolicyRule(("get",), urls=("/api/*",)),
            AccessRequest("get", path="/api/v1"),
            True,
            id="paths below",
        ),
        pytest.param(
            PolicyRule(("get",), urls=("/api/*",)),
            AccessRequest("get", path="/api"),
            False,
            id="not the path itself",
        ),
        pytest.param(
            PolicyRule(("get",), urls=("/a",)),
            AccessRequest("post", path="/a"),
            False,
            id="another verb on a path",
        ),
    ],
)
def test_one_rule(rule: PolicyRule, request_: AccessRequest, is_allowed: bool) -> None:
    assert allows(rule, request_) is is_allowed


@pytest.mark.parametrize(
    ("who", "subject", "is_bound"),
    [
        pytest.param(ALICE, BindingSubject("User", "alice"), True, id="a user by name"),
        pytest.param(ALICE, BindingSubject("Group", "dev"), True, id="by a group"),
        pytest.param(ALICE, BindingSubject("User", "dev"), False, id="a group's name is no user"),
        pytest.param(
            ALICE, BindingSubject("Group", "alice"), False, id="a user's name is no group"
        ),
        pytest.param(
            Identity("system:serviceaccount:a:ci"),
            BindingSubject("ServiceAccount", "ci", "a"),
            True,
            id="an account",
        ),
        pytest.param(
            Identity("system:serviceaccount:a:ci"),
            BindingSubject("ServiceAccount", "ci"),
            True,
            id="of the binding's namespace",
        ),
        pytest.param(
            Identity("system:serviceaccount:b:ci"),
            BindingSubject("ServiceAccount", "ci"),
            False,
            id="of another namespace",
        ),
        pytest.param(
            Identity("system:serviceaccount:a:ci"),
            BindingSubject("User", "system:serviceaccount:a:ci"),
            True,
            id="an account as user",
        ),
    ],
)
def test_the_pod_a_binding_is_for(who: Identity, subject: BindingSubject, is_bound: bool) -> None:
    assert judge(who, get(), policy(bound(subject))).is_allowed is is_bound


def test_a_binding_is_for_its_namespace_and_a_cluster_binding_for_all() -> None:
    alice = BindingSubject("User", "alice")
    local, everywhere = policy(bound(alice)), policy(bound(alice, "", "ClusterRole"))
    assert [judge(ALICE, get(namespace=place), local).is_allowed for place in ("a", "b", "")] == [
        True,
        False,
        False,
    ]
    assert [
        judge(ALICE, get(namespace=place), everywhere).is_allowed for place in ("a", "b", "")
    ] == [True, True, True]
    cluster_role_here = policy(bound(alice, "a", "ClusterRole"))
    assert [
        judge(ALICE, get(namespace=place), cluster_role_here).is_allowed for place in ("a", "b", "")
    ] == [True, False, False]


def test_the_judgement_names_the_binding() -> None:
    account = Identity("system:serviceaccount:a:ci")
    local = policy(bound(BindingSubject("ServiceAccount", "ci")))
    assert judge(account, get(), local).reason == (
        'RBAC: allowed by RoleBinding "b/a" of Role "reader" to ServiceAccount "ci/a"'
    )
    everywhere = policy(bound(BindingSubject("Group", "dev"), "", "ClusterRole"))
    assert judge(ALICE, get(), everywhere).reason == (
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to Group "dev"'
    )


def test_missing_roles_are_reported_once_each_and_only_to_the_refused_user() -> None:
    alice = BindingSubject("User", "alice")
    ghosts = [bound(alice, role="x"), bound(alice, role="x"), bound(alice, "", "ClusterRole", "y")]
    x, y = (
        (f'{kind}.rbac.authorization.k8s.io "{name}" not found')
        for kind, name in (("role", "x"), ("clusterrole", "y"))
    )
    assert judge(ALICE, get(), policy(*ghosts)).reason == f"RBAC: [{y}, {x}]"
    assert judge(ALICE, get(), policy(ghosts[0])).reason == f"RBAC: {x}"
    assert judge(ALICE, get(), policy(*ghosts, bound(alice))).is_allowed
    assert judge(Identity("bob"), get(), policy(*ghosts)).reason == ""


def test_masters_need_no_rule() -> None:
    assert judge(Identity("root", groups=(MASTERS,)), get("anything"), Policy({}, ())).is_allowed


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        pytest.param([PODS], PODS, [], id="the same"),
        pytest.param(
            [PODS], PolicyRule(("get",), ("",), ("pods",), ("x",)), [], id="who may all may one"
        ),
        pytest.param(
            [PolicyRule(("get",), ("",), ("pods",), ("x",))],
            PolicyRule(("get",), ("",), ("pods",)),
            ["get"],
            id="not the reverse",
        ),
        pytest.param(
            [PODS],
            PolicyRule(("get", "watch"), ("",), ("pods",)),
            ["watch"],
            id="the verb that is missing",
        ),
        pytest.param(
            [PODS], PolicyRule(("*",), ("",), ("pods",)), ["*"], id="all verbs are more than some"
        ),
        pytest.param(
            [PolicyRule(("get",), ("",), ("pods",)), PolicyRule(("watch",), ("",), ("pods",))],
            PolicyRule(("get", "watch"), ("",), ("pods",)),
            [],
            id="two rules together",
        ),
        pytest.param(
            [PolicyRule(("get",), ("",), ("*/log",))],
            PolicyRule(("get",), ("",), ("pods/log",)),
            [],
            id="a subresource of all",
        ),
        pytest.param(
            [PolicyRule(("get",), ("",), ("pods",))],
            PolicyRule(("get",), ("",), ("pods/log",)),
            ["get"],
            id="no subresource",
        ),
        pytest.param(
            [PolicyRule(("get",), urls=("/api/*",))],
            PolicyRule(("get",), urls=("/api/v1",)),
            [],
            id="a path below",
        ),
        pytest.param(
            [PolicyRule(("get",), urls=("/api",))],
            PolicyRule(("get",), urls=("/api/*",)),
            ["get"],
            id="not the paths below",
        ),
        pytest.param(
            list(EVERYTHING),
            PolicyRule(("*",), ("*",), ("*",)),
            [],
            id="everything covers everything",
        ),
        pytest.param([EVERYTHING[0]], EVERYTHING[1], ["*"], id="all resources are no paths"),
    ],
)
def test_what_one_cannot_give_away(
    held: list[PolicyRule], wanted: PolicyRule, missing: list[str]
) -> None:
    assert [verb for rule in uncovered(held, [wanted]) for verb in rule.verbs] == missing


@pytest.mark.parametrize(
    ("user", "account"),
    [
        ("system:serviceaccount:a:ci", ("a", "ci")),
        ("system:serviceaccount:a:", None),
        ("system:serviceaccount:a", None),
        ("system:serviceaccount:a:b:c", None),
        ("alice", None),
        ("a:b", None),
    ],
)
def test_which_users_are_accounts(user: str, account: tuple[str, str] | None) -> None:
    assert named_account(user) == account
