"""GPU values from exporter pages over HTTP: a bad page costs only its own values, stale values are
dropped, and the source contains the reason.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.edge.exporter_pages import native_page, running
from tests.kube.certificates import Authority
from tests.waiting import until

from fairlead.edge.prometheus import exporter_pages, followed_page, page_fetch
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.edge.prometheus.page_address import page_address
from fairlead.edge.prometheus.page_fetch import ExporterFailure, fetch_page, page_session
from fairlead.errors import UserError

LABELS = '{{node_name="{0}",gpu="0",uuid="GPU-{0}",model="T4"}}'
PAGE = f"fairlead_gpu_up{LABELS} 1\nfairlead_gpu_utilization_ratio{LABELS} {{1}}\n"
BEAT = 0.05


class Clock:
    at = 100.0

    def now(self) -> float:
        return self.at


class Exporters:
    """Serves `/a/metrics` and `/b/metrics`; `answers` has the content: a text, or a status.

    `hang` never answers, `trickle` sends a line now and then, `endless` one line without end,
    `flood` lines without end.
    """

    def __init__(self) -> None:
        self.answers: dict[str, str | int] = {
            "a": PAGE.format("n1", 0.5),
            "b": PAGE.format("n2", 0),
        }
        self.url = ""
        self.asked_encodings: list[str] = []
        self.asked: Counter[str] = Counter()
        self.logins: set[str] = set()
        self.connections: set[object] = set()
        self.hanging = self.most_hanging = 0
        self._end = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        answer = self.answers[name]
        self.asked[name] += 1
        self.logins.add(request.headers.get("Authorization", ""))
        self.connections.add(request.transport)
        self.asked_encodings.append(request.headers["Accept-Encoding"])
        if isinstance(answer, int):
            return web.Response(status=answer)
        if answer in ("hang", "trickle", "endless", "flood"):
            return await self._for_ever(request, answer)
        return web.Response(
            body=gzip.compress(answer.encode()), headers={"Content-Encoding": "gzip"}
        )

    async def _for_ever(self, request: web.Request, how: str) -> web.StreamResponse:
        self.hanging += 1
        self.most_hanging = max(self.most_hanging, self.hanging)
        try:
            if how == "hang":
                await self._end.wait()
            response = web.StreamResponse()
            await response.prepare(request)
            while not self._end.is_set():
                await response.write(
                    b"x" * 65536 if how == "endless" else PAGE.format("n9", 1).encode()
                )
                if how == "trickle":
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._end.wait(), BEAT)
            return response
        finally:
            self.hanging -= 1

    def pages(self, *names: str, **options: Any) -> ExporterPages:
        return ExporterPages(
            [f"{self.url}/{name}/metrics" for name in names],
            Clock(),
            **{"interval_seconds": BEAT, **options},
        )

    def end(self) -> None:
        self._end.set()


@pytest.fixture
async def exporters() -> AsyncIterator[Exporters]:
    made = Exporters()
    app = web.Application()
    app.router.add_get("/{name}/metrics", made.answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    made.end()
    await runner.cleanup()


def nodes(pages: ExporterPages) -> list[str]:
    return sorted(each.node for each in pages.latest())


async def test_nothing_is_packed_to_be_unpacked_on_the_same_machine(exporters: Exporters) -> None:
    async with running(exporters.pages("a")) as pages:
        await until(pages.latest)
    assert set(exporters.asked_encodings) == {"identity"}


async def test_all_pages_are_read(exporters: Exporters) -> None:
    pages = exporters.pages("a", "b")
    assert (pages.source().state, pages.tally().waiting) == ("syncing", 2)
    async with running(pages):
        await until(lambda: len(pages.latest()) == 2)
    found = sorted((each.node, each.utilization_ratio, each.read_at) for each in pages.latest())
    assert found == [("n1", 0.5, 100.0), ("n2", 0, 100.0)]
    assert (pages.source().state, pages.source().good_at) == ("ok", 100.0)
    tally = pages.tally()
    assert (tally.read, tally.failing, tally.waiting, tally.failures, tally.bad_lines) == (
        2,
        0,
        0,
        0,
        {},
    )
    assert tally.reads >= 2


async def test_a_page_means_the_same_in_whatever_pieces_it_comes(
    exporters: Exporters, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporters.answers["a"] = "".join(
        PAGE.format(f"n{number}", number / 10) for number in range(9)
    ).rstrip("\n")
    monkeypatch.setattr(page_fetch, "PIECE_BYTES", 37)
    async with running(exporters.pages("a")) as pages:
        await until(pages.latest)
    found = sorted((each.node, each.model, each.utilization_ratio) for each in pages.latest())
    assert found == [(f"n{n}", "T4", n / 10) for n in range(9)]


async def test_a_page_that_fails_keeps_its_values_until_they_are_stale(
    exporters: Exporters,
) -> None:
    ahead = 0.0
    async with running(
        exporters.pages("a", "b", stale_after_seconds=60, wall=lambda: time.monotonic() + ahead)
    ) as pages:
        await until(lambda: len(pages.latest()) == 2)
        exporters.answers["b"] = 500
        await until(lambda: pages.source().state == "failing")
        assert nodes(pages) == ["n1", "n2"]
        assert pages.source().message == f"page `{exporters.url}/b/metrics` answered 500"
        ahead += 61
        await until(lambda: nodes(pages) == ["n1"])
        assert (pages.tally().oldest_seconds or 0) < 61
        exporters.answers["b"] = PAGE.format("n2", 1)
        await until(lambda: nodes(pages) == ["n1", "n2"])
        assert pages.source().state == "ok"


async def test_readings_are_the_same_value_until_a_page_is_read_again(exporters: Exporters) -> None:
    async with running(exporters.pages("a", interval_seconds=3600)) as pages:
        await until(pages.latest)
        before = pages.latest()
        await pages.publish()
        assert pages.latest() is before


async def test_a_page_of_something_else_is_a_failure_not_an_empty_cluster(
    exporters: Exporters,
) -> None:
    exporters.answers["a"] = "go_goroutines 5\n<html>\n"
    async with running(exporters.pages("a")) as pages:
        await until(lambda: pages.source().state == "failing")
    assert pages.latest() == ()
    assert "has no GPU metrics" in pages.source().message
    assert "9400" in pages.source().hint


async def test_a_failure_is_logged_once_in_one_line_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(
        ExporterPages(["http://127.0.0.1:1/metrics"], Clock(), interval_seconds=0.01)
    ) as pages:
        await until(lambda: pages.tally().failures > 2)
    (record,) = caplog.records
    assert record.getMessage() == (
        "GPU exporter `http://127.0.0.1:1/metrics` refused the connection; hint: check the "
        "address of `--gpu-exporter`, and that it runs"
    )
    assert pages.source().message == (
        "GPU exporter `http://127.0.0.1:1/metrics` refused the connection"
    )


async def test_a_network_that_is_down_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    urls = [
        f"http://127.0.0.1:1/{number}/metrics" for number in range(3 * exporter_pages.MOST_NAMED)
    ]
    async with running(ExporterPages(urls, Clock(), interval_seconds=0.01)) as pages:
        await until(lambda: pages.tally().failing == len(urls))
    assert (
        len([each for each in caplog.records if each.levelname == "WARNING"])
        == exporter_pages.MOST_NAMED
    )
    assert f"(and {len(urls) - 1} more)" in pages.source().message


async def test_run_reads_on_a_beat_and_stops_when_cancelled(exporters: Exporters) -> None:
    pages = exporters.pages("a")
    task = asyncio.create_task(pages.run())
    await until(lambda: bool(pages.latest()))
    before = pages.latest()
    exporters.answers["a"] = PAGE.format("n1", 0.75)
    await until(lambda: pages.latest()[0].utilization_ratio == 0.75)
    assert pages.latest() is not before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(("kept", "is_one"), [(256, True), (0, False)])
async def test_connections_of_a_few_pages_are_kept_from_beat_to_beat(
    exporters: Exporters, monkeypatch: pytest.MonkeyPatch, kept: int, is_one: bool
) -> None:
    monkeypatch.setattr(exporter_pages, "KEPT_OPEN", kept)
    async with running(exporters.pages("a")) as pages:
        await until(lambda: pages.tally().reads >= 3)
        opened = len(exporters.connections)
    assert (opened == 1) is is_one


async def test_pages_that_hang_hold_up_no_other(exporters: Exporters) -> None:
    """Of two hundred pages ten never answer: meanwhile the others are read at their interval."""
    sound, hanging = [f"s{number}" for number in range(190)], [f"h{number}" for number in range(10)]
    exporters.answers = {name: PAGE.format(name, 0.5) for name in sound} | dict.fromkeys(
        hanging, "hang"
    )
    pages = exporters.pages(*hanging, *sound, interval_seconds=0.5, timeout_seconds=3600)
    async with running(pages):
        await until(lambda: len(pages.latest()) == 190)
        await until(lambda: min(exporters.asked[name] for name in sound) >= 4)
        assert [exporters.asked[name] for name in hanging] == [1] * 10
        assert exporters.hanging == 10
        tally = pages.tally()
        assert (tally.read, tally.failing, tally.waiting) == (190, 0, 10)


async def test_more_pages_hang_than_are_waited_for(
    exporters: Exporters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four pages are read at once and six more may hang: twenty that hang are abandoned early and
    reported; the others are read at their interval.
    """
    monkeypatch.setattr(exporter_pages, "AT_ONCE", 4)
    monkeypatch.setattr(exporter_pages, "SILENT_PAGES_AT_ONCE", 6)
    monkeypatch.setattr(followed_page, "PATIENCE_SECONDS", BEAT)
    sound, hanging = [f"s{number}" for number in range(10)], [f"h{number}" for number in range(20)]
    exporters.answers = {name: PAGE.format(name, 0.5) for name in sound} | dict.fromkeys(
        hanging, "hang"
    )
    async with running(exporters.pages(*hanging, *sound, timeout_seconds=3600)) as pages:
        await until(
            lambda: len(pages.latest()) == 10 and min(exporters.asked[name] for name in sound) >= 3
        )
        await until(lambda: min(exporters.asked[name] for name in hanging) >= 2)
        assert "did not answer in time" in pages.source().message
        await until(lambda: exporters.hanging <= 4 + 6)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("hang", "did not answer in time"),
        ("trickle", "did not answer in time"),
        ("endless", "has a line of more than 1 MiB"),
    ],
)
async def test_a_page_without_an_end_costs_only_itself(
    exporters: Exporters, how: str, message: str
) -> None:
    exporters.answers["b"] = how
    async with running(exporters.pages("b", "a", timeout_seconds=0.5)) as pages:
        await until(lambda: pages.source().state == "failing")
        before = exporters.asked["a"]
        await until(lambda: exporters.asked["a"] > before + 2)
    assert (nodes(pages), message in pages.source().message) == (["n1"], True), pages.source()


async def test_a_page_that_leads_elsewhere_is_not_followed() -> None:
    """Otherwise a page could make the reader request any address of the network, with the reader's
    permissions.
    """
    asked = list[str]()

    async def leads(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_get("/{any:.*}", leads)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
        async with page_session(5) as session:
            with pytest.raises(ExporterFailure, match=r"\b302\b"):
                await fetch_page(session, url, "")
    finally:
        await runner.cleanup()
    assert asked == ["/metrics"]


@pytest.mark.parametrize(
    "host", ["[::1", "::1]", "gpu:port", "gpu:99999", "", ":9400", "gp u", "[zz]"]
)
def test_an_address_without_a_usable_host_is_refused(host: str) -> None:
    with pytest.raises(UserError) as refused:
        page_address(f"http://ann:secret@{host}/metrics")
    assert "secret" not in f"{refused.value.what} {refused.value.hint}"


async def test_a_page_that_is_too_large_is_left(
    exporters: Exporters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_fetch, "LARGEST_PAGE_BYTES", 1 << 20)
    exporters.answers["b"] = "flood"
    async with running(exporters.pages("b", "a")) as pages:
        await until(lambda: pages.source().state == "failing" and pages.latest())
    assert (nodes(pages), pages.source().message) == (
        ["n1"],
        f"page `{exporters.url}/b/metrics` is larger than 1 MiB",
    )


async def test_a_page_of_more_cards_than_there_can_be_is_left(
    exporters: Exporters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_fetch, "MOST_CARDS", 5)
    exporters.answers["a"] = "".join(PAGE.format(f"n{number}", 0) for number in range(6))
    async with running(exporters.pages("a")) as pages:
        await until(lambda: pages.source().state == "failing")
    assert pages.source().message.endswith("has more than 5 GPUs")


@pytest.mark.parametrize(
    "answer",
    [
        b"what is this\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nfairlead_gpu_up",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n\xff\xfe\x00\x00\n\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
)
async def test_a_server_that_answers_garbage_costs_only_itself(
    exporters: Exporters, answer: bytes
) -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(garbage, "127.0.0.1", 0)
    bad = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"
    pages = ExporterPages([bad, f"{exporters.url}/a/metrics"], Clock(), interval_seconds=BEAT)
    async with running(pages):
        await until(
            lambda: (
                pages.source().state == "failing" and pages.latest() and exporters.asked["a"] > 2
            )
        )
    assert (nodes(pages), bad in pages.source().message) == (["n1"], True)
    assert "fault of Fairlead" not in pages.source().hint + pages.source().message
    server.close()


async def test_bad_lines_are_counted_by_page_and_reason(
    exporters: Exporters, caplog: pytest.LogCaptureFixture
) -> None:
    exporters.answers["a"] = PAGE.format("n1", 17) + "fairlead_gpu_up{ 1\n" + PAGE.format("n3", 0.5)
    async with running(exporters.pages("a", "b", interval_seconds=3600)) as pages:
        await until(lambda: len(pages.latest()) == 3)
    assert sorted((each.node, each.utilization_ratio) for each in pages.latest()) == [
        ("n1", None),
        ("n2", 0),
        ("n3", 0.5),
    ]
    url = f"{exporters.url}/a/metrics"
    assert pages.tally().bad_lines == {(url, "too_large"): 1, (url, "unreadable"): 1}
    (logged,) = [each.getMessage() for each in caplog.records if "are ignored" in each.getMessage()]
    assert logged.startswith(f"lines of page `{url}` are ignored: 1 too_large, 1 unreadable;")


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(UserError, match="`gpu-1:9400`"):
        ExporterPages(["gpu-1:9400"], Clock())


async def test_a_password_in_an_address_is_used_and_never_printed(
    exporters: Exporters, caplog: pytest.LogCaptureFixture
) -> None:
    exporters.answers["a"] = PAGE.format("n1", 17)
    exporters.answers["b"] = PAGE.format("n1", 1)
    names = ["a", "b", "c"]
    exporters.answers["c"] = 500
    urls = [
        f"{exporters.url}/{name}/metrics".replace("://", "://ann:hunter%402@") for name in names
    ]
    pages = ExporterPages(urls, Clock(), interval_seconds=BEAT)
    async with running(pages):
        await until(
            lambda: pages.tally().bad_lines and pages.tally().failures and pages.tally().twice
        )
    assert exporters.logins == {"Basic " + base64.b64encode(b"ann:hunter@2").decode()}
    logged = f"{pages.source()} {pages.tally()} {caplog.text}"
    assert f"{exporters.url}/c/metrics` answered 500" in logged
    assert not any(word in logged for word in ("hunter", "ann:", "@127"))


@pytest.mark.parametrize(
    "address",
    ["ftp://ann:hunter2@gpu-1/metrics", "http://ann:hunt/er2@gpu-1/metrics", "ann:hunter2@gpu-1"],
)
def test_an_address_that_is_refused_is_reported_without_its_password(address: str) -> None:
    with pytest.raises(UserError) as refused:
        ExporterPages([address], Clock())
    assert "hunt" not in refused.value.what + refused.value.hint


async def test_pages_of_a_private_authority_are_read_with_its_file(
    exporters: Exporters, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "exporters")
    pair = authority.issue("gpu-1", names=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    app = web.Application()
    app.router.add_get("/{name}/metrics", exporters.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/a/metrics"
    exporters.answers["a"] = PAGE.format("n1", 17)
    try:
        trusting = ExporterPages(
            [url], Clock(), interval_seconds=BEAT, ca_file=str(authority.certificate)
        )
        async with running(trusting):
            await until(lambda: trusting.latest())
        strange = ExporterPages([url], Clock(), interval_seconds=BEAT)
        async with running(strange):
            await until(lambda: strange.source().state == "failing")
        assert strange.source().hint == (
            "name the certificate authority that signed it with `--gpu-exporter-ca-file`"
        )
    finally:
        await runner.cleanup()


def test_a_file_of_no_authority_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"`--gpu-exporter-ca-file`.*`.*absent`"):
        ExporterPages([], Clock(), ca_file=str(tmp_path / "absent"))


def test_no_page_at_all_is_off() -> None:
    assert ExporterPages([], Clock()).source().state == "off"


def dcgm_page(node: str, uuid: str, used: int) -> str:
    labels = f'{{gpu="0",UUID="{uuid}",modelName="T4",Hostname="{node}"}}'
    values = {"GPU_UTIL": 50, "FB_USED": used, "FB_FREE": 15000 - used, "FB_RESERVED": 360}
    return "".join(f"DCGM_FI_DEV_{name}{labels} {value}\n" for name, value in values.items())


@pytest.mark.parametrize("many", [exporter_pages.MANY_TOGETHER, 1])
async def test_a_card_that_two_pages_report_counts_once(
    exporters: Exporters,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    many: int,
) -> None:
    monkeypatch.setattr(exporter_pages, "MANY_TOGETHER", many)
    exporters.answers |= {
        "a": dcgm_page("n1.example", "GPU-1", 9000),
        "b": native_page("n1", "GPU-1", 9001),
    }
    exporters.answers["c"] = native_page("n2", "GPU-2", 9002)
    async with running(exporters.pages("a", "b", "c")) as pages:
        await until(lambda: pages.tally().duplicates > 2 and len(pages.latest()) == 2)
    cards = pages.latest()
    assert {(each.node, each.uuid, each.memory_used_mib) for each in cards} == {
        ("n1", "GPU-1", 9001),
        ("n2", "GPU-2", 9002),
    }
    assert sum(each.memory_used_mib or 0 for each in cards) <= sum(
        each.memory_total_mib or 0 for each in cards
    )
    source = pages.source()
    message = (
        f"GPU `GPU-1` is reported by `{exporters.url}/b/metrics` and by "
        f"`{exporters.url}/a/metrics`; each counts once"
    )
    assert (source.state, source.message) == ("ok", message)
    assert source.hint.startswith("name one exporter of each card")
    assert [record.getMessage() for record in caplog.records] == [message]
    assert pages.tally().twice == 1
