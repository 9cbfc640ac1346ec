"""The connection and the speed of a laptop with quota."""

from __future__ import annotations

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import Credentials, IssuedCredentials, bearer

TOKEN = "t"
TOKEN_REQUEST = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
SPEED = 20.0


def connection(url: str, token: str) -> Connection:
    issued = IssuedCredentials(authorization=bearer(token))
    return Connection(url, Credentials(lambda: issued, is_renewable=False))
