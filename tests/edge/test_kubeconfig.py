"""Choosing a cluster: the order of sources, merging as in kubectl, and an error with place and hint
for every mistake.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.edge.kubeconfigs import connection_of, encoded, write_kubeconfig
from tests.edge.pki import Authority

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.errors import UserError

CA = Authority()


def test_an_explicit_path_beats_the_variable_beats_home_beats_the_service_account(
    tmp_path: Path,
) -> None:
    paths = {
        name: write_kubeconfig(tmp_path / name, cluster={"server": f"https://{name}"})
        for name in ("flag", "variable")
    }
    write_kubeconfig(tmp_path / ".kube" / "config", cluster={"server": "https://home"})
    pod = tmp_path / "pod"
    pod.mkdir()
    (pod / "token").write_text("t")
    (pod / "ca.crt").write_bytes(CA.pem)
    env = {
        "HOME": str(tmp_path),
        "KUBECONFIG": str(paths["variable"]),
        "KUBERNETES_SERVICE_HOST": "pod",
        "KUBERNETES_SERVICE_PORT": "443",
    }

    def server(path: str | None = None) -> str | None:
        found = find_connection(path, env=env, in_cluster_directory=str(pod))
        return found.server if found else None

    assert server(str(paths["flag"])) == "https://flag"
    assert server() == "https://variable"
    del env["KUBECONFIG"]
    assert server() == "https://home"
    (tmp_path / ".kube" / "config").unlink()
    assert server() == "https://pod:443"
    (pod / "token").unlink()
    assert server() is None


def test_the_first_file_wins_for_entries_and_for_current_context(tmp_path: Path) -> None:
    first = write_kubeconfig(tmp_path / "a", cluster={"server": "https://first"}, namespace="one")
    second = write_kubeconfig(tmp_path / "b", cluster={"server": "https://second"}, namespace="two")
    third = write_kubeconfig(tmp_path / "c", name="other")
    found = find_connection(env={"KUBECONFIG": f"{first}:{second}:{third}"})
    assert found is not None
    assert (found.server, found.namespace, found.context) == ("https://first", "one", "dev")
    found = find_connection(env={"KUBECONFIG": f"{third}:{first}"})
    assert found is not None
    assert found.context == "other"


def test_an_empty_file_in_the_variable_means_no_cluster(tmp_path: Path) -> None:
    assert find_connection(env={"KUBECONFIG": "/dev/null", "HOME": str(tmp_path)}) is None


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {
        "token": "t",
        "as": "ann",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"Team/Name": ["a", "b"]},
    }
    headers = connection_of(write_kubeconfig(tmp_path / "config", user=user)).headers()
    assert headers == [
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-team%2Fname", "a"),
        ("Impersonate-Extra-team%2Fname", "b"),
    ]


@pytest.mark.parametrize(
    ("server", "cluster", "expected"),
    [
        ("localhost:8080", {}, "http://localhost:8080"),
        ("10.0.0.1:6443", {"certificate-authority-data": encoded(CA.pem)}, "https://10.0.0.1:6443"),
        ("10.0.0.1:6443", {"insecure-skip-tls-verify": True}, "https://10.0.0.1:6443"),
        ("https://x:1///", {}, "https://x:1"),
    ],
)
def test_an_address_without_a_scheme_gets_kubectls(
    tmp_path: Path, server: str, cluster: dict[str, Any], expected: str
) -> None:
    assert (
        connection_of(
            write_kubeconfig(tmp_path / "config", cluster={"server": server, **cluster})
        ).server
        == expected
    )


def test_nulls_are_as_good_as_absent(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "current-context: c\nclusters: [{name: k, cluster: {server: 'https://x', extensions: "
        "null}}]\n"
        "users: null\ncontexts: [{name: c, context: {cluster: k, user: null, namespace: null}}]\n"
    )
    assert connection_of(path).namespace == "default"


def test_a_kubeconfig_written_as_json_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        '{"current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://x"}}],'
        '"contexts":[{"name":"c","context":{"cluster":"k"}}]}'
    )
    assert connection_of(path).server == "https://x"


FAULTS: dict[str, tuple[str, list[str]]] = {
    "broken yaml names its line": (
        "clusters:\n- name: a\n  cluster: [\nusers: {}\n",
        ["line 5", "begins at line 3"],
    ),
    "a tab": ("clusters:\n\t- name: a\n", ["line 2"]),
    "a list at the top": ("- 1\n", ["is a list, not a mapping"]),
    "a number as a token": (
        "users: [{name: u, user: {token: 12345}}]\n",
        ["users[0].user.token", "int"],
    ),
    "two clusters of one name": ("clusters: [{name: a}, {name: a}]\n", ["two clusters", "`a`"]),
    "no current-context": (
        "contexts: [{name: x, context: {}}, {name: b, context: {}}]\n",
        ["current-context", "`b`, `x`"],
    ),
    "an unknown context": (
        "current-context: zzz\ncontexts: [{name: x, context: {}}]\n",
        ["`zzz`", "`x`"],
    ),
    "an unknown cluster": (
        (
            "current-context: x\nclusters: [{name: k}]\ncontexts: "
            "[{name: x, context: {cluster: q}}]\n"
        ),
        ["`q`", "`k`"],
    ),
    "an unknown user": (
        "current-context: x\nclusters: [{name: k, cluster: {server: 'https://x'}}]\nusers: "
        "[{name: ann}]\n"
        "contexts: [{name: x, context: {cluster: k, user: bob}}]\n",
        ["`bob`", "`ann`"],
    ),
    "a cluster without a server": (
        (
            "current-context: x\nclusters: [{name: k, cluster: {}}]\ncontexts: [{name: x, "
            "context: {cluster: k}}]\n"
        ),
        ["`k`", "`server`"],
    ),
    "lists in lists without end": (
        "clusters: " + "[" * 100_000,
        ["line 1", "nested more than 200 levels deep"],
    ),
    "objects in objects without end": (
        '{"a":' * 5000,
        ["line 1", "nested more than 200 levels deep"],
    ),
    "a date that is none": ("clusters: 2026-13-45\n", ["month must be in 1..12"]),
    "nothing at all": ("", ["names no cluster"]),
}


@pytest.mark.parametrize(("text", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_a_faulty_file_is_reported_with_its_name_and_place(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        connection_of(path)
    assert str(path) in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint


OTHER = CA.issue("ann", days=-2)
TO_COME = CA.issue("ann", days=9, begins_in_days=2)
LOCKED = CA.issue("ann", key_password=b"secret")
FRESH = CA.issue("ann")

USERS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "expired certificate": (
        {},
        {
            "client-certificate-data": encoded(OTHER.certificate_pem),
            "client-key-data": encoded(OTHER.key_pem),
        },
        ["expired at 20", "`dev-user`"],
    ),
    "certificate to come": (
        {},
        {
            "client-certificate-data": encoded(TO_COME.certificate_pem),
            "client-key-data": encoded(TO_COME.key_pem),
        },
        ["`dev-user` is not valid yet: it is valid from 20", "this machine's clock is at 20"],
    ),
    "certificate without key": (
        {},
        {"client-certificate-data": encoded(FRESH.certificate_pem)},
        ["client-key"],
    ),
    "certificate file missing": (
        {},
        {"client-certificate": "nope.crt", "client-key": "nope.key"},
        ["nope.crt", "No such file"],
    ),
    "certificate not base64": (
        {},
        {"client-certificate-data": "***", "client-key-data": "***"},
        ["client-certificate-data"],
    ),
    "ca is no pem": (
        {"certificate-authority-data": encoded(b"hello")},
        {},
        ["certificate-authority-data", "PEM"],
    ),
    "ca and insecure": (
        {"certificate-authority-data": encoded(CA.pem), "insecure-skip-tls-verify": True},
        {},
        ["insecure-skip-tls-verify"],
    ),
    "socks proxy": (
        {"proxy-url": "socks5://localhost:1080"},
        {},
        ["socks5://localhost:1080", "http proxy"],
    ),
    "port is no number": (
        {"server": "https://x:port"},
        {},
        ["https://x:port", "https://host:port"],
    ),
    "server without a host": ({"server": "https:///path"}, {}, ["https:///path"]),
    "strange scheme": ({"server": "ftp://x"}, {}, ["ftp://x"]),
    "oidc": (
        {},
        {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}},
        ["oidc", "exec plugin", "kubelogin"],
    ),
    "gcp": (
        {},
        {"auth-provider": {"name": "gcp"}},
        ["gcp", "exec plugin", "gke-gcloud-auth-plugin"],
    ),
    "token and password": (
        {},
        {"token": "t", "username": "u", "password": "p"},
        ["both a token and a user name"],
    ),
    "groups without a user": ({}, {"as-groups": ["dev"]}, ["without `as`"]),
    "plugin without a command": (
        {},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}},
        ["`command`"],
    ),
    "plugin of an old version": (
        {},
        {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
        ["v1alpha1", "client.authentication.k8s.io/v1"],
    ),
    "v1 plugin without interactiveMode": (
        {},
        {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}},
        ["interactiveMode"],
    ),
    "plugin missing": (
        {},
        {
            "exec": {
                "command": "no-such-plugin",
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "installHint": "get it at x.example",
            }
        },
        ["no-such-plugin", "get it at x.example"],
    ),
    "token file missing": ({}, {"tokenFile": "gone"}, ["gone", "No such file"]),
    "token with a line break": ({}, {"token": "a\nb"}, ["token"]),
}


@pytest.mark.parametrize(("cluster", "user", "words"), USERS.values(), ids=USERS.keys())
def test_a_user_or_cluster_that_cannot_work_is_reported(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], words: list[str]
) -> None:
    path = write_kubeconfig(tmp_path / "config", cluster=cluster, user=user)
    with pytest.raises(UserError) as caught:
        connection_of(path).credentials.current()
    for word in words:
        assert word in str(caught.value)
    assert caught.value.hint


def test_a_missing_file_is_reported_for_the_flag_and_for_the_variable(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="absent"):
        find_connection(str(tmp_path / "absent"), env={})
    with pytest.raises(UserError, match=r"KUBECONFIG.*absent"):
        find_connection(env={"KUBECONFIG": str(tmp_path / "absent")})


def test_a_context_without_any_kubeconfig_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="context `prod`"):
        find_connection(context="prod", env={"HOME": str(tmp_path)})
