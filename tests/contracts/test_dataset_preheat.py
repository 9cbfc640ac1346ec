"""Contract: `fairlead dataset preheat` over both worlds, with Fluid's own definitions. The test
writes the status as Fluid's controllers write it (docs/spec/datasets.md#preheat).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.contracts.api_client import until
from tests.contracts.data_objects import DataSpace
from tests.kube.servers import FAIRLEAD, environment

pytestmark = pytest.mark.turns(2, 1)

SECONDS = 60.0


@contextmanager
def running(space: DataSpace, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A `fairlead dataset` command whose output can be read while it runs."""
    command = [*FAIRLEAD, "dataset", *words, "-n", space.space, f"--kubeconfig={space.kubeconfig}"]
    with subprocess.Popen(
        command,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        try:
            yield program
        finally:
            program.kill()


def line_with(program: subprocess.Popen[str], part: str) -> str:
    """The next line that contains the part; fails when the command ends without one."""
    assert program.stdout is not None
    seen = []
    for line in program.stdout:
        seen.append(line)
        if part in line:
            return line
    raise AssertionError(f"no line with `{part}` in {''.join(seen)}")


def bound_data_set(space: DataSpace, **status: Any) -> None:
    space.fluid_object("Dataset", "faces", {"mounts": [{"mountPoint": "pvc://raw"}]})
    space.fluid_object("AlluxioRuntime", "faces", {"replicas": 2})
    space.status("Dataset", "faces", {"phase": "Bound", "conditions": [], **status})


def only_load(space: DataSpace) -> dict[str, Any]:
    place = f"{space.fluid}/dataloads"
    until("the DataLoad exists", lambda: len(space.api.get(place).body["items"]) == 1)
    load: dict[str, Any] = space.api.get(place).body["items"][0]
    return load


def test_a_preheat_shows_what_is_cached_until_it_is_complete(data_space: DataSpace) -> None:
    space = data_space
    bound_data_set(space)
    with running(space, "preheat", "faces", "--path", "images", "--replicas", "2") as program:
        load = only_load(space)
        name = load["metadata"]["name"]
        assert load["spec"]["target"] == [{"path": "/images", "replicas": 2}]
        assert load["spec"]["loadMetadata"] is True
        assert load["metadata"]["annotations"]["fairlead.io/operation"] in name
        states = {"cached": "256.00MiB"}
        space.status("Dataset", "faces", {"ufsTotal": "1.00GiB", "cacheStates": states})
        begun = {"phase": "Executing", "duration": "Unfinished", "conditions": []}
        space.status("DataLoad", name, begun)
        line_with(program, "Executing; 256.00MiB of 1.00GiB cached")
        second = space.run("preheat", "faces", "--dry-run", status=1)
        assert f"an operation of Fluid runs on `faces`: `{name}`" in second
        space.status("DataLoad", name, {"phase": "Complete", "duration": "5s", "conditions": []})
        line_with(program, f"data set {space.space}/faces: preheated")
        assert program.wait(SECONDS) == 0


def test_a_preheat_that_fails_reports_fluids_reason(data_space: DataSpace) -> None:
    space = data_space
    bound_data_set(space)
    with running(space, "preheat", "faces") as program:
        name = only_load(space)["metadata"]["name"]
        failed = {
            "type": "Failed",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
            "lastProbeTime": "2026-01-02T03:04:05Z",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
        space.status(
            "DataLoad", name, {"phase": "Failed", "duration": "5s", "conditions": [failed]}
        )
        line_with(program, "Job has reached the specified backoff limit")
        assert program.wait(SECONDS) == 1


def test_a_scheduled_preheat_is_created_once_and_not_waited_for(data_space: DataSpace) -> None:
    space = data_space
    bound_data_set(space)
    assert "preheat created" in space.run("preheat", "faces", "--schedule", "0 3 * * *")
    load = only_load(space)
    assert (load["spec"]["policy"], load["spec"]["schedule"]) == ("Cron", "0 3 * * *")
    again = space.run("preheat", "faces", "--schedule", "@daily", status=1)
    assert "`faces` is preheated by the schedule `0 3 * * *` already" in again


def test_bad_input_is_refused_and_writes_nothing(data_space: DataSpace) -> None:
    space = data_space
    bound_data_set(space)
    for words, part in (
        (("--replicas", "0"), "--replicas is `0`"),
        (("--wait", "nan"), "`nan` is no number of seconds"),
        (("--wait=-1",), "`-1` is no number of seconds"),
        (("--replicas", "3"), "3 copies need as many workers; there are 2"),
        (("--schedule", "often"), "--schedule is `often`: "),
        (("--schedule", "TZ=UTC 0 3 * * *"), "it names a time zone"),
        (("--path", "/a b"), "`/a b` is no path that Fluid can load"),
        (("--path", "../../etc"), "`/../../etc` is no path"),
    ):
        assert part in space.run("preheat", "faces", *words, status=1)
    assert f"there is no data set `{space.space}/none`" in space.run("preheat", "none", status=1)
    space.status("Dataset", "faces", {"phase": "NotBound"})
    assert "bound: `faces` is NotBound" in space.run("preheat", "faces", status=1)
    assert "`faces` is NotBound" in space.run("preheat", "faces", "--dry-run", status=1)
    assert space.api.get(f"{space.fluid}/dataloads").body["items"] == []
