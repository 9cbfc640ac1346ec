"""Who is at the other end: the client's address, and whether it came by TLS.

Headers that name another address or scheme count only from a proxy that a flag names. Any client
can send them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from fairlead.errors import UserError

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_SHOWN_MAX: Final = 100


class Peer(Struct, frozen=True):
    """`address`: of the client, "" if the socket has none."""

    address: str
    is_tls: bool


class Proxies:
    """The proxies that are trusted. `networks`: addresses or CIDR blocks.

    Raises UserError for a text that is neither.
    """

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = tuple(_network(each) for each in networks)

    def peer(self, request: Request) -> Peer:
        """The client. Of several proxies one after the other each must be trusted."""
        address = request.client.host if request.client is not None else ""
        is_tls = request.url.scheme == "https"
        if not self._is_trusted(address):
            return Peer(address, is_tls)
        schemes = _values(request, "x-forwarded-proto")
        if schemes:
            is_tls = schemes[-1].lower() == "https"
        for each in reversed(_values(request, "x-forwarded-for")):
            if not _is_address(each):
                break
            address = each
            if not self._is_trusted(each):
                break
        return Peer(address, is_tls)

    def _is_trusted(self, address: str) -> bool:
        if not _is_address(address):
            return False
        found = ipaddress.ip_address(address)
        mapped = getattr(found, "ipv4_mapped", None)
        return any(
            each in network for network in self._networks for each in (found, mapped) if each
        )


def _values(request: Request, name: str) -> list[str]:
    return [
        value.strip()
        for line in request.headers.getlist(name)
        for value in line.split(",")
        if value.strip()
    ]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise UserError(
            f"`{text[:_SHOWN_MAX]}` is no address of a proxy",
            "write an IP address or a block such as `--trusted-proxy 10.0.0.0/8`",
        ) from error
