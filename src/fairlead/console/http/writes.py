"""The check of every write: it must come from the console's own page, or from a program on purpose.

A foreign web page can make a browser send requests here, but it can neither read the token of `/me`
nor set Fairlead's header or a JSON content type without a preflight request (CORS), and the browser
sends the origin of the request.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

from fairlead.console.http.answers import Refused

HEADER = "X-Fairlead-Csrf"
_OWN = ("same-origin", "none")


async def own_body(request: Request, csrf: str | None) -> bytes:
    """The body of a write that is allowed. `csrf`: None = the request has a token of its own in the
    header `Authorization`, which no foreign page can send.

    Raises Refused: 403 `csrf` for a strange one, 415 for what is not JSON.
    """
    if csrf is not None:
        check_token(request, csrf)
        check_origin(request)
    check_json(request)
    return await request.body()


def check_token(request: Request, csrf: str) -> None:
    """Raises Refused, 403 `csrf`, for a write that does not send the token of `/me` back."""
    given = request.headers.get(HEADER, "")
    if not hmac.compare_digest(given.encode(), csrf.encode()):
        what = f"the header `{HEADER}` is {'not the one of `/me`' if given else 'missing'}"
        raise Refused(403, what, f"read `csrf` from `/me` and send it as `{HEADER}`", code="csrf")


def check_origin(request: Request) -> None:
    """Raises Refused, 403 `csrf`, for a write that a browser sends from another page."""
    site, origin = request.headers.get("sec-fetch-site", ""), request.headers.get("origin", "")
    if (site and site not in _OWN) or (
        origin and not is_own(origin, request.headers.get("host", ""))
    ):
        raise Refused(
            403,
            f"this write comes from another page: `{(origin or site)[:100]}`",
            "use the console's own page",
            code="csrf",
        )


def check_json(request: Request) -> None:
    """Raises Refused, 415, for a body that is not JSON: a foreign page's form can be none."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise Refused(
            415,
            f"the content type is `{content_type[:100]}`",
            "send JSON with `Content-Type: application/json`",
        )


def is_own(origin: str, host: str) -> bool:
    """Whether a page of `origin` came from this `Host`.

    >>> origins = ("http://localhost:8080", "http://localhost:81", "https://evil.example", "null")
    >>> [is_own(origin, "localhost:8080") for origin in origins]
    [True, False, False, False]
    """
    try:
        return bool(host) and urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:  # `http://[`, for example, is no address at all
        return False
