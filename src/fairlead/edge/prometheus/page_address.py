"""The address of an exporter's page in a user's settings, with its password separated.

Logs, sources and labels contain the address, so it must not contain a password.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from fairlead.edge.connection.credentials import basic
from fairlead.errors import UserError
from fairlead.wire.text.printable_address import printable_address

_HINT: Final = "write it whole, for example `http://gpu-1:9400/metrics`"


class PageAddress(Struct, frozen=True):
    """`login`: the value of the header Authorization, "" = none."""

    url: str
    login: str = ""


def page_address(text: str) -> PageAddress:
    """The address. Raises UserError when it is malformed; the message contains no password.

    >>> page_address("http://ann:s%40x@gpu-1:9400/metrics")
    PageAddress(url='http://gpu-1:9400/metrics', login='Basic YW5uOnNAeA==')
    """
    scheme, _, rest = text.partition("://")
    ends_at = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    who, at, host = rest[:ends_at].rpartition("@")
    url = f"{scheme}://{host}{rest[ends_at:]}" if at else text
    if scheme not in ("http", "https") or not rest:
        raise UserError(f"`{printable_address(url)}` is no address of an exporter's page", _HINT)
    if "@" in rest[ends_at:]:
        raise UserError(
            "an address of an exporter's page has an `@` after its host",
            "write `/` of a password as `%2F`, and `@` as `%40`",
        )
    if not _has_host(url):
        raise UserError(
            (
                f"`{printable_address(url)}` is no address of an exporter's page: it has no usable "
                "host or port"
            ),
            _HINT,
        )
    user, _, password = who.partition(":")
    return PageAddress(url, basic(unquote(user), unquote(password)) if at else "")


def _has_host(url: str) -> bool:
    """Whether the URL has a host, closed brackets around an IPv6 address, and no malformed port."""
    try:
        parts = urlsplit(url)
        return (
            bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
            and not any(each.isspace() for each in parts.netloc)
        )
    except ValueError:
        return False
