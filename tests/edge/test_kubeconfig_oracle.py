"""Fairlead's kubeconfig module and the official client read the same files: same server, trust,
certificate, token, proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from tests.edge.kubeconfigs import connection_of, encoded, write_kubeconfig
from tests.edge.pki import Authority

CA = Authority()
ALICE = CA.issue("alice")
BOB = CA.issue("bob")

Files = dict[str, bytes]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Files]] = {
    "nobody": ({}, {}, {}),
    "token": ({}, {"token": "abc.def"}, {}),
    "token file, relative": ({}, {"tokenFile": "secret/token"}, {"secret/token": b"from-file"}),
    "user name and password": ({}, {"username": "ann", "password": "s:3cret"}, {}),
    "ca as data": ({"certificate-authority-data": encoded(CA.pem)}, {"token": "t"}, {}),
    "ca as a relative file": (
        {"certificate-authority": "pki/ca.crt"},
        {"token": "t"},
        {"pki/ca.crt": CA.pem},
    ),
    "ca as data and file": (
        {"certificate-authority-data": encoded(CA.pem), "certificate-authority": "ca.crt"},
        {},
        {"ca.crt": Authority("other").pem},
    ),
    "client certificate as data": (
        {"certificate-authority-data": encoded(CA.pem)},
        {
            "client-certificate-data": encoded(ALICE.certificate_pem),
            "client-key-data": encoded(ALICE.key_pem),
        },
        {},
    ),
    "client certificate as files": (
        {"certificate-authority-data": encoded(CA.pem)},
        {"client-certificate": "bob.crt", "client-key": "keys/bob.key"},
        {"bob.crt": BOB.certificate_pem, "keys/bob.key": BOB.key_pem},
    ),
    "client certificate and token": (
        {"certificate-authority-data": encoded(CA.pem)},
        {
            "client-certificate-data": encoded(ALICE.certificate_pem),
            "client-key-data": encoded(ALICE.key_pem),
            "token": "both",
        },
        {},
    ),
    "insecure": ({"insecure-skip-tls-verify": True}, {"token": "t"}, {}),
    "another server name": (
        {"tls-server-name": "kubernetes.default", "certificate-authority-data": encoded(CA.pem)},
        {},
        {},
    ),
    "a proxy": ({"proxy-url": "http://proxy.example:3128"}, {"token": "t"}, {}),
    "a path behind the host": (
        {"server": "https://rancher.example/k8s/clusters/c-1/"},
        {"token": "t"},
        {},
    ),
    "plain http": ({"server": "http://127.0.0.1:8001"}, {}, {}),
    "unknown fields": (
        {"x-new": 1, "extensions": [{"name": "e", "extension": {"a": 1}}]},
        {"token": "t", "x-new": [1]},
        {},
    ),
}


def official(path: Path, context: str | None = None) -> client.Configuration:
    configuration = client.Configuration()
    config.load_kube_config(
        str(path), context=context, client_configuration=configuration, persist_config=False
    )
    return configuration


def content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None


@pytest.mark.parametrize(("cluster", "user", "files"), CASES.values(), ids=CASES.keys())
def test_both_read_the_same(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], files: Files
) -> None:
    for name, body in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(body)
    path = write_kubeconfig(tmp_path / "config", cluster=cluster, user=user)
    own, theirs = connection_of(path), official(path)
    issued = own.credentials.current()
    assert own.server == theirs.host
    assert issued.authorization == theirs.api_key.get("BearerToken")
    assert own.ca_pem == content(theirs.ssl_ca_cert)
    assert (issued.certificate.certificate_pem if issued.certificate else None) == content(
        theirs.cert_file
    )
    assert (issued.certificate.key_pem if issued.certificate else None) == content(theirs.key_file)
    assert own.is_insecure is not theirs.verify_ssl
    assert own.tls_server_name == theirs.tls_server_name
    assert own.proxy_url == theirs.proxy


def test_every_context_of_a_file_is_read_as_the_oracle_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "current-context: one\n"
        "clusters: [{name: a, cluster: {server: 'https://a'}}, {name: b, cluster: {server: "
        "'https://b'}}]\n"
        "users: [{name: u, user: {token: tu}}, {name: v, user: {token: tv}}]\n"
        "contexts: [{name: one, context: {cluster: a, user: v}}, {name: two, context: "
        "{cluster: b, user: u}}]\n"
    )
    for name in (None, "one", "two"):
        own, theirs = connection_of(path, name), official(path, name)
        assert (own.server, own.credentials.current().authorization) == (
            theirs.host,
            theirs.api_key["BearerToken"],
        )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    "status",
    [
        {"token": "from-plugin"},
        {"token": "short", "expirationTimestamp": "2999-01-01T00:00:00Z"},
        {
            "clientCertificateData": ALICE.certificate_pem.decode(),
            "clientKeyData": ALICE.key_pem.decode(),
        },
    ],
    ids=["token", "token with an end", "certificate"],
)
def test_both_run_a_plugin_alike(
    tmp_path: Path, plugin: Callable[..., Path], version: str, status: dict[str, str]
) -> None:
    program = plugin(status=status, version=version)
    entry = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": str(program),
        "interactiveMode": "Never",
    }
    path = write_kubeconfig(
        tmp_path / "config",
        cluster={"certificate-authority-data": encoded(CA.pem)},
        user={"exec": entry},
    )
    theirs = official(path)
    issued = connection_of(path).credentials.current()
    assert issued.authorization == theirs.api_key.get("BearerToken")
    assert (issued.certificate.certificate_pem if issued.certificate else None) == content(
        theirs.cert_file
    )
    assert (issued.certificate.key_pem if issued.certificate else None) == content(theirs.key_file)


def test_a_plugin_gets_the_same_description_of_the_cluster(
    tmp_path: Path, plugin: Callable[..., Path]
) -> None:
    program = plugin(status={"token": "t"}, version="v1")
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program),
        "args": ["--say", "two words"],
        "env": [{"name": "PLUGIN_SETTING", "value": "x"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    cluster = {
        "certificate-authority-data": encoded(CA.pem),
        "tls-server-name": "inner",
        "extensions": [
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
        ],
    }
    path = write_kubeconfig(tmp_path / "config", cluster=cluster, user={"exec": entry})
    official(path)
    theirs = plugin.last_call()  # type: ignore[attr-defined]
    connection_of(path).credentials.current()
    own = plugin.last_call()  # type: ignore[attr-defined]
    assert own["arguments"] == theirs["arguments"] == ["--say", "two words"]
    assert own["setting"] == theirs["setting"] == "x"
    # the oracle passes the raw entry on; the protocol has no such field
    theirs["info"]["spec"]["cluster"].pop("extensions")
    assert own["info"] == theirs["info"]
    assert own["info"]["spec"]["cluster"]["config"] == {"audience": "us"}


def test_entries_of_several_files_merge_as_the_oracle_merges_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "one" / "config", tmp_path / "two" / "config"
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "ca.crt").write_bytes(CA.pem)
    write_kubeconfig(first, cluster={"server": "https://first"}, user={"token": "first"})
    write_kubeconfig(
        second,
        name="prod",
        cluster={"server": "https://second", "certificate-authority": "ca.crt"},
        user={"token": "second"},
    )
    joined = f"{first}:{tmp_path / 'absent'}:{second}"
    theirs = client.Configuration()
    config.load_kube_config(
        joined, context="prod", client_configuration=theirs, persist_config=False
    )
    from fairlead.edge.connection.kubeconfig import find_connection

    own = find_connection(context="prod", env={"KUBECONFIG": joined})
    assert own is not None
    assert (
        (own.server, own.ca_pem)
        == (theirs.host, content(theirs.ssl_ca_cert))
        == ("https://second", CA.pem)
    )
    assert own.credentials.current().authorization == theirs.api_key["BearerToken"]


def test_a_service_account_is_read_as_the_oracle_reads_it(tmp_path: Path) -> None:
    from kubernetes.config.incluster_config import InClusterConfigLoader

    from fairlead.edge.connection.kubeconfig import find_connection

    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "ca.crt").write_bytes(CA.pem)
    (tmp_path / "namespace").write_text("team-a")
    for host in ("10.0.0.1", "fd00::1"):
        env = {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": "443",
            "HOME": str(tmp_path),
        }
        theirs = client.Configuration()
        loader = InClusterConfigLoader(
            str(tmp_path / "token"), str(tmp_path / "ca.crt"), environ=env
        )
        loader.load_and_set(theirs)
        own = find_connection(env=env, in_cluster_directory=str(tmp_path))
        assert own is not None
        assert (own.server, own.ca_pem, own.namespace) == (
            theirs.host,
            content(theirs.ssl_ca_cert),
            "team-a",
        )
        assert own.credentials.current().authorization == "Bearer pod-token"
