"""Credentials over time: files are read again, plugins run again, and secrets are never left on
disk.
"""

from __future__ import annotations

import os
import ssl
import threading
from pathlib import Path

import pytest
from tests.edge.conftest import PluginBuilder
from tests.edge.kubeconfigs import connection_of, encoded, write_kubeconfig
from tests.edge.pki import Authority

from fairlead.edge.connection.certificate import common_name, validity
from fairlead.edge.connection.connection import make_ssl_context
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials, token_file_source
from fairlead.edge.connection.kubeconfig_file import Exec, KubeconfigCluster, KubeconfigUser
from fairlead.edge.connection.user_credentials import credentials_of
from fairlead.errors import OutsideError, UserError

CA = Authority()


class Hands:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.at = 1_767_600_000.0

    def __call__(self) -> float:
        return self.at


def test_a_token_file_is_read_again_every_minute_and_kept_when_it_vanishes(tmp_path: Path) -> None:
    now, path = Hands(), tmp_path / "token"
    path.write_text("one")
    credentials = Credentials(token_file_source(str(path), now=now), is_renewable=True, now=now)
    assert credentials.current().authorization == "Bearer one"
    path.write_text("two\n")
    assert credentials.current().authorization == "Bearer one"
    now.at += 60
    assert credentials.current().authorization == "Bearer two"
    path.unlink()
    now.at += 60
    assert credentials.current().authorization == "Bearer two"


def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = Credentials(token_file_source(str(path)), is_renewable=True)
    refused = credentials.current()
    path.write_text("two")
    assert credentials.renew(refused)
    assert credentials.current().authorization == "Bearer two"


def test_a_late_refusal_does_not_throw_away_what_another_thread_renewed() -> None:
    made: list[IssuedCredentials] = []

    def issue() -> IssuedCredentials:
        made.append(IssuedCredentials(authorization=f"Bearer {len(made)}"))
        return made[-1]

    credentials = Credentials(issue, is_renewable=True)
    first = credentials.current()
    credentials.renew(first)
    credentials.current()
    credentials.renew(first)
    assert credentials.current().authorization == "Bearer 1"


def test_a_fixed_token_cannot_be_renewed() -> None:
    credentials = credentials_of(KubeconfigUser(token="t"), KubeconfigCluster(), None, "ann")
    assert not credentials.renew(credentials.current())


def plugin_user(program: Path, **settings: str) -> KubeconfigUser:
    settings = {
        "interactive_mode": "Never",
        "api_version": "client.authentication.k8s.io/v1",
    } | settings
    return KubeconfigUser(exec=Exec(command=str(program), **settings))  # type: ignore[arg-type]


def test_a_plugin_runs_again_only_when_its_answer_has_expired(plugin: PluginBuilder) -> None:
    now = Hands()
    program = plugin(status={"token": "t", "expirationTimestamp": "2026-01-05T09:00:00Z"})
    credentials = credentials_of(plugin_user(program), KubeconfigCluster(), None, "ann", now=now)
    now.at = 1_767_603_599.0  # 08:59:59
    credentials.current()
    credentials.current()
    assert len(plugin.calls()) == 1
    now.at += 1
    assert not credentials.is_fresh
    credentials.current()
    assert len(plugin.calls()) == 2


def test_many_threads_start_one_plugin(plugin: PluginBuilder) -> None:
    credentials = credentials_of(
        plugin_user(plugin(status={"token": "t"})), KubeconfigCluster(), None, "ann"
    )
    threads = [threading.Thread(target=credentials.current) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plugin.calls()) == 1


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"output": "hello"}, "is not an ExecCredential"),
        ({"output": ""}, "is not an ExecCredential"),
        ({"output": "[]"}, "is not an ExecCredential"),
        ({"output": '{"kind":"Pod","apiVersion":"v1"}'}, "kind `Pod`"),
        ({"status": {"token": "t"}, "version": "v1beta1"}, "client.authentication.k8s.io/v1beta1"),
        ({"status": None}, "neither a token nor a client certificate"),
        ({"status": {"clientCertificateData": "x"}}, "only one of"),
        ({"status": {"token": "t", "expirationTimestamp": "tomorrow"}}, "`tomorrow`"),
        (
            {"status": {"token": "t"}, "exit_status": 3, "words": "log in first\x1b[31m"},
            "status 3: log in first?[31m",
        ),
    ],
)
def test_a_plugin_that_fails_is_reported_with_its_output(
    plugin: PluginBuilder, made: dict[str, object], words: str
) -> None:
    program = plugin(**made)  # type: ignore[arg-type]
    with pytest.raises(OutsideError) as caught:
        credentials_of(plugin_user(program), KubeconfigCluster(), None, "ann").current()
    assert words in str(caught.value)
    assert str(program) in str(caught.value)
    assert caught.value.hint


def test_a_plugin_that_must_have_a_terminal_is_not_run_without_one(
    plugin: PluginBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull) as nothing:  # noqa: PTH123
        monkeypatch.setattr("sys.stdin", nothing)
        user = plugin_user(plugin(status={"token": "t"}), interactive_mode="Always")
        with pytest.raises(UserError, match="terminal"):
            credentials_of(user, KubeconfigCluster(), None, "ann").current()
    assert plugin.calls() == []


def test_a_relative_plugin_is_found_beside_its_kubeconfig(
    tmp_path: Path, plugin: PluginBuilder
) -> None:
    program = plugin(status={"token": "beside"}, version="v1beta1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tell").symlink_to(program)
    entry = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "./bin/tell"}
    path = write_kubeconfig(tmp_path / "config", user={"exec": entry})
    assert connection_of(path).credentials.current().authorization == "Bearer beside"


def test_rotated_certificate_files_are_read_again(tmp_path: Path) -> None:
    now = Hands()
    first, second = (CA.issue("ann", days=36500, begins_in_days=-9000) for _ in range(2))

    def write(pair: tuple[bytes, bytes]) -> None:
        (tmp_path / "c").write_bytes(pair[0])
        (tmp_path / "k").write_bytes(pair[1])

    write(first)
    user = KubeconfigUser(client_certificate=str(tmp_path / "c"), client_key=str(tmp_path / "k"))
    credentials = credentials_of(user, KubeconfigCluster(), None, "ann", now=now)
    before = credentials.current().certificate
    write(second)
    assert credentials.current().certificate == before
    now.at += 301
    after = credentials.current().certificate
    assert after is not None
    assert after.certificate_pem == second.certificate_pem


def test_no_private_key_is_ever_in_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = CA.issue("ann")
    user = {
        "client-certificate-data": encoded(pair.certificate_pem),
        "client-key-data": encoded(pair.key_pem),
    }
    connection = connection_of(
        write_kubeconfig(
            tmp_path / "config", cluster={"certificate-authority-data": encoded(CA.pem)}, user=user
        )
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    opened: list[str] = []
    original = ssl.SSLContext.load_cert_chain

    def spy(self: ssl.SSLContext, cert: str, key: str, password: object) -> None:
        opened.extend(
            str(Path("/proc/self/fd", path.rsplit("/", 1)[1]).readlink()) for path in (cert, key)
        )
        original(self, cert, key, password)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    make_ssl_context(connection, connection.credentials.current().certificate)
    assert len(opened) == 2
    assert all(target.startswith("/memfd:") for target in opened)
    assert list(scratch.iterdir()) == []


def test_without_memfd_the_file_is_unlinked_before_it_has_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairlead.edge.connection.pem import in_memory_file

    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with in_memory_file(b"key") as path:
        assert list(tmp_path.iterdir()) == []
        assert Path(path).read_bytes() == b"key"


@pytest.mark.parametrize(
    "password", [None, b"secret"], ids=["keys of two pairs", "an encrypted key"]
)
def test_a_key_that_cannot_be_used_is_reported_and_never_asked_for(
    tmp_path: Path, password: bytes | None
) -> None:
    one, other = CA.issue("ann"), CA.issue("ann", key_password=password)
    certificate = other.certificate_pem if password else one.certificate_pem
    user = {
        "client-certificate-data": encoded(certificate),
        "client-key-data": encoded(other.key_pem),
    }
    connection = connection_of(write_kubeconfig(tmp_path / "config", user=user))
    with pytest.raises(UserError) as caught:
        make_ssl_context(connection, connection.credentials.current().certificate)
    assert caught.value.what == (
        "the client key is encrypted with a pass phrase"
        if password
        else "the client certificate or its key cannot be used: KEY_VALUES_MISMATCH"
    )


def test_a_certificate_contains_its_end_and_its_name() -> None:
    from cryptography import x509

    for days in (1, 20000, 40000):  # from 2050 on, certificates encode times differently
        pair = CA.issue("ännchen", days=days)
        parsed = x509.load_pem_x509_certificate(pair.certificate_pem)
        times = (parsed.not_valid_before_utc.timestamp(), parsed.not_valid_after_utc.timestamp())
        assert validity(pair.certificate_pem) == times
        assert common_name(pair.certificate_pem) == "ännchen"


@pytest.mark.parametrize(
    "pem", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", CA.pem[:100]]
)
def test_what_is_no_certificate_has_neither(pem: bytes) -> None:
    assert (validity(pem), common_name(pem)) == (None, None)
