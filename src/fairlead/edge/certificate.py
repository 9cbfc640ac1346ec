"""Until when does a certificate hold, and whom does it name? Two questions, so a small walk over the DER and no crypto library.

Trust is OpenSSL's business and is decided elsewhere; what is read here only makes messages better.
"""

from __future__ import annotations

import base64
import calendar
import re
from collections.abc import Iterator

from fairlead.edge.timestamp import render_rfc3339
from fairlead.errors import UserError

_FIRST_PEM_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
_COMMON_NAME = bytes([0x55, 0x04, 0x03])  # object identifier 2.5.4.3
_UTC_TIME, _CONTEXT_0, _SEQUENCE, _OBJECT_IDENTIFIER = 0x17, 0xA0, 0x30, 0x06


def check_not_expired(pem: bytes, what: str, now: float) -> None:
    """Raises UserError when the certificate's time is over. A certificate that cannot be read is left to OpenSSL to judge."""
    ends_at = valid_until(pem)
    if ends_at is not None and ends_at < now:
        raise UserError(f"{what} expired at {render_rfc3339(ends_at)}", "get a new certificate, and put it into the kubeconfig")


def valid_until(pem: bytes) -> float | None:
    """notAfter of the first certificate in epoch seconds; None when it cannot be read."""
    try:
        _, validity, _ = _issuer_validity_subject(pem)
        _, (tag, value) = _elements(validity)
        return _parse_time(tag, value.decode("ascii"))
    except (ValueError, IndexError):
        return None


def common_name(pem: bytes) -> str | None:
    """The subject's common name: the user name that the API server sees. None when there is none."""
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
