"""Labels, UIDs and HPC jobs on the page of a running exporter, and all states of the HPC job
folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.apps.fakes import FakeDevices, FixedClock, device, process
from tests.jumping_loop import JumpingLoop

from fairlead.apps.configuration.card_jobs import CardJobs
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.apps.owner_names import OwnerNames, label_patterns
from fairlead.errors import UserError
from fairlead.model.devices.series_names import LocalPod


class Pods:
    """Pods of the API server."""

    def __init__(self) -> None:
        self.reported: dict[tuple[str, str], LocalPod] = {}

    async def run(self, news: Callable[[], None]) -> None:
        raise AssertionError("it does not run here")

    def latest(self) -> Mapping[tuple[str, str], LocalPod]:
        return self.reported


async def test_a_page_carries_what_is_reported_and_the_next_one_what_has_changed(
    tmp_path: Path,
) -> None:
    pods, chosen = Pods(), GpuExporterSettings(node="gpu-1", compat=("dcgm",))
    names = OwnerNames(pods, label_patterns(["^app$"]), CardJobs(tmp_path).jobs)
    exporter = GpuExporter(
        FakeDevices([device(processes=(process("job-1", "exclusive", 400, 15360, 42),))]),
        FixedClock(),
        chosen,
        names=names,
    )

    async def page() -> str:
        await exporter.refresh()
        return b"".join(exporter.page.pieces).decode()

    assert "app=" not in await page() and "hpc_job=" not in await page()
    pods.reported = {
        ("research", "job-1"): LocalPod(
            "research", "job-1", "u", "u", {"app": "train", "team": "vision"}
        )
    }
    (tmp_path / "0").write_text("4711\n\n 4711 \n4712\n")
    found = await page()
    assert 'app="train"' in found and "team=" not in found
    assert 'hpc_job="4711"' in found and 'hpc_job="4712"' in found
    pods.reported = {}
    (tmp_path / "0").unlink()
    assert "app=" not in await page() and "hpc_job=" not in await page()


async def test_labels_that_are_left_out_are_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods, chosen = Pods(), GpuExporterSettings(node="gpu-1", compat=("dcgm",))
    exporter = GpuExporter(
        FakeDevices([device()]), FixedClock(), chosen, names=OwnerNames(pods, ())
    )
    taken = {"exported_pod": "other", "job": "x", "instance": "y"}
    named = {"app.kubernetes.io/name": "a", "app_kubernetes_io_name": "b"}
    pods.reported = {
        ("ns", name): LocalPod("ns", name, labels={**taken, **named}) for name in ("p", "q")
    }
    for _ in range(2):
        await exporter.refresh()
    page = b"".join(exporter.page.pieces).decode().splitlines()
    assert [line for line in page if line.startswith("fairlead_exporter_pod_labels_left_out")] == [
        'fairlead_exporter_pod_labels_left_out{node_name="gpu-1",reason="owned"} 6',
        'fairlead_exporter_pod_labels_left_out{node_name="gpu-1",reason="collision"} 2',
    ]
    logged = [each.message for each in caplog.records if "is not printed" in each.message]
    assert sorted(each.split("`")[1] for each in logged) == [
        "app_kubernetes_io_name",
        "exported_pod",
        "instance",
        "job",
    ]
    pods.reported = {}
    await exporter.refresh()
    assert b'left_out{node_name="gpu-1",reason="owned"} 0' in b"".join(exporter.page.pieces)


async def test_where_no_labels_are_asked_for_none_is_left_out() -> None:
    pods = Pods()
    pods.reported = {("ns", "p"): LocalPod("ns", "p", labels={"job": "x"})}
    exporter = GpuExporter(
        FakeDevices([device()]),
        FixedClock(),
        GpuExporterSettings(node="gpu-1"),
        names=OwnerNames(pods),
    )
    await exporter.refresh()
    assert b"pod_labels_left_out" not in b"".join(exporter.page.pieces)


def test_a_crowd_of_pods_makes_one_page_and_another_after_a_pause() -> None:
    class Crowd(Pods):
        async def run(self, news: Callable[[], None]) -> None:
            while True:
                news()
                await asyncio.sleep(0.001)

    loop, reported = JumpingLoop(), list[float]()

    async def life() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await OwnerNames(Crowd()).run(lambda: reported.append(loop.time()))

    loop.run_until_complete(life())
    loop.close()
    assert reported[0] < 0.01 and 19 <= len(reported) <= 21, "the first at once, then two a second"


def test_a_folder_of_jobs_in_every_state(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = CardJobs(tmp_path / "jobs")
    assert files.jobs() == files.jobs() == {}
    (tmp_path / "jobs").mkdir()
    os.mkfifo(tmp_path / "jobs" / "1")
    (tmp_path / "jobs" / "2").write_bytes(b"\xff\xfe")
    (tmp_path / "jobs" / "3").write_text("x" * 100_000)
    (tmp_path / "jobs" / "4.2").write_text("b\na\n")
    (tmp_path / "jobs" / "5").write_text("")
    (tmp_path / "jobs" / "README").write_text("no")
    assert files.jobs() == files.jobs() == {"4.2": ("a", "b"), "5": ()}
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 4 and all("jobs of cards are not known" in each for each in logged), (
        "each fault once"
    )


def test_a_pattern_that_is_none_ends_the_start() -> None:
    with pytest.raises(UserError, match=r"`\(`"):
        label_patterns(["ok", "("])
