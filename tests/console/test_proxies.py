"""Which client a request comes from: forwarded headers count only from proxies that are trusted."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from fairlead.console.http.proxies import Peer, Proxies
from fairlead.errors import UserError


def request_from(address: str | None, *headers: tuple[str, str], scheme: str = "http") -> Request:
    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    client = (address, 1234) if address is not None else None
    return Request(
        {
            "type": "http",
            "scheme": scheme,
            "server": ("localhost", 80),
            "path": "/",
            "query_string": b"",
            "client": client,
            "headers": [(b"host", b"localhost"), *sent],
        }
    )


@pytest.mark.parametrize(
    ("address", "headers", "peer"),
    [
        ("10.1.2.3", {}, Peer("10.1.2.3", False)),
        ("10.1.2.3", {"For": "203.0.113.1"}, Peer("203.0.113.1", False)),
        ("10.1.2.3", {"For": "203.0.113.1", "Proto": "https"}, Peer("203.0.113.1", True)),
        ("10.1.2.3", {"For": "6.6.6.6, 203.0.113.1"}, Peer("203.0.113.1", False)),
        ("10.1.2.3", {"For": "203.0.113.1, 10.9.9.9"}, Peer("203.0.113.1", False)),
        ("10.1.2.3", {"For": "203.0.113.1, nonsense"}, Peer("10.1.2.3", False)),
        ("10.1.2.3", {"Proto": "https, http"}, Peer("10.1.2.3", False)),
        ("::ffff:10.1.2.3", {"For": "2001:db8::1"}, Peer("2001:db8::1", False)),
        ("192.0.2.1", {"For": "203.0.113.1", "Proto": "https"}, Peer("192.0.2.1", False)),
        (None, {"For": "203.0.113.1"}, Peer("", False)),
    ],
)
def test_only_what_a_trusted_proxy_adds_counts(
    address: str | None, headers: dict[str, str], peer: Peer
) -> None:
    sent = [(f"X-Forwarded-{name}", value) for name, value in headers.items()]
    assert Proxies(["10.0.0.0/8"]).peer(request_from(address, *sent)) == peer


def test_a_connection_with_tls_needs_no_header() -> None:
    assert Proxies().peer(request_from("192.0.2.1", scheme="https")) == Peer("192.0.2.1", True)


def test_a_proxy_that_is_no_address_is_an_error() -> None:
    with pytest.raises(UserError) as caught:
        Proxies(["gpu.example"])
    assert caught.value.what == "`gpu.example` is no address of a proxy"
