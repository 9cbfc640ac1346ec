"""Parses the Accept-Encoding header: whether the client accepts gzip (RFC 9110, 12.5.3)."""

from __future__ import annotations


def accepts_gzip(header: str) -> bool:
    """Whether the weight of `gzip`, else that of `*`, is above 0; a malformed weight counts as 0.

    >>> [accepts_gzip(text) for text in ("gzip", "deflate, gzip;q=0.5", "gzip;q=0, *;q=0.1")]
    [True, True, False]
    >>> [accepts_gzip(text) for text in ("*", "", "identity", "*;q=0.5, gzip;q=0")]
    [True, False, False, False]
    """
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        name, _, parameters = part.strip().partition(";")
        weight = parameters.replace(" ", "").partition("q=")[2]
        try:
            weights[name.strip()] = float(weight) if weight else 1.0
        except ValueError:
            weights[name.strip()] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0
