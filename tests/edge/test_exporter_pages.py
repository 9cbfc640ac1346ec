"""GPU values from exporter pages over HTTP: one bad page costs only itself, stale values go, and the source says why."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.waiting import until

from fairlead.edge.prometheus import exporter_pages
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.errors import UserError

LABELS = '{{node_name="{0}",gpu="0",uuid="GPU-{0}",model="T4"}}'
PAGE = f"fairlead_gpu_up{LABELS} 1\nfairlead_gpu_utilization_ratio{LABELS} {{1}}\n"


class Clock:
    at = 100.0

    def now(self) -> float:
        return self.at


class Exporters:
    """Serves `/a/metrics` and `/b/metrics`; `answers` says what: a text, or a status."""

    def __init__(self) -> None:
        self.answers: dict[str, str | int] = {"a": PAGE.format("n1", 0.5), "b": PAGE.format("n2", 0)}
        self.url = ""
        self.asked_encodings: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        answer = self.answers[request.match_info["name"]]
        self.asked_encodings.append(request.headers["Accept-Encoding"])
        if isinstance(answer, int):
            return web.Response(status=answer)
        return web.Response(body=gzip.compress(answer.encode()), headers={"Content-Encoding": "gzip"})

    def pages(self, *names: str, **options: Any) -> ExporterPages:
        return ExporterPages([f"{self.url}/{name}/metrics" for name in names], Clock(), **options)


@pytest.fixture
async def exporters() -> AsyncIterator[Exporters]:
    made = Exporters()
    app = web.Application()
    app.router.add_get("/{name}/metrics", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


async def test_nothing_is_packed_to_be_unpacked_on_the_same_machine(exporters: Exporters, session: aiohttp.ClientSession) -> None:
    await exporters.pages("a").read_once(session)
    assert exporters.asked_encodings == ["identity"]


async def test_all_pages_are_read(exporters: Exporters, session: aiohttp.ClientSession) -> None:
    pages = exporters.pages("a", "b")
    assert pages.source().state == "syncing"
    await pages.read_once(session)
    assert [(each.node, each.utilization_ratio, each.read_at) for each in pages.latest()] == [("n1", 0.5, 100.0), ("n2", 0, 100.0)]
    assert (pages.source().state, pages.source().good_at) == ("ok", 100.0)


async def test_a_page_means_the_same_in_whatever_pieces_it_comes(
    exporters: Exporters, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporters.answers["a"] = "".join(PAGE.format(f"n{number}", number / 10) for number in range(9)).rstrip("\n")
    monkeypatch.setattr(exporter_pages, "PIECE_BYTES", 37)
    pages = exporters.pages("a")
    await pages.read_once(session)
    assert [(each.node, each.model, each.utilization_ratio) for each in pages.latest()] == [(f"n{n}", "T4", n / 10) for n in range(9)]


async def test_a_page_that_fails_keeps_its_values_until_they_are_stale(exporters: Exporters, session: aiohttp.ClientSession) -> None:
    wall = Clock()
    pages = exporters.pages("a", "b", stale_after_seconds=60, wall=wall.now)
    await pages.read_once(session)
    exporters.answers["b"] = 500
    await pages.read_once(session)
    assert [each.node for each in pages.latest()] == ["n1", "n2"]
    source = pages.source()
    assert (source.state, source.message) == ("failing", f"page `{exporters.url}/b/metrics` answered 500")
    wall.at += 61
    await pages.read_once(session)
    assert [each.node for each in pages.latest()] == ["n1"]
    exporters.answers["b"] = PAGE.format("n2", 1)
    await pages.read_once(session)
    assert [each.node for each in pages.latest()] == ["n1", "n2"]
    assert pages.source().state == "ok"


async def test_readings_are_the_same_value_until_a_page_is_read_again(exporters: Exporters, session: aiohttp.ClientSession) -> None:
    pages = exporters.pages("a")
    await pages.read_once(session)
    assert pages.latest() is pages.latest()


async def test_a_page_of_something_else_is_a_failure_not_an_empty_cluster(exporters: Exporters, session: aiohttp.ClientSession) -> None:
    exporters.answers["a"] = "go_goroutines 5\n<html>\n"
    pages = exporters.pages("a")
    await pages.read_once(session)
    assert pages.latest() == ()
    assert "has no GPU metrics" in pages.source().message
    assert "9400" in pages.source().hint


async def test_a_failure_is_logged_once_in_one_line_with_what_to_do(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    pages = ExporterPages(["http://127.0.0.1:1/metrics"], Clock())
    await pages.read_once(session)
    await pages.read_once(session)
    (record,) = caplog.records
    assert record.getMessage() == (
        "GPU exporter `http://127.0.0.1:1/metrics` refused the connection; hint: check the address of `--gpu-exporter`, and that it runs"
    )


async def test_an_exporter_that_is_not_there_is_named(session: aiohttp.ClientSession) -> None:
    pages = ExporterPages(["http://127.0.0.1:9/metrics"], Clock())
    await pages.read_once(session)
    assert pages.source().message == "GPU exporter `http://127.0.0.1:9/metrics` refused the connection"


async def test_run_reads_on_a_beat_and_stops_when_cancelled(exporters: Exporters) -> None:
    pages = exporters.pages("a", interval_seconds=0.05)
    task = asyncio.create_task(pages.run())
    await until(lambda: bool(pages.latest()))
    before = pages.latest()
    exporters.answers["a"] = PAGE.format("n1", 0.75)
    await until(lambda: pages.latest()[0].utilization_ratio == 0.75)
    assert pages.latest() is not before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(UserError, match="`gpu-1:9400` is no address"):
        ExporterPages(["gpu-1:9400"], Clock())


def test_no_page_at_all_is_off() -> None:
    assert ExporterPages([], Clock()).source().state == "off"
