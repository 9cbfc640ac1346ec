"""Which connections use a proxy, by the rules of Go programs."""

from __future__ import annotations

import pytest

from fairlead.edge.connection.proxy import proxy_for

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_exempt"),
    [
        ("https://api.example", "", False),
        ("https://api.example", "*", True),
        ("https://api.example", "example", True),
        ("https://api.example", ".example", True),
        ("https://api.example", "pi.example", False),
        ("https://api.example:6443", "api.example:6443", True),
        ("https://api.example:6443", "api.example:443", False),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "11.0.0.0/8, nonsense/x", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost", "", True),
        ("https://[::1]:6443", "", True),
    ],
)
def test_no_proxy_and_loopback_go_straight(server: str, no_proxy: str, is_exempt: bool) -> None:
    assert proxy_for(server, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}) == (
        None if is_exempt else PROXY
    )


def test_the_kubeconfigs_proxy_is_used_even_for_loopback() -> None:
    assert proxy_for("https://127.0.0.1:6443", PROXY, {"NO_PROXY": "*"}) == PROXY


def test_the_variable_of_the_other_scheme_does_not_count() -> None:
    assert proxy_for("http://api.example", None, {"HTTPS_PROXY": PROXY}) is None
    assert (
        proxy_for("http://api.example", None, {"http_proxy": "proxy.example:1"})
        == "http://proxy.example:1"
    )
