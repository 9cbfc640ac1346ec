"""The page's own files: the built client from `web_dist`.

Every index.html gets a nonce of its own.

Files with a hash in their name are immutable; index.html is never cached and contains the build's
name. Any other page that a browser requests is an address of the client (`/nodes/gpu-1`), so it
gets index.html too, unless the address is impossible.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

import fairlead
from fairlead.console.http.answers import Refused, bytes_answer
from fairlead.wire.text.accept_encoding import accepts_gzip

DIST: Final = Path(fairlead.__file__).parent / "web_dist"
_YEAR: Final = "public, max-age=31536000, immutable"
_COMPRESSED: Final = (".js", ".css", ".svg", ".json", ".html", ".txt", ".map")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_NOT_BUILT: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Fairlead</title>
<style nonce="{nonce}">
body{{font:15px/1.6 system-ui,sans-serif;margin:15vh auto;max-width:34em;color:#222}}
code{{background:#eee;padding:0 .3em}}</style>
<h1>The page is not built</h1>
<p>This server runs from a source tree without its client. The API under
<code>{base}api/v1</code> works.</p>
<p>Run <code>make up</code> in the source tree, then reload.</p></html>
"""

mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("font/woff2", ".woff2")


def web_answer(request: Request, path: str, base: str) -> Response:
    """The file at `path` (no leading slash) of the built client, or its index.html for a page's
    address.

    `base` ends with a slash.
    """
    file = _file(DIST, path)
    if file is not None and path != "index.html":
        return _asset(request, file, is_hashed=path.startswith("assets/"))
    if path.startswith("assets/") or not _wants_page(request):
        raise _no_file(path)
    return _index(request, DIST, base)


def page_build() -> str:
    """Which build of the page is served: the program's version and a digest of index.html.

    That file names every script by its hash. Only the version where the client was not built.
    """
    file = DIST / "index.html"
    return _build(file, file.stat().st_mtime_ns) if file.is_file() else fairlead.__version__


@lru_cache(maxsize=4)
def _build(file: Path, changed_ns: int) -> str:
    digest = hashlib.blake2b(_read(file, changed_ns), digest_size=6).hexdigest()
    return f"{fairlead.__version__}+{digest}"


def _file(dist: Path, path: str) -> Path | None:
    """The file, only if it really lies below `dist` (links and `..` resolved).

    Raises Refused for a path that no file can have.
    """
    if not path:
        return None
    try:
        file = (dist / path).resolve()
        return file if file.is_file() and file.is_relative_to(dist.resolve()) else None
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as error:  # too long, with a NUL, links in a circle (RuntimeError until Python 3.12)
        raise _no_file(path) from error


def _no_file(path: str) -> Refused:
    return Refused(
        404, f"there is no file `{path[:200]}`", "reload the page: it may have been built anew"
    )


def _wants_page(request: Request) -> bool:
    accept = request.headers.get("accept", "*/*")
    return "text/html" in accept or "*/*" in accept


def _asset(request: Request, file: Path, is_hashed: bool) -> Response:
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    data = _read(file, file.stat().st_mtime_ns)
    if not is_hashed:
        return bytes_answer(request, data, media_type)
    headers = {"Cache-Control": _YEAR, "Vary": "Accept-Encoding"}
    if file.suffix in _COMPRESSED and accepts_gzip(request.headers.get("accept-encoding", "")):
        data = _squeezed(file, file.stat().st_mtime_ns)
        headers["Content-Encoding"] = "gzip"
    return Response(data, 200, headers, media_type)


@lru_cache(maxsize=128)
def _read(file: Path, changed_ns: int) -> bytes:
    return file.read_bytes()


@lru_cache(maxsize=128)
def _squeezed(file: Path, changed_ns: int) -> bytes:
    """Compressed once at the best level, because every browser fetches it."""
    return gzip.compress(_read(file, changed_ns), 9, mtime=0)


def _index(request: Request, dist: Path, base: str) -> Response:
    nonce = secrets.token_urlsafe(16)
    file = dist / "index.html"
    page = (
        _read(file, file.stat().st_mtime_ns).decode()
        if file.is_file()
        else _NOT_BUILT.format(nonce=nonce, base=base)
    )
    page = page.replace("./assets/", f"{base}assets/").replace("./favicon", f"{base}favicon")
    page = (
        page.replace("__CSP_NONCE__", nonce)
        .replace("__BASE_PATH__", base)
        .replace("__BUILD__", page_build())
    )
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": _POLICY.format(nonce=nonce)}
    return Response(
        page.encode(), 200 if file.is_file() else 503, headers, "text/html; charset=utf-8"
    )
