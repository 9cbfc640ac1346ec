"""`arena prune`: which jobs are deleted, which stay, and what is printed; `arena logviewer`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.cli import command
from tests.cli.command import Printed, run_command
from tests.cli.job_objects import cluster, job

from fairlead.cli.snapshot.jobs import SnapshotJobs
from fairlead.errors import OutsideError, UserError
from fairlead.kinds.parts.kind import JobKind
from fairlead.model.jobs.job import Job
from fairlead.model.snapshot import ClusterSnapshot

HOUR = 3600.0
JOBS = [
    job(
        "MPIJob",
        "old",
        {"Worker": (1, 1)},
        states=["Succeeded"],
        created=-72 * HOUR,
        ended=-71 * HOUR,
    ),
    job("TFJob", "failed", {"Worker": (1, 1)}, states=["Failed"], created=-10 * HOUR, ended=-1.0),
    job(
        "TFJob",
        "young",
        {"Worker": (1, 1)},
        states=["Succeeded"],
        created=-10 * HOUR + 1,
        ended=-1.0,
    ),
    job("PyTorchJob", "runs", {"Master": (1, 1)}, created=-72 * HOUR),
    job(
        "PyTorchJob",
        "waits",
        {"Master": (1, 1)},
        states=["Created"],
        started=None,
        created=-72 * HOUR,
    ),
    job(
        "PyTorchJob",
        "aside",
        {"Master": (1, 1)},
        states=["Suspended"],
        started=None,
        created=-72 * HOUR,
    ),
    job(
        "MPIJob",
        "far",
        {"Worker": (1, 1)},
        states=["Failed"],
        namespace="other",
        created=-72 * HOUR,
    ),
]


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of deleted jobs; deleting the job `far` fails."""
    found: list[str] = []

    def delete(_: SnapshotJobs, kind: JobKind, job: Job) -> bool:
        if job.name == "far":
            raise OutsideError("kubernetes", "the server is tired")
        found.append(f"{kind.TYPE} {job.namespace}/{job.name}")
        return True

    monkeypatch.setattr(command.SnapshotJobs, "delete", delete)
    return found


def prune(line: str, jobs: Sequence[object] = JOBS) -> Printed:
    return run_command(f"prune {line}", cluster(jobs))  # type: ignore[arg-type]


def test_only_what_is_over_and_old_enough(deleted: list[str]) -> None:
    """Oldest first. Exactly ten hours is old enough."""
    result = prune("-s 10h")
    assert (
        result.out == "Delete mpijob old with Age 3d \nDelete tfjob failed with Age 10h \n"
        and result.status == 0
    )
    assert sorted(deleted) == ["mpijob default/old", "tfjob default/failed"]


def test_a_failure_is_reported_and_the_others_go(deleted: list[str]) -> None:
    result = prune("--since 1d -A")
    assert result.status == 1 and "failed to delete mpijob far: the server is tired" in result.err
    assert deleted == ["mpijob default/old"] and "Delete mpijob far with Age 3d \n" in result.out


def test_a_dry_run_deletes_nothing(deleted: list[str]) -> None:
    result = prune("-s 1d -A --dry-run")
    assert (result.status, deleted, result.out.count("Delete ")) == (0, [], 2)
    assert "nothing was deleted" in result.err


def test_nothing_to_do(deleted: list[str]) -> None:
    assert prune("-s 1000d").out == prune("-s 1s", []).out == "No job need to be deleted\n"
    assert deleted == []


@pytest.mark.parametrize("line", ["", "-A"])
def test_since_is_required(line: str, deleted: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        prune(line)
    assert caught.value.what == 'required flag(s) "since" not set'
    assert deleted == []


@pytest.mark.parametrize("span", ["10", "-1h", "1x", "h", "1h30"])
def test_spans_that_are_none(span: str, deleted: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        prune(f"--since={span} -A")
    assert caught.value.what == (
        f"invalid value for --since: `{span}` is not a length of time such as `90s`, `20m`, `1h30m`"
    )
    assert deleted == []


def test_logviewer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_command("logviewer old", cluster(JOBS)).out == "No LogViewer Installed\n"
    monkeypatch.setattr(command.OneWorld, "console", lambda _: "http://127.0.0.1:8080/")
    printed = run_command("logviewer old -T mpi", cluster(JOBS)).out
    assert printed == (
        "Your LogViewer will be available "
        "on:\nhttp://127.0.0.1:8080/jobs/default/mpijob/old?tab=logs\n"
    )
    with pytest.raises(UserError) as caught:
        run_command("logviewer nope", ClusterSnapshot())
    assert (
        caught.value.what
        == "training job not found,please use 'arena list' to make sure job is existed"
    )
