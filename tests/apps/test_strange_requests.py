"""Unusual paths, methods and framings, sent to every server of Fairlead, never cause a 500, a
traceback or a hang.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from tests.apps.every_server import SERVERS, TOKEN, WITH_TLS, WRITES, build_client, running
from tests.examples import long_case

PLACES = (
    b"/",
    b"/assets/",
    b"/nodes/",
    b"/api/v1/",
    b"/api/v1/nodes/",
    b"/api/v1/namespaces/default/pods/",
    b"/apis/",
    b"/openapi/v3/",
)
PLACES += (b"/gpushare-scheduler/inspect/", b"/metrics/", b"/scheduler/", b"/api/v1/pods")
ODDITIES = {
    "a name longer than a file's": b"a" * 256,
    "a name longer than a file's, in characters of three bytes": b"%E8%88%B0" * 86,
    "a path longer than a file's": b"a/" * 2500,
    "60 KB": b"a" * 60_000,
    "a NUL": b"%00",
    "a NUL in the middle": b"a%00b",
    "half of a surrogate pair": b"%ED%A0%80",
    "no UTF-8": b"%ff%fe",
    "raw bytes that are no ASCII": b"\xe8\x88\xb0\xff",
    "a bare percent sign": b"%",
    "a percent sign before letters": b"%zz",
    "a way up": b"../../../../etc/passwd",
    "a way up in escapes": b"%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "a way up with escaped slashes": b"..%2f..%2f..%2fetc%2fpasswd",
    "a way up with backslashes": b"..\\..\\etc\\passwd",
    "a folder": b"",
    "below a file": b"index.html/more",
    "slashes": b"//////",
    "a line break in escapes": b"%0d%0aSet-Cookie:%20a=b",
    "an escape sequence": b"%1b[31mred",
    "a NUL in the query": b"?watch=%00&limit=%00&labelSelector=%00&from=%00&q=%00",
    "no UTF-8 in the query": b"?labelSelector=%ff&fieldSelector=%ED%A0%80&sort=%ff",
    "a query of nothing": b"?" + b"&" * 2000,
    "a number beyond all": b"?limit=" + b"9" * 5000,
    "a version beyond all": b"?resourceVersion=" + b"9" * 5000,
    "a page beyond all": b"?size=1" + b"0" * 5000,
    "two signs": b"?limit=--5&timeoutSeconds=--5",
    (
        "digits that only some call digits"
    ): b"?limit=%C2%B2&resourceVersion=%C2%B2&size=%C2%B2&top=%C2%B2",
}
METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PROPFIND")


@pytest.fixture(autouse=True)
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built client for the console, with a link that leads out of the folder and one that leads
    to itself.
    """
    folder = build_client(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "out").symlink_to("/etc")
    monkeypatch.setattr("fairlead.console.http.web_files.DIST", folder)
    return folder


def status_of(answer: bytes) -> int:
    """The status of an answer; 0 when there is none."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else 0


def faults_of(answer: bytes) -> list[str]:
    """Faults of an answer, independent of the request."""
    status, body = status_of(answer), answer.partition(b"\r\n\r\n")[2]
    faults = [] if 200 <= status < 500 else [f"status {status}"]
    faults += [
        f"contains {word!r}"
        for word in (b"Traceback", b"bug of Fairlead", b"root:x:")
        if word in body
    ]
    if status >= 400 and len(body.splitlines()) > 1:
        faults.append(f"{len(body.splitlines())} lines")
    return faults


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()[:200]
        for record in caplog.records
        if record.levelno >= logging.ERROR or record.exc_info
    ]


@pytest.mark.parametrize(
    "server", [long_case(server) if server in WITH_TLS else server for server in SERVERS]
)
async def test_whatever_the_path_the_answer_is_no_bug(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    faults = {}
    async with running(server) as stranger:
        for place in PLACES:
            for oddity, tail in ODDITIES.items():
                faults[f"{place.decode()} + {oddity}"] = faults_of(await stranger.ask(place + tail))
    assert {case: found for case, found in faults.items() if found} == {}
    assert complaints(caplog) == []


@pytest.mark.parametrize("server", SERVERS)
async def test_whatever_the_method_the_answer_is_no_bug(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    faults = {}
    async with running(server) as stranger:
        for method in METHODS:
            for target in (
                b"/",
                b"*",
                b"localhost:80",
                b"http://localhost",
                b"http://localhost/metrics",
                b"/" + b"a" * 256,
            ):
                answer = await stranger.ask(target, method, b"Content-Length: 2\r\n", b"{}")
                faults[f"{method.decode()} {target[:20].decode()}"] = faults_of(answer)
    assert {case: found for case, found in faults.items() if found} == {}
    assert complaints(caplog) == []


@pytest.mark.parametrize(
    "path",
    [b"/" + b"a" * 256, b"/assets/" + b"a" * 256, b"/" + b"a/" * 2500, b"/%00", b"/nodes/a%00b"],
)
async def test_a_path_that_no_page_can_have_is_reported_so(path: bytes) -> None:
    async with running("console") as stranger:
        answer = await stranger.ask(path)
    assert status_of(answer) == 404
    assert b'"code":"not-found"' in answer and len(answer.partition(b"\r\n\r\n")[2]) < 600


@pytest.mark.parametrize("path", [b"/loop", b"/loop/file", b"/out/passwd", b"/assets", b"/assets/"])
async def test_links_and_folders_of_the_client_are_no_files(path: bytes) -> None:
    async with running("console") as stranger:
        answer = await stranger.ask(path, headers=b"Accept: image/png\r\n")
    assert status_of(answer) == 404, answer


@pytest.mark.parametrize("server", SERVERS)
async def test_two_hosts_are_refused(server: str) -> None:
    """RFC 9112, 3.2: a proxy in front of the server may have used the first host, and the server
    the second.
    """
    async with running(server) as stranger:
        assert status_of(await stranger.ask(b"/healthz")) in (200, 404)
        for second in (b"Host: localhost\r\n", b"HOST: other.example\r\n"):
            assert status_of(await stranger.ask(b"/healthz", headers=second)) == 400


@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_that_stops_while_a_request_is_read_logs_no_traceback(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(server) as stranger:
        reader, writer = await stranger.connect()
        path = b"/gpushare-scheduler/bind" if "extender" in server else b"/scheduler"
        head = (
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            b"application/json\r\nContent-Length: 100\r\n\r\n{"
        ) % path
        writer.write(head)
        await writer.drain()
        await stranger.ask(b"/healthz")  # the server has read what came before this request
    assert complaints(caplog) == []
    await reader.read()
    writer.close()


HEADER_NAMES = (
    *(
        "Host",
        "Authorization",
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Origin",
        "Sec-Fetch-Site",
        "If-None-Match",
        "X-Request-Id",
    ),
    *(
        "Impersonate-User",
        "Impersonate-Group",
        "Impersonate-Uid",
        "Impersonate-Extra-%zz",
        "Connection",
        "Upgrade",
        "Expect",
        "Range",
    ),
    *("Cookie", "X-Forwarded-For", "Forwarded"),
)
HEADER_VALUES = (
    *(
        b"",
        b",",
        b";",
        b"=",
        b";;q=,;=",
        b"gzip;q=nan, *;q=inf",
        b"http://[",
        b"[",
        b"[::1",
        b"%00",
        b"\xff\xfe",
        b"\xe8\x88\xb0",
    ),
    *(
        b"Bearer",
        b"Bearer ",
        b"Bearer \xff",
        b"Bearer a.b.c",
        b"Bearer " + b"a." * 3000,
        b"Basic \xff",
        b"system:serviceaccount:a",
    ),
    *(
        b"application/json;as=Table;g=meta.k8s.io;v=v1",
        b"application/json; charset=\xff",
        b"close, upgrade",
        b"websocket",
        b"bytes=-1",
    ),
)


@pytest.mark.parametrize(
    "server", [long_case(server) if server in WITH_TLS else server for server in SERVERS]
)
async def test_whatever_the_headers_the_answer_is_no_bug(
    server: str, caplog: pytest.LogCaptureFixture
) -> None:
    """POST to a path that each server knows, with the header that makes the console read a body."""
    faults = {}
    async with running(server) as stranger:
        reported = re.search(rb'"csrf":"([^"]+)"', await stranger.ask(b"/api/v1/me"))
        csrf = b"X-Fairlead-Csrf: %s\r\n" % reported[1] if reported else b""
        for name in HEADER_NAMES:
            for value in HEADER_VALUES:
                usual = {
                    "Host": b"localhost",
                    "Authorization": b"Bearer %s" % TOKEN.encode(),
                    "Impersonate-User": b"somebody",
                }
                usual = {
                    each: printed
                    for each, printed in usual.items()
                    if each != name and (each[0] != "I" or name.startswith("Imp"))
                }
                host = b"".join(
                    b"%s: %s\r\n" % (each.encode(), printed) for each, printed in usual.items()
                )
                head = (
                    b"%s %s HTTP/1.1\r\n%s%s: %s\r\nContent-Length: 2\r\n%sContent-Type: "
                    b"application/json\r\nConnection: close\r\n\r\n{}"
                )
                answer = await stranger.say(
                    head % (b"POST", WRITES[server], host, name.encode(), value, csrf)
                )
                faults[f"{name}: {value[:40]!r}"] = faults_of(answer)
    assert {case: found for case, found in faults.items() if found} == {}
    assert complaints(caplog) == []
