"""A /metrics page, made once and sent to every scraper: plain and gzip bytes.

Nothing is computed while a scraper waits. The whole value is replaced, so a scrape sees one moment,
and two scrapes of it are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from isal import isal_zlib
from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead.errors import UserError
from fairlead.wire.metrics.prom_text import CONTENT_TYPE
from fairlead.wire.text.accept_encoding import accepts_gzip

_GZIP_WINDOW: Final = 31
_LEVEL: Final = 1
_PIECE_BYTES: Final = 1 << 20
_process = CollectorRegistry()
ProcessCollector(registry=_process)


class MetricsPage(Struct, frozen=True):
    """A page.

    `pieces` together are its text, large ones are never joined; `gzipped` is compressed.
    """

    pieces: tuple[bytes, ...] = ()
    gzipped: bytes = b""
    size: int = 0


def make_page(pieces: Iterable[bytes]) -> MetricsPage:
    """Compress and keep the page.

    Pieces arrive one by one, so that their texts need not exist at once.
    """
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW)
    kept: list[bytes] = []
    zipped: list[bytes] = []
    for piece in pieces:
        kept.append(piece)
        zipped.append(compressor.compress(piece))
    zipped.append(compressor.flush())
    return MetricsPage(tuple(kept), b"".join(zipped), sum(len(piece) for piece in kept))


def parse_compat(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Families to print beside the native ones, from `dcgm,legacy`, in the order of `known`.

    "" or `none` means none.

    >>> parse_compat("legacy, dcgm", ("dcgm", "legacy", "custom")), parse_compat("none", ("arena",))
    (('dcgm', 'legacy'), ())
    """
    asked = {part.strip() for part in text.split(",")} - {"", "none"}
    if unknown := sorted(asked - set(known)):
        raise UserError(
            f"`{unknown[0]}` is no family of `--compat`",
            f"choose from {', '.join(known)}, or `none`",
        )
    return tuple(each for each in known if each in asked)


def process_metrics() -> bytes:
    """CPU, memory and file descriptors of this process, as the
    official client library counts them.
    """
    return generate_latest(_process)


class PageResponse(Response):
    """The page, in the encoding that the scraper accepts.

    A slow scraper delays only its own task, by the transport's flow control.
    """

    def __init__(self, page: MetricsPage, request: Request) -> None:
        super().__init__(headers={"content-type": CONTENT_TYPE, "vary": "Accept-Encoding"})
        is_zipped = accepts_gzip(request.headers.get("accept-encoding", ""))
        self._pieces = (page.gzipped,) if is_zipped else page.pieces
        self.headers["content-length"] = str(len(page.gzipped) if is_zipped else page.size)
        if is_zipped:
            self.headers["content-encoding"] = "gzip"
        self._is_head = request.method == "HEAD"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        for piece in () if self._is_head else self._pieces:
            for start in range(0, len(piece), _PIECE_BYTES):
                await send(
                    {
                        "type": "http.response.body",
                        "body": piece[start : start + _PIECE_BYTES],
                        "more_body": True,
                    }
                )
        await send({"type": "http.response.body", "body": b"", "more_body": False})
