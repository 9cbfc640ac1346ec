"""Real kubectl on the simulated API asks for its user and its rights: `auth`, `create token`,
`--as`, a kubeconfig with a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.contracts.simulated import SimulatedServer, simulated_server
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.programs import program
from tests.kube.servers import run_arena

from fairlead.edge.files.clock import WallClock
from fairlead_sim.access.roles import install_operator_roles


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    with simulated_server(tmp_path_factory.mktemp("access"), WallClock()) as running:
        running.do(lambda cluster: install_operator_roles(cluster, 0))
        yield running


@pytest.fixture(scope="module")
def kubectl(server: SimulatedServer) -> Kubectl:
    """kubectl as the administrator; the ServiceAccount `team/ci` may edit its namespace, and user
    `rita` may read pods there.
    """
    admin = Kubectl(program("kubectl"), server.kubeconfig, server.kubeconfig.parent)
    admin.run("create", "namespace", "team")
    admin.run("create", "serviceaccount", "ci", "-n", "team")
    admin.run(
        "create",
        "rolebinding",
        "ci",
        "-n",
        "team",
        "--clusterrole=edit",
        "--serviceaccount=team:ci",
    )
    admin.run(
        "create", "role", "reader", "-n", "team", "--verb=get,list", "--resource=pods,pods/log"
    )
    admin.run("create", "rolebinding", "reader", "-n", "team", "--role=reader", "--user=rita")
    return admin


@pytest.fixture(scope="module")
def ci(
    kubectl: Kubectl, server: SimulatedServer, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    """kubectl with a token of `team/ci` and nothing else."""
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["users"][0]["user"] = {
        "token": kubectl.run("create", "token", "ci", "-n", "team", "--duration=1h").strip()
    }
    document["contexts"][0]["context"]["namespace"] = "team"
    folder = tmp_path_factory.mktemp("ci")
    (folder / "config").write_text(yaml.safe_dump(document))
    return Kubectl(program("kubectl"), folder / "config", folder)


def rows(text: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


def test_whoami(kubectl: Kubectl, ci: Kubectl) -> None:
    assert rows(kubectl.run("auth", "whoami"))[1:] == [
        ["Username", "fairlead-admin"],
        ["Groups", "[system:masters system:authenticated]"],
    ]
    reported = json.loads(ci.run("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert reported["username"] == "system:serviceaccount:team:ci"
    assert reported["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:team",
        "system:authenticated",
    ]
    assert rows(kubectl.run("auth", "whoami", "--as", "bob", "--as-group", "dev"))[1:] == [
        ["Username", "bob"],
        ["Groups", "[dev system:authenticated]"],
    ]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("list pods -n team --as rita", "yes"),
        ("get pods --subresource=log -n team --as rita", "yes"),
        ("get pods/a -n team --as rita", "yes"),
        ("delete pods -n team --as rita", "no"),
        ("list pods --as rita", "no"),
        ("list pods -A --as rita", "no"),
        ("get /apis --as rita", "yes"),
        ("get /metrics --as rita", "no"),
        ("create deployments.apps -n team --as system:serviceaccount:team:ci", "yes"),
        ("create roles -n team --as system:serviceaccount:team:ci", "no"),
        ("'*' '*' -A", "yes"),
        ("impersonate users --as rita", "no"),
    ],
)
def test_can_i(kubectl: Kubectl, question: str, answer: str) -> None:
    words = [word.strip("'") for word in question.split()]
    if answer == "yes":
        assert kubectl.run("auth", "can-i", *words).strip() == "yes"
    else:
        with pytest.raises(KubectlError):  # it prints `no` and ends with status 1
            kubectl.run("auth", "can-i", *words)


def test_can_i_list(ci: Kubectl, kubectl: Kubectl) -> None:
    table = {row[0]: row for row in rows(ci.run("auth", "can-i", "--list")) if row[0] != "[]"}
    assert table["deployments.apps"][-1] == (
        "[create delete deletecollection patch update get list watch]"
    )
    assert (
        "selfsubjectreviews.authentication.k8s.io" in table
        and "roles.rbac.authorization.k8s.io" not in table
    )
    assert ["*.*", "[]", "[]", "[*]"] in rows(kubectl.run("auth", "can-i", "--list"))


def test_a_token_works_as_far_as_its_rights_go(ci: Kubectl) -> None:
    ci.run("create", "configmap", "mine", "--from-literal=a=b")
    assert ci.run("get", "configmaps", "-o", "name").split() == [
        "configmap/kube-root-ca.crt",
        "configmap/mine",
    ]
    ci.run(
        "apply",
        "--server-side",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}),
    )
    with pytest.raises(KubectlError) as refused:
        ci.run("get", "nodes")
    assert str(refused.value).endswith(
        "Error from server (Forbidden): nodes is forbidden: User "
        '"system:serviceaccount:team:ci" cannot list resource "nodes" in API group '
        '"" at the cluster scope'
    )
    with pytest.raises(KubectlError, match=r"cannot create resource .rolebindings."):
        ci.run("create", "rolebinding", "more", "--clusterrole=admin", "--serviceaccount=team:ci")


def test_acting_as_another_user_takes_a_right(ci: Kubectl) -> None:
    """`edit` may act as the accounts of its namespace, and as no other user."""
    assert rows(ci.run("auth", "whoami", "--as", "system:serviceaccount:team:default"))[1] == [
        "Username",
        "system:serviceaccount:team:default",
    ]
    with pytest.raises(KubectlError, match="cannot impersonate-on:user-info"):
        ci.run("get", "pods", "--as", "bob")


def test_tokens_that_cannot_be_had(kubectl: Kubectl, ci: Kubectl) -> None:
    with pytest.raises(KubectlError, match="may not specify a duration less than 10 minutes"):
        kubectl.run("create", "token", "ci", "-n", "team", "--duration=1m")
    with pytest.raises(KubectlError, match='serviceaccounts "absent" not found'):
        kubectl.run("create", "token", "absent")
    with pytest.raises(KubectlError, match='cannot create resource "serviceaccounts/token"'):
        ci.run("create", "token", "default", "-n", "default")
    with pytest.raises(KubectlError, match='secrets "none" not found'):
        ci.run(
            "create", "token", "default", "--bound-object-kind=Secret", "--bound-object-name=none"
        )


def test_a_revoked_token_opens_nothing(
    kubectl: Kubectl, server: SimulatedServer, tmp_path: Path
) -> None:
    kubectl.run("create", "serviceaccount", "short", "-n", "team")
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["users"][0]["user"] = {
        "token": kubectl.run("create", "token", "short", "-n", "team").strip()
    }
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    short = Kubectl(program("kubectl"), tmp_path / "config", tmp_path)
    assert "system:serviceaccount:team:short" in short.run("auth", "whoami")
    kubectl.run("delete", "serviceaccount", "short", "-n", "team")
    kubectl.run("create", "serviceaccount", "short", "-n", "team")
    with pytest.raises(KubectlError, match="You must be logged in to the server"):
        short.run("auth", "whoami")


def test_an_editor_submits_and_lists_jobs(ci: Kubectl) -> None:
    """The role `edit` aggregates those of the operators, too."""
    run_arena(
        "submit",
        "mpijob",
        "--name=m",
        "--gpus=1",
        "--workers=1",
        "--image=x",
        "sleep 5",
        "-n",
        "team",
        kubeconfig=ci.kubeconfig,
    )
    assert run_arena("list", "-n", "team", kubeconfig=ci.kubeconfig).splitlines()[1].split()[
        :2
    ] == ["m", "PENDING"]
    run_arena("delete", "m", "-n", "team", kubeconfig=ci.kubeconfig)
    with pytest.raises(
        AssertionError,
        match="the user has no privileges to list the training jobs in namespace default",
    ):
        run_arena("list", "-n", "default", kubeconfig=ci.kubeconfig)


def test_the_questions_are_served_for_discovery(kubectl: Kubectl) -> None:
    names = kubectl.run("api-resources", "-o", "name", "--verbs=create").split()
    assert {
        "selfsubjectreviews.authentication.k8s.io",
        "tokenreviews.authentication.k8s.io",
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
    } <= set(names)


def test_auth_reconcile(kubectl: Kubectl) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "grown", "namespace": "team"},
    }
    first = {**role, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
    second = {**role, "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]}
    kubectl.run("auth", "reconcile", "-f", "-", stdin=json.dumps(first))
    kubectl.run("auth", "reconcile", "-f", "-", stdin=json.dumps(second))
    rules = json.loads(kubectl.run("get", "role", "grown", "-n", "team", "-o", "json"))["rules"]
    assert sorted(verb for rule in rules for verb in rule["verbs"]) == ["get", "list"]
