"""When something outside fails, the boards show the truth or that it is unknown; never a wrong
zero.

Every fault ends with right numbers and a line in the log. Faults are real: a killed API server, a
full disk, a dead Prometheus. Answers that a healthy API server does not give come from the fault
proxy.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.kube.clocks import HOUR, clock_ahead
from tests.kube.company import build_company
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.counts import Counts, count
from tests.kube.fault_proxy import (
    FaultProxy,
    gone,
    running_fault_proxy,
    too_many_requests,
    with_malformed_item,
)
from tests.kube.laptop import running_laptop
from tests.kube.objects import pod
from tests.kube.prometheus import running_prometheus
from tests.kube.servers import FAIRLEAD, Page, Server, environment, fairlead_answer, running
from tests.waiting import HANG_SECONDS, wait_until

from fairlead.edge.files.snapshot_files import load_snapshot

OUTAGE_SECONDS = 20
STOP_SECONDS = 5
FREE_NODE = "gpu-12"


@pytest.fixture(scope="module")
def company() -> Iterator[ControlPlane]:
    """A cluster for these tests alone: after an outage its nodes are Unknown for a while, which
    must not reach other tests.
    """
    with running_control_plane() as cluster:
        build_company(cluster)
        yield cluster


@pytest.fixture(scope="module")
def counts(company: ControlPlane) -> Counts:
    return count(company.admin)


@pytest.fixture(scope="module")
def proxy(company: ControlPlane) -> Iterator[FaultProxy]:
    with running_fault_proxy(company) as running_proxy:
        yield running_proxy


@contextlib.contextmanager
def one_more_pod(cluster: ControlPlane, name: str) -> Iterator[None]:
    """A change that right boards must show: a pod with 8 GPUs, bound at creation. (A scheduler that
    lost its API server takes long.)
    """
    made = pod(name, namespace="research", gpus=8)
    made["spec"]["nodeName"] = FREE_NODE
    cluster.admin.create([made])
    try:
        yield
    finally:
        cluster.admin.delete("pod", name, "-n", "research")


def allocated(exporter: Server) -> float:
    return exporter.metrics().value("arena_allocated_gpus_of_cluster")


def wait_for_allocated(exporter: Server, gpus: float, seconds: float = 60) -> None:
    wait_until(
        f"the exporter shows {gpus:g} allocated GPUs",
        lambda: allocated(exporter) == pytest.approx(gpus),
        seconds,
    )


@pytest.fixture(scope="class")
def seen(
    company: ControlPlane, cluster_exporter: Server, console: Server
) -> list[tuple[Page, dict[str, Any] | None]]:
    """The values that exporter and console showed, each second of the outage."""
    answers = []
    company.components["kube-apiserver"].kill()
    try:
        for _ in range(OUTAGE_SECONDS):
            answers.append((cluster_exporter.metrics(), overview_or_nothing(console)))
            time.sleep(1)
    finally:
        company.start_component("kube-apiserver")
    return answers


@pytest.mark.turns(2, 0)
class TestApiServerKilled:
    def test_the_exporter_never_shows_a_wrong_number(
        self, seen: list[tuple[Page, Any]], counts: Counts
    ) -> None:
        for page, _ in seen:
            for name, truth in (
                ("total", counts.gpus),
                ("allocated", counts.allocated),
                ("unhealthy", counts.unhealthy),
            ):
                metric = f"arena_{name}_gpus_of_cluster"
                assert not page.has(metric) or page.value(metric) == pytest.approx(truth)

    def test_the_console_never_shows_a_wrong_number(
        self, seen: list[tuple[Page, Any]], counts: Counts
    ) -> None:
        answers = [overview for _, overview in seen if overview is not None]
        assert answers, "the console answered nothing at all during the outage"
        for overview in answers:
            assert (overview["gpus"]["total"], overview["gpuNodes"]["total"]) == (
                counts.gpus,
                len(counts.nodes),
            )
            assert overview["gpus"]["allocated"] == pytest.approx(counts.allocated)

    def test_both_follow_the_cluster_again(
        self,
        seen: list[tuple[Page, Any]],
        company: ControlPlane,
        cluster_exporter: Server,
        console: Server,
        counts: Counts,
    ) -> None:
        assert seen
        more = pytest.approx(counts.allocated + 8)
        with one_more_pod(company, "after-the-outage"):
            wait_until(
                lambda: (
                    f"the exporter shows {allocated(cluster_exporter)} allocated GPUs, kubectl "
                    f"{count(company.admin).allocated}; both should be {counts.allocated + 8}\n"
                    + cluster_exporter.component.log_tail()
                ),
                lambda: allocated(cluster_exporter) == more,
            )
            wait_until(
                "the console follows again",
                lambda: console.api("/overview")["gpus"]["allocated"] == more,
                60,
            )
        wait_for_allocated(cluster_exporter, counts.allocated)

    def test_the_logs_name_the_api_server(
        self,
        seen: list[tuple[Page, Any]],
        company: ControlPlane,
        cluster_exporter: Server,
        console: Server,
    ) -> None:
        assert seen
        for server in (cluster_exporter, console):
            lines = [
                line for line in server.log().splitlines() if f"127.0.0.1:{company.port}" in line
            ]
            assert lines, f"no line of the log names the API server:\n{server.component.log_tail()}"
            assert len(lines) < 20 * OUTAGE_SECONDS, "the log is flooded"


def overview_or_nothing(console: Server) -> dict[str, Any] | None:
    """None where the console answers 503; any other error fails the test."""
    try:
        overview: dict[str, Any] = console.api("/overview")
    except urllib.error.HTTPError as refusal:
        assert refusal.code == 503
        return None
    return overview


@pytest.mark.turns(2, 1)
class TestUnusualAnswers:
    @contextlib.contextmanager
    def exporter(self, company: ControlPlane, proxy: FaultProxy, name: str) -> Iterator[Server]:
        with running(
            "cluster-exporter",
            f"--kubeconfig={proxy.kubeconfig}",
            log=company.logs / f"exporter-{name}.log",
        ) as server:
            yield server

    def test_429_with_retry_after(
        self, company: ControlPlane, proxy: FaultProxy, counts: Counts
    ) -> None:
        fault = proxy.plan(too_many_requests("/api/v1/pods", seconds=2))
        started = time.monotonic()
        with self.exporter(company, proxy, "429") as server:
            wait_for_allocated(server, counts.allocated)
            assert (fault.strikes, time.monotonic() - started > 2) == (1, True)
            assert "asks to wait: slow down" in server.log(), server.component.log_tail()

    def test_a_malformed_object_costs_itself_only(
        self, company: ControlPlane, proxy: FaultProxy, counts: Counts
    ) -> None:
        faults = [
            proxy.plan(with_malformed_item(resource))
            for resource in ("/api/v1/pods", "nodes", "mpijobs")
        ]
        with self.exporter(company, proxy, "malformed") as server:
            wait_for_allocated(server, counts.allocated)
            page = server.metrics()
            assert page.value("arena_total_gpus_of_cluster") == counts.gpus
            assert len([s for s in page.samples if s.name == "arena_duration_of_training_job"]) == 5
            assert [fault.strikes for fault in faults] == [1, 1, 1]
            assert all(
                f"left out {resource}" in server.log() for resource in ("pods", "nodes", "mpijobs")
            ), server.component.log_tail()

    @pytest.mark.parametrize("resource", ["pods", "nodes"])
    def test_a_watch_answered_410(
        self, company: ControlPlane, proxy: FaultProxy, counts: Counts, resource: str
    ) -> None:
        with self.exporter(company, proxy, f"410-{resource}") as server:
            wait_for_allocated(server, counts.allocated)
            fault = proxy.plan(gone(f"/api/v1/{resource}"))
            proxy.close_streams()
            wait_until(f"the watch of {resource} met 410", lambda: fault.strikes == 1, 30)
            with one_more_pod(company, f"after-410-{resource}"):
                wait_for_allocated(server, counts.allocated + 8)
            wait_for_allocated(server, counts.allocated)
            assert re.search(
                (
                    r"410|too "
                    r"old|expired"
                ),
                server.log(),
                re.IGNORECASE,
            ), server.component.log_tail()


@pytest.mark.turns(2, 1)
class TestKilledOrFrozen:
    """A server shows nothing, or the truth of some moment, and soon that of now."""

    def test_the_console(self, company: ControlPlane, console: Server, counts: Counts) -> None:
        process, truths = console.component, {counts.allocated, counts.allocated + 8}
        process.freeze()
        with one_more_pod(company, "while-frozen"):
            with pytest.raises(OSError):
                console.get("/api/v1/overview", seconds=2)
            process.thaw()
            wait_until("it shows the pod", lambda: self.shows(console, truths)[1], 60)
            process.kill()
            with pytest.raises(OSError):
                console.get("/api/v1/overview", seconds=2)
        process.start()
        wait_until("it is ready", console.is_ready, 120)
        wait_until("the pod is gone", lambda: self.shows(console, truths)[0], 60)

    def shows(self, console: Server, truths: set[float]) -> tuple[bool, bool]:
        """Whether it shows the fewer and the more GPUs; nothing else may be shown."""
        overview = overview_or_nothing(console)
        if overview is None:
            return False, False
        allocated = overview["gpus"]["allocated"]
        assert allocated in truths
        return allocated == min(truths), allocated == max(truths)

    def test_the_gpu_exporter_whose_clock_is_an_hour_ahead(self, company: ControlPlane) -> None:
        flags = ("--backend=sim", "--sim-gpus=2xTesla-T4", "--collect-interval=500")
        log = company.logs / "gpu-exporter-frozen.log"
        with running("gpu-exporter", *flags, log=log, clock=HOUR) as exporter:
            wait_until("it prints both cards", lambda: _cards_of(exporter) == 2, 60)
            exporter.component.freeze()
            with pytest.raises(OSError):
                exporter.get("/metrics", seconds=2)
            exporter.component.thaw()
            wait_until("it prints both cards", lambda: _cards_of(exporter) == 2, 60)
            exporter.component.kill()
            with pytest.raises(OSError):
                exporter.get("/metrics", seconds=2)
            exporter.component.start()
            wait_until("it answers", exporter.answers, 60)
            wait_until("it prints both cards", lambda: _cards_of(exporter) == 2, 60)


def _cards_of(exporter: Server) -> int:
    """The cards of one page: all or none, never a part of them."""
    found = [s for s in exporter.metrics().samples if s.name == "DCGM_FI_DEV_GPU_TEMP"]
    assert len(found) in (0, 2)
    return len(found)


@pytest.mark.turns(2, 0)
class TestClockIsWrong:
    """Durations are those of the cluster, whatever the clock of a process shows."""

    BEGAN = datetime(2026, 1, 5, 8, tzinfo=UTC).timestamp()
    """When the job `bert` of the company began, by its status."""

    def test_an_hour_ahead_or_behind(self, company: ControlPlane) -> None:
        flag = f"--kubeconfig={company.kubeconfig}"
        log = company.logs / "clock-ahead.log"
        with running("cluster-exporter", flag, log=log, clock=HOUR) as exporter:
            wait_until("the exporter prints the job", lambda: _bert_of(exporter) > 0, 60)
            assert self.is_true(_bert_of(exporter))
        log = company.logs / "clock-behind.log"
        with running("console", flag, log=log, clock=-HOUR) as console:
            rows = {row["name"]: row for row in console.api("/jobs")["items"]}
            assert self.is_true(rows["bert"]["durationSeconds"])
            health = {row["name"]: row for row in console.api("/health")["items"]}
            assert health["clock-skew"]["state"] == "fail"

    def test_a_command_reads_the_cluster_of_its_time(
        self, company: ControlPlane, tmp_path: Path
    ) -> None:
        path = tmp_path / "saved"
        argv = [*FAIRLEAD, "snapshot", "save", str(path), f"--kubeconfig={company.kubeconfig}"]
        surroundings = environment() | clock_ahead(HOUR)
        subprocess.run(
            argv, env=surroundings, capture_output=True, timeout=HANG_SECONDS, check=True
        )
        assert abs(time.time() - load_snapshot(str(path)).snapshot.taken_at) < 300

    def is_true(self, shown: float) -> bool:
        """A page may be as old as a busy machine makes it, but not an hour."""
        return abs(time.time() - self.BEGAN - shown) < 300


def _bert_of(exporter: Server) -> float:
    name = "arena_duration_of_training_job"
    samples = exporter.metrics().samples
    return next((s.value for s in samples if s.name == name and "bert" in s.labels.values()), 0.0)


class TestScraperThatNeverReads:
    def test_others_are_served_and_the_end_is_in_time(
        self, company: ControlPlane, counts: Counts
    ) -> None:
        with running(
            "cluster-exporter",
            f"--kubeconfig={company.kubeconfig}",
            log=company.logs / "exporter-deaf.log",
        ) as server:
            deaf = [_ask_and_never_read(server.address) for _ in range(20)]
            started = time.monotonic()
            wait_for_allocated(server, counts.allocated)
            assert time.monotonic() - started < 30, "they that do not read hold it up"
            _stops_in_time(server)
            for connection in deaf:
                connection.close()


def _ask_and_never_read(address: str) -> socket.socket:
    host, port = address.split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    connection.connect((host, int(port)))
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    return connection


def _stops_in_time(server: Server) -> None:
    """After SIGTERM the process ends cleanly within five seconds."""
    os.kill(server.component.pid, signal.SIGTERM)
    wait_until("the process has ended", lambda: not server.component.is_running, STOP_SECONDS)
    assert server.component.exit_status == 0, server.component.log_tail()


class TestPrometheusGone:
    def test_tables_stay_and_charts_give_the_reason(
        self, company: ControlPlane, cluster_exporter: Server, counts: Counts
    ) -> None:
        with running_prometheus(
            {"cluster": cluster_exporter.address}, company.logs / "prometheus-gone.log"
        ) as prometheus:
            prometheus.wait_for_data("fairlead_cluster_gpus_allocated")
            flags = (f"--kubeconfig={company.kubeconfig}", f"--prometheus={prometheus.url}")
            with running("console", *flags, log=company.logs / "console-prometheus.log") as console:
                wait_until(
                    "the chart comes from Prometheus", lambda: _has_prometheus_chart(console), 30
                )
                prometheus.component.kill()
                with pytest.raises(urllib.error.HTTPError) as refusal:
                    console.api("/charts/cluster-gpus-allocated")
                answer = json.load(refusal.value)
                assert (refusal.value.code, answer["code"]) == (502, "outside-failed")
                assert prometheus.url in answer["error"]
                assert console.api("/overview")["gpus"]["allocated"] == pytest.approx(
                    counts.allocated
                )
                assert prometheus.url in console.log()
                prometheus.component.start()
                wait_until(
                    "the chart comes from Prometheus again",
                    lambda: _has_prometheus_chart(console),
                    30,
                )


def _has_prometheus_chart(console: Server) -> bool:
    now = int(time.time())
    try:
        chart = console.api(
            "/charts/cluster-gpus-allocated",
            step="1",
            to=str(now * 1000),
            **{"from": str((now - 60) * 1000)},
        )
    except urllib.error.HTTPError:
        return False
    return chart["source"] == "prometheus" and bool(chart["series"])


@pytest.mark.turns(2, 1)
class TestDiskFull:
    @pytest.fixture
    def full_disk(self, tmp_path: Path) -> Iterator[Path]:
        """A file system of 64 KiB without a free byte."""
        if os.geteuid() != 0:
            pytest.skip("mounting a small file system needs root")
        mounted = tmp_path / "full"
        mounted.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mounted)],
            check=True,
            timeout=HANG_SECONDS,
        )
        try:
            with (
                contextlib.suppress(OSError),
                (mounted / "filler").open("wb", buffering=0) as filler,
            ):
                while True:
                    filler.write(b"x" * 4096)
            yield mounted
        finally:
            subprocess.run(["umount", str(mounted)], check=True, timeout=HANG_SECONDS)

    def test_the_laptop_runs_without_its_state(
        self, full_disk: Path, company: ControlPlane
    ) -> None:
        log = company.logs / "laptop-full-disk.log"
        with running_laptop(log, state_home=full_disk) as laptop:
            total = laptop.console.api("/overview")["gpus"]["total"]
            assert total > 0
            assert laptop.cluster_exporter.metrics().value("arena_total_gpus_of_cluster") == total
            text = log.read_text()
            assert "no space left on device" in text.lower()
            assert str(full_disk) in text
            assert "Traceback" not in text

    @pytest.mark.parametrize("verb", [("snapshot", "save"), ("doctor", "--bundle")])
    def test_a_command_that_writes_a_file_leaves_none(
        self, full_disk: Path, company: ControlPlane, verb: tuple[str, str]
    ) -> None:
        path = full_disk / "written"
        ended = fairlead_answer(company.kubeconfig, *verb, str(path))
        assert ended.returncode == 2, ended.stderr
        assert str(path) in ended.stderr
        assert "no space left on device" in ended.stderr.lower()
        assert {each.name for each in full_disk.iterdir()} == {"filler"}
