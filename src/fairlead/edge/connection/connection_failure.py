"""A message and a hint for a failed connection, from the exception of either HTTP client.

Both clients wrap the same causes (from OpenSSL, the resolver, the socket), so the innermost
exception is examined and no client is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlead.edge.connection.certificate import CLOCK_HINT, not_yet
from fairlead.wire.text.printable_address import printable_address, without_userinfo


def explain_connection(
    peer: str,
    where: str,
    address: str,
    error: BaseException,
    begins_at: float | None = None,
    now: Callable[[], float] = time.time,
    *,
    authority: str = "",
    proxy: str | None = None,
) -> tuple[str, str]:
    """(message, hint), both without user and password.

    `peer`: the server with its address; `where`: where its settings are.

    `authority`: the setting with the certificate authority; "" = the kubeconfig's field.
    `begins_at`: begin of validity of its certificate, if known. `proxy`: the proxy of the
    connection; the hint names it if the proxy is the cause.

    >>> refused = ConnectionRefusedError()
    >>> explain_connection("Prometheus `http://p`", "in settings", "http://p", refused)[0]
    'Prometheus `http://p` refused the connection'
    """
    what, hint = _explain(peer, where, address, error, begins_at, now, authority)
    if proxy and _is_proxys(error):
        hint = (
            f"check the proxy `{printable_address(proxy)}` (`proxy-url` in the kubeconfig, or "
            "HTTPS_PROXY and HTTP_PROXY)"
        )
    return without_userinfo(what), without_userinfo(hint)


def _is_proxys(error: BaseException) -> bool:
    """Whether a connection through a proxy failed at the proxy: name resolution and connecting
    are done for the proxy only, and its refusals come before any byte of the server.
    """
    cause = _root(error)
    is_of_http_client = isinstance(cause, OSError) and str(cause).startswith(
        "Tunnel connection failed"
    )
    return (
        is_of_http_client
        or isinstance(cause, ConnectionRefusedError)
        or type(cause).__name__ in ("gaierror", "ClientHttpProxyError")
    )


def _explain(
    peer: str,
    where: str,
    address: str,
    error: BaseException,
    begins_at: float | None,
    now: Callable[[], float],
    authority: str,
) -> tuple[str, str]:
    cause = _root(error)
    words = str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
    name = type(cause).__name__
    if is_not_yet_valid(error):
        return (
            f"the certificate of {peer} is not valid yet: {not_yet(begins_at, now())}"
        ), CLOCK_HINT
    if name == "SSLCertVerificationError":
        return _distrusted(
            peer, where, str(getattr(cause, "verify_message", "") or words), authority
        )
    if name.startswith("SSL"):
        return f"no TLS connection to {peer}: {_tls_words(cause)}", _tls_hint(
            _tls_words(cause), where, address
        )
    if name == "gaierror":
        return f"{peer} has an unknown host name: {words}", (
            f"check the address {where} and your DNS"
        )
    if isinstance(cause, ConnectionRefusedError):
        return f"{peer} refused the connection", f"check the address {where}, and that it runs"
    if isinstance(cause, TimeoutError):
        return f"{peer} did not answer in time", (
            "check the address, the network and a firewall in between"
        )
    if name in _CUT:
        return f"{peer} closed the connection {_CUT[name]}", (
            "it may be restarting; check it and the network"
        )
    return f"the connection to {peer} failed: {words}", "check the address and the network"


def is_not_yet_valid(error: BaseException) -> bool:
    """Whether a certificate was refused because it is not valid yet by this machine's clock."""
    return getattr(_root(error), "verify_code", None) == _NOT_YET_VALID


_NOT_YET_VALID = 9  # OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID
_CUT = {
    "TransferEncodingError": "in the middle of an answer",
    "ContentLengthError": "in the middle of an answer",
    "IncompleteRead": "in the middle of an answer",
    "ServerDisconnectedError": "without an answer",
    "RemoteDisconnected": "without an answer",
}


def _distrusted(peer: str, where: str, words: str, authority: str) -> tuple[str, str]:
    lower = words.lower()
    if "mismatch" in lower or "not valid for" in lower:
        hint = "use a name that is in its certificate" + (
            "" if authority else f", or set `tls-server-name` {where}"
        )
    elif "expired" in lower:
        hint = "the server's certificate must be renewed; check this machine's clock as well"
    elif authority:
        hint = f"name the certificate authority that signed it with {authority}"
    else:
        hint = (
            f"check the certificate authority (`certificate-authority`) {where}: the server is "
            "signed by another one"
        )
    return f"the certificate of {peer} is not trusted: {words}", hint


def _tls_words(cause: BaseException) -> str:
    return str(getattr(cause, "reason", None) or cause)


def _tls_hint(words: str, where: str, address: str) -> str:
    if "WRONG_VERSION_NUMBER" in words or "RECORD_LAYER_FAILURE" in words:
        return f"it seems to speak plain HTTP: try `{address.replace('https://', 'http://')}`"
    if "ALERT" in words:
        return "the server refused our TLS settings or client certificate"
    return f"check the address and the certificates {where}"


def _root(error: BaseException) -> BaseException:
    """The innermost exception: aiohttp has it in an attribute, other clients as the cause."""
    for _ in range(8):
        inner = (
            getattr(error, "certificate_error", None)
            or getattr(error, "os_error", None)
            or error.__cause__
        )
        # asyncio reports a time-out as a CancelledError
        if not isinstance(inner, Exception) or inner is error:
            break
        error = inner
    return error
