"""Makes the connection to Prometheus from a user's settings: address, token, CA file."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit, urlunsplit

from fairlead.edge.connection.connection import (
    SIGN_HINT,
    Connection,
    has_sign_after_host,
    has_usable_host,
)
from fairlead.edge.connection.credentials import (
    Credentials,
    IssuedCredentials,
    basic,
    bearer,
    token_file_source,
)
from fairlead.edge.connection.pem import read_pem
from fairlead.errors import UserError
from fairlead.wire.text.printable_address import printable_address


def prometheus_connection(
    address: str, *, token: str = "", token_file: str = "", ca_file: str = ""
) -> Connection:
    """The connection. Raises UserError for a malformed address, token or certificate.

    `user:password@` in the address is used for basic authentication.

    >>> prometheus_connection("http://ann:s%40x@prom.example:9090/prometheus/").server
    'http://prom.example:9090/prometheus'
    """
    server = address.strip() if "://" in address else f"http://{address.strip()}"
    if not server.startswith(("http://", "https://")) or not has_usable_host(server):
        raise UserError(
            f"`{printable_address(address)}` is not the address of a Prometheus",
            "write it as http://host:9090",
        )
    parts = urlsplit(server)
    if has_sign_after_host(server):
        raise UserError("the address of a Prometheus has an `@` after its host", SIGN_HINT)
    host = parts.netloc.rpartition("@")[2]
    return Connection(
        server=urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")),
        credentials=_credentials(parts.username, parts.password, token, token_file),
        origin="the Prometheus settings",
        ca_pem=read_pem("Prometheus CA", None, ca_file or None),
    )


def _credentials(
    user: str | None, password: str | None, token: str, token_file: str
) -> Credentials:
    if token_file:
        return Credentials(
            token_file_source(token_file, fallback_token=token or None), is_renewable=True
        )
    if token:
        issued = IssuedCredentials(authorization=bearer(token))
    elif user:
        issued = IssuedCredentials(authorization=basic(unquote(user), unquote(password or "")))
    else:
        issued = IssuedCredentials()
    return Credentials(lambda: issued, is_renewable=False)
