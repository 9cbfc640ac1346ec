"""Runs the credential plugin of a kubeconfig's `exec` entry (client.authentication.k8s.io).

It supports v1 and v1beta1.

The plugin gets its input in the variable KUBERNETES_EXEC_INFO, not on stdin; stdin is the user's
terminal, passed only in interactive mode.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from typing import Any

import msgspec
from msgspec import Struct

from fairlead.edge.connection.credentials import ClientCertificate, IssuedCredentials, bearer
from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.connection.kubeconfig_file import Exec, KubeconfigCluster
from fairlead.edge.connection.timestamp import parse_rfc3339
from fairlead.errors import OutsideError, UserError

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
CLUSTER_EXTENSION = f"{GROUP}/exec"
TIMEOUT_SECONDS = 120.0  # long enough for a log-in page in a browser, and a service does not hang
SYSTEM = "exec plugin"


class _Status(Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    status: _Status | None = None


class ExecPlugin:
    """One plugin of one user.

    `issue` runs it; `Credentials` keeps the answer until it expires.
    """

    def __init__(
        self, settings: Exec, cluster: KubeconfigCluster, ca_pem: bytes | None, user_name: str
    ) -> None:
        _check(settings, user_name)
        self._settings = settings
        self._cluster = cluster
        self._ca_pem = ca_pem
        self._user_name = user_name

    def issue(self) -> IssuedCredentials:
        """Runs the plugin and parses its answer.

        Raises UserError when it is missing, OutsideError when it fails or prints a malformed
        answer.
        """
        return self._read(self._run())

    @property
    def _label(self) -> str:
        return f"exec plugin `{self._settings.command}` of user `{self._user_name}`"

    def _run(self) -> bytes:
        settings = self._settings
        is_interactive = self._is_interactive()
        try:
            done = subprocess.run(
                [settings.command or "", *(settings.args or ())],
                env=self._environment(is_interactive),
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if is_interactive else subprocess.PIPE,
                timeout=None if is_interactive else TIMEOUT_SECONDS,
                check=False,
            )
        except (FileNotFoundError, PermissionError) as error:
            hint = settings.install_hint or "install it, or correct `command` in the kubeconfig"
            raise UserError(
                f"{self._label} cannot be started: {error.strerror}", _printable(hint)
            ) from error
        except OSError as error:
            raise UserError(
                f"{self._label} cannot be started: {error.strerror}",
                "check that it is a program for this machine",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise OutsideError(
                SYSTEM,
                f"{self._label} gave no answer within {TIMEOUT_SECONDS:.0f} s",
                "run it by hand to see why",
            ) from error
        if done.returncode != 0:
            words = _printable((done.stderr or b"").decode("utf-8", "replace").strip())
            raise OutsideError(
                SYSTEM,
                f"{self._label} ended with status {done.returncode}"
                + (f": {words[-500:]}" if words else ""),
                "run it by hand to see why",
            )
        return done.stdout

    def _is_interactive(self) -> bool:
        mode = self._settings.interactive_mode or "IfAvailable"
        if mode == "Never":
            return False
        has_terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not has_terminal:
            raise UserError(
                f"{self._label} wants a terminal (`interactiveMode: Always`), and there is none",
                "run it from a terminal",
            )
        return has_terminal

    def _environment(self, is_interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self._settings.provide_cluster_info:
            spec["cluster"] = self._cluster_spec()
        request = {"apiVersion": self._settings.api_version, "kind": "ExecCredential", "spec": spec}
        own = {variable.name: variable.value for variable in self._settings.env or ()}
        return {**os.environ, **own, "KUBERNETES_EXEC_INFO": msgspec.json.encode(request).decode()}

    def _cluster_spec(self) -> dict[str, Any]:
        cluster = self._cluster
        spec = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify or None,
            "certificate-authority-data": base64.b64encode(self._ca_pem).decode()
            if self._ca_pem
            else None,
            "proxy-url": cluster.proxy_url,
        }
        for extension in cluster.extensions or ():
            if extension.name == CLUSTER_EXTENSION:
                spec["config"] = extension.extension
        return {key: value for key, value in spec.items() if value}

    def _read(self, output: bytes) -> IssuedCredentials:
        try:
            answer = decoder_of(_ExecCredential).decode(output)
        except msgspec.DecodeError as error:
            raise self._rubbish(f"is not an ExecCredential: {error}") from error
        if answer.kind != "ExecCredential":
            raise self._rubbish(f"has kind `{answer.kind}` instead of `ExecCredential`")
        if answer.api_version != self._settings.api_version:
            raise self._rubbish(
                f"is of version `{answer.api_version}`, while the kubeconfig has "
                f"`{self._settings.api_version}`"
            )
        status = answer.status or _Status()
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._rubbish("has only one of clientCertificateData and clientKeyData")
        if not status.token and not status.client_certificate_data:
            raise self._rubbish("has neither a token nor a client certificate")
        return IssuedCredentials(
            bearer(status.token) if status.token else None,
            _certificate(status),
            self._expiry(status),
        )

    def _expiry(self, status: _Status) -> float | None:
        if not status.expiration_timestamp:
            return None
        try:
            return parse_rfc3339(status.expiration_timestamp)
        except ValueError as error:
            raise self._rubbish(
                f"has expirationTimestamp `{status.expiration_timestamp}`, which is no RFC 3339 "
                "time"
            ) from error

    def _rubbish(self, what: str) -> OutsideError:
        return OutsideError(
            SYSTEM,
            f"the output of {self._label} {what}",
            "run it by hand, and check `apiVersion` in the kubeconfig",
        )


def _certificate(status: _Status) -> ClientCertificate | None:
    if not status.client_certificate_data or not status.client_key_data:
        return None
    return ClientCertificate(
        status.client_certificate_data.encode(), status.client_key_data.encode()
    )


def _check(settings: Exec, user_name: str) -> None:
    """Checks the settings before the plugin runs; messages name the kubeconfig field."""
    where = f"the `exec` entry of user `{user_name}`"
    if not settings.command:
        raise UserError(f"{where} has no `command`", "name the plugin's program")
    if settings.api_version not in VERSIONS:
        raise UserError(
            f"{where} has apiVersion `{settings.api_version or ''}`",
            f"use one of {', '.join(f'`{each}`' for each in VERSIONS)}",
        )
    if settings.interactive_mode not in (None, "", "Never", "IfAvailable", "Always"):
        raise UserError(
            f"{where} has interactiveMode `{settings.interactive_mode}`",
            "use Never, IfAvailable or Always",
        )
    if settings.api_version == VERSIONS[0] and not settings.interactive_mode:
        raise UserError(
            f"{where} has no `interactiveMode`, which version v1 requires",
            "add `interactiveMode: IfAvailable`",
        )


def _printable(text: str) -> str:
    """The text without control characters, which could change the state of the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
