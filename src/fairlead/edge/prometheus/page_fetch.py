"""Reads one page of a GPU exporter piece by piece, with limits of time and size."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

import aiohttp

from fairlead import __version__
from fairlead.edge.connection.connection import trust
from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.lines import LineSplitter
from fairlead.edge.connection.proxy import is_loopback
from fairlead.errors import OutsideError
from fairlead.wire.metrics.gpu_readings import METRICS, CardsOfPage
from fairlead.wire.metrics.prom_text import KnownLabels, parse_page

Done = TypeVar("Done")

TIMEOUT_SECONDS: Final = 10.0
LARGEST_PAGE_BYTES: Final = 256 << 20
LONGEST_LINE_BYTES: Final = 1 << 20
MOST_CARDS: Final = 200_000
PIECE_BYTES: Final = 1 << 20
_AT_ONCE_BYTES: Final = 16 << 10
"""Bytes that are parsed in the event loop, within a millisecond; a thread would take as long."""
_reader: Final = ThreadPoolExecutor(1, "exporter pages")
_NOT_A_PAGE: Final = "name the page of a GPU exporter (port 9400)"


class Fetch(Protocol):
    """The interface of `fetch_page`."""

    async def __call__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        node: str,
        *,
        login: str = "",
        keeps_open: bool = True,
    ) -> CardsOfPage: ...


class ExporterFailure(OutsideError):
    """A page could not be fetched or parsed."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__("exporter", what, hint)


def page_session(timeout_seconds: float, ca_pem: bytes | None = None) -> aiohttp.ClientSession:
    """A session for pages of many machines; it keeps no cookies.

    `ca_pem`: the authorities that sign the certificates of `https` pages; None = those of this
    machine.
    """
    context: ssl.SSLContext | bool = True
    if ca_pem is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust(context, ca_pem, "GPU exporters", "check the file of `--gpu-exporter-ca-file`")
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=timeout_seconds),
        headers={"User-Agent": f"fairlead/{__version__}"},
        connector=aiohttp.TCPConnector(limit=0, ssl=context),  # the reader bounds how many are open
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def fetch_page(
    session: aiohttp.ClientSession, url: str, node: str, *, login: str = "", keeps_open: bool = True
) -> CardsOfPage:
    """The cards of the page; raises ExporterFailure.

    `login`: value of the header Authorization, "" = none.

    `keeps_open`: keep the connection open until the next read.
    """
    try:
        headers = {} if keeps_open else {"Connection": "close"}
        if login:
            headers["Authorization"] = login
        if is_loopback(url):
            # on one machine unpacking costs more than sending
            headers["Accept-Encoding"] = "identity"
        async with session.get(url, headers=headers, allow_redirects=False) as response:
            if 300 <= response.status < 400:
                raise ExporterFailure(
                    f"page `{url}` answered {response.status}, which leads elsewhere",
                    "name the page itself; none is followed",
                )
            if response.status != 200:
                raise ExporterFailure(
                    f"page `{url}` answered {response.status}",
                    "check the address of the exporter",
                )
            return await _read_limited(response, url, CardsOfPage(node))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        what, hint = explain_connection(
            f"GPU exporter `{url}`",
            "of `--gpu-exporter`",
            url,
            error,
            authority="`--gpu-exporter-ca-file`",
        )
        raise ExporterFailure(what, hint) from error


async def _read_limited(
    response: aiohttp.ClientResponse, url: str, cards: CardsOfPage
) -> CardsOfPage:
    """Adds the page's samples piece by piece, large pieces in a thread, so that a page of many
    nodes neither is in memory as a whole nor delays other tasks.
    """
    splitter, known, size, unended = LineSplitter(), KnownLabels(), 0, 0
    with contextlib.closing(response):
        async for piece in _pieces(response):
            size += len(piece)
            lines = splitter.feed(piece)
            unended = 0 if lines else unended + len(piece)
            if size > LARGEST_PAGE_BYTES:
                raise ExporterFailure(
                    f"page `{url}` is larger than {LARGEST_PAGE_BYTES >> 20} MiB",
                    "name one exporter per node",
                )
            if unended > LONGEST_LINE_BYTES:
                raise ExporterFailure(
                    f"page `{url}` has a line of more than {LONGEST_LINE_BYTES >> 20} MiB",
                    _NOT_A_PAGE,
                )
            await _note(cards, lines, known)
            if len(cards) > MOST_CARDS:
                raise ExporterFailure(f"page `{url}` has more than {MOST_CARDS} GPUs", _NOT_A_PAGE)
    await _note(cards, splitter.feed(b"\n"), known)
    return cards


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The page in large pieces; most pages are a single piece."""
    held, size = list[bytes](), 0
    async for piece in response.content.iter_chunked(PIECE_BYTES):
        held.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


async def in_thread(work: Callable[..., Done], *given: object) -> Done:
    """The result of `work`, run in the one thread that all readers of pages share: several
    threads would delay the event loop.
    """
    return await asyncio.get_running_loop().run_in_executor(_reader, work, *given)


async def _note(cards: CardsOfPage, lines: bytes, known: KnownLabels) -> None:
    if len(lines) > _AT_ONCE_BYTES:
        await in_thread(_note_now, cards, lines, known)
    elif lines:
        _note_now(cards, lines, known)


def _note_now(cards: CardsOfPage, lines: bytes, known: KnownLabels) -> None:
    page = parse_page(lines.decode("utf-8", "replace"), METRICS, known)
    cards.note(page.samples, page.bad_lines)
