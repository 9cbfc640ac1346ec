"""Reads the page of an exporter once, for a command: blocking, without aiohttp."""

from __future__ import annotations

import http.client
import os
import time
from typing import Final
from urllib.parse import urlsplit

from fairlead import __version__
from fairlead.edge.connection.http_blocking import open_connection, request_target
from fairlead.edge.connection.proxy import proxy_for
from fairlead.edge.prometheus.page_address import page_address
from fairlead.errors import OutsideError, UserError

TIMEOUT_SECONDS: Final = 5.0
LARGEST_PAGE_BYTES: Final = 64 << 20


def read_page(url: str) -> str:
    """The page's text.

    Raises UserError for a malformed address, OutsideError when it cannot be read.
    """
    address = page_address(url)
    url, headers = (
        address.url,
        {"User-Agent": f"fairlead/{__version__}"}
        | ({"Authorization": address.login} if address.login else {}),
    )
    if not _is_address(url):
        raise UserError(
            f"`{url}` is no address of an exporter's page",
            "write it whole, for example `http://localhost:9400/metrics`",
        )
    proxy = proxy_for(url, None, os.environ)
    line = open_connection(
        url, proxy=proxy, read_seconds=TIMEOUT_SECONDS, connect_seconds=TIMEOUT_SECONDS
    )
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        line.request("GET", request_target(url, "", proxy) or "/", headers=headers)
        response = line.getresponse()
        if response.status != 200:
            raise OutsideError(
                "exporter",
                f"the exporter's page `{url}` answers {response.status} {response.reason}",
            )
        return _read_until(response, url, deadline).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise OutsideError(
            "exporter",
            f"the exporter's page `{url}` cannot be read: {error or type(error).__name__}",
        ) from error
    finally:
        line.close()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme == "http"
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        return False


def _read_until(response: http.client.HTTPResponse, url: str, deadline: float) -> bytes:
    pieces, size = [], 0
    while piece := response.read(1 << 18):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST_PAGE_BYTES:
            raise OutsideError(
                "exporter",
                f"the exporter's page `{url}` is larger than {LARGEST_PAGE_BYTES >> 20} MiB",
            )
        if time.monotonic() > deadline:
            raise TimeoutError("it does not end")
    return b"".join(pieces)
