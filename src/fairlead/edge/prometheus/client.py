"""Instant and range queries to Prometheus, for services (`ports.Series`)."""

from __future__ import annotations

import asyncio
import os

import aiohttp
from yarl import URL

from fairlead import __version__
from fairlead.edge.connection.connection import Connection, make_ssl_context
from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.proxy import proxy_for, through_proxy
from fairlead.edge.prometheus.answer import (
    QUERY_PATH,
    RANGE_PATH,
    TIMEOUT_SECONDS,
    VERSION_PATH,
    PrometheusFailure,
    PrometheusSample,
    instant_form,
    parse_instant,
    parse_range,
    parse_version,
    range_form,
)
from fairlead.ports import SeriesLine

NAME = "prometheus"


class Prometheus:
    """One Prometheus. `address.prometheus_connection` makes `connection`. Close it when done."""

    name = NAME

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session: aiohttp.ClientSession | None = None
        self._proxy = proxy_for(connection.server, None, os.environ)

    @property
    def address(self) -> str:
        return self._connection.server

    async def __aenter__(self) -> Prometheus:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def query(self, promql: str, at: float | None = None) -> list[PrometheusSample]:
        """The expression's value at a time (now by default). Raises PrometheusFailure."""
        return parse_instant(self.address, *await self._post(QUERY_PATH, instant_form(promql, at)))

    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        status, body = await self._post(RANGE_PATH, range_form(promql, start, end, step))
        return [
            SeriesLine(row.labels, row.points)
            for row in parse_range(self.address, status, body, step)
        ]

    async def version(self) -> str:
        """Its version; "" = unknown (another program with the same API).

        Raises PrometheusFailure.
        """
        return parse_version(*await self._ask("GET", VERSION_PATH))

    async def _post(self, path: str, form: bytes) -> tuple[int, bytes]:
        return await self._ask("POST", path, form)

    async def _ask(self, method: str, path: str, form: bytes | None = None) -> tuple[int, bytes]:
        credentials = self._connection.credentials
        issued = (
            credentials.current()
            if credentials.is_fresh
            else await asyncio.to_thread(credentials.current)
        )
        headers = {"User-Agent": f"fairlead/{__version__}"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        if issued.authorization:
            headers["Authorization"] = issued.authorization
        try:
            async with self._open_session().request(
                method,
                URL(self.address + path, encoded=True),
                data=form,
                headers=headers,
                allow_redirects=False,
                **through_proxy(self._proxy),
            ) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            peer, where, authority = (
                f"Prometheus `{self.address}`",
                "of Prometheus in the settings",
                "`--prometheus-ca-file`",
            )
            what, hint = explain_connection(
                peer, where, self.address, error, authority=authority, proxy=self._proxy
            )
            raise PrometheusFailure(what, hint) from error

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            context = make_ssl_context(self._connection, None) if self._connection.is_tls else False
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session
