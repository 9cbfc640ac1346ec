"""Prometheus queries for the command line: the blocking counterpart of `client`."""

from __future__ import annotations

import http.client
import os
import time

from fairlead import __version__
from fairlead.edge.connection.connection import Connection, make_ssl_context
from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.http_blocking import open_connection, request_target
from fairlead.edge.connection.proxy import proxy_for
from fairlead.edge.prometheus.answer import (
    QUERY_PATH,
    RANGE_PATH,
    TIMEOUT_SECONDS,
    PrometheusFailure,
    PrometheusSample,
    SampleRow,
    instant_form,
    parse_instant,
    parse_range,
    range_form,
)


class PrometheusBlocking:
    """One Prometheus; a connection per query.

    `address.prometheus_connection` makes `connection`.
    """

    def __init__(self, connection: Connection, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._connection = connection
        self._timeout = timeout_seconds
        self._proxy = proxy_for(connection.server, None, os.environ)

    @property
    def address(self) -> str:
        return self._connection.server

    def query(self, promql: str, at: float | None = None) -> list[PrometheusSample]:
        """The expression's value at a time (now by default). Raises PrometheusFailure."""
        return parse_instant(self.address, *self._post(QUERY_PATH, instant_form(promql, at)))

    def query_range(self, promql: str, start: float, end: float, step: float) -> list[SampleRow]:
        status, body = self._post(RANGE_PATH, range_form(promql, start, end, step))
        return parse_range(self.address, status, body, step)

    def _post(self, path: str, form: bytes) -> tuple[int, bytes]:
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": f"fairlead/{__version__}",
        }
        headers.update(self._connection.headers())
        context = make_ssl_context(self._connection, None) if self._connection.is_tls else None
        line = open_connection(
            self.address,
            context=context,
            proxy=self._proxy,
            read_seconds=self._timeout,
            connect_seconds=self._timeout,
        )
        deadline = time.monotonic() + self._timeout
        try:
            line.request("POST", request_target(self.address, path, self._proxy), form, headers)
            response = line.getresponse()
            return response.status, _read_until(response, deadline)
        except (OSError, http.client.HTTPException) as error:
            peer, where, authority = (
                f"Prometheus `{self.address}`",
                "of Prometheus in the settings",
                "`--prometheus-ca-file`",
            )
            what, hint = explain_connection(
                peer, where, self.address, error, authority=authority, proxy=self._proxy
            )
            raise PrometheusFailure(what, hint) from error
        finally:
            line.close()


def _read_until(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """The whole body; raises TimeoutError after the deadline, so that a slow trickle of bytes
    cannot hold a command for ever.
    """
    pieces = []
    while piece := response.read(1 << 18):
        pieces.append(piece)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(pieces)
