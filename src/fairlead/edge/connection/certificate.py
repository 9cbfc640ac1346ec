"""Reads validity and name of a certificate with a small DER parser.

No cryptography library is loaded for that. OpenSSL decides whether a certificate is trusted; the
values read here only improve messages.
"""

from __future__ import annotations

import base64
import calendar
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from fairlead.edge.connection.timestamp import render_rfc3339
from fairlead.errors import UserError

_FIRST_PEM_BLOCK = re.compile(
    (
        rb"-----BEGIN "
        rb"CERTIFICATE-----(.+?)-----END CERTIFICATE-----"
    ),
    re.DOTALL,
)
_COMMON_NAME = bytes([0x55, 0x04, 0x03])  # object identifier 2.5.4.3
_UTC_TIME, _CONTEXT_0, _SEQUENCE, _OBJECT_IDENTIFIER = 0x17, 0xA0, 0x30, 0x06


ASK_SECONDS = 3.0
CLOCK_HINT = (
    "set this machine's clock; where it is right, the certificate was made by a machine whose "
    "clock is ahead"
)


def check_in_time(pem: bytes, what: str, now: float) -> None:
    """Raises UserError outside the certificate's validity.

    A certificate that cannot be parsed is left to OpenSSL.
    """
    begins_at, ends_at = validity(pem) or (now, now)
    if ends_at < now:
        raise UserError(
            f"{what} expired at {render_rfc3339(ends_at)}",
            "get a new certificate, and put it into the kubeconfig",
        )
    if now < begins_at:
        raise UserError(f"{what} is not valid yet: {not_yet(begins_at, now)}", CLOCK_HINT)


def not_yet(begins_at: float | None, now: float) -> str:
    """Both times, as far as they are known, so that a user can see which clock is wrong.

    >>> not_yet(60.0, 0.0)
    "it is valid from 1970-01-01T00:01:00Z, and this machine's clock is at 1970-01-01T00:00:00Z"
    """
    begin = (
        f"it is valid from {render_rfc3339(begins_at)}, and "
        if begins_at is not None and begins_at > now
        else ""
    )
    return f"{begin}this machine's clock is at {render_rfc3339(now)}"


def server_valid_from(server: str, server_name: str | None) -> float | None:
    """The begin of validity of the certificate of a URL's server, in epoch seconds, read without
    trusting it and without sending a request.

    None if it cannot be read: it only improves a message.
    """
    import socket
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    parts = urlsplit(server)
    try:
        with (
            socket.create_connection(
                (parts.hostname or "", parts.port or 443), ASK_SECONDS
            ) as line,
            context.wrap_socket(line, server_hostname=server_name or parts.hostname) as tls,
        ):
            shown = tls.getpeercert(binary_form=True)
    except (OSError, ValueError):
        return None
    found = validity(ssl.DER_cert_to_PEM_cert(shown).encode()) if shown else None
    return found[0] if found else None


def validity(pem: bytes) -> tuple[float, float] | None:
    """notBefore and notAfter of the first certificate in epoch seconds; None if it is malformed."""
    try:
        _, validity, _ = _issuer_validity_subject(pem)
        (begin_tag, begin), (end_tag, end) = _elements(validity)
        return _parse_time(begin_tag, begin.decode("ascii")), _parse_time(
            end_tag, end.decode("ascii")
        )
    except (ValueError, IndexError):
        return None


def common_name(pem: bytes) -> str | None:
    """The subject's common name, which the API server uses as the user name; None if absent."""
    try:
        _, _, subject = _issuer_validity_subject(pem)
        for _, relative_name in _elements(subject):
            for _, pair in _elements(relative_name):
                (_, key), (_, value) = _elements(pair)
                if key == _COMMON_NAME:
                    return value.decode("utf-8")
    except (ValueError, IndexError):
        pass
    return None


def _issuer_validity_subject(pem: bytes) -> tuple[bytes, bytes, bytes]:
    block = _FIRST_PEM_BLOCK.search(pem)
    if block is None:
        raise ValueError("no certificate block")
    [(_, certificate)] = _elements(base64.b64decode(block[1]))
    _, to_be_signed = next(_elements(certificate))
    parts = list(_elements(to_be_signed))
    if parts[0][0] == _CONTEXT_0:  # version: absent in version 1
        parts = parts[1:]
    return parts[2][1], parts[3][1], parts[4][1]


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of each element in a row of DER."""
    position = 0
    while position < len(der):
        tag, length = der[position], der[position + 1]
        position += 2
        if length >= 0x80:
            size = length - 0x80
            length = int.from_bytes(der[position : position + size], "big")
            position += size
        if position + length > len(der):
            raise ValueError("cut short")
        yield tag, der[position : position + length]
        position += length


def _parse_time(tag: int, text: str) -> float:
    """
    >>> _parse_time(0x17, "260105080000Z"), _parse_time(0x18, "20260105080000Z")
    (1767600000.0, 1767600000.0)
    """
    if tag == _UTC_TIME:  # two digits of the year: 50 and more are the last century's (RFC 5280)
        text = ("19" if text[:2] >= "50" else "20") + text
    year, *rest = (int(text[:4]), *(int(text[start : start + 2]) for start in range(4, 14, 2)))
    return float(calendar.timegm((year, *rest)))
