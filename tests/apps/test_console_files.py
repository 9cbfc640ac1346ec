"""The files of the web page: its nonce, its caching, and no other file is served."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
from pathlib import Path

import pytest
from tests.apps.every_server import build_client
from tests.apps.running_console import console

import fairlead
from fairlead.apps.console_server import ConsoleSettings


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    build_client(tmp_path)
    monkeypatch.setattr("fairlead.console.http.web_files.DIST", tmp_path)
    return tmp_path


async def test_the_page_gets_a_nonce_of_its_own_and_is_never_cached(dist: Path) -> None:
    async with console() as page:
        status, headers, body = await page.get("/")
        _, again, _ = await page.get("/")
    nonce = re.search(rb'content="([^"]+)"', body)
    assert status == 200 and nonce is not None
    assert f"'nonce-{nonce[1].decode()}'" in headers["Content-Security-Policy"]
    assert headers["Content-Security-Policy"] != again["Content-Security-Policy"]
    assert "script-src 'self';" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("path", ["/overview", "/nodes/gpu-1", "/jobs?job_status=Pending"])
async def test_an_address_of_the_client_is_its_page(dist: Path, path: str) -> None:
    async with console() as page:
        status, headers, body = await page.get(path, headers={"Accept": "text/html"})
        assert (await page.get(path, headers={"Accept": "image/png"}))[0] == 404
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b'src="/assets/index-abc123.js"' in body


async def test_below_a_base_path_the_page_points_there(dist: Path) -> None:
    async with console(settings=ConsoleSettings(base_path="/gpu/")) as page:
        _, _, body = await page.get("/gpu/nodes")
        assert b'src="/gpu/assets/index-abc123.js"' in body and b'href="/gpu/favicon.svg"' in body
        assert (await page.get("/gpu/assets/index-abc123.js"))[0] == 200


async def test_hashed_files_are_kept_for_ever_and_compressed(dist: Path) -> None:
    async with console() as page:
        _, headers, body = await page.get(
            "/assets/index-abc123.js", headers={"Accept-Encoding": "gzip"}
        )
        _, icon, _ = await page.get("/favicon.svg")
    assert "immutable" in headers["Cache-Control"] and headers["Content-Type"].startswith(
        "text/javascript"
    )
    assert gzip.decompress(body) == b"let a = 1;" * 500
    assert "immutable" not in icon["Cache-Control"] and icon["Content-Type"] == "image/svg+xml"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/assets/../../secret",
        "/%2e%2e/secret",
        "/assets/%2e%2e%2f%2e%2e%2fsecret",
        "/%00",
    ],
)
async def test_no_file_outside_the_client_is_served(dist: Path, path: str) -> None:
    (dist.parent / "secret").write_text("secret words")
    reader, writer = None, None
    async with console() as page:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(page.url.rsplit(":", 1)[1]))
        writer.write(
            (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").encode()
        )
        body = await reader.read()
        writer.close()
    assert b"secret words" not in body and body.startswith(b"HTTP/1.1 ")


async def test_a_client_that_was_not_built_is_reported_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.console.http.web_files.DIST", tmp_path / "none")
    async with console() as page:
        status, headers, body = await page.get("/")
    assert status == 503 and b"make up" in body and headers["Content-Type"].startswith("text/html")


async def test_a_page_carries_the_build_that_its_server_reports_and_another_page_another(
    dist: Path,
) -> None:
    builds = []
    for script in ("index-aaa.js", "index-bbb.js"):
        (dist / "index.html").write_text(
            '<meta name="fairlead-build" content="__BUILD__"><script '
            f'src="./assets/{script}"></script>'
        )
        os.utime(dist / "index.html", ns=(len(builds) + 1, len(builds) + 1))
        async with console() as page:
            _, _, body = await page.get("/")
            builds.append((await page.json("/me"))["build"])
        assert f'content="{builds[-1]}"'.encode() in body
    assert builds[0] != builds[1] and all(
        build.startswith(f"{fairlead.__version__}+") for build in builds
    )


async def test_a_server_without_a_page_reports_its_version_as_its_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.console.http.web_files.DIST", tmp_path / "none")
    async with console() as page:
        assert (await page.json("/me"))["build"] == fairlead.__version__
