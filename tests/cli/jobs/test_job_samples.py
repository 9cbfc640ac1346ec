"""`arena list`, `get` and `top job` print docs/spec/arena-cli-samples.md#output-of-the-job-commands
byte for byte, from API objects that describe the samples.

The legacy blocks follow the specification's text, which has no sample of them.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from tests.cli.api_objects import reading
from tests.cli.command import run_command
from tests.cli.job_objects import cluster, job, job_pod

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.snapshot import ClusterSnapshot

SAMPLES = Path(__file__).parents[2] / "golden" / "jobs"
NODE, IP = "cn-beijing.192.168.1.151", "192.168.1.151"
MPI = job("MPIJob", "mpi-test", {"Launcher": (1, 0), "Worker": (1, 1)})
PODS = [
    job_pod(MPI, "mpi-test-launcher-6fwhd", "launcher", on=NODE, ip=IP, owner="Job"),
    job_pod(MPI, "mpi-test-worker-0", "worker", gpus=1, on=NODE, ip=IP),
]
OLD = job(
    "TFJob",
    "tf-old",
    {"Worker": (4, 1)},
    states=["Running", "Succeeded"],
    created=-9000,
    started=-9000,
    ended=-9000 + 7300,
)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def card() -> GpuReading:
    """The GPU of the samples, held by the worker."""
    return msgspec.structs.replace(
        reading(NODE, 0, None, None, 98.0, [("default", "mpi-test-worker-0")]),
        memory_used_mib=15641.0,
        memory_total_mib=16276.0,
    )


def running(after: float) -> ClusterSnapshot:
    return cluster([MPI], PODS, after=after, readings=[card()])


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "line", "snapshot"),
    [
        ("S10", "list", cluster([OLD, MPI], PODS, after=8)),
        ("S11", "list -A", cluster([MPI], PODS, after=8)),
        ("S12", "get mpi-test -g", running(19)),
        ("S13", "top job", running(19)),
        ("S14", "top job mpi-test", running(19)),
        ("legacy-list", "list --legacy", cluster([OLD, MPI], PODS, after=8)),
        ("legacy-get", "get mpi-test --legacy", running(19)),
        ("legacy-top-job", "top job --legacy", running(19)),
        ("legacy-top-job-one", "top job mpi-test --legacy", running(19)),
    ],
)
def test_blocks(name: str, line: str, snapshot: ClusterSnapshot) -> None:
    printed = run_command(line, snapshot)
    assert (printed.out, printed.err, printed.status) == (sample(name), "", 0)
