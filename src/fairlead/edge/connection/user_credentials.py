"""Chooses the credentials of a kubeconfig user as client-go does; unsupported kinds are errors.

The order is: token file, token, user name and password, exec plugin; a client certificate may be
used together with any of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlead.edge.connection.certificate import check_in_time
from fairlead.edge.connection.credentials import (
    ClientCertificate,
    Credentials,
    IssuedCredentials,
    basic,
    bearer,
    token_file_source,
)
from fairlead.edge.connection.kubeconfig_file import KubeconfigCluster, KubeconfigUser
from fairlead.edge.connection.pem import read_pem
from fairlead.errors import UserError

CERTIFICATE_FILE_SECONDS = 300.0  # client-go checks certificate files at this interval

Source = Callable[[], IssuedCredentials]


def credentials_of(
    user: KubeconfigUser,
    cluster: KubeconfigCluster,
    ca_pem: bytes | None,
    user_name: str,
    *,
    now: Callable[[], float] = time.time,
) -> Credentials:
    """The user's credentials.

    Certificate files are read (and their expiry is checked) now; plugins run at the first request.
    """
    _refuse_unsupported(user, user_name)
    token_source = _token_source(user, cluster, ca_pem, user_name, now)
    certificate_source = _certificate_source(user, user_name, now)
    if certificate_source is not None:
        # a malformed or expired certificate is an error before the first connection
        certificate_source()
    is_renewable = bool(user.token_file or user.exec or user.client_certificate)
    return Credentials(_both(token_source, certificate_source), is_renewable=is_renewable, now=now)


def _both(token_source: Source | None, certificate_source: Source | None) -> Source:
    def issue() -> IssuedCredentials:
        token = token_source() if token_source else IssuedCredentials()
        own = certificate_source() if certificate_source else IssuedCredentials()
        ends = [each.expires_at for each in (token, own) if each.expires_at is not None]
        return IssuedCredentials(
            token.authorization, token.certificate or own.certificate, min(ends, default=None)
        )

    return issue


def _token_source(
    user: KubeconfigUser,
    cluster: KubeconfigCluster,
    ca_pem: bytes | None,
    user_name: str,
    now: Callable[[], float],
) -> Source | None:
    if user.token_file:
        return token_file_source(user.token_file, fallback_token=user.token, now=now)
    if user.token:
        issued = IssuedCredentials(authorization=bearer(user.token))
        return lambda: issued
    if user.username or user.password:
        known = IssuedCredentials(authorization=basic(user.username or "", user.password or ""))
        return lambda: known
    if user.exec is not None:
        from fairlead.edge.connection.exec_plugin import ExecPlugin

        return ExecPlugin(user.exec, cluster, ca_pem, user_name).issue
    return None


def _certificate_source(
    user: KubeconfigUser, user_name: str, now: Callable[[], float]
) -> Source | None:
    if not (user.client_certificate or user.client_certificate_data):
        return None
    if not (user.client_key or user.client_key_data):
        raise UserError(
            f"user `{user_name}` has a client certificate but no `client-key`",
            "add `client-key` or `client-key-data`",
        )
    is_file = not user.client_certificate_data

    def issue() -> IssuedCredentials:
        certificate_pem = read_pem(
            "client-certificate", user.client_certificate_data, user.client_certificate
        )
        key_pem = read_pem("client-key", user.client_key_data, user.client_key)
        assert certificate_pem is not None
        assert key_pem is not None
        check_in_time(certificate_pem, f"the client certificate of user `{user_name}`", now())
        return IssuedCredentials(
            certificate=ClientCertificate(certificate_pem, key_pem),
            expires_at=now() + CERTIFICATE_FILE_SECONDS if is_file else None,
        )

    return issue


def _refuse_unsupported(user: KubeconfigUser, user_name: str) -> None:
    if user.auth_provider is not None:
        provider = user.auth_provider.name or ""
        raise UserError(
            (
                f"user `{user_name}` uses auth-provider `{provider}`, which Fairlead does not "
                "support (nor does kubectl since 1.26 for clouds)"
            ),
            (
                "use the exec plugin instead: "
                f"{_PLUGINS.get(provider, 'see your provider for its credential plugin')}"
            ),
        )
    if user.token and (user.username or user.password):
        raise UserError(
            f"user `{user_name}` has both a token and a user name with password",
            "keep one of the two; kubectl refuses it too",
        )


_PLUGINS = {
    "oidc": "`kubelogin` (kubectl oidc-login get-token)",
    "gcp": "`gke-gcloud-auth-plugin`",
    "azure": "`kubelogin` of Azure (kubelogin convert-kubeconfig)",
    "openstack": "`client-keystone-auth`",
}
