"""Renews a user's token with the token itself: what `fairlead login` asks of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.edge.connection.connection import Connection, connect_to
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials, bearer
from fairlead.edge.connection.kubeconfig_file import KubeconfigCluster, KubeconfigUser
from fairlead.edge.kube.api_failure import Unauthorized
from fairlead.edge.kube.api_request import ApiRequest, encode_body
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import SERVICE_ACCOUNTS
from fairlead.errors import OutsideError, UserError
from fairlead.model.people.record import Credential, KeptToken
from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.people.credentials import parse_issued_token, render_token_request

READ_SECONDS: Final = 10.0
"""How long kubectl waits for a renewal while its token still works."""


def renewing_api(cluster: Mapping[str, Any], token: KeptToken) -> KubeBlocking:
    """The API server that kubectl is about to ask, with this token.

    `cluster`: of KUBERNETES_EXEC_INFO. Raises UserError when it is malformed.
    """
    known = {key: each for key, each in cluster.items() if key != "config"}
    try:
        settings = msgspec.convert(known, KubeconfigCluster)
    except msgspec.ValidationError as error:
        raise UserError(f"the cluster in KUBERNETES_EXEC_INFO is malformed: {error}") from error
    connection = connect_to(
        settings,
        KubeconfigUser(token=token.token),
        context_name="",
        namespace="default",
        user_name=token.user,
        origin="KUBERNETES_EXEC_INFO",
    )
    return KubeBlocking(connection, read_seconds=READ_SECONDS)


def renewed(api: KubeBlocking, token: KeptToken) -> KeptToken:
    """A new token, bound to the same Secret.

    Raises UserError if the present token does not work any more, OutsideError if the API server
    cannot be reached, or refuses.
    """
    bound = Credential(token.secret, token.user, 0.0, 0.0, uid=token.secret_uid)
    body = encode_body(render_token_request(bound, token.seconds))
    path = SERVICE_ACCOUNTS.path(USERS_NAMESPACE, token.user, "token")
    try:
        answer = api.send(ApiRequest("create", "POST", path, body))
    except Unauthorized as error:
        raise UserError(
            f"the credential `{token.secret}` does not work any more: its token has expired, it "
            f"was revoked, or the user {token.user} is disabled or deleted",
            "ask an administrator for a new file (`fairlead kubeconfig create ID --exec FILE`)",
        ) from error
    try:
        issued, expires_at = parse_issued_token(msgspec.json.decode(answer.body))
    except (ValueError, msgspec.DecodeError) as error:
        raise OutsideError(
            "kubernetes", f"the API server's answer is malformed: {error}"
        ) from error
    return msgspec.structs.replace(token, token=issued, expires_at=expires_at)


def with_token(connection: Connection, token: str) -> KubeBlocking:
    """The same API server, asked with this token."""
    issued = IssuedCredentials(authorization=bearer(token))
    credentials = Credentials(lambda: issued, is_renewable=False)
    return KubeBlocking(
        msgspec.structs.replace(connection, credentials=credentials, impersonation=())
    )
