"""The connection in use as a kubeconfig, for a program that this process starts.

Helm reads the cluster's address and credentials from it, never from its own surroundings; a
credential plugin is not run a second time.
"""

from __future__ import annotations

import base64
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.credentials import IssuedCredentials

_NAME: Final = "fairlead"
_EXTRA: Final = "Impersonate-Extra-"


def render_kubeconfig(connection: Connection) -> bytes:
    """JSON, which is YAML. May block: it may read a token file or run a plugin."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": _cluster(connection)}],
        "users": [{"name": _NAME, "user": _user(connection)}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    return msgspec.json.encode(document)


def _cluster(connection: Connection) -> dict[str, Any]:
    found: dict[str, Any] = {"server": connection.server}
    if connection.is_insecure:
        found["insecure-skip-tls-verify"] = True
    elif connection.ca_pem is not None:
        found["certificate-authority-data"] = _encoded(connection.ca_pem)
    if connection.tls_server_name:
        found["tls-server-name"] = connection.tls_server_name
    if connection.proxy_url:
        found["proxy-url"] = connection.proxy_url
    return found


def _user(connection: Connection) -> dict[str, Any]:
    issued = connection.credentials.current()
    found = _login(issued)
    if issued.certificate is not None:
        found["client-certificate-data"] = _encoded(issued.certificate.certificate_pem)
        found["client-key-data"] = _encoded(issued.certificate.key_pem)
    return {**found, **_impersonation(connection.impersonation)}


def _login(issued: IssuedCredentials) -> dict[str, Any]:
    scheme, _, rest = (issued.authorization or "").partition(" ")
    if scheme == "Bearer":
        return {"token": rest}
    if scheme == "Basic":
        name, _, password = base64.b64decode(rest).decode().partition(":")
        return {"username": name, "password": password}
    return {}


def _impersonation(headers: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in headers:
        if name == "Impersonate-User":
            found["as"] = value
        elif name == "Impersonate-Uid":
            found["as-uid"] = value
        elif name == "Impersonate-Group":
            found.setdefault("as-groups", []).append(value)
        elif name.startswith(_EXTRA):
            key = unquote(name.removeprefix(_EXTRA))
            found.setdefault("as-user-extra", {}).setdefault(key, []).append(value)
    return found


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
