"""Before a preheat, and how far it is (docs/spec/datasets.md#preheat)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.model.installed.finding import Finding, State
from fairlead.model.jobs.data_details import DataLoad, Preheat
from fairlead.model.jobs.datasets import DataMount, DataRuntime, DataSet
from fairlead.rules.data.preheat import check_preheat, load_name, load_progress
from fairlead.wire.data.data_load import render_preheat

BOUND = DataSet("n", "d", (DataMount("pvc://raw"),), phase="Bound")
ALLUXIO = DataRuntime("AlluxioRuntime", "n", "d", 2, 2)
ASKED = Preheat("n", "d")
RUNNING = DataLoad("n", "one", "d", "Executing")


def found(
    data_set: DataSet = BOUND,
    runtimes: Sequence[DataRuntime] = (ALLUXIO,),
    loads: Sequence[DataLoad] | None = (),
    **more: Any,
) -> list[Finding]:
    return check_preheat(data_set, runtimes, loads, replace(ASKED, **more))


def test_all_checks_are_reported() -> None:
    assert [(each.check, each.state) for each in found()] == [
        (check, State.OK) for check in ("bound", "runtime", "one-at-a-time", "paths", "replicas")
    ]


CASES: list[tuple[str, list[Finding], str, State]] = [
    ("not bound", found(replace(BOUND, phase="NotBound")), "bound: `d` is NotBound", State.FAIL),
    ("no phase", found(replace(BOUND, phase="")), "bound: `d` is Pending", State.FAIL),
    (
        "being deleted",
        found(replace(BOUND, is_ending=True)),
        "bound: `d` is being deleted",
        State.FAIL,
    ),
    (
        "no runtime",
        found(runtimes=()),
        "runtime: no runtime has the name `d`; "
        "replicas: 1 copies need as many workers; there are 0",
        State.FAIL,
    ),
    (
        "two runtimes",
        found(runtimes=(ALLUXIO, replace(ALLUXIO, kind="JindoRuntime"))),
        "runtime: 2 runtimes have the name `d`",
        State.FAIL,
    ),
    (
        "a runtime without DataLoads",
        found(runtimes=(replace(ALLUXIO, kind="ThinRuntime"),)),
        "runtime: a ThinRuntime cannot preheat",
        State.FAIL,
    ),
    (
        "another one runs",
        found(loads=(RUNNING,)),
        "one-at-a-time: an operation of Fluid runs on `d`: `one`",
        State.FAIL,
    ),
    (
        "another one waits",
        found(loads=(replace(RUNNING, phase=""),)),
        "one-at-a-time: an operation of Fluid runs on `d`: `one`",
        State.FAIL,
    ),
    (
        "another operation of Fluid",
        found(replace(BOUND, operations=("DataBackup b",))),
        "one-at-a-time: an operation of Fluid runs on `d`: `DataBackup b`",
        State.FAIL,
    ),
    ("one that has ended", found(loads=(replace(RUNNING, phase="Failed"),)), "", State.FAIL),
    ("of another data set", found(loads=(replace(RUNNING, data_set="e"),)), "", State.FAIL),
    (
        "beside a schedule that waits",
        found(loads=(replace(RUNNING, phase="Pending", schedule="0 3 * * *"),)),
        "",
        State.FAIL,
    ),
    (
        "a schedule that has not run yet",
        found(
            replace(BOUND, operations=("DataLoad one",)),
            loads=(replace(RUNNING, schedule="0 3 * * *"),),
        ),
        "one-at-a-time: the schedule `0 3 * * *` of `one` holds `d`: for Fluid it runs until its "
        "first run has ended",
        State.FAIL,
    ),
    (
        "a second schedule",
        found(loads=(replace(RUNNING, schedule="0 3 * * *"),), schedule="0 4 * * *"),
        "one-at-a-time: `d` is preheated by the schedule `0 3 * * *` already",
        State.FAIL,
    ),
    (
        "loads that may not be read",
        found(loads=None),
        "one-at-a-time: DataLoads may not be read; the data set reports no operation of Fluid",
        State.UNKNOWN,
    ),
    *(
        (
            f"path {path!r}",
            found(paths=("/fine", path)),
            f"paths: `{path}` is no path that Fluid can load",
            State.FAIL,
        )
        for path in ("/a b", "/a:b", "/../etc", "/a/..", "relative", "/$(id)", "/a;b", "/*", "/a\n")
    ),
    ("paths that are fine", found(paths=("/", "/a..b/c_d-1.tar", "/数据")), "", State.FAIL),
    (
        "more copies than workers",
        found(replicas=3),
        "replicas: 3 copies need as many workers; there are 2",
        State.FAIL,
    ),
]


@pytest.mark.parametrize(
    ("findings", "sentence", "state"),
    [each[1:] for each in CASES],
    ids=[each[0] for each in CASES],
)
def test_a_preheat_that_cannot_work_has_its_reason(
    findings: list[Finding], sentence: str, state: State
) -> None:
    bad = [each for each in findings if each.state is not State.OK]
    assert "; ".join(f"{each.check}: {each.sentence}" for each in bad) == sentence
    assert all(each.state is state for each in bad)
    assert all(each.mend for each in bad if each.state is State.FAIL)


@pytest.mark.parametrize("name", ["d", "a" * 45, "a" * 32 + "-bc", "x-y"])
def test_the_name_of_a_load_is_short_and_legal(name: str) -> None:
    """The release is `NAME-loader`, which Helm takes up to 53 letters."""
    load = load_name(name, "a1b2c3d4e5f6")
    assert len(f"{load}-loader") <= 53
    assert load.endswith("-a1b2c3d4e5f6")
    assert "--" not in load


@pytest.mark.parametrize(
    ("point", "is_native"),
    [("pvc://raw", True), ("local:///mnt", True), ("s3://b", False), ("https://h/", False)],
)
def test_native_sources_have_their_metadata_read(point: str, is_native: bool) -> None:
    data_set = DataSet("n", "d", (DataMount(point),))
    made = render_preheat(replace(ASKED, paths=("/a", "/b"), replicas=2), data_set, "d-1")
    assert made["spec"] == {
        "dataset": {"name": "d", "namespace": "n"},
        "loadMetadata": is_native,
        "target": [{"path": "/a", "replicas": 2}, {"path": "/b", "replicas": 2}],
    }


def test_a_schedule_is_written_with_its_policy() -> None:
    made = render_preheat(replace(ASKED, schedule="0 3 * * *"), BOUND, "d-1")
    assert (made["spec"]["policy"], made["spec"]["schedule"]) == ("Cron", "0 3 * * *")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (None, ""),
        ({}, ""),
        ({"ufsTotal": "1.00GiB"}, ""),
        ({"ufsTotal": "1.00GiB", "cacheStates": {"cached": "[Calculating]"}}, ""),
        ({"ufsTotal": "[Calculating]", "cacheStates": {"cached": "0.00B"}}, "0.00B cached"),
        (
            {"ufsTotal": "1.00GiB", "cacheStates": {"cached": "512.00MiB"}},
            "512.00MiB of 1.00GiB cached",
        ),
    ],
)
def test_progress_is_what_fluid_reports_and_else_absent(status: Any, text: str) -> None:
    assert load_progress({"status": status}) == text
