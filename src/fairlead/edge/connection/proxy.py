"""The proxy of a connection: the kubeconfig's `proxy-url`, else the environment's, as in Go.

A server on this machine's loopback is never reached through a proxy of the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fairlead.edge.connection.credentials import basic
from fairlead.wire.text.printable_address import printable_address

if TYPE_CHECKING:
    import ipaddress


def proxy_for(server: str, proxy_url: str | None, env: Mapping[str, str]) -> str | None:
    """The proxy's URL; None for a direct connection.

    >>> proxy_for("https://api.example", None, {"HTTPS_PROXY": "proxy.example:3128"})
    'http://proxy.example:3128'
    >>> exempt = {"https_proxy": "http://p:1", "NO_PROXY": "10.0.0.0/8,.example"}
    >>> proxy_for("https://10.1.2.3:6443", None, exempt) is None
    True
    """
    if proxy_url:
        return proxy_url
    parts = urlsplit(server)
    variable = f"{parts.scheme}_proxy"
    proxy = env.get(variable.upper()) or env.get(variable)
    if (
        not proxy
        or is_loopback(server)
        or _is_exempt(
            parts.hostname or "", parts.port, env.get("NO_PROXY") or env.get("no_proxy") or ""
        )
    ):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def proxy_login(proxy: str) -> tuple[str, tuple[str, str] | None]:
    """The proxy's address for HTTP clients, and (user, password) separately; None = it has none.

    HTTP clients put the address that they get into their exceptions.

    >>> proxy_login("http://ann:s%40x@proxy:3128")
    ('http://proxy:3128', ('ann', 's@x'))
    >>> proxy_login("http://proxy:3128")
    ('http://proxy:3128', None)
    """
    userinfo, at, _ = proxy.partition("://")[2].rpartition("@")
    user, _, password = userinfo.partition(":")
    return printable_address(proxy), (unquote(user), unquote(password)) if at else None


def through_proxy(proxy: str | None) -> dict[str, Any]:
    """The arguments of aiohttp's requests for a proxy."""
    if proxy is None:
        return {}
    address, login = proxy_login(proxy)
    # aiohttp turns it into Proxy-Authorization, for CONNECT and for plain requests. Under that name
    # it would be sent with CONNECT only.
    return {"proxy": address, "proxy_headers": {"Authorization": basic(*login)} if login else None}


def is_loopback(server: str) -> bool:
    """Whether the server of a URL is on this machine, judged by its address.

    >>> hosts = ("127.0.0.1", "localhost", "[::1]", "10.0.0.1")
    >>> [is_loopback(f"https://{host}:6443") for host in hosts]
    [True, True, True, False]
    """
    host = urlsplit(server).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _is_exempt(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether NO_PROXY contains the host: as a name or subdomain of a name, an address, a
    network, or `*`; each may have a port.
    """
    address = _address(host)
    for entry in filter(None, (part.strip().lower() for part in no_proxy.split(","))):
        if (
            entry == "*"
            or entry in (host, f"{host}:{port}")
            or host.endswith(f".{entry.lstrip('.')}")
        ):
            return True
        if address is not None and "/" in entry and _is_in(address, entry):
            return True
    return False


def _is_in(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    import ipaddress

    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    import ipaddress  # only where a NO_PROXY must be read: the command line imports this module

    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
